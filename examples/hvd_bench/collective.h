// One collective under measurement: its tensors, how they are filled, what must come out.
#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "examples/hvd_bench/values.h"

namespace bench {

// A result that is not what it must be; what() names rank, element and both values.
struct WrongValue : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// One thread. The session must be open from construction to destruction.
class Collective {
 public:
  virtual ~Collective() = default;
  // Bytes of the whole tensor: allreduce's and broadcast's buffer, allgather's result.
  virtual size_t bytes() const = 0;
  // Rewrites the buffers: with the pattern, to be checked in full, or all alike and fast.
  virtual void FillPattern() = 0;
  virtual void FillAlike() = 0;
  // The blocking call itself.
  virtual void Run() = 0;
  // Throws WrongValue unless every element is what the last fill and one run must give.
  virtual void CheckAll() const = 0;
  // The same for the first and the last element only.
  virtual void CheckEnds() const = 0;
  // Factor from algorithm to bus bandwidth: what the slowest link must carry, whatever the
  // algorithm.
  virtual double bus_factor() const = 0;
};

// `op` is one of Operations(); about `bytes` bytes, at least one element.
std::unique_ptr<Collective> MakeCollective(const std::string& op, const Dtype& dtype, size_t bytes);
const std::vector<std::string>& Operations();

}  // namespace bench
