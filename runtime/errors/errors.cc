// SPDX-License-Identifier: Apache-2.0
#include "runtime/errors/errors.h"

#include <pthread.h>

#include <atomic>
#include <memory>

#include "base/printable.h"
#include "runtime/engine/request/request.h"
#include "runtime/errors/forked.h"

namespace hvd::rt {
namespace {

struct LastError {
  std::string message;
  hvd_status_t code = HVD_OK;
  int rank = -1;
  std::string host;
  std::string name;
};

// A thread's last error. The compiler's own thread_local objects are registered at a thread's first
// use of them, and the C library ends the process when it has no memory for that; this one then
// does without words.
class LastErrors {
 public:
  LastErrors() { has_key_ = pthread_key_create(&key_, &Delete) == 0; }
  // A library that is unloaded leaves nothing behind that calls it.
  ~LastErrors() {
    if (has_key_) pthread_key_delete(key_);
  }
  LastErrors(const LastErrors&) = delete;
  LastErrors& operator=(const LastErrors&) = delete;

  // Empty; throws without memory.
  LastError& Begin() {
    if (mine_ == nullptr) {
      auto made = std::make_unique<LastError>();
      if (!has_key_ || pthread_setspecific(key_, made.get()) != 0) throw std::bad_alloc();
      mine_ = made.release();
    }
    wordless_ = HVD_OK;
    return *mine_ = LastError();
  }
  // The one that there is; null: none, or it has no words.
  static LastError* Current() { return wordless_ == HVD_OK ? mine_ : nullptr; }
  static void SetWordless(hvd_status_t code) { wordless_ = code; }
  static hvd_status_t wordless() { return wordless_; }

 private:
  static void Delete(void* error) {
    mine_ = nullptr;
    delete static_cast<LastError*>(error);
  }

  static thread_local LastError* mine_;  // the key's
  static thread_local hvd_status_t wordless_;
  pthread_key_t key_ = 0;
  bool has_key_ = false;
};
thread_local LastError* LastErrors::mine_ = nullptr;
thread_local hvd_status_t LastErrors::wordless_ = HVD_OK;
LastErrors last_errors;

constexpr char kWordless[] = "out of memory";

std::atomic<FindCulprit> find_culprit{nullptr};

void NoteCulprit(LastError* error) {
  const FindCulprit find = find_culprit.load(std::memory_order_acquire);
  if (find == nullptr) return;
  Culprit culprit = find();
  error->rank = culprit.rank;
  error->host = std::move(culprit.host);
}

hvd_status_t Code(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return HVD_OK;
    case absl::StatusCode::kInvalidArgument:
      return HVD_ERR_INVALID;
    case absl::StatusCode::kFailedPrecondition:
      return HVD_ERR_MISMATCH;
    case absl::StatusCode::kAlreadyExists:
      return HVD_ERR_DUPLICATE;
    case absl::StatusCode::kAborted:
      return HVD_ERR_ABORTED;
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kResourceExhausted:
      return HVD_ERR_UNSUPPORTED;
    case absl::StatusCode::kDeadlineExceeded:
      return HVD_ERR_TIMEOUT;
    case absl::StatusCode::kCancelled:
      return HVD_ERR_REMOVED;
    default:
      return HVD_ERR_INTERNAL;
  }
}

}  // namespace

hvd_status_t Fail(hvd_status_t code, std::string message) {
  std::string shown = PrintableLines(message);  // whoever named what it speaks of
  LastError& error = last_errors.Begin();
  error.message = std::move(shown);
  error.code = code;
  return code;
}

hvd_status_t FailWordless(hvd_status_t code) noexcept {
  LastErrors::SetWordless(code);
  return code;
}

hvd_status_t FailThrown(const std::exception& error) noexcept {
  try {
    return Fail(HVD_ERR_INTERNAL, error.what());
  } catch (const std::bad_alloc&) {
    return FailWordless(HVD_ERR_INTERNAL);
  }
}

// The code counts more than the words: whoever hears of an end must not lose it.
hvd_status_t Return(const absl::Status& status) {
  if (status.ok()) return HVD_OK;
  const hvd_status_t code = Code(status);
  try {
    Fail(code, std::string(status.message()));
    if (code == HVD_ERR_ABORTED) NoteCulprit(LastErrors::Current());
    return code;
  } catch (const std::bad_alloc&) {
    return FailWordless(code);
  }
}

hvd_status_t NoteName(hvd_status_t code, std::string_view name) {
  LastError* const error = LastErrors::Current();
  if (code == HVD_OK || IsReserved(name) || error == nullptr) return code;
  try {
    error->name = PrintableLines(name);
  } catch (const std::bad_alloc&) {  // then it has none
  }
  return code;
}

hvd_status_t ReturnExecuted(const absl::Status& status) {
  const hvd_status_t code = Return(status);
  if (code != HVD_ERR_INVALID) return code;
  LastError* const error = LastErrors::Current();
  if (error == nullptr) return FailWordless(HVD_ERR_MISMATCH);
  return error->code = HVD_ERR_MISMATCH;
}

hvd_status_t NotInitialized() {
  if (IsForkedChild()) {
    return Fail(HVD_ERR_NOT_INITIALIZED,
                "this process was forked from one that has used hvd, and cannot use it; start it "
                "with exec instead");
  }
  return Fail(HVD_ERR_NOT_INITIALIZED,
              "hvd is not initialized: call hvd_init, or in C++ hvd::init, first");
}

void FindCulpritsBy(FindCulprit find) { find_culprit.store(find, std::memory_order_release); }

const char* LastMessage() {
  if (LastErrors::wordless() != HVD_OK) return kWordless;
  const LastError* const last = LastErrors::Current();
  return last != nullptr ? last->message.c_str() : "";
}

hvd_error_info_t LastErrorInfo() {
  const LastError* const last = LastErrors::Current();
  if (last == nullptr) {
    return {sizeof(hvd_error_info_t), LastErrors::wordless(), -1, "", "", LastMessage()};
  }
  return {sizeof(hvd_error_info_t), last->code,         last->rank,
          last->host.c_str(),       last->name.c_str(), last->message.c_str()};
}

}  // namespace hvd::rt
