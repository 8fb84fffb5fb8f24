#include "tests/system/programs/victim_modes.h"

#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "hvd/hvd.hpp"

namespace victim {
namespace {

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

// Joins, and tells the test that all have.
void Join() {
  hvd::init();
  Sum();
  Say("joined");
}

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

// exit CODE RANK: one rank ends with CODE while the others wait for it.
int Exit(const Arguments& arguments) {
  Join();
  if (hvd::rank() == Number(arguments, 1, 1)) _exit(Number(arguments, 0, 7));
  while (true) Sum();
}

// segv RANK
int Segv(const Arguments& arguments) {
  Join();
  if (hvd::rank() == Number(arguments, 0, 1)) raise(SIGSEGV);
  while (true) Sum();
}

// term-proof: nothing but KILL ends it; `exit` ends rank 0 with 7 to begin with.
int TermProof(const Arguments& arguments) {
  signal(SIGTERM, SIG_IGN);
  Join();
  if (!arguments.empty() && hvd::rank() == 0) _exit(7);
  while (true) pause();
}

// What the call of a rank comes to that others may leave alone.
int Told(const std::function<void()>& call) {
  try {
    call();
  } catch (const hvd::Error& error) {
    std::fprintf(stderr, "rank %d was told: %s\n", hvd::rank(), error.what());
    return 3;
  }
  return 0;
}

// leave: rank 0 shuts down and exits 0 while the others wait for it.
int Leave(const Arguments&) {
  Join();
  if (hvd::rank() == 0) _exit(0);
  return Told(Sum);
}

// throw CODE RANK: one rank leaves by an exception, and ends with CODE when rank 0, which waits for
// it, has ended for that.
int Throw(const Arguments& arguments) {
  pid_t first = 0;
  try {
    hvd::Session session;
    first = hvd::allgather(std::vector<int>{getpid()})[0];
    if (hvd::rank() == Number(arguments, 1, 1)) throw std::out_of_range("out of cheese");
    while (true) Sum();
  } catch (const std::out_of_range& error) {
    pollfd ended{static_cast<int>(syscall(SYS_pidfd_open, first, 0)), POLLIN, 0};
    if (ended.fd >= 0) poll(&ended, 1, 5000);  // else it has gone, or is on another host
    std::fprintf(stderr, "%s\n", error.what());
    return Number(arguments, 0, 3);
  }
}

// leave-sets: rank 0 leaves two process sets, whose other members wait for it in none of them.
int LeaveSets(const Arguments&) {
  Join();
  const auto add = [] {
    for (const int other : {1, hvd::size() - 1}) hvd::add_process_set({0, other});
  };
  if (hvd::rank() != 0) {
    return Told([&] {
      add();
      Sum();
    });
  }
  add();
  hvd::shutdown();
  return 0;
}

// Rank 0's own allreduces are over: a join on one thread, told by the others that it works, then a
// shutdown beside it.
void ShutDownInJoin(const sigset_t& told) {
  std::thread joining([] {
    try {
      hvd::join();
    } catch (const hvd::Error& error) {
      Say(error.what());
    }
  });
  int signal = 0;
  sigwait(&told, &signal);
  hvd::shutdown();
  joining.join();
}

// shutdown-in-join: rank 0 shuts down while it has joined and the others sum large tensors.
int ShutdownInJoin(const Arguments&) {
  sigset_t told;
  sigemptyset(&told);
  sigaddset(&told, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &told, nullptr);
  Join();
  const std::vector<int> pids = hvd::allgather(std::vector<int>{getpid()});
  if (hvd::rank() == 0) {
    ShutDownInJoin(told);
    return 0;
  }
  std::vector<float> data(1000000, 1);
  try {
    for (int sums = 0;; ++sums) {
      hvd::allreduce(data, hvd::Op::kAverage, "x");
      if (sums == 2 && hvd::rank() == 1) kill(pids[0], SIGUSR1);
    }
  } catch (const hvd::Error& error) {
    Say(error.what());
  }
  hvd::shutdown();
  return 0;
}

// This process gets hardly more than it has.
void LimitMemory() {
  long pages = 0;
  FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%ld", &pages) != 1) std::abort();
  std::fclose(file);
  const rlim_t bytes = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + (16 << 20);
  const rlimit limit = {bytes, bytes};
  if (setrlimit(RLIMIT_AS, &limit) != 0) std::abort();
}

// out-of-memory RANK [result]: one rank has no room for what an Adasum needs besides the tensor, or
// for the result of an allgather.
int OutOfMemory(const Arguments& arguments) {
  Join();
  std::vector<float> data(8 << 20, 1);
  if (hvd::rank() == Number(arguments, 0, 1)) LimitMemory();
  for (const char* name : {"large", "later"}) {
    try {
      if (arguments.size() > 1) {
        hvd::allgather(data, name);
      } else {
        hvd::allreduce(data, hvd::Op::kAdasum, name);
      }
    } catch (const hvd::Error& error) {
      Say(error.what());
    }
  }
  hvd::shutdown();
  return 0;
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

// timeline PATH: sums, sums while the timeline is on, sums. What rank 0 finds in the file on its
// host when it has been stopped is all.
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

// retry-init FILE: a rank whose hvd_init fails removes the file that it failed for, and tries
// again.
int RetryInit(const Arguments& arguments) {
  if (hvd_init(nullptr) != HVD_OK) {
    std::printf("refused: %s\n", hvd_last_error());
    if (hvd_is_initialized() != 0 || std::remove(arguments.at(0).c_str()) != 0) return 3;
    hvd::init();
  }
  Sum();
  Say("joined");
  hvd::shutdown();
  return 0;
}

// The error of an allreduce of `count` elements of type T; empty when there was none.
template <class T>
std::string ErrorOf(size_t count, hvd::Op op, const std::string& name) {
  std::vector<T> data(count, T(1));
  try {
    hvd::allreduce(data, op, name);
  } catch (const hvd::Error& error) {
    if (error.code() != HVD_ERR_MISMATCH) throw;
    return error.what();
  }
  return "";
}

std::string RootError() {
  float value = 1;
  try {
    hvd::broadcast(&value, 1, hvd::rank() == 0 ? 0 : 1, "bad.root");
  } catch (const hvd::Error& error) {
    if (error.code() != HVD_ERR_MISMATCH) throw;
    return error.what();
  }
  return "";
}

// mismatch: the ranks disagree on each thing in turn; all get the same error, and go on.
int Mismatch(const Arguments&) {
  hvd::Session session;
  const bool odd = hvd::rank() == hvd::size() - 1;
  const hvd::Op op = odd ? hvd::Op::kMax : hvd::Op::kSum;
  const std::vector<std::string> errors = {
      odd ? ErrorOf<double>(5, hvd::Op::kSum, "bad.dtype")
          : ErrorOf<float>(5, hvd::Op::kSum, "bad.dtype"),
      ErrorOf<float>(odd ? 6 : 5, hvd::Op::kSum, "bad.shape"),
      ErrorOf<float>(5, op, "bad.op"),
      RootError(),
  };
  for (const std::string& error : errors) {
    if (error.empty()) return 1;
    std::printf("error: %s\n", error.c_str());
  }
  Sum();
  Say("alive");
  return 0;
}

// duplicate: a name that is pending is refused at once, and only the second call fails.
int Duplicate(const Arguments&) {
  hvd::Session session;
  float first = 1, second = 1;
  if (hvd::rank() == 0) {
    hvd::Handle pending = hvd::allreduce_async(&first, 1, hvd::Op::kSum, "twice");
    bool refused = false;
    try {
      hvd::allreduce(&second, 1, hvd::Op::kSum, "twice");
    } catch (const hvd::Error& error) {
      refused = error.code() == HVD_ERR_DUPLICATE;
    }
    hvd::allreduce(&second, 1, hvd::Op::kSum, "refused");
    pending.wait();
    if (!refused) return 1;
  } else {
    // Only then, so that it is still pending on rank 0 when that submits it again.
    hvd::allreduce(&second, 1, hvd::Op::kSum, "refused");
    hvd::allreduce(&first, 1, hvd::Op::kSum, "twice");
  }
  Say("refused");
  return first == static_cast<float>(hvd::size()) ? 0 : 1;
}

}  // namespace

const std::map<std::string, Mode>& Modes() {
  static const std::map<std::string, Mode> modes = {
      {"loop", Loop},
      {"alltoall", Alltoall},
      {"wait", Wait},
      {"wait-set", WaitSet},
      {"exit", Exit},
      {"segv", Segv},
      {"term-proof", TermProof},
      {"leave", Leave},
      {"leave-sets", LeaveSets},
      {"throw", Throw},
      {"shutdown-in-join", ShutdownInJoin},
      {"reinit", Reinit},
      {"flood", Flood},
      {"lag", Lag},
      {"timeline", TimelineOnAndOff},
      {"metrics", Metrics},
      {"steps", Steps},
      {"mismatch", Mismatch},
      {"duplicate", Duplicate},
      {"out-of-memory", OutOfMemory},
      {"retry-init", RetryInit},
  };
  return modes;
}

}  // namespace victim
