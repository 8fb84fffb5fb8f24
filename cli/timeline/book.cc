// SPDX-License-Identifier: Apache-2.0
#include "cli/timeline/book.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace hvd::cli {
namespace {

// More names than this a rank share one row, so that a job with ever new names stays small.
constexpr size_t kMostRows = 10000;
// No rank that goes right has so many: some 9000 numbers in each of 16 regions.
constexpr size_t kMostNumbers = 262144;
constexpr char kUnnamed[] = "unnamed call ";

uint64_t Key(const TraceSpan& span) {
  return static_cast<uint64_t>(span.region) << 32 | span.tensor;
}

// Every activity's name, spelled once.
const std::string& NameOf(TraceActivity activity) {
  static const auto* names = [] {
    auto* all = new std::array<std::string, 256>;
    for (size_t i = 0; i < all->size(); ++i)
      (*all)[i] = ActivityName(static_cast<TraceActivity>(i));
    return all;
  }();
  return (*names)[static_cast<uint8_t>(activity)];
}

}  // namespace

TimelineBook::TimelineBook(const Topology& topology)
    : topology_(topology), ranks_(topology.size()) {
  MakeHosts(topology.hosts().size());
  std::iota(places_.begin(), places_.end(), 0);
}

void TimelineBook::MakeHosts(size_t hosts) {
  if (hosts <= places_.size()) return;
  places_.resize(hosts, -1);
  decoders_.resize(hosts);
  garbled_.resize(hosts);
}

// A rank may be another process now; that one tells its names itself.
void TimelineBook::BeginEpoch(const TimelineEpoch& epoch, std::string* out) {
  topology_ = epoch.topology;
  places_.assign(places_.size(), -1);
  for (size_t place = 0; place < epoch.hosts.size(); ++place) {
    MakeHosts(epoch.hosts[place] + 1);
    places_[epoch.hosts[place]] = static_cast<int>(place);
  }
  if (ranks_.size() < static_cast<size_t>(topology_.size())) ranks_.resize(topology_.size());
  for (Rank& rank : ranks_) rank.rank_named = false;
  if (format_ == nullptr || topology_.size() == 0) return;
  NameIfNew(0, 0, out);
  *out += format_->Epoch(epoch.number, epoch.at_ns);
}

// -1: nobody, in the newest epoch.
int TimelineBook::RankOf(int host, uint32_t local_rank) const {
  const int place = places_[host];
  if (place < 0 || local_rank >= static_cast<uint32_t>(topology_.hosts()[place].ranks)) return -1;
  return topology_.rank_at(place, static_cast<int>(local_rank));
}

std::string TimelineBook::BeginFile(TimelineFormat* format, int64_t start_ns, int64_t epoch_us) {
  format_ = format;
  last_ns_ = start_ns;
  for (Rank& rank : ranks_) {
    rank.rank_named = false;
    rank.named.assign(rank.named.size(), false);
  }
  return format->Begin(start_ns, epoch_us);
}

void TimelineBook::Take(int host, std::string_view bytes, int64_t offset_ns, std::string* out) {
  records_.clear();
  MakeHosts(host + 1);
  if (!garbled_[host] && !decoders_[host].Take(bytes, &records_)) {
    garbled_[host] = true;
    const std::string name =
        places_[host] >= 0 ? topology_.hosts()[places_[host]].name : absl::StrCat(host);
    GiveUp(absl::StrCat("host ", name), "its events make no sense");
  }
  for (TraceRecord& record : records_) {
    const int rank = RankOf(host, record.local_rank);
    if (rank < 0 || ranks_[rank].given_up) continue;
    if (record.lost != 0) {
      WriteLost(rank, record.lost, out);
    } else if (record.span.activity == TraceActivity::kNameEnd) {
      Write(out);
      TakeName(rank, record);
    } else {
      record.span.begin_ns += offset_ns;
      record.span.end_ns = std::max(record.span.begin_ns, record.span.end_ns + offset_ns);
      spans_.push_back({rank, record.span});
    }
  }
  Write(out);
}

// Said at the end; every stream is given up at most once.
void TimelineBook::GiveUp(const std::string& whose, const char* why) {
  if (given_up_.empty()) given_up_ = absl::StrCat("the timeline of ", whose, " ends early: ", why);
}

void TimelineBook::TakeName(int index, const TraceRecord& record) {
  Rank* rank = &ranks_[index];
  if (rank->rows.size() >= kMostNumbers && rank->rows.count(Key(record.span)) == 0) {
    rank->given_up = true;
    return GiveUp(absl::StrCat("rank ", index), "it has named more tensors than there can be");
  }
  std::string name = record.name;
  // A row each would bury the others.
  if (absl::StartsWith(name, kUnnamed)) name = "unnamed calls";
  // The library's own names begin with a byte that no user's do.
  if (!name.empty() && static_cast<unsigned char>(name[0]) < ' ')
    name = absl::StrCat("(", name.substr(1), ")");
  if (record.span.set != 0) absl::StrAppend(&name, " (process set ", record.span.set, ")");
  rank->rows[Key(record.span)] = RowOf(rank, Printable(name));
}

int TimelineBook::RowOf(Rank* rank, const std::string& name) {
  const auto found = rank->row.find(name);
  if (found != rank->row.end()) return found->second;
  if (rank->names.size() >= kMostRows) return RowOf(rank, rank->names.back());
  const bool last = rank->names.size() + 1 == kMostRows;
  rank->names.push_back(last ? "other names" : name);
  rank->named.push_back(false);
  return rank->row[rank->names.back()] = static_cast<int>(rank->names.size());
}

void TimelineBook::NameIfNew(int rank, int row, std::string* out) {
  Rank& known = ranks_[rank];
  if (!std::exchange(known.rank_named, true)) {
    const RankPlace& place = topology_.place(rank);
    *out += format_->NameRank(
        rank, absl::StrCat("rank ", rank, " (", topology_.hosts()[place.host].name, ")"));
  }
  if (row > 0 && !known.named[row - 1]) {
    known.named[row - 1] = true;
    *out += format_->NameRow({rank, row}, known.names[row - 1]);
  }
}

void TimelineBook::WriteLost(int rank, uint64_t count, std::string* out) {
  lost_ += count;
  if (format_ == nullptr) return;
  NameIfNew(rank, 0, out);
  *out += format_->Lost(rank, count, last_ns_);
}

// In order of time; of two that begin together the outer one comes first.
void TimelineBook::Write(std::string* out) {
  std::stable_sort(spans_.begin(), spans_.end(), [](const RankSpan& a, const RankSpan& b) {
    return a.span.begin_ns != b.span.begin_ns ? a.span.begin_ns < b.span.begin_ns
                                              : a.span.end_ns > b.span.end_ns;
  });
  for (const RankSpan& each : spans_) {
    TimelineEvent event;
    event.activity = NameOf(each.span.activity);
    if (event.activity.empty() || format_ == nullptr) continue;
    Rank& rank = ranks_[each.rank];
    const auto found = rank.rows.find(Key(each.span));
    event.row.rank = each.rank;
    event.row.row = found != rank.rows.end()
                        ? found->second
                        : RowOf(&rank, absl::StrCat("tensor ", each.span.tensor));
    event.begin_ns = each.span.begin_ns;
    event.end_ns = each.span.end_ns;
    // Its parts have the same.
    if (each.span.activity <= TraceActivity::kLastOperation) event.bytes = each.span.bytes;
    last_ns_ = std::max(last_ns_, event.end_ns);
    NameIfNew(each.rank, event.row.row, out);
    format_->Event(event, out);
  }
  spans_.clear();
}

}  // namespace hvd::cli
