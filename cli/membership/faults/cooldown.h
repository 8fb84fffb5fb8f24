// SPDX-License-Identifier: Apache-2.0
// How long a host that has failed is left alone: a least time, twice as long the next time, never
// longer than a bound. Pure.
#pragma once

#include <map>
#include <string>

namespace hvd::cli {

class Cooldown {
 public:
  Cooldown(double least_s, double most_s) : least_s_(least_s), most_s_(most_s) {}

  // The host has failed once more. Returns for how long it is left alone.
  double Failed(const std::string& host, double now);
  bool Cools(const std::string& host, double now) const;
  // When the host may be tried again; in the past or 0: now.
  double Until(const std::string& host) const;

 private:
  struct Record {
    int failures = 0;
    double until = 0;
  };
  const double least_s_;
  const double most_s_;
  std::map<std::string, Record> records_;  // by host's name
};

}  // namespace hvd::cli
