// SPDX-License-Identifier: Apache-2.0
// Members that end with code 0: they have done their work, or have given up where the others have
// not, and what these do says which. Pure.
#pragma once

#include <cstdint>

#include "cli/membership/deaths.h"
#include "cli/membership/epochs.h"
#include "cli/membership/roster.h"
#include "cli/membership/staying.h"
#include "cli/membership/wants.h"

namespace hvd::cli {

class WellEnded {
 public:
  // All of them outlive it.
  struct Parts {
    Roster* roster;
    Epochs* epochs;
    Staying* staying;
    Deaths* deaths;
    const Wants* wants;
  };
  // `np`: a program that never calls hvd_init ends well, too, once it has run so many times.
  WellEnded(int np, const Parts& parts) : np_(np), parts_(parts) {}

  // The members of the last epoch have ended well together: nobody is added or replaced any more.
  bool closed() const { return closed_; }
  void Look(double now);

 private:
  bool IsLost(uint64_t ended) const;
  bool IsMissed(uint64_t ended) const;
  bool AllHave() const;
  void Close();

  const int np_;
  const Parts parts_;
  bool closed_ = false;
};

}  // namespace hvd::cli
