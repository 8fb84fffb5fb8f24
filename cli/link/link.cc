// SPDX-License-Identifier: Apache-2.0
#include "cli/link/link.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/channel_arguments.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/mutex.h"
#include "cli/link/beats.h"
#include "cli/link/stream.h"
#include "hvd/v1/link_a.grpc.pb.h"

namespace hvd::cli {
namespace {

// The number of beats that follow one another at once where a timeline needs the offset of the
// clocks.
constexpr uint64_t kTripsForClocks = 8;

// Where completed messages go; shared by all hosts.
class Inbox {
 public:
  Inbox() : bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  int fd() const { return bell_.get(); }
  void TellOfBeats(bool wanted) { beats_ring_ = wanted; }
  bool tells_of_beats() const { return beats_ring_; }

  void Put(Arrival arrival) {
    bool ring = arrival.kind != Arrival::kBeat || beats_ring_;
    {
      const MutexLock lock(&mutex_);
      arrivals_.push_back(std::move(arrival));
      ring = ring && !std::exchange(rung_, rung_ || ring);
    }
    if (ring) eventfd_write(bell_.get(), 1);
  }

  std::vector<Arrival> Take() {
    eventfd_t rings;
    eventfd_read(bell_.get(), &rings);
    const MutexLock lock(&mutex_);
    rung_ = false;
    return std::exchange(arrivals_, {});
  }

 private:
  Descriptor bell_;
  std::atomic<bool> beats_ring_{false};
  Mutex mutex_;
  bool rung_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<Arrival> arrivals_ ABSL_GUARDED_BY(mutex_);
};

// The lease on one host: the gRPC thread sends and hears, the driver's looks.
class HostBeats {
 public:
  explicit HostBeats(double lease_s) : lease_(SecondsOf(MonotonicNanoseconds()), lease_s) {}

  // The next beat; nothing for a host that is given up.
  std::optional<v1::HeartBeat> Next() {
    const MutexLock lock(&mutex_);
    if (given_up_) return std::nullopt;
    v1::HeartBeat beat;
    beat.set_number(lease_.Send(SecondsOf(MonotonicNanoseconds())));
    beat.set_echo(lease_.heard());
    return beat;
  }

  // The round trip that `beat` ends, if it does.
  std::optional<BeatRoundTrip> Hear(const v1::HeartBeat& beat) {
    const MutexLock lock(&mutex_);
    const std::optional<double> sent = lease_.Hear(beat.number(), beat.echo());
    if (!sent || beat.heard_ns() == 0) return std::nullopt;
    BeatRoundTrip trip;
    trip.sent = static_cast<int64_t>(*sent * 1e9);
    trip.heard_there = static_cast<int64_t>(beat.heard_ns());
    trip.answered_there = static_cast<int64_t>(beat.sent_ns());
    trip.heard = MonotonicNanoseconds();
    return trip;
  }

  uint64_t newest() const {
    const MutexLock lock(&mutex_);
    return lease_.newest();
  }
  double deadline() const {
    const MutexLock lock(&mutex_);
    return lease_.deadline();
  }
  double proven() const {
    const MutexLock lock(&mutex_);
    return lease_.proven();
  }
  void GiveUp() {
    const MutexLock lock(&mutex_);
    given_up_ = true;
  }

 private:
  mutable Mutex mutex_;
  BeatLease lease_ ABSL_GUARDED_BY(mutex_);
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
};

// One host: a channel over its socket and the four streams of link A.
class HostLink {
 public:
  HostLink(HostSocket socket, double lease_s, grpc::CompletionQueue* queue, Inbox* inbox)
      : host_(socket.host),
        inbox_(inbox),
        beats_(lease_s),
        stub_(v1::Daemon::NewStub(MakeChannel(socket.fd.Release(), socket.is_far))),
        beat_(
            [this](v1::HeartBeat beat) {
              const std::optional<BeatRoundTrip> trip = beats_.Hear(beat);
              if (trip) Put({Arrival::kBeat, host_, *trip});
              // The first trip pays for the setting up, and one way more than the other.
              if (inbox_->tells_of_beats() && beats_.newest() < kTripsForClocks) SendBeat();
              return beat.echo() < beats_.newest();
            },
            [](const std::string&) {}),  // silence is the lease's affair
        control_(
            [this](v1::Event event) {
              Put({Arrival::kEvent, host_, {}, std::move(event)});
              return true;
            },
            [this](const std::string& why) {
              Put({Arrival::kEnded, host_, {}, {}, {}, {}, why});
            }),
        output_(
            [this](v1::OutputChunk chunk) {
              Put({Arrival::kOutput, host_, {}, {}, std::move(chunk)});
              return true;
            },
            // The control stream alone says when a host is gone: what it had to say comes before.
            [](const std::string&) {}),
        store_(
            [this](v1::StoreChunk chunk) {
              Put({Arrival::kStore, host_, {}, {}, {}, std::move(chunk)});
              return true;
            },
            [](const std::string&) {}) {
    control_.Start(
        [&](auto* context, void* tag) { return stub_->AsyncControl(context, queue, tag); });
    beat_.Start([&](auto* context, void* tag) { return stub_->AsyncBeat(context, queue, tag); });
    output_.Start(
        [&](auto* context, void* tag) { return stub_->AsyncOutput(context, queue, tag); });
    store_.Start([&](auto* context, void* tag) { return stub_->AsyncStore(context, queue, tag); });
    SendBeat();
  }

  void Send(const v1::Command& command) { control_.Write(command, false); }
  void SendBeat() {
    const std::optional<v1::HeartBeat> beat = beats_.Next();
    if (beat) beat_.Write(*beat, true);
    beat_.ReadMore();
  }
  HostBeats* beats() { return &beats_; }
  void SendStore(const v1::StoreChunk& chunk) { store_.Write(chunk, false); }
  void AckOutput(uint64_t bytes) {
    v1::OutputAck ack;
    ack.set_bytes(bytes);
    output_.Write(ack, true);
  }

 private:
  static std::shared_ptr<grpc::Channel> MakeChannel(int fd, bool is_far) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    // gRPC learns by pings how much a path holds; a long one needs it, or output crawls at 64 KiB a
    // round trip. On this host it would only wake both sides.
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, is_far ? 1 : 0);
    return grpc::CreateCustomInsecureChannelFromFd("hvdd", fd, arguments);
  }

  void Put(Arrival arrival) { inbox_->Put(std::move(arrival)); }

  const int host_;
  Inbox* const inbox_;
  HostBeats beats_;
  std::unique_ptr<v1::Daemon::Stub> stub_;
  Stream<v1::HeartBeat, v1::HeartBeat> beat_;
  Stream<v1::Command, v1::Event> control_;
  Stream<v1::OutputAck, v1::OutputChunk> output_;
  Stream<v1::StoreChunk, v1::StoreChunk> store_;
};

}  // namespace

class DaemonLinks::Impl {
 public:
  explicit Impl(double lease_s) : lease_s(lease_s), thread([this] { Run(); }) {}
  ~Impl() {
    queue.Shutdown();
    thread.join();
  }

  // One wait for completions and for the next beat alike.
  void Run() {
    pthread_setname_np(pthread_self(), "hvdrun-grpc");
    void* tag;
    bool ok;
    const auto period = static_cast<int64_t>(BeatPeriodS(lease_s) * 1e9);
    int64_t next = MonotonicNanoseconds();
    while (true) {
      const int64_t now = MonotonicNanoseconds();
      if (now >= next) {
        next = std::max(next, now - period) + period;
        SendBeats(SecondsOf(now));
      }
      const gpr_timespec until =
          gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_nanos(next - now, GPR_TIMESPAN));
      const auto got = queue.AsyncNext(&tag, &ok, until);
      if (got == grpc::CompletionQueue::SHUTDOWN) return;
      if (got == grpc::CompletionQueue::GOT_EVENT) TagOf(tag)->Done(ok);
    }
  }

  // The driver's thread made it in Open, under the mutex. gRPC's queue orders that, too, but no
  // race detector sees how.
  Tag* TagOf(void* tag) {
    const MutexLock lock(&mutex);
    return static_cast<Tag*>(tag);
  }

  void SendBeats(double now) {
    if (now > turned + lease_s / 2) return;
    const MutexLock lock(&mutex);
    for (const auto& link : links) {
      if (link) link->SendBeat();
    }
  }

  const double lease_s;
  std::atomic<double> turned{0};
  Inbox inbox;
  grpc::CompletionQueue queue;
  // AddHost and Open, on the driver's thread, write here; the gRPC thread reads. The driver's own
  // reads need no lock.
  Mutex mutex;
  std::vector<std::unique_ptr<HostLink>> links;  // by host
  std::thread thread;
};

DaemonLinks::DaemonLinks(double lease_s) : impl_(std::make_unique<Impl>(lease_s)) {}
DaemonLinks::~DaemonLinks() = default;

int DaemonLinks::event_fd() const { return impl_->inbox.fd(); }

std::vector<Arrival> DaemonLinks::Take() { return impl_->inbox.Take(); }

void DaemonLinks::TellOfBeats(bool wanted) { impl_->inbox.TellOfBeats(wanted); }

void DaemonLinks::AddHost() {
  const MutexLock lock(&impl_->mutex);
  impl_->links.emplace_back();
}

void DaemonLinks::Open(HostSocket socket) {
  const int host = socket.host;
  const MutexLock lock(&impl_->mutex);
  impl_->links[host] =
      std::make_unique<HostLink>(std::move(socket), impl_->lease_s, &impl_->queue, &impl_->inbox);
}

void DaemonLinks::Send(int host, const v1::Command& command) {
  if (impl_->links[host]) impl_->links[host]->Send(command);
}

void DaemonLinks::AckOutput(int host, uint64_t bytes) {
  if (impl_->links[host]) impl_->links[host]->AckOutput(bytes);
}

void DaemonLinks::SendStore(int host, const v1::StoreChunk& chunk) {
  if (impl_->links[host]) impl_->links[host]->SendStore(chunk);
}

void DaemonLinks::Turned(double now) { impl_->turned = now; }

double DaemonLinks::deadline(int host) const {
  const std::unique_ptr<HostLink>& link = impl_->links[host];
  return link ? link->beats()->deadline() : std::numeric_limits<double>::infinity();
}

double DaemonLinks::proven(int host) const {
  const std::unique_ptr<HostLink>& link = impl_->links[host];
  return link ? link->beats()->proven() : 0;
}

void DaemonLinks::GiveUp(int host) {
  if (impl_->links[host]) impl_->links[host]->beats()->GiveUp();
}

}  // namespace hvd::cli
