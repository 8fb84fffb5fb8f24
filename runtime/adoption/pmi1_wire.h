// SPDX-License-Identifier: Apache-2.0
// PMI-1 as mpiexec.hydra of MPICH and of Intel MPI speaks it with each process: a line of text is
// asked, a line is answered. One thread at a time.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/clock.h"
#include "base/descriptor.h"

namespace hvd::rt {

class Pmi1Wire {
 public:
  // Takes a copy of the descriptor. The program's own MPI goes on with `fd`, before or after: its
  // lines and hvd's do not mix as long as each answer is awaited before the next question.
  static absl::StatusOr<Pmi1Wire> Open(int fd);

  // Asks "cmd=QUESTION", and returns the answer, a line whose cmd is `answer`.
  // DeadlineExceeded: none has come; Unavailable: mpiexec has gone, or says something else. Neither
  // leaves a wire that more can be asked of, but for Finalize.
  absl::StatusOr<std::string> Ask(absl::string_view question, absl::string_view answer,
                                  TimePoint until);

  // Tells mpiexec that this process has no more to ask, which keeps mpiexec from taking its end for
  // a crash. A late answer to an earlier question is passed over.
  void Finalize(TimePoint until);

  // Has mpiexec end all its processes, as MPI_Abort does.
  void Abort(TimePoint until);

  // "mpiexec at PMI_FD=8", for errors.
  const std::string& name() const { return name_; }

 private:
  Pmi1Wire(Descriptor socket, std::string name)
      : socket_(std::move(socket)), name_(std::move(name)) {}
  absl::StatusOr<std::string> ReadLine(TimePoint until);
  absl::Status Blame(const absl::Status& status, absl::string_view question);

  Descriptor socket_;
  std::string name_;
  std::string came_;  // and not read yet
  bool gone_ = false;
};

// Returns the value that a line "cmd=... NAME=VALUE ..." has for this name; empty: none.
absl::string_view Pmi1Field(absl::string_view line, absl::string_view name);

}  // namespace hvd::rt
