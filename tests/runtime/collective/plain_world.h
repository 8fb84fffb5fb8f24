// SPDX-License-Identifier: Apache-2.0
// Collectives as anyone would write them: threads, a barrier, and loops over double. For tests of
// what is built on the interface.
#pragma once

#include <barrier>
#include <cstring>
#include <memory>
#include <vector>

#include "runtime/collective/collectives.h"
#include "tests/runtime/collective/numbers.h"
#include "tests/runtime/collective/rank_threads.h"

namespace hvd::rt::test {

class PlainWorld {
 public:
  explicit PlainWorld(int size) : barrier_(size), args_(size) {}
  int size() const { return static_cast<int>(args_.size()); }

  // As World::Run.
  std::string Run(const std::function<std::string(Collectives&)>& body) {
    return RunRanks(size(), [&](int rank) {
      Member member(this, rank);
      return body(member);
    });
  }

 private:
  class Member : public Collectives {
   public:
    Member(PlainWorld* world, int rank) : world_(*world), rank_(rank) {}
    int rank() const override { return rank_; }
    int size() const override { return world_.size(); }

    absl::Status Allreduce(const ReduceArgs& args) override {
      ReducePart whole;
      whole.input = args.input;
      whole.output = args.output;
      whole.count = args.count;
      ReduceArgs all = args;
      if (args.parts.empty()) all.parts = {&whole, 1};
      const size_t width = DtypeBytes(args.dtype);
      std::vector<unsigned char> packed, result;
      for (const ReducePart& part : all.parts) {
        const auto* from = static_cast<const unsigned char*>(part.input);
        packed.insert(packed.end(), from, from + part.count * width);
      }
      result.resize(packed.size());
      Reduce({packed.data(),
              result.data(),
              packed.size() / width,
              args.dtype,
              args.op,
              args.prescale,
              args.postscale,
              args.divisor,
              {}},
             0, packed.size() / width);
      size_t at = 0;
      for (const ReducePart& part : all.parts) {
        std::memcpy(part.output, result.data() + at, part.count * width);
        at += part.count * width;
      }
      return absl::OkStatus();
    }

    absl::Status ReduceScatter(const ReduceScatterArgs& args) override {
      size_t begin = 0, total = 0;
      for (int r = 0; r < size(); ++r) {
        if (r == rank_) begin = total;
        total += args.count_by_rank[r];
      }
      Reduce({args.input,
              args.output,
              total,
              args.dtype,
              args.op,
              args.prescale,
              args.postscale,
              args.divisor,
              {}},
             begin, begin + args.count_by_rank[rank_]);
      return absl::OkStatus();
    }

    absl::Status Allgather(const GatherArgs& args) override {
      std::vector<unsigned char> mine(args.bytes_by_rank[rank_]);
      if (!mine.empty()) std::memcpy(mine.data(), args.input, mine.size());
      Meet(mine.data(), [&] {
        auto* at = static_cast<unsigned char*>(args.output);
        for (int r = 0; r < size(); ++r) {
          if (args.bytes_by_rank[r] > 0) std::memcpy(at, world_.args_[r], args.bytes_by_rank[r]);
          at += args.bytes_by_rank[r];
        }
      });
      return absl::OkStatus();
    }

    absl::Status Alltoall(const AlltoallArgs& args) override {
      Meet(&args, [&] {
        auto* at = static_cast<unsigned char*>(args.output);
        for (int r = 0; r < size(); ++r) {
          const auto& peer = *static_cast<const AlltoallArgs*>(world_.args_[r]);
          const auto* from = static_cast<const unsigned char*>(peer.input);
          for (int before = 0; before < rank_; ++before) from += peer.send_bytes[before];
          if (peer.send_bytes[rank_] != args.receive_bytes[r]) std::abort();
          if (args.receive_bytes[r] > 0) std::memcpy(at, from, args.receive_bytes[r]);
          at += args.receive_bytes[r];
        }
      });
      return absl::OkStatus();
    }

    absl::Status Broadcast(const BroadcastArgs& args) override {
      std::vector<unsigned char> sent;
      if (rank_ == args.root) {
        const auto* from = static_cast<const unsigned char*>(args.input);
        sent.assign(from, from + args.bytes);
      }
      Meet(sent.data(), [&] { std::memcpy(args.output, world_.args_[args.root], args.bytes); });
      return absl::OkStatus();
    }

    absl::Status Barrier() override {
      Meet(nullptr, [] {});
      return absl::OkStatus();
    }

   private:
    // Shows `mine` to the others, looks at theirs, and waits until all have looked.
    template <class Look>
    void Meet(const void* mine, Look look) {
      world_.args_[rank_] = mine;
      world_.barrier_.arrive_and_wait();
      look();
      world_.barrier_.arrive_and_wait();
    }

    // Elements [begin, end) of everyone's input, into this rank's output.
    void Reduce(const ReduceArgs& args, size_t begin, size_t end) {
      Meet(&args, [&] {
        const size_t width = DtypeBytes(args.dtype);
        for (size_t i = begin; i < end; ++i) {
          std::vector<double> values;
          for (int r = 0; r < size(); ++r) {
            const auto& peer = *static_cast<const ReduceArgs*>(world_.args_[r]);
            if (peer.count != args.count) std::abort();
            const auto* from = static_cast<const unsigned char*>(peer.input) + i * width;
            values.push_back(Decode(args.dtype, from) * args.prescale);
          }
          const bool divided = args.op == HVD_AVERAGE && args.divisor != 0;
          double value = Expected(args.dtype, divided ? HVD_SUM : args.op, values);
          if (divided) value /= args.divisor;
          if (!IsFloat(args.dtype)) value = std::trunc(value);
          Encode(args.dtype, value * args.postscale,
                 static_cast<unsigned char*>(args.output) + (i - begin) * width);
        }
      });
    }

    PlainWorld& world_;
    const int rank_;
  };

  std::barrier<> barrier_;
  std::vector<const void*> args_;
};

}  // namespace hvd::rt::test
