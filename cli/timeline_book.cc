#include "cli/timeline_book.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace hvd {
namespace {

// More names than this a rank share one row, so that a job with ever new names stays small.
constexpr size_t kMostRows = 10000;
constexpr char kUnnamed[] = "unnamed call ";

uint64_t Key(const TraceSpan& span) { return static_cast<uint64_t>(span.set) << 32 | span.tensor; }

// The outer span of two that begin together comes first.
bool Before(const TraceRecord& a, const TraceRecord& b) {
  return a.span.begin_ns != b.span.begin_ns ? a.span.begin_ns < b.span.begin_ns
                                            : a.span.end_ns > b.span.end_ns;
}

}  // namespace

TimelineBook::TimelineBook(const Topology& topology)
    : topology_(topology),
      decoders_(topology.hosts().size()),
      garbled_(topology.hosts().size()),
      ranks_(topology.size()) {}

std::string TimelineBook::BeginFile(TimelineFormat* format, int64_t start_ns, int64_t epoch_us) {
  format_ = format;
  last_ns_ = start_ns;
  for (Rank& rank : ranks_) {
    rank.rank_named = false;
    rank.named.assign(rank.named.size(), false);
  }
  return format->Begin(start_ns, epoch_us);
}

std::string TimelineBook::Take(int host, std::string_view bytes, int64_t offset_ns) {
  std::vector<TraceRecord> records;
  if (garbled_[host] || !decoders_[host].Take(bytes, &records)) garbled_[host] = true;
  // Names first: a number changes its name only between this rank's drains of many events.
  std::vector<std::pair<int, TraceRecord>> spans;
  std::string out;
  const auto flush = [&] {
    std::stable_sort(spans.begin(), spans.end(),
                     [](const auto& a, const auto& b) { return Before(a.second, b.second); });
    for (const auto& [rank, record] : spans) out += Write(rank, record);
    spans.clear();
  };
  for (TraceRecord& record : records) {
    if (record.local_rank >= static_cast<uint32_t>(topology_.hosts()[host].ranks)) continue;
    const int rank = topology_.first_rank(host) + static_cast<int>(record.local_rank);
    if (record.span.activity == TraceActivity::kNameEnd) {
      flush();
      TakeName(&ranks_[rank], record);
      continue;
    }
    record.span.begin_ns += offset_ns;
    record.span.end_ns += offset_ns;
    spans.emplace_back(rank, std::move(record));
  }
  flush();
  return out;
}

void TimelineBook::TakeName(Rank* rank, const TraceRecord& record) {
  std::string name = record.name;
  // A row each would bury the others.
  if (absl::StartsWith(name, kUnnamed)) name = "unnamed calls";
  // The library's own names begin with a byte that no user's do.
  if (static_cast<unsigned char>(name[0]) < ' ') name = absl::StrCat("(", name.substr(1), ")");
  rank->rows[Key(record.span)] = RowOf(rank, name);
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

std::string TimelineBook::NameIfNew(int rank, int row) {
  Rank& known = ranks_[rank];
  std::string out;
  if (!std::exchange(known.rank_named, true)) {
    const RankPlace& place = topology_.place(rank);
    out += format_->NameRank(
        rank, absl::StrCat("rank ", rank, " (", topology_.hosts()[place.host].name, ")"));
  }
  if (row > 0 && !known.named[row - 1]) {
    known.named[row - 1] = true;
    out += format_->NameRow({rank, row}, known.names[row - 1]);
  }
  return out;
}

std::string TimelineBook::Write(int rank, const TraceRecord& record) {
  if (record.lost != 0) {
    lost_ += record.lost;
    if (format_ == nullptr) return "";
    const std::string names = NameIfNew(rank, 0);
    return names + format_->Lost(rank, record.lost, last_ns_);
  }
  TimelineEvent event;
  event.activity = ActivityName(record.span.activity);
  if (event.activity.empty() || format_ == nullptr) return "";
  const auto found = ranks_[rank].rows.find(Key(record.span));
  event.row.rank = rank;
  event.row.row = found != ranks_[rank].rows.end()
                      ? found->second
                      : RowOf(&ranks_[rank], absl::StrCat("tensor ", record.span.tensor));
  event.begin_ns = record.span.begin_ns;
  event.end_ns = std::max(record.span.begin_ns, record.span.end_ns);
  event.bytes = record.span.bytes;
  last_ns_ = std::max(last_ns_, event.end_ns);
  ++events_;
  const std::string names = NameIfNew(rank, event.row.row);
  return names + format_->Event(event);
}

}  // namespace hvd
