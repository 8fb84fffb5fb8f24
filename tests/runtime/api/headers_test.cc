// SPDX-License-Identifier: Apache-2.0
// hvd.hpp in a job of one rank: every call in each of its forms, and what the types come to. Code
// that must not compile is in tests/system/test_build.py.
#include <array>
#include <catch2/catch.hpp>
#include <complex>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "hvd/hvd.hpp"

namespace {

using Catch::Matchers::Contains;

static_assert(hvd::dtype_of<char>::value == (std::is_signed<char>::value ? HVD_INT8 : HVD_UINT8));
static_assert(hvd::dtype_of<long>::value == HVD_INT64);
static_assert(hvd::dtype_of<long long>::value == HVD_INT64);
static_assert(hvd::dtype_of<unsigned long>::value == HVD_UINT64);
static_assert(hvd::dtype_of<unsigned long long>::value == HVD_UINT64);
static_assert(hvd::dtype_of<uint16_t>::value == HVD_UINT16);
static_assert(hvd::dtype_of<std::complex<float>>::value == HVD_COMPLEX64);
static_assert(hvd::dtype_of<hvd::float8_e4m3fn>::value == HVD_FLOAT8_E4M3FN);

// The set is none: so a call that passes its options on is refused, and names the set.
hvd::Options NoSet() {
  hvd::Options options;
  options.process_set = 7;
  return options;
}

template <class Call>
void MustPassOptionsOn(Call call) {
  CHECK_THROWS_WITH(call(NoSet()), Contains("process set 7 does not exist"));
}

TEST_CASE("every call takes all options") {
  hvd::Session session;
  std::vector<float> data(4, 3), other(4);
  std::array<float, 4> array = {};
  using hvd::Options;
  MustPassOptionsOn([&](const Options& o) { hvd::allreduce(data, o); });
  MustPassOptionsOn([&](const Options& o) { hvd::allreduce(data.data(), 4, o); });
  MustPassOptionsOn([&](const Options& o) { hvd::allreduce(data.data(), other.data(), 4, o); });
  MustPassOptionsOn([&](const Options& o) { hvd::allreduce(array, o); });
  MustPassOptionsOn([&](const Options& o) { (void)hvd::allreduce_async(data, o); });
  MustPassOptionsOn([&](const Options& o) { (void)hvd::allreduce_async(data.data(), 4, o); });
  MustPassOptionsOn(
      [&](const Options& o) { (void)hvd::allreduce_async(data.data(), other.data(), 4, o); });
  MustPassOptionsOn([&](const Options& o) { (void)hvd::allreduce_async(array, o); });
  MustPassOptionsOn([&](const Options& o) { hvd::grouped_allreduce({&data, &other}, o); });
  MustPassOptionsOn([&](const Options& o) {
    (void)hvd::grouped_allreduce_async({&data, &other}, o);
  });
  MustPassOptionsOn([&](const Options& o) { hvd::allgather(data, o); });
  MustPassOptionsOn([&](const Options& o) { hvd::allgather(data.data(), 2, 2, o); });
  MustPassOptionsOn([&](const Options& o) { hvd::allgather(array, o); });
  MustPassOptionsOn([&](const Options& o) { (void)hvd::allgather_async(data.data(), 2, 2, o); });
  MustPassOptionsOn([&](const Options& o) { hvd::reducescatter(data.data(), 2, 2, o); });
  MustPassOptionsOn(
      [&](const Options& o) { (void)hvd::reducescatter_async(data.data(), 2, 2, o); });
  MustPassOptionsOn([&](const Options& o) { hvd::alltoall(data.data(), 2, 2, {}, o); });
  MustPassOptionsOn([&](const Options& o) { (void)hvd::alltoall_async(data.data(), 2, 2, {}, o); });
  MustPassOptionsOn([&](const Options& o) { hvd::broadcast(data, 0, o); });
  MustPassOptionsOn([&](const Options& o) { hvd::broadcast(data.data(), 4, 0, o); });
  MustPassOptionsOn([&](const Options& o) { hvd::broadcast(array, 0, o); });
  MustPassOptionsOn([&](const Options& o) { (void)hvd::broadcast_async(data, 0, o); });
  MustPassOptionsOn([&](const Options& o) { (void)hvd::broadcast_async(data.data(), 4, 0, o); });
  MustPassOptionsOn([&](const Options& o) { (void)hvd::broadcast_async(array, 0, o); });
  CHECK(data == std::vector<float>(4, 3));
}

TEST_CASE("gradients take all options of a reduction") {
  hvd::Session session;
  hvd::GradientOptions options;
  options.op = hvd::Op::kSum;
  options.prescale = 4;
  options.postscale = 0.5;
  options.compression = hvd::Compression::kFloat16;
  hvd::Gradients<float> gradients({2, 3}, options);
  gradients[1][2] = 10;
  gradients.ready(1);
  gradients.ready(0);
  gradients.wait();
  CHECK(gradients[1][2] == 20);
  options.process_set = 7;
  hvd::Gradients<float> nowhere({2}, options);
  CHECK_THROWS_WITH(nowhere.ready(0), Contains("process set 7 does not exist"));
}

TEST_CASE("a buffer, an array and a string are tensors as a vector is") {
  hvd::Session session;
  hvd::Options doubled;
  doubled.op = hvd::Op::kSum;
  doubled.postscale = 2;
  hvd::Buffer<float> buffer(3);
  for (float& value : buffer) value = 1;
  hvd::allreduce(buffer, doubled);
  CHECK(buffer[2] == 2);
  std::array<double, 2> array = {1, 5};
  hvd::allreduce(array, doubled);
  hvd::allreduce_async(array, hvd::Op::kSum, "array").wait();
  CHECK(array[1] == 10);
  CHECK(hvd::allgather(array) == std::vector<double>{2, 10});
  std::string text = "text";
  hvd::broadcast(text);
  hvd::broadcast_async(text, 0, "text").wait();
  CHECK(hvd::allgather(text, std::string("name")) == std::vector<char>{'t', 'e', 'x', 't'});
  std::vector<long long> numbers = {1, -1LL << 40};
  hvd::allreduce(numbers, hvd::Op::kMin);
  CHECK(numbers[1] == -1LL << 40);
  std::vector<uint32_t> bits = {0xf0f0f0f0, 7};
  hvd::allreduce(bits, hvd::Op::kBitwiseXor);
  CHECK(bits[0] == 0xf0f0f0f0);
  std::vector<std::complex<double>> complex = {{1, 2}};
  hvd::allreduce(complex, doubled);
  CHECK(complex[0] == std::complex<double>(2, 4));
}

// That the name counts, and that it is an average, is seen with several ranks: all_ops.
TEST_CASE("an allreduce may have a name and no op") {
  hvd::Session session;
  const std::string name = "name";
  std::vector<float> data(4, 3), other(4);
  std::array<float, 4> array = {1, 2, 3, 4};
  hvd::allreduce(data, "name");
  hvd::allreduce(data, name);
  hvd::allreduce(array, "name");
  hvd::allreduce(data.data(), 4, name);
  hvd::allreduce(data.data(), other.data(), 4, "name");
  CHECK(other == std::vector<float>(4, 3));
  hvd::allreduce_async(data, "name").wait();
  hvd::allreduce_async(array, name).wait();
  hvd::allreduce_async(data.data(), 4, "name").wait();
  hvd::allreduce_async(array.data(), other.data(), 4, name).wait();
  CHECK(other == std::vector<float>{1, 2, 3, 4});
}

TEST_CASE("an error speaks of what a C++ program has asked for") {
  CHECK_THROWS_WITH(hvd::barrier(), Contains("hvd::init"));
  hvd::Session session;
  const auto message_of = [](auto call) -> std::string {
    try {
      call();
    } catch (const hvd::Error& error) {
      return error.what();
    }
    return "no error";
  };
  std::vector<int32_t> numbers(4);
  hvd::Options adasum, contributors, scaled;
  adasum.op = hvd::Op::kAdasum;
  contributors.op = hvd::Op::kSum;
  contributors.average_over_contributors = true;
  scaled.prescale = 0.5;
  std::array<bool, 2> bools = {};
  const std::vector<std::string> messages = {
      message_of([&] { hvd::allreduce(numbers, NoSet()); }),
      message_of([&] { hvd::allreduce(numbers, adasum); }),
      message_of([&] { hvd::reducescatter(numbers.data(), 4, 1, adasum); }),
      message_of([&] { hvd::allreduce(numbers, contributors); }),
      message_of([&] { hvd::allreduce(bools); }),
      message_of([&] { hvd::allreduce(bools, scaled); }),
      message_of([&] { hvd::broadcast(numbers, 5); }),
      message_of([&] { hvd::alltoall(numbers.data(), 4, 1, {5}); }),
      message_of([&] {
        hvd::alltoall(numbers.data(), 4, 1, {1, 1});
      }),
      message_of([&] {
        hvd::add_process_set({0, 0});
      }),
      message_of([&] { hvd::remove_process_set(0); }),
      message_of([&] { hvd::start_timeline("timeline.json"); }),
  };
  for (const std::string& message : messages) {
    CHECK(message != "no error");
    CHECK_THAT(message, !Contains("hvd_") && !Contains("HVD_"));
  }
}

TEST_CASE("what is in flight brings what the blocking call brings") {
  hvd::Session session;
  const std::vector<int32_t> data = {1, 2, 3, 4, 5, 6};
  CHECK(hvd::reducescatter_async(data.data(), 3, 2).wait() == data);
  hvd::AlltoallHandle<int32_t> handle = hvd::alltoall_async(data.data(), 3, 2, {2});
  const hvd::Received<int32_t> received = handle.wait();
  CHECK(received.data == std::vector<int32_t>{1, 2, 3, 4});
  CHECK(received.splits == std::vector<int64_t>{2});
  CHECK_FALSE(handle.valid());
  CHECK(handle.wait().data.empty());
  std::vector<float> one(3, 1), two(5, 2);
  hvd::Options options;
  options.op = hvd::Op::kSum;
  options.prescale = 3;
  hvd::grouped_allreduce_async({&one, &two}, options).wait();
  CHECK(one[2] + two[4] == 9);
  std::vector<float> tripled(3);
  hvd::allreduce(one.data(), tripled.data(), 3, options);
  CHECK(one[0] == 3);
  CHECK(tripled[0] == 9);
}

TEST_CASE("what an exception passes ends the session when it is in the middle of a step") {
  hvd::Session session;
  const auto pass = [](bool begin) {
    try {
      hvd::Gradients<float> gradients({2, 3});
      if (begin) gradients.ready(0);
      throw std::runtime_error("away");
    } catch (const std::runtime_error&) {
    }
  };
  pass(false);
  CHECK(hvd::is_initialized());
  {
    hvd::Gradients<float> unfinished({2, 3});
    unfinished.ready(0);
  }
  CHECK(hvd::is_initialized());
  pass(true);
  CHECK_FALSE(hvd::is_initialized());
}

TEST_CASE("metrics are JSON, and a timeline needs hvdrun") {
  CHECK_THROWS_AS(hvd::metrics(), hvd::Error);
  hvd::Session session;
  hvd::barrier();
  const std::string metrics = hvd::metrics();
  CHECK_THAT(metrics, Contains("{\"rank\":0,"));
  CHECK(metrics.back() == '}');
  CHECK_THROWS_WITH(hvd::start_timeline("timeline.json"), Contains("hvdrun"));
  CHECK_THROWS_WITH(hvd::stop_timeline(), Contains("hvdrun"));
}

TEST_CASE("an elastic program's loop, alone: it goes back to what was committed") {
  hvd::Session session;
  CHECK(!hvd::is_elastic());
  CHECK(hvd::slot() == 0);
  std::vector<float> weights = {1, 2};
  int64_t step = 0;
  hvd::State state;
  state.add("weights", weights);
  state.add("step", &step, 1);
  int calls = 0, resets = 0;
  const bool finished = hvd::elastic::run(
      state,
      [&] {
        if (++calls == 2) {
          CHECK(step == 3);  // without going back
          state.restore();
          CHECK(step == 1);
          CHECK(weights[1] == 5);
          CHECK(state.get("note") == "one");
          return;
        }
        step = 1;
        weights[1] = 5;
        state.put("note", "one");
        state.commit();
        step = 3;
        weights[1] = 6;
        state.put("note", "");
        hvd::check_hosts();
        throw hvd::HostsUpdated("as a commit would");
      },
      [&](const hvd::Epoch& epoch) {
        ++resets;
        CHECK(epoch.size == 1);
        CHECK(!epoch.is_new);
        CHECK(epoch.number == hvd::epoch().number);
      });
  CHECK(finished);
  CHECK(calls == 2);
  CHECK(resets == 1);
  CHECK(!hvd::elastic::run(state, [] { throw hvd::Removed("so"); }));
  CHECK_THROWS_WITH(hvd::elastic::run(state, [] { throw hvd::Error(HVD_ERR_ABORTED, "gone"); }),
                    Contains("gone"));
  CHECK_THROWS_AS(hvd::State(), hvd::Error);
}

}  // namespace
