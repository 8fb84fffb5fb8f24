// SPDX-License-Identifier: Apache-2.0
// The job's end as the person and job.json get it: the summary, the verdict, and the verdict anew
// where output is lost behind it. One thread.
#pragma once

#include "cli/driver/console_talk.h"
#include "cli/front/words/run_options.h"
#include "cli/job/job_state.h"

namespace hvd::cli {

class LastWords {
 public:
  // All of them outlive it.
  struct Parts {
    const RunOptions* options;
    JobState* state;
    ConsoleTalk* console;
  };
  explicit LastWords(const Parts& parts) : parts_(parts) {}

  // Returns when the console has all of it. Behind the verdict nothing comes.
  void Say();

 private:
  Frame Report();
  void WriteReport();

  const Parts parts_;
  bool report_lost_ = false;  // job.json could not be written
};

}  // namespace hvd::cli
