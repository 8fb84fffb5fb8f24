// SPDX-License-Identifier: Apache-2.0
// A thread a rank; collects what each says.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace hvd::rt::test {

inline std::string RunRanks(int size, const std::function<std::string(int rank)>& body) {
  std::vector<std::string> complaints(size);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] { complaints[rank] = body(rank); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int rank = 0; rank < size; ++rank) {
    if (!complaints[rank].empty()) return "rank " + std::to_string(rank) + ": " + complaints[rank];
  }
  return "";
}

}  // namespace hvd::rt::test
