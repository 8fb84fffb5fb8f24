// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/intake.h"

#include <exception>
#include <new>
#include <string>

#include "base/printable.h"

namespace hvd {

absl::Status StillPending(const Request& request) {
  return absl::AlreadyExistsError("tensor " + ShownName(request.name) +
                                  " is already pending on this rank; wait for it before "
                                  "submitting the same name again");
}

const absl::Status& OutOfMemory() {
  static const auto* const status =
      new absl::Status(absl::InternalError("out of memory; nothing was submitted"));
  return *status;
}

const absl::Status& EndedWordless() {
  static const auto* const status =
      new absl::Status(absl::AbortedError("the epoch has ended, and this rank is out of memory"));
  return *status;
}

absl::Status Intake::Submit(Request* request, bool caller_waits) {
  if (!parts_.pending->broken().ok()) return parts_.pending->broken();
  request->course.local = nullptr;
  try {
    return Enter(request, caller_waits);
  } catch (const std::bad_alloc& error) {
    return Withdraw(request, error);
  }
}

// There was no memory for it. As if it had never come, unless others know already that it has.
absl::Status Intake::Withdraw(Request* request, const std::exception& error) {
  LocalName* name = request->course.local;
  if (name == nullptr) return OutOfMemory();
  if (request->unnamed) parts_.pending->names().GiveTurnBack();
  if (name->pending != request) return OutOfMemory();
  name->pending = nullptr;
  UndoComes();
  const bool told =
      request->signature.kind == RequestKind::kJoin || name->direct.ticket.number != 0;
  if (!told) return OutOfMemory();
  parts_.world->board().AbortThrown(error, *name->name);
  try {
    return parts_.world->waiter().EndEpoch(kNoMemory);  // as Executor::BreakThrown
  } catch (const std::bad_alloc&) {  // not even for the words; later calls say them
  }
  return OutOfMemory();
}

void Intake::UndoComes() {
  parts_.notes->SetPending(parts_.pending->count());
  parts_.notes->SetCallers(parts_.role->callers());
}

absl::Status Intake::Enter(Request* request, bool caller_waits) {
  PendingRequests& pending = *parts_.pending;
  if (parts_.departure->is_away()) return parts_.departure->Refuse(*request);
  if (IsPair(request->signature.kind)) return EnterPair(request);
  LocalName* name = pending.names().FindFor(*request);
  request->course.local = name;
  NameOthers(*request);
  if (!name->prepared) {
    if (absl::Status prepared = Prepare(name, *request); !prepared.ok()) {
      if (request->unnamed) pending.names().GiveTurnBack();
      return prepared;
    }
  }
  request->course.sequence = pending.NextSequence();
  name->distance = request->course.sequence - name->last_use;
  name->last_use = request->course.sequence;
  request->course.submitted_ns = parts_.notes->timeline().Stamp();
  if (pending.MustWait(*request, *name)) {
    pending.Defer(request);
    return absl::OkStatus();
  }
  if (name->pending != nullptr) return StillPending(*request);
  parts_.direct->MakeRoom();
  name->pending = request;
  parts_.notes->Comes(*request, pending.count());
  if (caller_waits) parts_.notes->SetCallers(parts_.role->callers() + 1);
  if (absl::Status marked = Mark(name); !marked.ok()) {
    name->pending = nullptr;
    UndoComes();
    return marked;
  }
  pending.Add();
  return absl::OkStatus();
}

// Before anybody can see the first.
void Intake::NameOthers(const Request& first) {
  for (const auto& other : first.course.others) {
    other->unnamed = false;
    other->name = NamePart(*first.course.local->name, other->signature.dtype);
  }
}

absl::Status Intake::EnterPair(Request* request) {
  request->course.sequence = parts_.pending->submissions() + 1;
  parts_.pairs->Submit(request);
  (void)parts_.pending->NextSequence();
  parts_.notes->PairComes(*request, parts_.world->GlobalRank(request->peer),
                          parts_.pending->count());
  parts_.pending->Add();
  return absl::OkStatus();
}

absl::Status Intake::SubmitGroup(absl::Span<const std::unique_ptr<Request>> requests) {
  Request& first = *requests.front();
  first.course.others = requests.subspan(1);
  absl::Status status = Submit(&first, false);
  if (!status.ok()) return status;
  for (const auto& other : first.course.others) {
    RequestCourse& course = other->course;
    course.sequence = parts_.pending->NextSequence();
    course.submitted_ns = first.course.submitted_ns;
    course.local = first.course.local;
    course.is_other = true;
    parts_.pending->Add();
  }
  parts_.notes->SetPending(parts_.pending->count());
  return absl::OkStatus();
}

// Called once a name, and again after its number was given up. Others count on a request that this
// rank has marked directly, and on a turn that it has taken: when it must go to the board, now or
// later, there must be room.
absl::Status Intake::Prepare(LocalName* name, const Request& request) {
  if (!IsUsers(request.signature.kind)) return absl::OkStatus();
  if (parts_.direct->exists()) parts_.direct->FindNumber(name);
  if (name->direct.ticket.number != 0 || request.unnamed) {
    if (absl::Status kept = parts_.board->Keep(*name); !kept.ok()) return kept;
  }
  name->prepared = true;
  return absl::OkStatus();
}

absl::Status Intake::Mark(LocalName* name) {
  if (name->pending->signature.kind == RequestKind::kJoin) return parts_.departure->Join(name);
  // A rank that has joined or left has told the others that it is away: they would not all see its
  // mark.
  const bool may_go = parts_.direct->exists() && !parts_.departure->is_away();
  name->direct.marked = may_go && parts_.direct->Mark(name);
  return name->direct.marked ? absl::OkStatus() : MarkOnBoard(name);
}

absl::Status Intake::MarkOnBoard(LocalName* name) {
  const bool wants = !parts_.departure->is_away() && parts_.direct->WantsNumber(*name);
  return parts_.board->Mark(name, wants);
}

absl::Status Intake::FallBack(LocalName* name) {
  name->direct.marked = false;
  return MarkOnBoard(name);
}

void Intake::Complete(Request* request) {
  parts_.departure->Ended(*request);
  parts_.pending->Remove(request);
  parts_.notes->Ended(parts_.pending->count(), parts_.role->callers());
  parts_.pending->End(request);
}

void Intake::CompleteLaunched(Request* request) {
  parts_.departure->Ended(*request);
  parts_.pending->Launched(request);
  parts_.notes->Done(parts_.pending->count(), parts_.role->callers());
  parts_.pending->End(request);
}

void Intake::NoteFinished(const LaunchedRun& run) {
  for (const LaunchedTensor& tensor : run.tensors) {
    parts_.pending->Finished(tensor.sequence);
    parts_.notes->CountCall();
  }
}

void Intake::SubmitDeferred() {
  while (Request* request = parts_.pending->TakeDeferred()) {
    try {
      parts_.direct->MakeRoom();
      if (absl::Status marked = Mark(request->course.local); !marked.ok()) {
        request->result.status = marked;
        Complete(request);
      }
    } catch (const std::bad_alloc& error) {
      // The others wait for its turn. The executor ends what is pending.
      return parts_.world->board().AbortThrown(error, *request->course.local->name);
    }
  }
}

}  // namespace hvd
