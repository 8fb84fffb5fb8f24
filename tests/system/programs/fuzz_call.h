// SPDX-License-Identifier: Apache-2.0
// One call of this rank: its tensors in memory of any kind, how it is made and waited for, and
// whether all came as it must.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/system/programs/fuzz_plan.h"

namespace fuzz {

// Says what is wrong with which call, and ends the process.
[[noreturn]] void Fail(const std::string& what);

// Memory of a tensor with marked bytes on both sides, private or of hvd_alloc. Any alignment.
class Room {
 public:
  Room(size_t bytes, Random* own);
  ~Room();
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  unsigned char* data() const { return data_; }
  // Whether the bytes on both sides are as they were.
  bool IsWhole() const;

 private:
  size_t bytes_;
  std::vector<unsigned char> private_;
  void* shared_ = nullptr;
  unsigned char* data_ = nullptr;
};

class Call {
 public:
  // `own` is this rank's own source of chance: where tensors lie, and how a call is waited for.
  Call(const Operation& operation, int member, Random* own);
  ~Call();

  // Whether calls say when they begin and end, for somebody who looks for the cause of a fault. Set
  // before the first call.
  static bool tells;

  const Operation& operation() const { return agreed_; }
  // Makes the call; one that blocks has ended then.
  void Begin();
  // Waits for its end, and checks it.
  void End();

 private:
  void Lay(Random* own);
  hvd_options_t Options() const;
  hvd_status_t BeginReduction(const hvd_options_t* options);
  hvd_status_t BeginExchange(const hvd_options_t* options);
  hvd_status_t BeginGroup(const hvd_options_t* options);
  hvd_status_t BeginSend(const hvd_options_t* options);
  hvd_status_t Wait();
  void CheckResults() const;
  void CheckPart(size_t part) const;
  void Tell(const char* what) const;
  std::string Words() const;

  const Operation agreed_;  // what all mean
  const Operation called_;  // what this rank asks for
  const int member_;
  const int manner_;  // of waiting
  bool in_place_ = false;
  bool by_library_ = false;  // it allocates the results
  std::vector<std::unique_ptr<Room>> rooms_;
  std::vector<std::vector<int64_t>> shapes_;
  std::vector<hvd_tensor_t> inputs_, outputs_, results_;
  std::vector<int64_t> received_;
  hvd_handle_t handle_ = 0;
  hvd_status_t status_ = HVD_OK;
};

}  // namespace fuzz
