// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/intake.h"

#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "base/printable.h"

namespace hvd {
namespace {

// Needs no memory.
class PartRefused : public std::exception {
 public:
  explicit PartRefused(absl::string_view why) {
    snprintf(text_, sizeof(text_), "only a part of the group could be submitted: %.*s",
             static_cast<int>(why.size()), why.data());
  }
  const char* what() const noexcept override { return text_; }

 private:
  char text_[400];
};

}  // namespace

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
  if (request->takes_turn()) parts_.pending->names().GiveTurnBack();
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
  parts_.notes->SetCallers(parts_.role->waiting());
}

absl::Status Intake::Enter(Request* request, bool caller_waits) {
  PendingRequests& pending = *parts_.pending;
  if (parts_.departure->is_away()) return parts_.departure->Refuse(*request);
  if (IsPair(request->signature.kind)) return EnterPair(request);
  LocalName* name = pending.names().FindFor(*request);
  request->course.local = name;
  if (!name->prepared) {
    if (absl::Status prepared = Prepare(name, *request); !prepared.ok()) {
      if (request->takes_turn()) pending.names().GiveTurnBack();
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
  if (caller_waits) parts_.notes->SetCallers(parts_.role->waiting() + 1);
  if (absl::Status marked = Mark(name); !marked.ok()) {
    name->pending = nullptr;
    UndoComes();
    return marked;
  }
  pending.Add();
  return absl::OkStatus();
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

// Nothing that can be known before keeps a later one out. What still does, the others must hear of:
// they wait for it.
absl::Status Intake::SubmitGroup(absl::Span<const std::unique_ptr<Request>> requests) {
  Request& first = *requests.front();
  try {
    for (const auto& request : requests.subspan(1)) {
      request->unnamed = first.unnamed;
      if (first.unnamed) continue;  // these wait in order for as long as they must
      request->name = NamePart(first.name, request->signature.dtype);
      if (parts_.pending->names().Find(request->name)->pending != nullptr) {
        return StillPending(*request);
      }
    }
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
  if (absl::Status status = Submit(&first, false); !status.ok()) return status;
  absl::Status refused;
  for (const auto& request : requests.subspan(1)) {
    if (refused.ok()) refused = SubmitPart(first, request.get());
    if (refused.ok()) continue;
    request->result.status = refused;
    parts_.pending->End(request.get());  // its observer is told with all others: the epoch is over
  }
  return absl::OkStatus();
}

absl::Status Intake::SubmitPart(const Request& first, Request* request) {
  absl::Status refused;
  try {
    if (first.unnamed) request->name = NamePart(AgreedName(first), request->signature.dtype);
    refused = Submit(request, false);
    if (refused.ok() || absl::IsAborted(refused)) return refused;
  } catch (const std::bad_alloc&) {
    refused = OutOfMemory();
  }
  const PartRefused error(refused == OutOfMemory() ? kNoMemory : refused.message());
  parts_.world->board().AbortThrown(error, AgreedName(first));
  try {
    return parts_.world->waiter().EndEpoch(kNoMemory);  // as Executor::BreakThrown
  } catch (const std::bad_alloc&) {
    return refused;
  }
}

// Once a name, and again after its number was given up. What this rank has marked directly others
// count on, and so they do on a turn that it has taken: when it must go to the board, now or later,
// there must be room.
absl::Status Intake::Prepare(LocalName* name, const Request& request) {
  if (!IsUsers(request.signature.kind)) return absl::OkStatus();
  // Groups never go directly; and where a name is only theirs, nobody else's call can meet it.
  const bool only_groups = request.unnamed && !request.takes_turn();
  if (parts_.direct->exists() && !only_groups) parts_.direct->FindNumber(name);
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
  parts_.notes->Ended(parts_.pending->count(), parts_.role->waiting());
  parts_.pending->End(request);
}

void Intake::CompleteLaunched(Request* request) {
  parts_.departure->Ended(*request);
  parts_.pending->Launched(request);
  parts_.notes->Done(parts_.pending->count(), parts_.role->waiting());
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
