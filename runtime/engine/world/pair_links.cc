// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/world/pair_links.h"

#include "runtime/engine/pairs/message_pair_link.h"

namespace hvd::rt {

absl::StatusOr<std::unique_ptr<PairLink>> PairLinks::To(int rank) const {
  const RankPlace& here = seat_.place();
  const RankPlace& theirs = seat_.topology().place(rank);
  if (theirs.host != here.host) {
    return std::make_unique<MessagePairLink>(
        MessagePairPlace{ground_.transport, rank, ground_.channel, seat_.set().id});
  }
  return HostPairLink::Make({ground_.space, ground_.places, here.local_rank, theirs.local_rank});
}

bool PairLinks::MayBeUsed(int rank) const {
  const RankPlace& here = seat_.place();
  const RankPlace& theirs = seat_.topology().place(rank);
  return theirs.host != here.host ||
         ground_.places.Of(here.local_rank, theirs.local_rank).load() != 0;
}

}  // namespace hvd::rt
