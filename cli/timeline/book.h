// SPDX-License-Identifier: Apache-2.0
// What the hosts' streams of frames become: named ranks and rows, events in order. Pure; one per
// job, since names are told once; a file begins anew with BeginFile.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "cli/timeline/format.h"
#include "hostfile/topology.h"
#include "proto/page/trace_ring.h"

namespace hvd::cli {

// An epoch of a job whose members come and go.
struct TimelineEpoch {
  uint64_t number = 0;
  Topology topology;
  std::vector<int> hosts;  // the driver's numbers of the topology's hosts
  int64_t at_ns = 0;       // hvdrun's clock
};

class TimelineBook {
 public:
  explicit TimelineBook(const Topology& topology);

  // A new file: everything is named again. Returns its first bytes.
  std::string BeginFile(TimelineFormat* format, int64_t start_ns, int64_t epoch_us);
  void EndFile() { format_ = nullptr; }

  // Sets which member is which rank from now on. Appends the mark that the file gets.
  void BeginEpoch(const TimelineEpoch& epoch, std::string* out);
  // A piece of a host's stream; `offset_ns` turns its clock into ours. Appends what the file gets.
  void Take(int host, std::string_view bytes, int64_t offset_ns, std::string* out);

  uint64_t lost() const { return lost_; }
  // Not empty: a stream was given up, and why; of several the first.
  const std::string& given_up() const { return given_up_; }

 private:
  struct Rank {
    std::unordered_map<uint64_t, int> rows;  // by (region, tensor): the row of its present name
    std::map<std::string, int> row;          // by name
    std::vector<std::string> names;          // by row
    std::vector<bool> named;                 // in this file, by row
    bool rank_named = false;                 // in this file
    bool given_up = false;                   // it goes wrong: nothing more is taken from it
  };
  struct RankSpan {
    int rank;
    TraceSpan span;
  };
  void TakeName(int rank, const TraceRecord& record);
  void GiveUp(const std::string& whose, const char* why);
  int RowOf(Rank* rank, const std::string& name);
  void Write(std::string* out);
  void WriteLost(int rank, uint64_t count, std::string* out);
  void NameIfNew(int rank, int row, std::string* out);

  int RankOf(int host, uint32_t local_rank) const;
  void MakeHosts(size_t hosts);

  Topology topology_;                 // of the newest epoch
  std::vector<int> places_;           // by host: its place in the topology; -1: it has none
  TimelineFormat* format_ = nullptr;  // null: no file is open
  std::vector<TraceDecoder> decoders_;
  std::vector<bool> garbled_;  // by host
  std::vector<Rank> ranks_;
  std::vector<TraceRecord> records_;  // of Take
  std::vector<RankSpan> spans_;       // of Take: since the last name
  uint64_t lost_ = 0;
  std::string given_up_;
  int64_t last_ns_ = 0;
};

}  // namespace hvd::cli
