#include "runtime/transport/ucx/ucx_transport.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "absl/strings/str_format.h"
#include "runtime/transport/signals_blocked.h"
#include "runtime/transport/ucx/net_devices.h"
#include "runtime/transport/ucx/ucx_library.h"
#include "runtime/transport/ucx/ucx_requests.h"
#include "runtime/transport/ucx/ucx_settings.h"

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
