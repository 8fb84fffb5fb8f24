// SPDX-License-Identifier: Apache-2.0
// store MODE: what the job's key-value store promises, seen from every rank at once. No rank joins
// the job unless the mode is about that. Prints "store right" on each rank that finds it so.
#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "tests/system/programs/store.h"

namespace {

std::string Of(const std::string& name, int who) { return name + "." + std::to_string(who); }

// Bytes that tell whose they are, and where.
std::string Pattern(int who, size_t bytes) {
  std::string pattern(bytes, '\0');
  for (size_t i = 0; i < bytes; ++i) pattern[i] = static_cast<char>(i * 31 + i / 4096 + who);
  return pattern;
}

void Values() {
  hvd::store::set(Of("mine", Rank()), Pattern(Rank(), 1000));
  for (int other = 0; other < Size(); ++other) {
    Check(hvd::store::get(Of("mine", other), kLong) == Pattern(other, 1000), "a value of another");
  }
  hvd::store::set(Of("empty", Rank()), "");
  Check(hvd::store::get(Of("empty", Rank()), kNow).empty(), "an empty value is there");
  Meet("values");
  Check(hvd::store::erase(Of("mine", Rank())), "what was deleted had been there");
  Check(!hvd::store::erase(Of("mine", Rank())), "and is not there twice");
  MustFail(
      HVD_ERR_TIMEOUT, [] { hvd::store::get(Of("mine", Rank()), kNow); }, "nobody has set");
}

// Each waits for the next one's word, and the last one begins: all but one wait for what comes
// later.
void Late() {
  const int next = Rank() + 1;
  if (next < Size()) Check(hvd::store::get(Of("late", next), kLong) == "passed on", "late value");
  hvd::store::set(Of("late", Rank()), "passed on");
  std::vector<std::string> keys;
  for (int each = 0; each < Size(); ++each) keys.push_back(Of("late", each));
  hvd::store::wait(keys, kLong);
}

void Counts() {
  for (int i = 0; i < 1000; ++i) hvd::store::add("counted", i % 2 == 0 ? 3 : -1);
  Meet("counts");
  Check(hvd::store::get("counted", kNow) == std::to_string(1000 * Size()), "no addition is lost");
  Check(hvd::store::add("counted", 0) == 1000 * Size(), "and the sum is told");
}

void Races() {
  for (int round = 0; round < 50; ++round) {
    const std::string key = Of("race", round);
    const std::string winner = hvd::store::compare_set(key, "", Of("rank", Rank()));
    if (winner == Of("rank", Rank())) hvd::store::add(key + ".winners", 1);
    hvd::store::set(Of(key + ".seen", Rank()), winner);
    Meet(key);
    Check(hvd::store::get(key + ".winners", kNow) == "1", "one rank wins");
    for (int other = 0; other < Size(); ++other) {
      Check(hvd::store::get(Of(key + ".seen", other), kNow) == winner, "and all see which");
    }
  }
  Check(hvd::store::compare_set(Of("never", Rank()), "expected", "x").empty(), "nothing is set");
  MustFail(
      HVD_ERR_TIMEOUT, [] { hvd::store::get(Of("never", Rank()), kNow); }, "nobody has set");
}

void Timeouts() {
  MustFail(
      HVD_ERR_TIMEOUT, [] { hvd::store::get("absent", kShort); }, "'absent' within 0.05");
  MustFail(
      HVD_ERR_TIMEOUT,
      [] {
        hvd::store::wait({"absent", "counted", "also absent"}, kShort);
      },
      "'absent', 'also absent'");
  MustFail(
      HVD_ERR_INVALID, [] { hvd::store::get("absent", hvd::store::Timeout(-1)); }, "negative");
  Check(hvd_store_get("counted", 0, nullptr) == HVD_ERR_INVALID, "a value without a place");
}

// Every rank has a large value under way to the store and another one back, on several threads.
void LargeOnThreads() {
  constexpr size_t kBytes = 1 << 20;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([t] {
      const std::string name = Of("large", t);
      hvd::store::set(Of(name, Rank()), Pattern(Rank() + t, kBytes));
      const int other = (Rank() + 1) % Size();
      const bool same = hvd::store::get(Of(name, other), kLong) == Pattern(other + t, kBytes);
      Check(same, "a large value comes whole");
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// One counts, while the others make no key.
void Keys() {
  Meet("before the count");
  if (Rank() == 0) {
    const int64_t keys = hvd::store::count();
    hvd::store::set("one more", "");
    hvd::store::set("one more", "again");
    Check(hvd::store::count() == keys + 1, "keys are counted");
    hvd::store::erase("one more");
    Check(hvd::store::count() == keys, "and deleted ones are not");
    hvd::store::set("has counted", "");
  }
  hvd::store::get("has counted", kLong);
}

void Everything() {
  Values();
  Late();
  Counts();
  Races();
  Timeouts();
  LargeOnThreads();
  Keys();
}

// The link serves the store and hvd's epochs beside one another.
void Around() {
  hvd::store::set(Of("before", Rank()), "x");
  for (int epoch = 0; epoch < 2; ++epoch) {
    hvd::init();
    std::thread beside([epoch] { Meet(Of("inside", epoch)); });
    std::vector<float> sum(1000, 1);
    hvd::allreduce(sum, hvd::Op::kSum);
    beside.join();
    Check(sum[999] == static_cast<float>(Size()), "allreduce beside the store");
    Check(hvd::store::get(Of("before", (Rank() + 1) % Size()), kLong) == "x", "from before init");
    hvd::shutdown();
    Meet(Of("after", epoch));
  }
}

const std::map<std::string, std::function<void()>> kModes = {{"everything", Everything},
                                                             {"around", Around},
                                                             {"limits", Limits},
                                                             {"full", Full},
                                                             {"many", ManyCalls},
                                                             {"fork", Fork},
                                                             {"signal", Signal},
                                                             {"large", LargeToAnother},
                                                             {"alone", Everything},
                                                             {"victim", Victim},
                                                             {"victim-joined", VictimJoined}};

}  // namespace

int main(int argc, char** argv) {
  const auto mode = kModes.find(argc > 1 ? argv[1] : "everything");
  if (mode == kModes.end()) return 2;
  try {
    mode->second();
  } catch (const hvd::Error& error) {
    Check(false, std::string(hvd_status_name(error.code())) + ": " + error.what());
  }
  std::printf("store right\n");
  return 0;
}
