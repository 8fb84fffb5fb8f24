// SPDX-License-Identifier: Apache-2.0
#include "runtime/adoption/adopted.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "proto/adoption.h"
#include "proto/hello.h"
#include "proto/hmac_sha256.h"
#include "proto/host_identity.h"
#include "runtime/adoption/helper_process.h"
#include "runtime/adoption/introduction.h"
#include "runtime/adoption/pmi1_store.h"
#include "runtime/adoption/pmix_store.h"
#include "runtime/adoption/torch_store.h"

namespace hvd::rt {
namespace {

using TimePoint = std::chrono::steady_clock::time_point;

constexpr std::chrono::seconds kPatience(kAdoptionPatienceS);
// For ranks of this host that have not come as far.
constexpr std::chrono::milliseconds kRefusalPatience(2000);
constexpr size_t kSecretBytes = 16;
constexpr int kFirstPipe = 10;

absl::StatusOr<std::string> RandomWord() {
  std::string bytes(kSecretBytes, '\0');
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    return absl::UnavailableError("the kernel gives no random bytes");
  }
  return absl::BytesToHexString(bytes);
}

const char* Find(const std::vector<std::string>& environment, absl::string_view name) {
  for (const std::string& entry : environment) {
    if (absl::StartsWith(entry, name) && entry.size() > name.size() && entry[name.size()] == '=') {
      return entry.c_str() + name.size() + 1;
    }
  }
  return "";
}

int NumberIn(const char* text) {
  int number = -1;
  std::from_chars(text, text + strlen(text), number);
  return number;
}

absl::StatusOr<std::unique_ptr<LauncherStore>> OpenStore(const ForeignPlace& place,
                                                         const AdoptionTools& tools) {
  const auto text = [&tools](const char* name) { return Find(tools.environment, name); };
  switch (place.store) {
    case ForeignStore::kNone:
      return nullptr;
    case ForeignStore::kPmix:
      return OpenPmixStore(place.rank, place.size);
    case ForeignStore::kPmi1:
      return OpenPmi1Store(NumberIn(text("PMI_FD")), place.rank, place.size);
    case ForeignStore::kTorch:
      break;
  }
  TorchStorePlace torch;
  torch.host = text("MASTER_ADDR");
  torch.port = NumberIn(text("MASTER_PORT"));
  // When agents come or go, torchrun counts no restart, but there are more processes, or fewer.
  torch.prefix = absl::StrCat("hvd/", text("TORCHELASTIC_RESTART_COUNT"), "/", place.size, "/");
  torch.rank = place.rank;
  torch.size = place.size;
  return OpenTorchStore(torch);
}

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return IsAdoptionWord(name) ? name : "host";
}

// A store's values are short. Empty: this host cannot be told from others.
std::string ShortIdentity() {
  const std::string identity = HostIdentity();
  if (identity.empty()) return "";
  return absl::BytesToHexString(std::string(AsText(Sha256(identity))).substr(0, 8));
}

// Returns the environment of hvd's own processes. It lacks PMI's descriptor, which is the rank's
// alone.
std::vector<std::string> HelperEnvironment(const AdoptionTools& tools, std::string own) {
  std::vector<std::string> environment = {std::move(own)};
  for (const std::string& entry : tools.environment) {
    if (!absl::StartsWith(entry, "PMI_FD=")) environment.push_back(entry);
  }
  return environment;
}

bool MakePipe(Descriptor* read_end, Descriptor* write_end) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  // If a program has closed its own, these may be 0, 1 or 2, where the helper's are to be.
  const Descriptor low[] = {Descriptor(ends[0]), Descriptor(ends[1])};
  read_end->Reset(fcntl(ends[0], F_DUPFD_CLOEXEC, kFirstPipe));
  write_end->Reset(fcntl(ends[1], F_DUPFD_CLOEXEC, kFirstPipe));
  return read_end->valid() && write_end->valid();
}

// hvd's own processes, as far as this rank has started them.
struct Helper {
  Descriptor words;  // its end is theirs
  Descriptor life;   // theirs ends with this one; unused: they end by themselves
};

// "PORT ADDRESS,…", up to the end of the line.
std::string ReadLine(int fd) {
  std::string line;
  char next;
  while (read(fd, &next, 1) == 1 && next != '\n' && line.size() < 4096) line.push_back(next);
  return line;
}

// On local rank 0 of every host; that of rank 0's host is not called.
absl::Status StartDaemon(const AdoptionTools& tools, AdoptedHost* daemon, Helper* helper) {
  absl::StatusOr<std::string> secret = RandomWord();
  if (!secret.ok()) return secret.status();
  Descriptor in, out;
  if (!MakePipe(&in, &helper->life) || !MakePipe(&helper->words, &out)) {
    return absl::ResourceExhaustedError("no pipe for hvdd: look at the limit of open files");
  }
  HelperOrder order;
  order.argv = {ProgramBeside(tools.library, "hvdd"), "--await",
                std::to_string(kAdoptionPatienceS)};
  order.environment = HelperEnvironment(tools, absl::StrCat(kAwaitSecretVariable, "=", *secret));
  order.in = in.get();
  order.out = out.get();
  if (absl::Status started = StartHelper(order); !started.ok()) return started;
  const std::vector<std::string> told = absl::StrSplit(ReadLine(helper->words.get()), ' ');
  daemon->port = NumberIn(told[0].c_str());
  if (told.size() != 2 || daemon->port <= 0) return absl::InternalError("hvdd tells no port");
  daemon->addresses = absl::StrSplit(told[1], ',', absl::SkipEmpty());
  daemon->secret = *std::move(secret);
  return absl::OkStatus();
}

std::vector<std::string> OwnCommand() {
  std::ifstream file("/proc/self/cmdline");
  std::stringstream text;
  text << file.rdbuf();
  std::vector<std::string> words = absl::StrSplit(text.str(), '\0');
  if (!words.empty() && words.back().empty()) words.pop_back();
  if (words.empty() || words[0].empty()) words = {"program"};
  return words;
}

// On rank 0.
absl::Status StartHvdrun(const AdoptionTools& tools, const Adoption& adoption, Helper* helper) {
  Descriptor life;
  if (!MakePipe(&helper->words, &life)) {
    return absl::ResourceExhaustedError("no pipe for hvdrun: look at the limit of open files");
  }
  HelperOrder order;
  order.argv = {ProgramBeside(tools.library, "hvdrun"), "--"};
  for (std::string& word : OwnCommand()) order.argv.push_back(std::move(word));
  order.environment =
      HelperEnvironment(tools, absl::StrCat(kAdoptionVariable, "=", FormatAdoption(adoption)));
  order.life = life.get();
  return StartHelper(order);
}

// By the variables alone.
Adoption PlannedAdoption(const ForeignPlace& place) {
  Adoption adoption;
  adoption.by = place.by;
  adoption.key = ClaimKeyOf(place);
  for (const HostShape& host : place.hosts) {
    AdoptedHost adopted;
    adopted.name = host.name.empty() ? HostName() : host.name;
    adopted.ranks = host.ranks;
    adopted.numbers = host.numbers;
    adoption.hosts.push_back(std::move(adopted));
  }
  return adoption;
}

absl::StatusOr<Adoption> Meet(const ForeignPlace& place, const AdoptionTools& tools,
                              LauncherStore* store, Helper* helper) {
  if (store == nullptr) return PlannedAdoption(place);
  Introduction mine;
  mine.host = HostName();
  mine.identity = ShortIdentity();
  mine.local_rank = place.local_rank;
  mine.local_size = place.local_size;
  if (place.rank == 0) {
    absl::StatusOr<std::string> key = RandomWord();
    if (!key.ok()) return key.status();
    mine.key = *std::move(key);
  } else if (place.local_rank == 0) {
    absl::Status started = StartDaemon(tools, &mine.daemon, helper);
    if (!started.ok()) return started;
  }
  auto told = store->Exchange(FormatIntroduction(mine), kPatience);
  if (!told.ok()) return told.status();
  return GatherAdoption(place.by, *told);
}

// Not from all of many: they wait for the same.
std::string WaitWords(const ForeignPlace& place) {
  constexpr int kMostThatSpeak = 4;
  if (place.rank >= kMostThatSpeak) return "";
  return absl::StrCat("rank ", place.rank, " of ", place.by,
                      " waits for rank 0 to call hvd's init, which starts hvdrun");
}

// The ranks of rank 0's host, when hvdrun does not go on: they would wait without end.
void TellOthersHere(const Adoption& adoption, const absl::Status& why) {
  const AdoptedHost& here = adoption.hosts.front();
  std::vector<std::string> doors;
  for (int local = 1; local < here.ranks; ++local) {
    const int rank = here.numbers.empty() ? local : here.numbers[local];
    doors.push_back(ClaimName(adoption.key, geteuid(), rank));
  }
  RefuseClaims(std::move(doors), absl::StrCat("rank 0: ", why.message()), kRefusalPatience);
}

// Takes no leave of the launcher before the process ends, and then only if it ends well: its end
// is to be taken for the failure that it is, and the others, which wait for hvd, are to be ended.
void LeaveAsFailed(std::unique_ptr<LauncherStore> store) {
  struct Kept {
    pid_t pid;
    std::unique_ptr<LauncherStore> store;
  };
  const auto leave = [](int code, void* argument) {
    Kept* const kept = static_cast<Kept*>(argument);
    if (getpid() != kept->pid) return;  // of a child that was forked
    code == 0 ? kept->store.reset() : kept->store->Abandon();
  };
  on_exit(leave, new Kept{getpid(), std::move(store)});
}

// HVD_LINK's descriptor is the one that has come here.
void NameDoor(int door, std::vector<std::string>* environment) {
  constexpr absl::string_view kLink = "HVD_LINK=";
  for (std::string& entry : *environment) {
    LinkName link;
    if (!absl::StartsWith(entry, kLink) || !ParseLinkName(entry.substr(kLink.size()), &link)) {
      continue;
    }
    link.fd = door;
    entry = absl::StrCat(kLink, FormatLinkName(link));
  }
}

// Where hvdd and its shim are both gone, nobody ends this process any more, and the others have
// given it up: the kernel asks it to end, as it does for children of a parent that is gone.
void EndWithTheOtherSide(int talk) {
  fcntl(talk, F_SETOWN, getpid());
  fcntl(talk, F_SETSIG, SIGTERM);
  fcntl(talk, F_SETFL, fcntl(talk, F_GETFL) | O_ASYNC);
}

}  // namespace

Adopted::Adopted(Claim claim, std::unique_ptr<LauncherStore> store)
    : pid_(getpid()), claim_(std::move(claim)), store_(std::move(store)) {
  NameDoor(claim_.door.get(), &claim_.environment);
  EndWithTheOtherSide(claim_.talk.get());
}

absl::StatusOr<Claim> Adopted::Enter(const ForeignPlace& place, const AdoptionTools& tools,
                                     LauncherStore* store) {
  const TimePoint until = std::chrono::steady_clock::now() + kPatience;
  Helper helper;
  const absl::StatusOr<Adoption> adoption = Meet(place, tools, store, &helper);
  if (!adoption.ok()) return adoption.status();
  auto door = ClaimDoor::Open(ClaimName(adoption->key, geteuid(), place.rank));
  if (!door.ok()) return door.status();
  if (place.rank != 0) return door->Await(std::move(helper.words), WaitWords(place), until);
  absl::Status started = StartHvdrun(tools, *adoption, &helper);
  if (!started.ok()) {
    TellOthersHere(*adoption, started);
    return started;
  }
  absl::StatusOr<Claim> claim = door->Await(std::move(helper.words), "", until);
  if (!claim.ok()) TellOthersHere(*adoption, claim.status());
  return claim;
}

absl::StatusOr<std::unique_ptr<Adopted>> Adopted::Join(const ForeignPlace& place,
                                                       const AdoptionTools& tools) {
  auto store = OpenStore(place, tools);
  if (!store.ok()) return store.status();
  absl::StatusOr<Claim> claim = Enter(place, tools, store->get());
  if (!claim.ok()) {
    if (*store != nullptr) LeaveAsFailed(*std::move(store));
    return claim.status();
  }
  return std::unique_ptr<Adopted>(new Adopted(*std::move(claim), *std::move(store)));
}

void Adopted::Leave(int exit_code) {
  if (getpid() != pid_) return;
  const ClaimWord word{ClaimWord::kEnds, exit_code};
  (void)send(claim_.talk.get(), &word, sizeof(word), MSG_NOSIGNAL | MSG_DONTWAIT);
  store_.reset();
}

}  // namespace hvd::rt
