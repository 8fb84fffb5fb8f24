#include "cli/driver_link.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/channel_arguments.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>

#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "hvd/v1/link_a.grpc.pb.h"

namespace hvd {
namespace {

int64_t MonotonicNanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

// Where completed messages go; shared by all hosts.
class Inbox {
 public:
  Inbox() : bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  int fd() const { return bell_.get(); }

  void Put(Arrival arrival) {
    bool was_empty;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      was_empty = arrivals_.empty();
      arrivals_.push_back(std::move(arrival));
    }
    if (was_empty) eventfd_write(bell_.get(), 1);
  }

  std::vector<Arrival> Take() {
    eventfd_t rings;
    eventfd_read(bell_.get(), &rings);
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::exchange(arrivals_, {});
  }

 private:
  Descriptor bell_;
  std::mutex mutex_;
  std::vector<Arrival> arrivals_;
};

// A completion's tag: whoever started the operation.
class Tag {
 public:
  virtual ~Tag() = default;
  virtual void Done(bool ok) = 0;
};

// One bidirectional stream: a read is always posted, writes go one after the other. Done runs on
// the gRPC thread, Write on the driver's.
template <class Out, class In>
class Stream {
 public:
  using OnRead = std::function<void(In)>;
  using OnEnd = std::function<void(const std::string&)>;

  Stream(OnRead on_read, OnEnd on_end) : on_read_(std::move(on_read)), on_end_(std::move(on_end)) {}

  template <class Begin>  // (context, started tag) → ClientAsyncReaderWriter
  void Start(Begin begin) {
    context_.set_wait_for_ready(false);
    const std::lock_guard<std::mutex> lock(mutex_);
    busy_ = true;  // until the stream has started
    rpc_ = begin(&context_, static_cast<void*>(&started_));
  }

  // `latest`: replaces a message of the same kind that has not left yet (acknowledgements).
  void Write(const Out& message, bool latest) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ended_) return;
    if (latest && !queue_.empty()) {
      queue_.back() = message;
    } else {
      queue_.push_back(message);
    }
    WriteNext();
  }

 private:
  struct Step : Tag {
    Step(Stream* owner, void (Stream::*step)(bool)) : owner(owner), step(step) {}
    void Done(bool ok) override { (owner->*step)(ok); }
    Stream* owner;
    void (Stream::*step)(bool);
  };

  void WriteNext() {  // REQUIRES: mutex_
    if (busy_ || ended_ || queue_.empty()) return;
    busy_ = true;
    rpc_->Write(queue_.front(), &written_);
    queue_.pop_front();
  }

  void Started(bool ok) {
    const std::lock_guard<std::mutex> lock(mutex_);
    busy_ = false;
    if (!ok) return End();
    rpc_->Read(&incoming_, &read_done_);
    WriteNext();
  }

  void Written(bool ok) {
    const std::lock_guard<std::mutex> lock(mutex_);
    busy_ = false;
    if (ok) WriteNext();  // else the read fails, too, and ends the stream
  }

  void Read(bool ok) {
    if (!ok) {
      const std::lock_guard<std::mutex> lock(mutex_);
      return End();
    }
    on_read_(std::move(incoming_));
    incoming_ = In();
    const std::lock_guard<std::mutex> lock(mutex_);
    rpc_->Read(&incoming_, &read_done_);
  }

  void End() {  // REQUIRES: mutex_
    if (ended_) return;
    ended_ = true;
    queue_.clear();
    rpc_->Finish(&status_, &finished_);
  }

  void Finished(bool) { on_end_(status_.ok() ? "" : status_.error_message()); }

  const OnRead on_read_;
  const OnEnd on_end_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Out, In>> rpc_;
  std::mutex mutex_;
  bool busy_ = false;  // a start or a write is under way
  bool ended_ = false;
  std::deque<Out> queue_;
  In incoming_;
  grpc::Status status_;
  Step started_{this, &Stream::Started};
  Step written_{this, &Stream::Written};
  Step read_done_{this, &Stream::Read};
  Step finished_{this, &Stream::Finished};
};

// One host: a channel over its socket and the three streams of link A.
class HostLink {
 public:
  HostLink(int host, int fd, grpc::CompletionQueue* queue, Inbox* inbox)
      : host_(host),
        inbox_(inbox),
        stub_(v1::Daemon::NewStub(MakeChannel(fd))),
        beats_(
            [this](v1::HeartBeat beat) {
              Arrival arrival = {Arrival::kBeat, host_, std::move(beat)};
              arrival.at_ns = MonotonicNanoseconds();
              Put(std::move(arrival));
            },
            [](const std::string&) {}),  // silence is the lease's affair
        control_(
            [this](v1::Event event) {
              Put({Arrival::kEvent, host_, {}, std::move(event)});
            },
            [this](const std::string& why) {
              Put({Arrival::kEnded, host_, {}, {}, {}, why});
            }),
        output_(
            [this](v1::OutputChunk chunk) {
              Put({Arrival::kOutput, host_, {}, {}, std::move(chunk)});
            },
            // The control stream alone says when a host is gone: what it had to say comes before.
            [](const std::string&) {}) {
    control_.Start(
        [&](auto* context, void* tag) { return stub_->AsyncControl(context, queue, tag); });
    beats_.Start([&](auto* context, void* tag) { return stub_->AsyncBeat(context, queue, tag); });
    output_.Start(
        [&](auto* context, void* tag) { return stub_->AsyncOutput(context, queue, tag); });
  }

  void Send(const v1::Command& command) { control_.Write(command, false); }
  void SendBeat(const v1::HeartBeat& beat) { beats_.Write(beat, true); }
  void AckOutput(uint64_t bytes) {
    v1::OutputAck ack;
    ack.set_bytes(bytes);
    output_.Write(ack, true);
  }

 private:
  static std::shared_ptr<grpc::Channel> MakeChannel(int fd) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    return grpc::CreateCustomInsecureChannelFromFd("hvdd", fd, arguments);
  }

  void Put(Arrival arrival) { inbox_->Put(std::move(arrival)); }

  const int host_;
  Inbox* const inbox_;
  std::unique_ptr<v1::Daemon::Stub> stub_;
  Stream<v1::HeartBeat, v1::HeartBeat> beats_;
  Stream<v1::Command, v1::Event> control_;
  Stream<v1::OutputAck, v1::OutputChunk> output_;
};

}  // namespace

class DaemonLinks::Impl {
 public:
  explicit Impl(int hosts) : links(hosts), thread([this] { Run(); }) {}
  ~Impl() {
    queue.Shutdown();
    thread.join();
  }

  void Run() {
    pthread_setname_np(pthread_self(), "hvdrun-grpc");
    void* tag;
    bool ok;
    while (queue.Next(&tag, &ok)) static_cast<Tag*>(tag)->Done(ok);
  }

  Inbox inbox;
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<HostLink>> links;
  std::thread thread;
};

DaemonLinks::DaemonLinks(int hosts) : impl_(std::make_unique<Impl>(hosts)) {}
DaemonLinks::~DaemonLinks() = default;

int DaemonLinks::event_fd() const { return impl_->inbox.fd(); }

std::vector<Arrival> DaemonLinks::Take() { return impl_->inbox.Take(); }

void DaemonLinks::Open(int host, Descriptor socket) {
  impl_->links[host] =
      std::make_unique<HostLink>(host, socket.Release(), &impl_->queue, &impl_->inbox);
}

void DaemonLinks::Send(int host, const v1::Command& command) {
  if (impl_->links[host]) impl_->links[host]->Send(command);
}

void DaemonLinks::SendBeat(int host, const v1::HeartBeat& beat) {
  if (impl_->links[host]) impl_->links[host]->SendBeat(beat);
}

void DaemonLinks::AckOutput(int host, uint64_t bytes) {
  if (impl_->links[host]) impl_->links[host]->AckOutput(bytes);
}

}  // namespace hvd
