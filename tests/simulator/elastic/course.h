// SPDX-License-Identifier: Apache-2.0
// What a simulated process does, as a coroutine: it stops wherever the scheduler may go on with
// somebody else, and ends for good wherever its process dies.
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace hvd::elastic_simulator {

template <typename T>
class [[nodiscard]] Course {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;

  struct promise_type {
    T value{};
    std::coroutine_handle<> outer;  // who awaits it

    Course get_return_object() { return Course(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct ToOuter {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(Handle ended) noexcept {
          const std::coroutine_handle<> outer = ended.promise().outer;
          return outer ? outer : std::noop_coroutine();
        }
        void await_resume() noexcept {}
      };
      return ToOuter();
    }
    void return_value(T result) { value = std::move(result); }
    void unhandled_exception() { std::terminate(); }
  };

  explicit Course(Handle handle) : handle_(handle) {}
  Course(Course&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Course(const Course&) = delete;
  Course& operator=(const Course&) = delete;
  ~Course() {
    if (handle_) handle_.destroy();
  }

  // Another course waits for this one's end.
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> outer) noexcept {
    handle_.promise().outer = outer;
    return handle_;
  }
  T await_resume() { return std::move(handle_.promise().value); }

  // The outermost one.
  std::coroutine_handle<> handle() const { return handle_; }
  bool done() const { return handle_.done(); }
  const T& value() const { return handle_.promise().value; }

 private:
  Handle handle_;
};

}  // namespace hvd::elastic_simulator
