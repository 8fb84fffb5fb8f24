// SPDX-License-Identifier: Apache-2.0
// The committed state that this host keeps of its members (elastic jobs): files in memory that
// outlive the members and end with hvdd. The ranks map and write them; hvdd looks at their
// beginnings only. Belongs to the links thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/descriptor.h"
#include "proto/page/state_box.h"

namespace hvd::daemon {

class StateBox {
 public:
  // Descriptors for a member with this share of the host: two files of the host, two of the share.
  // They are made when first asked for. ResourceExhausted: they cannot be.
  absl::StatusOr<std::vector<int>> FilesOf(int share);
  // The commits that all ranks of this host had written.
  KeptCommits Kept();
  // Forgets what is beyond. REQUIRES: no member writes.
  void VoidBeyond(uint64_t number);

 private:
  class File {
   public:
    ~File();
    absl::Status Make();
    int fd() const { return file_.get(); }
    // Null: nothing has been written yet.
    StateHead* Head();

   private:
    Descriptor file_;
    StateHead* head_ = nullptr;  // mapped, also where the file does not reach yet
  };
  // Commits with an even and with an odd number.
  using Pair = std::array<File, 2>;

  static absl::Status MakeBoth(std::unique_ptr<Pair>* pair);

  std::unique_ptr<Pair> host_;  // null: nobody has asked yet
  std::map<int, std::unique_ptr<Pair>> by_share_;
};

}  // namespace hvd::daemon
