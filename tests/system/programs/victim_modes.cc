// SPDX-License-Identifier: Apache-2.0
#include "tests/system/programs/victim_modes.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "hvd/hvd.hpp"

namespace victim {

int Number(const Arguments& arguments, size_t i, int otherwise) {
  return i < arguments.size() ? std::atoi(arguments[i].c_str()) : otherwise;
}

void Say(const std::string& text) {
  std::printf("%s rank %d\n", text.c_str(), hvd::rank());
  std::fflush(stdout);
}

void Sum() {
  float one = 1;
  hvd::allreduce(&one, 1, hvd::Op::kSum, "one");
}

void Join() {
  hvd::init();
  Sum();
  Say("joined");
}

void AwaitEnd(pid_t pid) {
  pollfd ended{static_cast<int>(syscall(SYS_pidfd_open, pid, 0)), POLLIN, 0};
  if (ended.fd < 0) return;  // it has gone, or is on another host
  poll(&ended, 1, 5000);
  close(ended.fd);
}

namespace {

// loop: sums for ever.
int Loop(const Arguments&) {
  Join();
  std::vector<float> data(100000, 1);
  while (true) hvd::allreduce(data, hvd::Op::kAverage, "loop");
}

// alltoall [BYTES]: every rank sends that much for ever; else 1 KB, 300 KB and 8 MB in turn.
int Alltoall(const Arguments& arguments) {
  Join();
  std::vector<size_t> sizes = {1 << 10, 300 << 10, 8 << 20};
  if (!arguments.empty()) sizes = {static_cast<size_t>(Number(arguments, 0, 0))};
  const std::vector<uint8_t> data(*std::max_element(sizes.begin(), sizes.end()));
  while (true) {
    for (const size_t size : sizes) hvd::alltoall(data.data(), size, 1);
  }
}

// wait: rank 0 waits for a tensor that the others never submit.
int Wait(const Arguments&) {
  Join();
  float value = 0;
  if (hvd::rank() == 0) hvd::allreduce(&value, 1, hvd::Op::kSum, "lonely");
  while (true) pause();
}

// wait-set: rank 0 waits for rank 1 in a process set that has come in the place of a removed one.
int WaitSet(const Arguments&) {
  Join();
  hvd::remove_process_set(hvd::add_process_set({0, 1}));
  hvd::Options options;
  options.process_set = hvd::add_process_set({0, 1});
  float value = 1;
  options.name = "shared";
  if (hvd::rank() < 2) hvd::allreduce(&value, 1, options);
  options.name = "lonely";
  if (hvd::rank() == 0) hvd::allreduce(&value, 1, options);
  while (true) pause();
}

// reinit TIMES
int Reinit(const Arguments& arguments) {
  const int times = Number(arguments, 0, 10);
  for (int i = 0; i < times; ++i) {
    hvd::Session session;
    int32_t count = 1;
    hvd::allreduce(&count, 1, hvd::Op::kSum);
    if (count != hvd::size()) return 1;
  }
  std::printf("%d sessions\n", times);
  return 0;
}

// flood LINES: as fast as it can, with a sum now and then.
int Flood(const Arguments& arguments) {
  Join();
  const int lines = Number(arguments, 0, 100000);
  for (int i = 0; i < lines; ++i) {
    std::printf("line %07d of rank %d: the quick brown fox jumps over the lazy dog\n", i,
                hvd::rank());
  }
  std::fflush(stdout);
  Sum();
  Say("flooded");
  hvd::shutdown();
  return 0;
}

// steps COUNT MILLISECONDS: a sum, a pause, and so on.
int Steps(const Arguments& arguments) {
  Join();
  const int count = Number(arguments, 0, 10);
  for (int i = 0; i < count; ++i) {
    Sum();
    usleep(static_cast<useconds_t>(Number(arguments, 1, 100)) * 1000);
  }
  Say("stepped");
  hvd::shutdown();
  return 0;
}

// until PATH: sums and exchanges of several sizes, each looked at, until rank 0 finds the file.
int Until(const Arguments& arguments) {
  Join();
  const int me = hvd::rank(), size = hvd::size();
  float end = 0;
  while (end == 0) {
    for (const size_t count : {1, 5000, 400000}) {
      std::vector<float> sum(count, static_cast<float>(me + 1));
      hvd::allreduce(sum, hvd::Op::kSum, "sum of " + std::to_string(count));
      std::vector<float> mine(count * size, static_cast<float>(me));
      const std::vector<float> all = hvd::alltoall(mine.data(), mine.size(), 1).data;
      for (size_t i = 0; i < count; ++i) {
        if (sum[i] != static_cast<float>(size * (size + 1) / 2)) return 4;
        for (int from = 0; from < size; ++from) {
          if (all[from * count + i] != static_cast<float>(from)) return 5;
        }
      }
    }
    end = me == 0 && std::ifstream(arguments.at(0)).good() ? 1 : 0;
    hvd::allreduce(&end, 1, hvd::Op::kSum, "end");
  }
  Say("all right until the end");
  hvd::shutdown();
  return 0;
}

// lag RANK COUNT MILLISECONDS: sums, and one rank comes late to each.
int Lag(const Arguments& arguments) {
  Join();
  for (int i = 0; i < Number(arguments, 1, 10); ++i) {
    if (hvd::rank() == Number(arguments, 0, 1)) {
      usleep(static_cast<useconds_t>(Number(arguments, 2, 20)) * 1000);
    }
    Sum();
  }
  hvd::shutdown();
  return 0;
}

// How often the text is in the file, which ends as a whole timeline does; else -1.
int CountInTimeline(const std::string& path, const std::string& text) {
  std::ifstream file(path);
  const std::string json(std::istreambuf_iterator<char>(file), {});
  if (json.size() < 2 || json.substr(json.size() - 2) != "]\n") return -1;
  int count = 0;
  for (size_t at = 0; (at = json.find(text, at)) != std::string::npos; ++at) ++count;
  return count;
}

// timeline PATH: sums, sums while the timeline is on, sums. When it has been stopped, rank 0 finds
// all of it in the file on its host.
int TimelineOnAndOff(const Arguments& arguments) {
  Join();
  float value = 1;
  const auto sum = [&](const char* name) { hvd::allreduce(&value, 1, hvd::Op::kSum, name); };
  sum("before");
  // Any rank may ask; what another has asked for already is granted.
  if (hvd_start_timeline(arguments.at(0).c_str()) != HVD_OK) {
    std::fprintf(stderr, "start: %s\n", hvd_last_error());
    return 4;
  }
  sum("all have begun");
  constexpr int kSums = 5000;
  for (int i = 0; i < kSums; ++i) sum("during");
  sum("all are done");
  hvd::stop_timeline();
  const std::string event = R"({"name":"ALLREDUCE","ph":"X","pid":0,)";
  const int events = hvd::rank() == 0 ? CountInTimeline(arguments[0], event) : kSums;
  if (events < kSums) {
    std::fprintf(stderr, "%d events are in the file that is said to be complete\n", events);
    return 5;
  }
  sum("stopped");
  sum("after");
  hvd::shutdown();
  return 0;
}

// metrics: what the rank has counted.
int Metrics(const Arguments&) {
  Join();
  size_t bytes = 0;
  if (hvd_metrics(nullptr, &bytes) != HVD_OK) return 4;
  std::string json(bytes, ' ');
  size_t too_few = bytes - 1;
  if (hvd_metrics(json.data(), &too_few) != HVD_ERR_INVALID || too_few != bytes) return 5;
  if (hvd_metrics(json.data(), &bytes) != HVD_OK) return 6;
  std::printf("%s\n", json.c_str());
  hvd::shutdown();
  return 0;
}

}  // namespace

const std::map<std::string, Mode>& StayingModes() {
  static const std::map<std::string, Mode> modes = {
      {"loop", Loop},       {"alltoall", Alltoall},
      {"wait", Wait},       {"wait-set", WaitSet},
      {"reinit", Reinit},   {"flood", Flood},
      {"lag", Lag},         {"timeline", TimelineOnAndOff},
      {"metrics", Metrics}, {"steps", Steps},
      {"until", Until},
  };
  return modes;
}

}  // namespace victim
