// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/message/reduce.h"

namespace hvd::rt {

void ApplyPrescale(MessageReduce* reduce) {
  if (reduce->prescale == 1.0) return;
  const void* source = reduce->input;
  void* destination = reduce->output;
  ReduceTask task;
  task.sources = &source;
  task.source_count = 1;
  task.destinations = &destination;
  task.destination_count = 1;
  task.count = reduce->count;
  task.prescale = reduce->prescale;
  if (reduce->count > 0) reduce->kernel(task);
  reduce->input = reduce->output;
  reduce->prescale = 1.0;
}

}  // namespace hvd::rt
