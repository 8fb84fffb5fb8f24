// SPDX-License-Identifier: Apache-2.0
// What a stand-in does when its process ends.
#pragma once

namespace hvd::rt {

// As a static: calls End() of what it is given.
template <class Of>
class AtEnd {
 public:
  explicit AtEnd(Of* of) : of_(*of) {}
  ~AtEnd() { of_.End(); }
  AtEnd(const AtEnd&) = delete;
  AtEnd& operator=(const AtEnd&) = delete;

 private:
  Of& of_;
};

}  // namespace hvd::rt
