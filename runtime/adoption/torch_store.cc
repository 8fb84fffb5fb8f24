// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/torch_store.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/adoption/torch_client.h"

namespace hvd::rt {
namespace {

constexpr auto kAnswerPatience = std::chrono::seconds(30);  // the server's, for what it has
constexpr auto kFindPatience = std::chrono::seconds(2);     // to find out who is missing

class TorchStore : public LauncherStore {
 public:
  explicit TorchStore(TorchStorePlace place) : place_(std::move(place)) {}

  absl::StatusOr<std::vector<std::string>> Exchange(const std::string& mine,
                                                    std::chrono::milliseconds patience) override;

 private:
  std::string Name() const;
  absl::Status Blame(const absl::Status& status) const;
  absl::Status Late(std::chrono::milliseconds patience, const std::string& missing) const;
  absl::StatusOr<std::vector<std::string>> ExchangeOver(TorchClient* client,
                                                        const std::string& mine,
                                                        std::chrono::milliseconds patience,
                                                        TimePoint until);
  std::string FindMissing(TorchClient* client, const std::vector<std::string>& keys);

  const TorchStorePlace place_;
};

std::string TorchStore::Name() const {
  return absl::StrCat("torchrun's store (MASTER_ADDR=", place_.host, ", MASTER_PORT=", place_.port,
                      ")");
}

absl::Status TorchStore::Blame(const absl::Status& status) const {
  return absl::UnavailableError(
      absl::StrCat(Name(), " cannot be used: ", status.message(),
                   "; next: look whether torchrun still runs there, and whether it has PyTorch 2"));
}

absl::Status TorchStore::Late(std::chrono::milliseconds patience,
                              const std::string& missing) const {
  return absl::DeadlineExceededError(
      absl::StrCat("not all of torchrun's ", place_.size, " processes have come in ",
                   std::chrono::duration<double>(patience).count(), " s", missing,
                   "; next: look that every one of them calls hvd's init"));
}

// The first of them; empty: the server does not tell.
std::string TorchStore::FindMissing(TorchClient* client, const std::vector<std::string>& keys) {
  const TimePoint until = Clock::now() + kFindPatience;
  if (!client->GiveUp(until).ok()) return "";
  for (size_t rank = 0; rank < keys.size(); ++rank) {
    const absl::StatusOr<bool> has = client->Has(keys[rank], until);
    if (!has.ok()) return "";
    if (!*has) return absl::StrCat(" (rank ", rank, " has not)");
  }
  return "";
}

absl::StatusOr<std::vector<std::string>> TorchStore::ExchangeOver(
    TorchClient* client, const std::string& mine, std::chrono::milliseconds patience,
    TimePoint until) {
  std::vector<std::string> keys;
  keys.reserve(static_cast<size_t>(place_.size));
  for (int rank = 0; rank < place_.size; ++rank) {
    keys.push_back(absl::StrCat("/", place_.prefix, rank));  // as torch's own client begins them
  }
  absl::Status done =
      client->Set(keys[static_cast<size_t>(place_.rank)], mine, Clock::now() + kAnswerPatience);
  if (done.ok()) done = client->Wait(keys, until);
  if (absl::IsDeadlineExceeded(done)) return Late(patience, FindMissing(client, keys));
  if (!done.ok()) return Blame(done);
  auto all = client->Get(keys, Clock::now() + kAnswerPatience);
  return all.ok() ? all : Blame(all.status());
}

absl::StatusOr<std::vector<std::string>> TorchStore::Exchange(const std::string& mine,
                                                              std::chrono::milliseconds patience) {
  const TimePoint until = Clock::now() + patience;
  absl::StatusOr<TorchClient> client = TorchClient::Connect(place_.host, place_.port, until);
  if (!client.ok()) return Blame(client.status());
  return ExchangeOver(&*client, mine, patience, until);
}

}  // namespace

absl::StatusOr<std::unique_ptr<LauncherStore>> OpenTorchStore(const TorchStorePlace& place) {
  if (place.serves) {
    return absl::UnimplementedError(
        absl::StrCat("nobody but this process would serve the store at MASTER_ADDR=", place.host,
                     ", MASTER_PORT=", place.port,
                     ", which hvd does not do; next: start the program by torchrun, or by hvdrun"));
  }
  if (place.rank < 0 || place.rank >= place.size) {
    return absl::FailedPreconditionError(
        absl::StrCat("RANK=", place.rank, " is none of WORLD_SIZE=", place.size,
                     "; next: start the program by torchrun, or by hvdrun"));
  }
  return std::make_unique<TorchStore>(place);
}

}  // namespace hvd::rt
