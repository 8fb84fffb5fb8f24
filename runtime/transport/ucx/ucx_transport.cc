// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/ucx/ucx_transport.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/mutex.h"
#include "runtime/transport/address_head.h"
#include "runtime/transport/net_devices.h"
#include "runtime/transport/signals_blocked.h"
#include "runtime/transport/ucx/listener_filter.h"
#include "runtime/transport/ucx/ucx_library.h"
#include "runtime/transport/ucx/ucx_requests.h"
#include "runtime/transport/ucx/ucx_settings.h"

namespace hvd::rt {
namespace {

// A tag: token 18 bits, source 16, channel 12, step 18. Steps may wrap: what is in flight at one
// time is far less.
constexpr int kStepBits = 18;
constexpr int kChannelBits = 12;
constexpr int kSourceBits = 16;
constexpr uint64_t kTokenMask = (uint64_t{1} << (64 - kStepBits - kChannelBits - kSourceBits)) - 1;

uint64_t TagOf(uint64_t token, int source, MessageTag tag) {
  uint64_t bits = token;
  bits = (bits << kSourceBits) | static_cast<uint64_t>(source);
  bits = (bits << kChannelBits) | tag.channel;
  return (bits << kStepBits) | (tag.step & ((1u << kStepBits) - 1));
}

class UcxTransport : public Transport {
 public:
  UcxTransport(const UcxLibrary* ucx, const UcxOptions& options)
      : ucx_(ucx), options_(options), tag_token_(options.token & kTokenMask) {
    worker_.ucx = ucx;
  }
  ~UcxTransport() override;

  absl::Status Open();
  absl::StatusOr<std::string> Address() override;
  absl::Status Connect(const std::vector<std::string>& addresses) override;
  absl::StatusOr<std::unique_ptr<TransportRequest>> Send(int peer, MessageTag tag, const void* data,
                                                         size_t bytes) override;
  absl::StatusOr<std::unique_ptr<TransportRequest>> Receive(int peer, MessageTag tag, void* data,
                                                            size_t bytes) override;
  absl::StatusOr<std::unique_ptr<TransportRequest>> Settle() override {
    const MutexLock lock(&worker_.mutex);
    if (worker_.handle == nullptr) return HasStopped();
    const ucp_request_param_t params = {};
    void* request = ucx_->worker_flush_nbx(worker_.handle, &params);
    if (request == nullptr) return nullptr;
    if (UCS_PTR_IS_ERR(request)) return UcxError(*ucx_, UCS_PTR_STATUS(request), "connecting");
    return std::make_unique<UcxSend>(&worker_, request, UcxDoing{"connecting", nullptr});
  }
  bool Progress() override {
    const MutexLock lock(&worker_.mutex);
    if (stopped()) DestroyWorker();
    return worker_.handle != nullptr && ucx_->worker_progress(worker_.handle) != 0;
  }
  int EventFd() override { return event_fd_; }
  bool Arm() override {
    const MutexLock lock(&worker_.mutex);
    return worker_.handle == nullptr || ucx_->worker_arm(worker_.handle) == UCS_OK;
  }

 private:
  absl::Status Configure(ucp_config_t* config);
  // For messages; null before Connect.
  const std::string* NameOf(int peer) const {
    return static_cast<size_t>(peer) < names_.size() ? &names_[peer] : nullptr;
  }
  absl::StatusOr<ucp_ep_h> EndpointOf(int peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(worker_.mutex);
  absl::Status OpenWorker() ABSL_EXCLUSIVE_LOCKS_REQUIRED(worker_.mutex);
  absl::StatusOr<std::string> WorkerAddress() ABSL_EXCLUSIVE_LOCKS_REQUIRED(worker_.mutex);
  absl::Status AdmitOnly(const std::vector<std::string>& hosts);
  // A peer's read or write of what was under way fails from here on, and what this side has begun
  // ends: neither a thread nor a network card has the buffers any more.
  void DestroyWorker() ABSL_EXCLUSIVE_LOCKS_REQUIRED(worker_.mutex) {
    if (worker_.handle == nullptr) return;
    ucx_->worker_destroy(worker_.handle);
    worker_.handle = nullptr;
  }

  const UcxLibrary* const ucx_;
  const UcxOptions options_;
  const uint64_t tag_token_;
  ucp_context_h context_ = nullptr;
  // One for both directions. With a second one the answer to a peer's request to connect waits for
  // a connection of its own, and UCX 1.13 ends the process when the peer dies meanwhile (5 in 100).
  UcxWorker worker_;
  // Written by Open, before others know of the transport.
  int event_fd_ = -1;           // an epoll over the worker's
  std::vector<int> listeners_;  // UCX's
  std::string devices_;         // and transports, for messages
  // "rank 3 on host1", by rank. Stays from Connect on.
  std::vector<std::string> names_;
  // UCX's bytes, by rank.
  std::vector<std::string> addresses_ ABSL_GUARDED_BY(worker_.mutex);
  // By rank; made at the first send.
  std::vector<ucp_ep_h> endpoints_ ABSL_GUARDED_BY(worker_.mutex);
};

UcxTransport::~UcxTransport() {
  DestroyWorker();
  if (event_fd_ >= 0) close(event_fd_);
  if (context_ != nullptr) ucx_->cleanup(context_);
}

absl::Status UcxTransport::Configure(ucp_config_t* config) {
  const absl::StatusOr<UcxSettings> settings = ChooseUcxSettings(
      {options_.net_devices, options_.tls}, {ListNetInterfaces(), ListRdmaPorts()});
  if (!settings.ok()) return settings.status();
  devices_ = settings->devices;
  for (const auto& [name, value] : settings->values) {
    const ucs_status_t status = ucx_->config_modify(config, name.c_str(), value.c_str());
    if (status != UCS_OK) return UcxError(*ucx_, status, "UCX_" + name + "=" + value);
  }
  return absl::OkStatus();
}

absl::Status UcxTransport::Open() {
  const SignalsBlocked inherited;  // by UCX's thread
  const std::string level = options_.log_level.empty() ? "fatal" : options_.log_level;
  ucx_->global_opts_set_value("LOG_LEVEL", level.c_str());

  ucp_config_t* config = nullptr;
  ucs_status_t status = ucx_->config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return UcxError(*ucx_, status, "reading UCX's configuration");
  absl::Status configured = Configure(config);
  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS;
  params.features = UCP_FEATURE_TAG | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = static_cast<size_t>(options_.size);
  if (configured.ok()) {
    status = ucx_->init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config, &context_);
  }
  ucx_->config_release(config);
  if (!configured.ok()) return configured;
  if (status != UCS_OK) return UcxError(*ucx_, status, "starting UCX " + devices_);

  event_fd_ = epoll_create1(EPOLL_CLOEXEC);
  if (event_fd_ < 0) return absl::ErrnoToStatus(errno, "making an epoll for UCX's worker");
  const std::vector<int> before = ListeningSockets();
  const MutexLock lock(&worker_.mutex);
  if (absl::Status opened = OpenWorker(); !opened.ok()) return opened;
  const absl::StatusOr<std::string> address = WorkerAddress();
  if (!address.ok()) return address.status();
  listeners_ = NewListeners(before, *address);
  return AdmitOnly({});
}

// Nobody is to connect before the table of addresses is there.
absl::Status UcxTransport::AdmitOnly(const std::vector<std::string>& hosts) {
  const std::vector<sock_filter> program = hosts.empty() ? FilterForNobody() : FilterFor(hosts);
  for (const int fd : listeners_) {
    if (absl::Status attached = AttachFilter(fd, program); !attached.ok()) return attached;
  }
  return absl::OkStatus();
}

absl::Status UcxTransport::OpenWorker() {
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  params.flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK;  // an abort leaves sends behind
  ucs_status_t status = ucx_->worker_create(context_, &params, &worker_.handle);
  if (status != UCS_OK) return UcxError(*ucx_, status, "making UCX's worker " + devices_);
  int fd = -1;
  status = ucx_->worker_get_efd(worker_.handle, &fd);
  if (status != UCS_OK) return UcxError(*ucx_, status, "asking for UCX's event descriptor");
  epoll_event event = {};
  event.events = EPOLLIN;
  if (epoll_ctl(event_fd_, EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "watching UCX's event descriptor");
}

absl::StatusOr<std::string> UcxTransport::WorkerAddress() {
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  const ucs_status_t status = ucx_->worker_get_address(worker_.handle, &address, &bytes);
  if (status != UCS_OK) return UcxError(*ucx_, status, "asking for UCX's address");
  const std::string text(reinterpret_cast<const char*>(address), bytes);
  ucx_->worker_release_address(worker_.handle, address);
  return text;
}

// Returns this host's name, the addresses that it may call from, then UCX's own bytes.
absl::StatusOr<std::string> UcxTransport::Address() {
  const MutexLock lock(&worker_.mutex);
  const absl::StatusOr<std::string> worker = WorkerAddress();
  if (!worker.ok()) return worker.status();
  std::vector<std::string> hosts;
  for (const NetInterface& one : ListNetInterfaces()) {
    hosts.insert(hosts.end(), one.addresses.begin(), one.addresses.end());
  }
  return PutAddressHead({"ucx", options_.rank, options_.token},
                        absl::StrCat(OwnHostName(), " ", absl::StrJoin(hosts, ","), " ", *worker));
}

absl::Status UcxTransport::Connect(const std::vector<std::string>& addresses) {
  if (static_cast<int>(addresses.size()) != options_.size) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d addresses for a job of %d ranks", addresses.size(), options_.size));
  }
  const MutexLock lock(&worker_.mutex);
  std::set<std::string> hosts;
  for (int rank = 0; rank < options_.size; ++rank) {
    absl::StatusOr<std::string> address =
        TakeAddressHead({"ucx", options_.rank, options_.token}, rank, addresses[rank]);
    if (!address.ok()) return address.status();
    std::vector<std::string> parts = absl::StrSplit(*address, absl::MaxSplits(' ', 2));
    if (parts.size() != 3) {
      return absl::InvalidArgumentError(absl::StrFormat("the address of rank %d is none", rank));
    }
    for (const absl::string_view host : absl::StrSplit(parts[1], ',')) hosts.emplace(host);
    names_.push_back(absl::StrFormat("rank %d on %s", rank, parts[0]));
    addresses_.push_back(std::move(parts[2]));
  }
  absl::Status admitted = AdmitOnly({hosts.begin(), hosts.end()});
  if (!admitted.ok()) return admitted;
  endpoints_.resize(addresses.size(), nullptr);
  return absl::OkStatus();
}

absl::StatusOr<ucp_ep_h> UcxTransport::EndpointOf(int peer) {
  if (peer < 0 || peer >= static_cast<int>(endpoints_.size())) {
    return absl::InvalidArgumentError(absl::StrFormat("rank %d is not connected", peer));
  }
  if (endpoints_[peer] != nullptr) return endpoints_[peer];
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE;
  params.address = reinterpret_cast<const ucp_address_t*>(addresses_[peer].data());
  params.err_mode = UCP_ERR_HANDLING_MODE_NONE;
  const ucs_status_t status = ucx_->ep_create(worker_.handle, &params, &endpoints_[peer]);
  if (status == UCS_OK) return endpoints_[peer];
  endpoints_[peer] = nullptr;
  return UcxError(*ucx_, status, absl::StrCat("connecting to ", names_[peer], " ", devices_));
}

absl::StatusOr<std::unique_ptr<TransportRequest>> UcxTransport::Send(int peer, MessageTag tag,
                                                                     const void* data,
                                                                     size_t bytes) {
  const MutexLock lock(&worker_.mutex);
  if (worker_.handle == nullptr) return HasStopped();
  const absl::StatusOr<ucp_ep_h> endpoint = EndpointOf(peer);
  if (!endpoint.ok()) return endpoint.status();
  ucp_request_param_t params = {};
  void* request =
      ucx_->tag_send_nbx(*endpoint, data, bytes, TagOf(tag_token_, options_.rank, tag), &params);
  if (UCS_PTR_IS_ERR(request)) {
    return UcxError(*ucx_, UCS_PTR_STATUS(request), UcxDoing{"sending to ", NameOf(peer)}.text());
  }
  return std::make_unique<UcxSend>(&worker_, request, UcxDoing{"sending to ", NameOf(peer)});
}

absl::StatusOr<std::unique_ptr<TransportRequest>> UcxTransport::Receive(int peer, MessageTag tag,
                                                                        void* data, size_t bytes) {
  ucp_request_param_t params = {};
  const MutexLock lock(&worker_.mutex);
  if (worker_.handle == nullptr) return HasStopped();
  // A request in any case, so that the length can be asked for.
  params.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  void* request = ucx_->tag_recv_nbx(worker_.handle, data, bytes, TagOf(tag_token_, peer, tag),
                                     ~ucp_tag_t{0}, &params);
  if (UCS_PTR_IS_ERR(request)) {
    return UcxError(*ucx_, UCS_PTR_STATUS(request),
                    UcxDoing{"receiving from ", NameOf(peer)}.text());
  }
  return std::make_unique<UcxReceive>(&worker_, request, UcxDoing{"receiving from ", NameOf(peer)},
                                      bytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Transport>> MakeUcxTransport(const UcxOptions& options) {
  if (options.size > (1 << kSourceBits)) {
    return absl::InvalidArgumentError(absl::StrFormat("%d ranks; a message's tag has room for %d",
                                                      options.size, 1 << kSourceBits));
  }
  const absl::StatusOr<const UcxLibrary*> ucx = LoadUcx();
  if (!ucx.ok()) return ucx.status();
  auto transport = std::make_unique<UcxTransport>(*ucx, options);
  if (absl::Status opened = transport->Open(); !opened.ok()) return opened;
  return transport;
}

std::string UcxVersion() {
  const absl::StatusOr<const UcxLibrary*> ucx = LoadUcx();
  return ucx.ok() ? (*ucx)->get_version_string() : "";
}

}  // namespace hvd::rt
