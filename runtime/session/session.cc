#include "runtime/session/session.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "hvd/v1/link_b.pb.h"
#include "proto/hello.h"

namespace hvd {
namespace {

absl::Status Ended(const HostPage* page) {
  if (page != nullptr && page->aborted.load(std::memory_order_acquire) != 0) {
    return absl::AbortedError(page->abort_text);
  }
  return absl::OkStatus();
}

absl::Status MapError() {
  return absl::ResourceExhaustedError(std::string("cannot map the host's shared memory: ") +
                                      strerror(errno));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HostMemory>> HostMemory::Map(std::vector<int> descriptors,
                                                            size_t bytes) {
  if (descriptors.empty()) return absl::InternalError("hvdd granted an epoch without memory");
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptors[0], 0);
  close(descriptors[0]);
  descriptors.erase(descriptors.begin());
  if (address == MAP_FAILED) {
    for (const int fd : descriptors) close(fd);
    return MapError();
  }
  std::unique_ptr<HostMemory> memory(new HostMemory(address, bytes, std::move(descriptors)));
  if (memory->page()->magic != kHostPageMagic || memory->page()->bytes != bytes) {
    return absl::InternalError("the host's shared memory is not what hvdd promised");
  }
  return memory;
}

absl::StatusOr<std::unique_ptr<HostMemory>> HostMemory::Alone(size_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return MapError();
  auto* page = new (address) HostPage;
  page->local_size = 1;
  page->bytes = bytes;
  page->epoch = 1;
  return std::unique_ptr<HostMemory>(new HostMemory(address, bytes, {}));
}

HostMemory::~HostMemory() {
  munmap(address_, bytes_);
  for (const int fd : event_fds_) close(fd);
}

// Waits for a message of the wanted kind; a refusal is an error with its text.
template <class Kind>
absl::Status Session::Await(Kind wanted, const HostPage* page, void* message,
                            std::vector<int>* fds) {
  auto frame = socket_.Receive([page] { return Ended(page); });
  if (!frame.ok()) return frame.status();
  auto* to_worker = static_cast<v1::ToWorker*>(message);
  const bool parsed = to_worker->ParseFromString(frame->bytes);
  if (parsed && to_worker->kind_case() == wanted) {
    if (fds != nullptr) *fds = std::move(frame->descriptors);
    return absl::OkStatus();
  }
  for (const int fd : frame->descriptors) close(fd);
  if (parsed && to_worker->has_refused()) {
    return absl::FailedPreconditionError(to_worker->refused().message());
  }
  return absl::InternalError("hvdd sent something else than was asked for");
}

absl::StatusOr<std::unique_ptr<Session>> Session::Open(const LinkName& link) {
  const absl::StatusOr<int> fd = LinkSocket::Connect(link);
  if (!fd.ok()) return fd.status();
  std::unique_ptr<Session> session(new Session(*fd));
  v1::ToDaemon claim;
  claim.mutable_claim()->set_token(link.token);
  claim.mutable_claim()->set_protocol(kLinkBProtocol);
  claim.mutable_claim()->set_version(HVD_VERSION);
  if (absl::Status sent = session->socket_.Send(claim.SerializeAsString()); !sent.ok()) return sent;
  v1::ToWorker reply;
  if (absl::Status came = session->Await(v1::ToWorker::kWelcome, nullptr, &reply, nullptr);
      !came.ok()) {
    return came;
  }
  std::vector<HostShape> hosts;
  for (const v1::WorldHost& host : reply.welcome().hosts()) {
    hosts.push_back({host.name(), static_cast<int>(host.ranks())});
  }
  session->topology_ = Topology(std::move(hosts));
  session->rank_ = static_cast<int>(reply.welcome().rank());
  session->job_ = reply.welcome().job();
  if (session->rank_ >= session->topology_.size()) {
    return absl::InternalError("hvdd gave this process a rank outside the job");
  }
  return session;
}

absl::StatusOr<EpochGrant> Session::Join(uint64_t after_epoch, size_t memory_bytes) {
  v1::ToDaemon join;
  join.mutable_join()->set_after_epoch(after_epoch);
  join.mutable_join()->set_memory_bytes(memory_bytes);
  if (absl::Status sent = socket_.Send(join.SerializeAsString()); !sent.ok()) return sent;
  v1::ToWorker reply;
  std::vector<int> fds;
  if (absl::Status came = Await(v1::ToWorker::kEpochStart, nullptr, &reply, &fds); !came.ok()) {
    return came;
  }
  auto memory = HostMemory::Map(std::move(fds), memory_bytes);
  if (!memory.ok()) return memory.status();
  EpochGrant grant;
  grant.epoch = reply.epoch_start().epoch();
  grant.token = reply.epoch_start().token();
  grant.memory = std::move(*memory);
  return grant;
}

absl::StatusOr<std::vector<std::string>> Session::Exchange(const EpochGrant& grant,
                                                           const std::string& address) {
  v1::ToDaemon mine;
  mine.mutable_address()->set_epoch(grant.epoch);
  mine.mutable_address()->set_address(address);
  if (absl::Status sent = socket_.Send(mine.SerializeAsString()); !sent.ok()) return sent;
  v1::ToWorker reply;
  if (absl::Status came = Await(v1::ToWorker::kTable, grant.memory->page(), &reply, nullptr);
      !came.ok()) {
    return came;
  }
  std::vector<std::string> addresses(reply.table().addresses().begin(),
                                     reply.table().addresses().end());
  if (static_cast<int>(addresses.size()) != topology_.size()) {
    return absl::InternalError("the table of addresses does not have an entry a rank");
  }
  return addresses;
}

absl::Status Session::Barrier(const EpochGrant& grant) {
  v1::ToDaemon ready;
  ready.mutable_ready()->set_epoch(grant.epoch);
  if (absl::Status sent = socket_.Send(ready.SerializeAsString()); !sent.ok()) return sent;
  v1::ToWorker reply;
  return Await(v1::ToWorker::kGo, grant.memory->page(), &reply, nullptr);
}

absl::Status Session::Leave(uint64_t epoch) {
  v1::ToDaemon leave;
  leave.mutable_leave()->set_epoch(epoch);
  return socket_.Send(leave.SerializeAsString());
}

}  // namespace hvd
