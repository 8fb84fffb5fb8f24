// SPDX-License-Identifier: Apache-2.0
// Work that a device finishes after its waiters have gone on: who waits for its end, and who does
// not.
#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <thread>

#include "tests/runtime/engine/fake_device.h"

namespace hvd::rt {
namespace {

using test::DeviceSum;
using test::FakeStream;
using test::FillDeviceSum;
using test::FillSum;
using test::Problems;
using test::RunDevices;
using test::Soon;
using test::Sum;

// The ranks of what follows: on one host, then on two.
std::vector<HostShape> Hosts() {
  const bool two = GENERATE(false, true);
  return two ? std::vector<HostShape>{{"a", 1}, {"b", 1}} : std::vector<HostShape>{{"a", 2}};
}

void FillJoin(Request* request) {
  request->name = "\x03join";
  request->signature.kind = RequestKind::kJoin;
}

// A call of a rank that waits, on a thread of its own.
class Beside {
 public:
  Beside(Engine& engine, std::function<void()> call) : call_(std::move(call)) {
    const uint32_t before = CallersOf(engine);
    thread_ = std::thread([this] {
      call_();
      over_ = true;
    });
    while (CallersOf(engine) == before && !over_) std::this_thread::yield();  // it is in the call
  }
  ~Beside() { Join(); }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  bool over() const { return over_; }
  // Whether it ends in a while in which it ought not to.
  bool IsOverSoon() const {
    for (const auto end = Soon(); !over_ && Engine::Clock::now() < end;) std::this_thread::yield();
    return over_;
  }

 private:
  static uint32_t CallersOf(Engine& engine) { return ActivityAt(engine.world().watch()).callers; }
  const std::function<void()> call_;
  std::atomic<bool> over_{false};
  std::thread thread_;
};

TEST_CASE("who waits for a request goes on when it is launched, and its name may be used again") {
  const std::vector<HostShape> hosts = Hosts();
  CHECK(RunDevices(
            [](Engine& engine, FakeStream& stream, Problems& problems) {
              for (size_t i = 1; i <= 3; ++i) {
                problems.Expect(DeviceSum(engine, "x").ok(), "sum");
                problems.Expect(stream.launches() == i, "not launched");
              }
              std::vector<float> data(4, 1.0f);
              problems.Expect(Sum(engine, "x", &data).ok(), "the same name on the CPU");
              for (size_t i = 0; i < 3; ++i) stream.Finish(i);
            },
            {}, hosts) == "");
}

TEST_CASE("a drain waits until the device has finished what was submitted before") {
  const std::vector<HostShape> hosts = Hosts();
  CHECK(RunDevices(
            [](Engine& engine, FakeStream& stream, Problems& problems) {
              problems.Expect(DeviceSum(engine, "x").ok() && DeviceSum(engine, "y").ok(), "sums");
              std::atomic<bool> may_end{false};
              Beside drain(engine, [&] {
                Engine::Earlier(&engine).Await();
                problems.Expect(may_end, "a drain that did not wait");
              });
              std::vector<float> data(4, 1.0f);
              problems.Expect(Sum(engine, "on the CPU", &data).ok(), "a sum meanwhile");
              problems.Expect(DeviceSum(engine, "later").ok(), "one that it does not wait for");
              stream.Finish(1);
              problems.Expect(Sum(engine, "on the CPU", &data).ok(), "a sum meanwhile");
              problems.Expect(!drain.IsOverSoon(), "over before x has finished");
              may_end = true;
              stream.Finish(0);
              drain.Join();
              stream.Finish(2);
            },
            {}, hosts) == "");
}

TEST_CASE("a drain that begins before the launch waits for the device too") {
  const std::vector<HostShape> hosts = Hosts();
  std::atomic<bool> drains{false};
  CHECK(RunDevices(
            [&](Engine& engine, FakeStream& stream, Problems& problems) {
              if (engine.world().rank() == 1) {
                while (!drains) std::this_thread::yield();
                problems.Expect(DeviceSum(engine, "x").ok() && DeviceSum(engine, "y").ok(), "sums");
                stream.Finish(0);
                stream.Finish(1);
                return;
              }
              std::vector<float> data(1000);
              std::deque<Request> sums(2);
              for (Request& sum : sums) {
                FillDeviceSum(&sum, &sum == &sums[0] ? "x" : "y", &data);
                problems.Expect(engine.Submit(&sum).ok(), "submit");
              }
              std::atomic<bool> may_end{false};
              Beside drain(engine, [&] {
                Engine::Earlier(&engine).Await();
                problems.Expect(may_end, "a drain that did not wait");
              });
              drains = true;
              for (Request& sum : sums) problems.Expect(engine.Wait(&sum).ok(), "wait");
              stream.Finish(0);
              problems.Expect(!drain.IsOverSoon(), "over before y has finished");
              may_end = true;
              stream.Finish(1);
              drain.Join();
            },
            {}, hosts) == "");
}

TEST_CASE("who leaves waits until his device has finished, and for no other's") {
  const std::vector<HostShape> hosts = Hosts();
  std::atomic<bool> other_has_left{false};
  CHECK(RunDevices(
            [&](Engine& engine, FakeStream& stream, Problems& problems) {
              problems.Expect(DeviceSum(engine, "x").ok(), "sum");
              if (engine.world().rank() == 1) {
                stream.Finish(0);
                engine.Shutdown();
                other_has_left = true;
                return;
              }
              Beside leave(engine, [&] { engine.Shutdown(); });
              while (!other_has_left) std::this_thread::yield();
              problems.Expect(!leave.IsOverSoon(), "left with something on the device");
              stream.Finish(0);
              leave.Join();
              problems.Expect(stream.aborts().empty(), "aborted: " + stream.aborts());
            },
            {}, hosts) == "");
}

TEST_CASE("a rank's join returns when its device has finished, also what only others brought") {
  const std::vector<HostShape> hosts = Hosts();
  std::atomic<bool> other_is_back{false};
  CHECK(RunDevices(
            [&](Engine& engine, FakeStream& stream, Problems& problems) {
              Request join;
              FillJoin(&join);
              if (engine.world().rank() == 1) {
                problems.Expect(DeviceSum(engine, "of one").ok(), "sum");
                stream.Finish(0);
                problems.Expect(engine.Run(&join).ok(), "join");
                other_is_back = true;
                std::vector<float> data(4, 1.0f);
                problems.Expect(Sum(engine, "after", &data).ok(), "a sum after it");
                return;
              }
              problems.Expect(engine.Submit(&join).ok(), "submit");
              stream.AwaitLaunches(1);  // this rank has asked for nothing
              while (!other_is_back) std::this_thread::yield();
              problems.Expect(!engine.WaitUntil(&join, Soon()),
                              "joined with something on the device");
              stream.Finish(0);
              problems.Expect(engine.Wait(&join).ok(), "join");
              std::vector<float> data(4, 1.0f);
              problems.Expect(Sum(engine, "after", &data).ok(), "a sum after it");
            },
            {}, hosts) == "");
}

TEST_CASE("the epoch's end ends every wait for a device that never finishes, with its cause") {
  const std::vector<HostShape> hosts = Hosts();
  std::atomic<int> waiting{0};
  CHECK(RunDevices(
            [&](Engine& engine, FakeStream& stream, Problems& problems) {
              problems.Expect(DeviceSum(engine, "x").ok(), "sum");
              Request join;
              FillJoin(&join);
              problems.Expect(engine.Submit(&join).ok(), "join");
              Beside drain(engine, [&] { Engine::Earlier(&engine).Await(); });
              ++waiting;
              if (engine.world().rank() == 0) {
                while (waiting < 2) std::this_thread::yield();
                problems.Expect(!drain.over(), "drained");
                AbortEpoch(engine.world().page(), "rank 1 has burnt", engine.world().event_fds());
              }
              drain.Join();
              const absl::Status joined = engine.Wait(&join);
              problems.Expect(joined == absl::AbortedError("rank 1 has burnt"), joined.ToString());
              engine.Shutdown();
              problems.Expect(stream.aborts() == "rank 1 has burnt", "aborts: " + stream.aborts());
              stream.Finish(0);  // nobody listens any more
              Engine::Earlier(&engine).Await();
              const absl::Status after = DeviceSum(engine, "y");
              problems.Expect(absl::IsAborted(after), after.ToString());
            },
            {}, hosts) == "");
}

TEST_CASE("a shutdown that waits for the device ends with the epoch") {
  const std::vector<HostShape> hosts = Hosts();
  std::atomic<int> leaving{0};
  CHECK(
      RunDevices(
          [&](Engine& engine, FakeStream& stream, Problems& problems) {
            problems.Expect(DeviceSum(engine, "x").ok(), "sum");
            Beside leave(engine, [&] { engine.Shutdown(); });
            ++leaving;
            while (leaving < 2) std::this_thread::yield();
            if (engine.world().rank() == 0) {
              AbortEpoch(engine.world().page(), "the job was stopped", engine.world().event_fds());
            }
            leave.Join();
            problems.Expect(stream.aborts() == "the job was stopped", "aborts: " + stream.aborts());
          },
          {}, hosts) == "");
}

TEST_CASE("a failure that the device tells later ends the epoch for all") {
  const std::vector<HostShape> hosts = Hosts();
  std::atomic<bool> submitted{false};
  CHECK(RunDevices(
            [&](Engine& engine, FakeStream& stream, Problems& problems) {
              problems.Expect(DeviceSum(engine, "x").ok() && DeviceSum(engine, "y").ok(), "sums");
              absl::Status ended;
              if (engine.world().rank() == 0) {
                while (!submitted) std::this_thread::yield();
                stream.Finish(1, absl::UnavailableError("an uncorrectable error in its memory"));
                Engine::Earlier(&engine).Await();
                ended = DeviceSum(engine, "z");
              } else {
                Request never;
                std::vector<float> data(4);
                FillDeviceSum(&never, "never", &data);
                problems.Expect(engine.Submit(&never).ok(), "submit");
                submitted = true;
                ended = engine.Wait(&never);
              }
              problems.Expect(
                  ended == absl::AbortedError("allreduce 'y' failed on the device of rank 0: "
                                              "an uncorrectable error in its memory"),
                  ended.ToString());
              problems.Expect(stream.aborts() == ended.message(), "aborts: " + stream.aborts());
            },
            {}, hosts) == "");
}

TEST_CASE("a run that the device refuses fails alone; one that it cannot launch ends the epoch") {
  const std::vector<HostShape> hosts = Hosts();
  CHECK(RunDevices(
            [](Engine& engine, FakeStream& stream, Problems& problems) {
              stream.Refuse(absl::InvalidArgumentError("no such type on this device"));
              const absl::Status refused = DeviceSum(engine, "x");
              problems.Expect(absl::IsInvalidArgument(refused), refused.ToString());
              Engine::Earlier(&engine).Await();
              stream.Refuse(absl::OkStatus());
              problems.Expect(DeviceSum(engine, "x").ok(), "a sum after it");
              stream.Finish(0);
              Engine::Earlier(&engine).Await();
              stream.Refuse(absl::InternalError("it has fallen off the bus"));
              const absl::Status broken = DeviceSum(engine, "x");
              problems.Expect(
                  broken == absl::AbortedError("allreduce 'x' cannot be put on the device: "
                                               "it has fallen off the bus"),
                  broken.ToString());
            },
            {}, hosts) == "");
}

TEST_CASE("where a process uses no device, what lies on one ends the epoch") {
  CHECK(test::RunWorld({{"a", 2}}, [](Engine& engine, Problems& problems) {
          const absl::Status ended = DeviceSum(engine, "x");
          problems.Expect(absl::IsAborted(ended), ended.ToString());
          problems.Expect(ended.message() ==
                              "allreduce 'x' cannot be put on the device: this process uses none",
                          ended.ToString());
        }) == "");
}

TEST_CASE("ends are told from another thread while the rank submits on two") {
  const std::vector<HostShape> hosts = Hosts();
  constexpr size_t kSums = 300;
  CHECK(RunDevices(
            [&](Engine& engine, FakeStream& stream, Problems& problems) {
              std::thread finishes([&] {
                for (size_t i = 0; i < kSums; i += 2) {
                  stream.AwaitLaunches(i + 2);
                  stream.Finish(i + 1);
                  stream.Finish(i);
                }
              });
              std::thread beside([&] {
                for (size_t i = 0; i < kSums; ++i) {
                  std::vector<float> data(i % 2 == 0 ? 4 : 4000, 1.0f);
                  problems.Expect(Sum(engine, "on the CPU", &data).ok(), "sum");
                  problems.Expect(data.back() == 2.0f, "a wrong sum");
                  if (i % 10 == 0) Engine::Earlier(&engine).Await();
                }
              });
              std::vector<float> data(1000);
              for (size_t i = 0; i < kSums; ++i) {
                Request request;
                FillDeviceSum(&request, "x" + std::to_string(i % 7), &data);
                problems.Expect(engine.Submit(&request).ok() && engine.Wait(&request).ok(), "sum");
              }
              finishes.join();
              beside.join();
              Engine::Earlier(&engine).Await();
              problems.Expect(stream.launches() == kSums, "a launch is missing");
              problems.Expect(ReadWork(ActivityAt(engine.world().watch()).device).number == 0,
                              "unfinished");
              problems.Expect(ActivityAt(engine.world().watch()).calls == 2 * kSums,
                              "a call is missing");
            },
            {}, hosts) == "");
}

TEST_CASE("tensors of a device are launched together, and not with those of the host") {
  const std::vector<HostShape> hosts = Hosts();
  CHECK(RunDevices(
            [](Engine& engine, FakeStream& stream, Problems& problems) {
              std::vector<float> data(2000, 1.0f), on_host(2000, 1.0f);
              std::deque<Request> requests(4);
              for (size_t i = 0; i < 3; ++i) FillDeviceSum(&requests[i], std::to_string(i), &data);
              FillSum(&requests[3], "3", &on_host);
              for (Request& one : requests) problems.Expect(engine.Submit(&one).ok(), "submit");
              for (Request& one : requests) problems.Expect(engine.Wait(&one).ok(), "wait");
              problems.Expect(on_host.back() == 2.0f, "a wrong sum on the host");
              size_t entries = 0;
              for (size_t i = 0; i < stream.launches(); ++i) {
                entries += stream.entries(i);
                stream.Finish(i);
              }
              problems.Expect(entries == 3, std::to_string(entries) + " were launched");
            },
            {}, hosts) == "");
}

}  // namespace
}  // namespace hvd::rt
