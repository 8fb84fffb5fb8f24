// SPDX-License-Identifier: Apache-2.0
// Reduce-scatter and alltoall.
#include <catch2/catch.hpp>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "tests/runtime/collective/numbers.h"
#include "tests/runtime/collective/worlds.h"

namespace hvd::rt::test {
namespace {

using Bytes = std::vector<unsigned char>;

template <class Body>
void OnHostWorlds(const Body& body) {
  for (const WorldMaker& make : HostWorlds()) {
    const std::unique_ptr<World> world = make();
    INFO(world->name());
    body(*world);
  }
}

// Returns how many bytes `from` sends to `to`, around `bytes`: uneven, and nothing here and there.
size_t SentBytes(size_t bytes, int from, int to) {
  return (from + 2 * to) % 3 == 1 && bytes > 1 ? 0 : bytes + from * (bytes / 5) + to * 3;
}
unsigned char SentByte(size_t i, int from, int to) {
  return static_cast<unsigned char>(i * 7 + i / 253 + from * 31 + to * 5);
}

std::string CheckAlltoall(Collectives& ranks, size_t bytes) {
  std::vector<size_t> send;
  std::vector<size_t> receive;
  Bytes input;
  Bytes want;
  for (int peer = 0; peer < ranks.size(); ++peer) {
    send.push_back(SentBytes(bytes, ranks.rank(), peer));
    receive.push_back(SentBytes(bytes, peer, ranks.rank()));
    for (size_t i = 0; i < send.back(); ++i) input.push_back(SentByte(i, ranks.rank(), peer));
    for (size_t i = 0; i < receive.back(); ++i) want.push_back(SentByte(i, peer, ranks.rank()));
  }
  Bytes output(want.size());
  const absl::Status done = ranks.Alltoall({input.data(), output.data(), send, receive});
  if (!done.ok()) return done.ToString();
  return output == want ? "" : absl::StrCat("alltoall of about ", bytes, " bytes is wrong");
}

TEST_CASE("alltoall: uneven and empty parts, small and large") {
  OnHostWorlds([](World& world) {
    const std::string complaint = world.Run([](Collectives& ranks) -> std::string {
      for (const size_t bytes : {0, 1, 50, 700, 20011, 300007, 40}) {
        std::string wrong = CheckAlltoall(ranks, bytes);
        if (wrong.empty() && !ranks.Barrier().ok()) wrong = "barrier failed";
        if (!wrong.empty()) return wrong;
      }
      return "";
    });
    REQUIRE(complaint == "");
  });
}

TEST_CASE("alltoall: one rank alone has much to send") {
  OnHostWorlds([](World& world) {
    const std::string complaint = world.Run([](Collectives& ranks) -> std::string {
      const int last = ranks.size() - 1;
      std::vector<size_t> send(ranks.size());
      std::vector<size_t> receive(ranks.size());
      if (ranks.rank() == last) send[0] = 1000003;
      if (ranks.rank() == 0) receive[last] = 1000003;
      const Bytes input(send[0], 7);
      Bytes output(receive[last]);
      const absl::Status done = ranks.Alltoall({input.data(), output.data(), send, receive});
      if (!done.ok()) return done.ToString();
      if (output != Bytes(receive[last], 7)) return "wrong";
      return CheckAlltoall(ranks, 3);
    });
    REQUIRE(complaint == "");
  });
}

std::string CheckReduceScatter(Collectives& ranks, hvd_dtype_t dtype, hvd_op_t op, size_t about) {
  const size_t width = DtypeBytes(dtype);
  std::vector<size_t> counts;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    counts.push_back(rank % 3 == 1 ? 0 : about + rank);
  }
  const size_t total = std::accumulate(counts.begin(), counts.end(), size_t{0});
  const size_t begin = std::accumulate(counts.begin(), counts.begin() + ranks.rank(), size_t{0});
  const auto value = [](int rank, size_t i) { return static_cast<double>((i + rank) % 5); };
  Bytes input(total * width);
  for (size_t i = 0; i < total; ++i) Encode(dtype, value(ranks.rank(), i), &input[i * width]);
  const Bytes before = input;
  Bytes output(counts[ranks.rank()] * width);
  // An average times their number is the sum again, without a rounding.
  const double postscale = dtype == HVD_BOOL ? 1 : op == HVD_AVERAGE ? ranks.size() : 2;
  const absl::Status done = ranks.ReduceScatter({.input = input.data(),
                                                 .output = output.data(),
                                                 .count_by_rank = counts,
                                                 .dtype = dtype,
                                                 .op = op,
                                                 .postscale = postscale});
  if (!done.ok()) return done.ToString();
  if (input != before) return "the input was written";
  std::vector<double> values(ranks.size());
  for (size_t i = 0; i < counts[ranks.rank()]; ++i) {
    for (int rank = 0; rank < ranks.size(); ++rank) values[rank] = value(rank, begin + i);
    double want = Expected(dtype, op == HVD_AVERAGE ? HVD_SUM : op, values);
    if (op == HVD_MAX) want *= postscale;
    unsigned char rounded[16];
    Encode(dtype, want, rounded);
    const double got = Decode(dtype, &output[i * width]);
    if (got != Decode(dtype, rounded)) {
      return absl::StrCat("reduce-scatter dtype ", dtype, " op ", op, ": element ", i, " is ", got,
                          ", not ", want);
    }
  }
  return "";
}

TEST_CASE("reduce-scatter: every type, uneven and empty slices") {
  OnHostWorlds([](World& world) {
    const std::string complaint = world.Run([](Collectives& ranks) -> std::string {
      for (const hvd_dtype_t dtype : kAllDtypes) {
        for (const hvd_op_t op : {HVD_AVERAGE, HVD_MAX}) {
          if (!Exists(dtype, op)) continue;
          for (const size_t about : {0, 1, 10, 5001, 60001}) {
            std::string wrong = CheckReduceScatter(ranks, dtype, op, about);
            if (!wrong.empty()) return wrong;
          }
        }
      }
      return "";
    });
    REQUIRE(complaint == "");
  });
}

}  // namespace
}  // namespace hvd::rt::test
