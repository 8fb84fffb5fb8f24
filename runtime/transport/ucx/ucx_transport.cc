#include "runtime/transport/ucx/ucx_transport.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/transport/signals_blocked.h"
#include "runtime/transport/ucx/net_devices.h"
#include "runtime/transport/ucx/ucx_library.h"

namespace hvd {
namespace {

// A tag: token 22 bits, source 16, channel 6, step 20. Steps may wrap: what is in flight at one
// time is far less.
constexpr int kStepBits = 20;
constexpr int kChannelBits = 6;
constexpr int kSourceBits = 16;
constexpr uint64_t kTokenMask = (uint64_t{1} << (64 - kStepBits - kChannelBits - kSourceBits)) - 1;

uint64_t TagOf(uint64_t token, int source, MessageTag tag) {
  uint64_t bits = token;
  bits = (bits << kSourceBits) | static_cast<uint64_t>(source);
  bits = (bits << kChannelBits) | tag.channel;
  return (bits << kStepBits) | (tag.step & ((1u << kStepBits) - 1));
}

// Over TCP messages up to this are sent at once. A rendezvous asks the receiver first, and its
// answer queues behind all that the receiver sends itself, so that a full-duplex link is half idle.
constexpr char kTcpRendezvous[] = "1m";
// Of UCX's buffers: what goes into one call of the kernel. Its own 8 KB cut messages into as many;
// here the largest segment of a ring fits in, with UCX's header.
constexpr char kTcpSegment[] = "256k";

// The one place where UCX's errors become ours.
absl::Status UcxError(const UcxLibrary& ucx, ucs_status_t status, const std::string& doing) {
  const std::string text = doing + ": " + ucx.status_string(status);
  switch (status) {
    case UCS_ERR_CANCELED:
      return absl::AbortedError(text);
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_UNREACHABLE:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
      return absl::UnavailableError(text);
    default:
      return absl::InternalError(text);
  }
}

// UCX is called by one thread at a time: every call that touches a worker, its requests included,
// holds its mutex. Nothing waits while it holds it.
struct UcxWorker {
  const UcxLibrary* ucx = nullptr;
  ucp_worker_h handle = nullptr;
  std::mutex mutex;
};

// Owns a UCX request that was not done at once.
class UcxRequest : public TransportRequest {
 public:
  UcxRequest(UcxWorker* worker, void* request)
      : ucx_(worker->ucx), worker_(worker), request_(request) {}
  ~UcxRequest() override {
    if (request_ == nullptr) return;
    const std::lock_guard lock(worker_->mutex);
    Drop();
  }

 protected:
  // REQUIRES: the mutex.
  void Drop() {
    if (request_ == nullptr) return;
    if (ucx_->request_check_status(request_) == UCS_INPROGRESS && cancels_) {
      ucx_->request_cancel(worker_->handle, request_);
    }
    ucx_->request_free(std::exchange(request_, nullptr));
  }

  const UcxLibrary* const ucx_;
  UcxWorker* const worker_;
  void* request_;
  bool cancels_ = false;  // UCX can cancel receives only
};

class UcxSend : public UcxRequest {
 public:
  using UcxRequest::UcxRequest;
  absl::StatusOr<bool> Test() override {
    if (request_ == nullptr) return true;
    const std::lock_guard lock(worker_->mutex);
    const ucs_status_t status = ucx_->request_check_status(request_);
    if (status == UCS_INPROGRESS) return false;
    if (status != UCS_OK) return UcxError(*ucx_, status, "sending");
    Drop();
    return true;
  }
};

class UcxReceive : public UcxRequest {
 public:
  UcxReceive(UcxWorker* worker, void* request, size_t bytes)
      : UcxRequest(worker, request), bytes_(bytes) {
    cancels_ = true;
  }
  absl::StatusOr<bool> Test() override {
    if (request_ == nullptr) return true;
    const std::lock_guard lock(worker_->mutex);
    ucp_tag_recv_info_t info;
    const ucs_status_t status = ucx_->tag_recv_request_test(request_, &info);
    if (status == UCS_INPROGRESS) return false;
    if (status != UCS_OK) return UcxError(*ucx_, status, "receiving");
    if (info.length != bytes_) {
      return absl::InternalError(absl::StrFormat(
          "a message of %d bytes came where %d were expected", info.length, bytes_));
    }
    Drop();
    return true;
  }

 private:
  const size_t bytes_;
};

// An address as it travels: who and which epoch, then UCX's own bytes.
struct AddressHead {
  uint64_t token = 0;
  uint32_t rank = 0;
};

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
    const std::lock_guard lock(worker_.mutex);
    const ucp_request_param_t params = {};
    void* request = ucx_->worker_flush_nbx(worker_.handle, &params);
    if (request == nullptr) return nullptr;
    if (UCS_PTR_IS_ERR(request)) return UcxError(*ucx_, UCS_PTR_STATUS(request), "connecting");
    return std::make_unique<UcxSend>(&worker_, request);
  }
  bool Progress() override { return Progress(&worker_); }
  int EventFd() override { return event_fd_; }
  bool Arm() override { return Arm(&worker_); }

 private:
  absl::Status Configure(ucp_config_t* config);
  absl::StatusOr<ucp_ep_h> EndpointOf(int peer);  // REQUIRES: the worker's mutex
  absl::Status OpenWorker(UcxWorker* worker);
  bool Progress(UcxWorker* worker) {
    const std::lock_guard lock(worker->mutex);
    return ucx_->worker_progress(worker->handle) != 0;
  }
  bool Arm(UcxWorker* worker) {
    const std::lock_guard lock(worker->mutex);
    return ucx_->worker_arm(worker->handle) == UCS_OK;
  }

  const UcxLibrary* const ucx_;
  const UcxOptions options_;
  const uint64_t tag_token_;
  ucp_context_h context_ = nullptr;
  // One for both directions. With a second one the answer to a peer's request to connect waits for
  // a connection of its own, and UCX 1.13 ends the process when the peer dies meanwhile (5 in 100).
  UcxWorker worker_;
  int event_fd_ = -1;                   // an epoll over the worker's
  std::string devices_;                 // and transports, for messages
  std::vector<std::string> addresses_;  // UCX's bytes, by rank
  std::vector<ucp_ep_h> endpoints_;     // by rank; made at the first send
};

UcxTransport::~UcxTransport() {
  if (worker_.handle != nullptr) ucx_->worker_destroy(worker_.handle);
  if (event_fd_ >= 0) close(event_fd_);
  if (context_ != nullptr) ucx_->cleanup(context_);
}

// UCX guesses speeds (100 Mbit/s for lo) and picks lanes and thresholds by them, so these are said.
absl::Status UcxTransport::Configure(ucp_config_t* config) {
  const std::vector<std::string> rdma = ListRdmaPorts();
  std::vector<std::string> devices = ChooseInterfaces(ListNetInterfaces());
  devices.insert(devices.end(), rdma.begin(), rdma.end());
  const std::string chosen =
      options_.net_devices.empty() ? absl::StrJoin(devices, ",") : options_.net_devices;
  const std::string tls =
      !options_.tls.empty() ? options_.tls : (rdma.empty() ? "tcp,self" : "rc,ud,tcp,self");
  devices_ = absl::StrFormat("over %s with %s", chosen, tls);
  const std::pair<const char*, std::string> settings[] = {
      {"NET_DEVICES", chosen},
      {"TLS", tls},
      {"RNDV_THRESH", rdma.empty() ? kTcpRendezvous : "32k"},
      {"TX_SEG_SIZE", kTcpSegment},  // TCP's; UCX 1.13 knows it by this name here,
      {"RX_SEG_SIZE", kTcpSegment},
      {"TCP_TX_SEG_SIZE", kTcpSegment},  // newer ones by this
      {"TCP_RX_SEG_SIZE", kTcpSegment},
      {"MAX_EAGER_RAILS", "1"},
      {"TCP_MAX_NUM_EPS", "inf"},
      {"ADDRESS_VERSION", "v2"},
      // Else an interface without endpoints is watched by UCX's own thread alone, which does not
      // wake a sleeper on the event descriptor: a rank that only receives would sleep on.
      {"ADAPTIVE_PROGRESS", "n"},
  };
  for (const auto& [name, value] : settings) {
    const ucs_status_t status = ucx_->config_modify(config, name, value.c_str());
    if (status != UCS_OK) return UcxError(*ucx_, status, absl::StrFormat("UCX_%s=%s", name, value));
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
  return OpenWorker(&worker_);
}

absl::Status UcxTransport::OpenWorker(UcxWorker* worker) {
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_FLAGS;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  params.flags = UCP_WORKER_FLAG_IGNORE_REQUEST_LEAK;  // an abort leaves sends behind
  ucs_status_t status = ucx_->worker_create(context_, &params, &worker->handle);
  if (status != UCS_OK) return UcxError(*ucx_, status, "making UCX's worker " + devices_);
  int fd = -1;
  status = ucx_->worker_get_efd(worker->handle, &fd);
  if (status != UCS_OK) return UcxError(*ucx_, status, "asking for UCX's event descriptor");
  epoll_event event = {};
  event.events = EPOLLIN;
  if (epoll_ctl(event_fd_, EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "watching UCX's event descriptor");
}

absl::StatusOr<std::string> UcxTransport::Address() {
  ucp_address_t* address = nullptr;
  size_t bytes = 0;
  const ucs_status_t status = ucx_->worker_get_address(worker_.handle, &address, &bytes);
  if (status != UCS_OK) return UcxError(*ucx_, status, "asking for UCX's address");
  const AddressHead head{options_.token, static_cast<uint32_t>(options_.rank)};
  std::string text(reinterpret_cast<const char*>(&head), sizeof(head));
  text.append(reinterpret_cast<const char*>(address), bytes);
  ucx_->worker_release_address(worker_.handle, address);
  return text;
}

absl::Status UcxTransport::Connect(const std::vector<std::string>& addresses) {
  if (static_cast<int>(addresses.size()) != options_.size) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%d addresses for a job of %d ranks", addresses.size(), options_.size));
  }
  for (size_t rank = 0; rank < addresses.size(); ++rank) {
    AddressHead head;
    const std::string& text = addresses[rank];
    if (text.size() <= sizeof(head)) {
      return absl::InvalidArgumentError(absl::StrFormat("rank %d has sent no address", rank));
    }
    memcpy(&head, text.data(), sizeof(head));
    if (head.token != options_.token || head.rank != rank) {
      return absl::InvalidArgumentError(
          absl::StrFormat("the address of rank %d belongs to another epoch or rank", rank));
    }
    addresses_.push_back(text.substr(sizeof(head)));
  }
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
  return UcxError(*ucx_, status, absl::StrFormat("connecting to rank %d %s", peer, devices_));
}

absl::StatusOr<std::unique_ptr<TransportRequest>> UcxTransport::Send(int peer, MessageTag tag,
                                                                     const void* data,
                                                                     size_t bytes) {
  const std::lock_guard lock(worker_.mutex);
  const absl::StatusOr<ucp_ep_h> endpoint = EndpointOf(peer);
  if (!endpoint.ok()) return endpoint.status();
  ucp_request_param_t params = {};
  void* request =
      ucx_->tag_send_nbx(*endpoint, data, bytes, TagOf(tag_token_, options_.rank, tag), &params);
  if (UCS_PTR_IS_ERR(request)) {
    return UcxError(*ucx_, UCS_PTR_STATUS(request), absl::StrFormat("sending to rank %d", peer));
  }
  return std::make_unique<UcxSend>(&worker_, request);
}

absl::StatusOr<std::unique_ptr<TransportRequest>> UcxTransport::Receive(int peer, MessageTag tag,
                                                                        void* data, size_t bytes) {
  ucp_request_param_t params = {};
  const std::lock_guard lock(worker_.mutex);
  // A request in any case, so that the length can be asked for.
  params.op_attr_mask = UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  void* request = ucx_->tag_recv_nbx(worker_.handle, data, bytes, TagOf(tag_token_, peer, tag),
                                     ~ucp_tag_t{0}, &params);
  if (UCS_PTR_IS_ERR(request)) {
    return UcxError(*ucx_, UCS_PTR_STATUS(request),
                    absl::StrFormat("receiving from rank %d", peer));
  }
  return std::make_unique<UcxReceive>(&worker_, request, bytes);
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

}  // namespace hvd
