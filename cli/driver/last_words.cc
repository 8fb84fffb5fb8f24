// SPDX-License-Identifier: Apache-2.0
#include "cli/driver/last_words.h"

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/report/job_report.h"
#include "cli/report/job_summary.h"
#include "cli/report/verdict_text.h"

namespace hvd::cli {
namespace {

constexpr double kReportS = 2;  // for job.json; the verdict comes after it

}  // namespace

void LastWords::WriteReport() {
  const std::string& directory = parts_.options->output_directory;
  if (directory.empty() || report_lost_) return;
  const JobFacts& facts = parts_.state->facts();
  const absl::Status written =
      WriteJobReportWithin(kReportS, directory, RenderJobReport(facts, Judge(facts)));
  report_lost_ = !written.ok();
  if (!report_lost_) return;
  auto& lost = parts_.state->mutable_facts()->lost_files;
  lost.insert(lost.begin(), absl::StrCat("job.json: ", std::string(written.message())));
}

// Once more when output is lost after it.
Frame LastWords::Report() {
  WriteReport();
  const JobFacts& facts = parts_.state->facts();
  const Verdict verdict = Judge(facts);
  Frame final;
  final.kind = FrameKind::kFinal;
  final.number = verdict.exit_code;
  final.text = RenderVerdict(facts, verdict);
  return final;
}

void LastWords::Say() {
  const JobFacts& facts = parts_.state->facts();
  const std::string summary = parts_.options->verbose > 0 ? RenderSummary(facts) : "";
  if (!summary.empty()) parts_.console->PutInOrder(NoticeOf(summary));
  const size_t known_losses = facts.lost_output.size();
  Frame final = Report();
  if (facts.ending == Ending::kOutputGone) parts_.console->ForgetOutput();
  parts_.console->Drain();
  if (facts.lost_output.size() > known_losses) final = Report();
  parts_.console->Put(std::move(final));
  parts_.console->Flush();
}

}  // namespace hvd::cli
