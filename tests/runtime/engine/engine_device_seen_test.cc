// SPDX-License-Identifier: Apache-2.0
// What is seen of work that a device finishes after its waiters have gone on.
#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/runtime/engine/fake_device.h"

namespace hvd::rt {
namespace {

using test::DeviceSum;
using test::FakeStream;
using test::FillDeviceSum;
using test::Problems;
using test::RunDevices;
using test::Soon;
using test::Sum;

TEST_CASE("what the device works on for the longest can be read, in whatever order it finishes") {
  CHECK(RunDevices([](Engine& engine, FakeStream& stream, Problems& problems) {
          const NotedWork& device = ActivityAt(engine.world().watch()).device;
          const auto reads = [&](uint64_t number, const std::string& text) {
            const WorkSeen seen = ReadWork(device);
            problems.Expect(seen.number == number && seen.text == text,
                            std::to_string(seen.number) + " " + seen.text + ", not " + text);
          };
          // An end has been heard when a call on the CPU has come after it on the same thread.
          const auto hear = [&] {
            std::vector<float> data(100000, 1.0f);
            problems.Expect(Sum(engine, "on the CPU", &data).ok(), "a sum");
          };
          reads(0, "");
          for (const char* name : {"x", "y", "z"}) {
            problems.Expect(DeviceSum(engine, name).ok(), "sum");
            reads(1, "allreduce 'x'");
          }
          stream.Finish(1);
          hear();
          reads(1, "allreduce 'x'");
          stream.Finish(0);
          hear();
          reads(3, "allreduce 'z'");
          const uint64_t calls = ActivityAt(engine.world().watch()).calls;
          stream.Finish(2);
          Engine::Earlier(&engine).Await();
          reads(0, "");
          problems.Expect(ActivityAt(engine.world().watch()).calls == calls + 1, "not counted");
        }) == "");
}

std::vector<TraceRecord> Spans(Engine& engine, Problems& problems) {
  std::string bytes;
  TraceCursor cursor;
  HostPage* const page = engine.world().page();
  DrainRing(&WatchOf(page, engine.world().rank()).trace, &cursor, 0, 1 << 20, &bytes);
  std::vector<TraceRecord> records;
  TraceDecoder decoder;
  problems.Expect(decoder.Take(bytes, &records), "no timeline");
  std::erase_if(records, [](const TraceRecord& one) { return !one.name.empty(); });
  return records;
}

TEST_CASE("a span of the timeline ends when the device has finished; one name's lie side by side") {
  CHECK(RunDevices([](Engine& engine, FakeStream& stream, Problems& problems) {
          engine.world().page()->tracing = 1;
          problems.Expect(DeviceSum(engine, "x").ok() && DeviceSum(engine, "x").ok(), "sums");
          const int64_t launched_ns = Timeline::Now();
          problems.Expect(Spans(engine, problems).empty(), "told before it has finished");
          stream.Finish(0);
          const int64_t first_ns = Timeline::Now();
          stream.Finish(1);
          Engine::Earlier(&engine).Await();
          const std::vector<TraceRecord> records = Spans(engine, problems);
          std::vector<TraceSpan> runs, operations;
          for (const TraceRecord& one : records) {
            const std::string name = ActivityName(one.span.activity);
            if (name == "DEVICE_REDUCE") runs.push_back(one.span);
            if (name == "ALLREDUCE") operations.push_back(one.span);
          }
          const bool all = runs.size() == 2 && operations.size() == 2;
          problems.Expect(all, std::to_string(records.size()) + " spans");
          if (!all) return;
          problems.Expect(runs[0].begin_ns < launched_ns, "begins too late");
          problems.Expect(runs[0].end_ns > launched_ns && runs[0].end_ns < first_ns, "its end");
          problems.Expect(runs[1].end_ns > first_ns, "the second's end");
          problems.Expect(runs[1].begin_ns >= runs[0].end_ns, "they overlap");
          for (int i : {0, 1}) {
            problems.Expect(operations[i].end_ns == runs[i].end_ns, "the operation's end");
          }
          for (const TraceRecord& a : records) {
            for (const TraceRecord& b : records) {
              const bool crossed = a.span.begin_ns < b.span.begin_ns &&
                                   b.span.begin_ns < a.span.end_ns && a.span.end_ns < b.span.end_ns;
              problems.Expect(!crossed, "two spans neither nest nor lie side by side");
            }
          }
        }) == "");
}

TEST_CASE("a sample of the search is over when the device has finished it") {
  EngineConfig config;
  config.autotune = true;
  config.autotune_warmup = 0;
  config.autotune_steps = 1;
  std::atomic<int> launched{0};
  CHECK(RunDevices(
            [&](Engine& engine, FakeStream& stream, Problems& problems) {
              problems.Expect(DeviceSum(engine, "x").ok(), "sum");
              ++launched;
              Request next;
              std::vector<float> data(4);
              FillDeviceSum(&next, "next", &data);
              problems.Expect(engine.Submit(&next).ok(), "submit");
              while (launched < 2) std::this_thread::yield();
              problems.Expect(!engine.WaitUntil(&next, Soon()), "the search went on");
              problems.Expect(stream.launches() == 1, "launched before the sample was over");
              stream.Finish(0);
              problems.Expect(engine.Wait(&next).ok(), "next");
              stream.Finish(1);
            },
            config) == "");
}

}  // namespace
}  // namespace hvd::rt
