// SPDX-License-Identifier: Apache-2.0
// How many deaths a share of a host has without progress of the job, before nobody is started there
// any more; and how long one that has died is waited with until the next is started. Pure.
#pragma once

#include <map>
#include <string>
#include <utility>

namespace hvd::cli {

class ShareBudget {
 public:
  static constexpr int kDeaths = 3;
  // The first death is replaced at once; the wait behind each further one is twice as long. A share
  // that was well for the longest begins anew.
  static constexpr double kLeastWaitS = 0.5;
  static constexpr double kMostWaitS = 30;

  // `outside`: it was somebody else's doing, not the program's. True when this death has used up
  // the share's budget.
  bool Died(const std::string& host, int share, bool outside, double now);
  // Nobody is started there.
  bool IsOut(const std::string& host, int share) const;
  // The same, also when its host is reached anew: where the job has not got on since, ranks would
  // die as before.
  bool StaysOut(const std::string& host, int share) const;
  // When the share's next may be started; in the past or 0: now.
  double Until(const std::string& host, int share) const;
  // The job gets on: what is left counts anew, what is used up stays so until its host is reached
  // anew.
  void GetsOn();
  // The host begins anew. `all`: so do shares that stay out.
  void Renew(const std::string& host, bool all);
  // A share is left out, and the job has not got on since.
  bool AnyStaysOut() const;

 private:
  struct Record {
    int deaths = 0;         // without progress
    bool outside = false;   // the last one
    bool renewable = true;  // the job has got on since
    int in_a_row = 0;       // with or without progress
    double until = 0;
    bool out() const { return deaths >= kDeaths; }
  };
  const Record* Find(const std::string& host, int share) const;

  std::map<std::pair<std::string, int>, Record> records_;  // by host's name and share
};

}  // namespace hvd::cli
