// SPDX-License-Identifier: Apache-2.0
// One collective under measurement: its tensors, how they are filled, what must come out.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "bench/hvd_bench/buffer.h"

namespace bench {

// One thread. The session must be open from construction to destruction.
class Collective {
 public:
  virtual ~Collective() = default;
  // Bytes of the whole tensor: of allreduce, broadcast and alltoall the buffer, of allgather the
  // result, of reducescatter the input.
  virtual size_t bytes() const = 0;
  // Rewrites the buffers: with the pattern, to be checked in full, or all alike and fast.
  virtual void FillPattern() = 0;
  virtual void FillAlike() = 0;
  // The call itself, until its result is there.
  virtual void Run() = 0;
  // The same in two halves: the asynchronous submit, and the wait for it.
  virtual void Begin() = 0;
  virtual void End() = 0;
  // For tensors on a GPU: whether a call is over when the bytes are there, as at first, or when it
  // stands on the stream.
  virtual void WaitOnHost(bool waits) = 0;
  // The buffers that it reads and writes; null where there is none.
  struct Ends {
    const Buffer* from = nullptr;
    const Buffer* to = nullptr;
  };
  virtual Ends ends() const = 0;
  // Throws WrongValue unless every element is what the last fill and one run must give.
  virtual void CheckAll() const = 0;
  // The same for the first and the last element only.
  virtual void CheckEnds() const = 0;
  // Factor from algorithm to bus bandwidth: what the slowest link must carry, whatever the
  // algorithm.
  virtual double bus_factor() const = 0;
};

struct Plan {
  std::string op;  // one of Operations()
  Dtype dtype;
  size_t bytes = 0;  // about; at least one element
  Memory memory = Memory::kUser;
  bool async = false;  // submit, then wait, instead of the blocking call
  bool named = true;
};

std::unique_ptr<Collective> MakeCollective(const Plan& plan);
const std::vector<std::string>& Operations();

}  // namespace bench
