// SPDX-License-Identifier: Apache-2.0
#include "cli/job/crew.h"

namespace hvd::cli {

v1::RankExited ExitOf(const v1::MemberDied& died) {
  v1::RankExited exit;
  exit.set_member(died.member());
  exit.set_exit_code(died.exit_code());
  exit.set_signal(died.signal());
  exit.set_core_dumped(died.core_dumped());
  exit.set_out_of_memory(died.out_of_memory());
  exit.set_joined(died.epoch() != 0);
  exit.set_left(died.left());
  return exit;
}

}  // namespace hvd::cli
