// SPDX-License-Identifier: Apache-2.0
#include "daemon/link_a/service.h"

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <pthread.h>

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "daemon/job/daemon.h"
#include "daemon/job/lease.h"
#include "daemon/link_a/stream.h"
#include "hvd/v1/link_a.grpc.pb.h"

namespace hvd::daemon {
namespace {

uint64_t NanosecondsOf(TimePoint time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

}  // namespace

// One driver a connection: each stream is opened once.
class LinkA::Inside {
 public:
  ~Inside() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now());
    queue_->Shutdown();
    receiver_.join();  // which joins the sender at its stream's end
  }

  void Emit(const v1::Event& event) { control_.Write(event); }

  void Serve(Descriptor connection, Daemon* daemon) {
    daemon_ = daemon;
    grpc::ServerBuilder builder;
    builder.RegisterService(&service_);
    builder.SetMaxReceiveMessageSize(-1);
    builder.SetMaxSendMessageSize(-1);
    // The messages that come are small; the probe of their path would answer each with a ping.
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    queue_ = builder.AddCompletionQueue();
    server_ = builder.BuildAndStart();
    AcceptStreams();
    daemon_->store()->Connect([this](const v1::StoreChunk& chunk) { store_.Write(chunk); });
    sender_ = std::thread([this] { SendOutput(); });
    receiver_ = std::thread([this] { Receive(); });
    fcntl(connection.get(), F_SETFL, O_NONBLOCK);
    grpc::AddInsecureChannelFromFd(server_.get(), connection.Release());
  }

 private:
  void AcceptStreams() {
    grpc::ServerCompletionQueue* const queue = queue_.get();
    beats_.Accept([&](auto* context, auto* stream, void* tag) {
      service_.RequestBeat(context, stream, queue, queue, tag);
    });
    control_.Accept([&](auto* context, auto* stream, void* tag) {
      service_.RequestControl(context, stream, queue, queue, tag);
    });
    store_.Accept([&](auto* context, auto* stream, void* tag) {
      service_.RequestStore(context, stream, queue, queue, tag);
    });
    output_.Accept([&](auto* context, auto* stream, void* tag) {
      service_.RequestOutput(context, stream, queue, queue, tag);
    });
  }

  void Receive() {
    pthread_setname_np(pthread_self(), "hvdd-link");
    void* tag;
    bool ok;
    while (queue_->Next(&tag, &ok)) static_cast<LinkTag*>(tag)->Done(ok);
  }

  // Each beat of the driver's is answered at once: no clock of ours, and the echo is fresh.
  void HearBeat(const v1::HeartBeat& heard) {
    const TimePoint heard_at = Clock::now();
    const std::optional<TimePoint> sent = book_.Hear(heard.number(), heard.echo());
    if (sent.has_value()) daemon_->Echoed(*sent);
    const TimePoint now = Clock::now();
    v1::HeartBeat beat;
    beat.set_number(book_.Send(now));
    beat.set_echo(book_.heard());
    beat.set_sent_ns(NanosecondsOf(now));
    beat.set_heard_ns(NanosecondsOf(heard_at));
    beats_.WriteLatest(beat);
  }

  void SendOutput() {
    pthread_setname_np(pthread_self(), "hvdd-output");
    OutputPiece piece;
    while (daemon_->output()->Take(&piece)) {
      v1::OutputChunk chunk;
      const bool is_timeline = piece.stream == OutputQueue::TimelineStream(daemon_->slots());
      chunk.set_is_timeline(is_timeline);
      chunk.set_member(piece.member);
      chunk.set_is_stderr(!is_timeline && piece.stream % 2 == 1);
      chunk.set_data(std::move(piece.data));
      chunk.set_skipped_lines(piece.skipped_lines);
      chunk.set_recording_ended(piece.recording_ended);
      chunk.set_end(piece.end);
      chunk.set_file_lost(std::move(piece.file_lost));
      if (!output_.WriteThrough(chunk)) return;
    }
  }

  Daemon* daemon_ = nullptr;
  v1::Daemon::AsyncService service_;
  std::unique_ptr<grpc::ServerCompletionQueue> queue_;
  std::unique_ptr<grpc::Server> server_;
  BeatBook book_;  // hvdd-link alone
  LinkStream<v1::HeartBeat, v1::HeartBeat> beats_{
      {[this](const v1::HeartBeat& beat) { HearBeat(beat); }, [] {}}};
  LinkStream<v1::Command, v1::Event> control_{
      {[this](const v1::Command& command) { daemon_->Receive(command); },
       [this] { daemon_->DriverGone("hvdrun is gone: its connection ended"); }}};
  LinkStream<v1::StoreChunk, v1::StoreChunk> store_{
      {[this](const v1::StoreChunk& chunk) { daemon_->store()->Receive(chunk); }, [] {}}};
  LinkStream<v1::OutputAck, v1::OutputChunk> output_{
      {[this](const v1::OutputAck& ack) { daemon_->output()->Acked(ack.bytes()); },
       [this] {
         daemon_->output()->Close();
         sender_.join();
       }}};
  std::thread receiver_;
  std::thread sender_;
};

LinkA::LinkA() : inside_(std::make_unique<Inside>()) {}
LinkA::~LinkA() = default;

void LinkA::Emit(const v1::Event& event) { inside_->Emit(event); }

void LinkA::Serve(Descriptor connection, Daemon* daemon) {
  inside_->Serve(std::move(connection), daemon);
}

}  // namespace hvd::daemon
