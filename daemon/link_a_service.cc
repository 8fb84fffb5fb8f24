#include "daemon/link_a_service.h"

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "daemon/daemon.h"
#include "daemon/lease.h"
#include "hvd/v1/link_a.grpc.pb.h"

namespace hvd {

struct EventQueue::Inside {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<v1::Event> events;  // guarded by mutex
  bool closed = false;           // guarded by mutex
};

EventQueue::EventQueue() : inside_(std::make_unique<Inside>()) {}
EventQueue::~EventQueue() = default;

void EventQueue::Put(v1::Event event) {
  const std::lock_guard lock(inside_->mutex);
  inside_->events.push_back(std::move(event));
  inside_->changed.notify_all();
}

bool EventQueue::Take(v1::Event* event) {
  std::unique_lock lock(inside_->mutex);
  inside_->changed.wait(lock, [this] { return inside_->closed || !inside_->events.empty(); });
  if (inside_->closed) return false;
  *event = std::move(inside_->events.front());
  inside_->events.pop_front();
  return true;
}

void EventQueue::Close() {
  const std::lock_guard lock(inside_->mutex);
  inside_->closed = true;
  inside_->changed.notify_all();
}

namespace {

constexpr auto kBeat = std::chrono::milliseconds(250);

uint64_t NanosecondsOf(TimePoint time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

template <class In, class Out>
using Stream = grpc::ServerReaderWriter<Out, In>;

// One driver a connection: each stream is opened once. Every stream is read by the thread that gRPC
// gives it and written by one of its own.
class Service final : public v1::Daemon::Service {
 public:
  Service(Daemon* daemon, EventQueue* events) : daemon_(daemon), events_(events) {}

  grpc::Status Beat(grpc::ServerContext*, Stream<v1::HeartBeat, v1::HeartBeat>* stream) override {
    if (beat_taken_.exchange(true)) return Taken();
    BeatState state;
    std::thread writer([stream, &state] { WriteBeats(stream, &state); });
    v1::HeartBeat beat;
    while (stream->Read(&beat)) {
      std::unique_lock lock(state.mutex);
      const std::optional<TimePoint> sent = state.book.Hear(beat.number(), beat.echo());
      state.heard_at = Clock::now();
      lock.unlock();
      if (sent.has_value()) daemon_->Echoed(*sent);
    }
    {
      const std::lock_guard lock(state.mutex);
      state.ended = true;
      state.changed.notify_all();
    }
    writer.join();
    return grpc::Status::OK;
  }

  grpc::Status Control(grpc::ServerContext*, Stream<v1::Command, v1::Event>* stream) override {
    if (control_taken_.exchange(true)) return Taken();
    std::thread writer([this, stream] {
      pthread_setname_np(pthread_self(), "hvdd-events");
      v1::Event event;
      while (events_->Take(&event) && stream->Write(event)) {
      }
    });
    v1::Command command;
    while (stream->Read(&command)) daemon_->Receive(std::exchange(command, {}));
    daemon_->DriverGone("hvdrun is gone: its connection ended");
    events_->Close();
    writer.join();
    return grpc::Status::OK;
  }

  grpc::Status Output(grpc::ServerContext*,
                      Stream<v1::OutputAck, v1::OutputChunk>* stream) override {
    if (output_taken_.exchange(true)) return Taken();
    std::thread writer([this, stream] { WriteOutput(stream); });
    v1::OutputAck ack;
    while (stream->Read(&ack)) daemon_->output()->Acked(ack.bytes());
    daemon_->output()->Close();
    writer.join();
    return grpc::Status::OK;
  }

 private:
  struct BeatState {
    std::mutex mutex;
    std::condition_variable changed;
    BeatBook book;       // guarded by mutex
    TimePoint heard_at;  // guarded by mutex
    bool ended = false;  // guarded by mutex
  };

  static grpc::Status Taken() {
    return {grpc::StatusCode::ALREADY_EXISTS, "this daemon serves one driver"};
  }

  static void WriteBeats(Stream<v1::HeartBeat, v1::HeartBeat>* stream, BeatState* state) {
    pthread_setname_np(pthread_self(), "hvdd-beats");
    std::unique_lock lock(state->mutex);
    while (!state->ended) {
      v1::HeartBeat beat;
      const TimePoint now = Clock::now();
      beat.set_number(state->book.Send(now));
      beat.set_echo(state->book.heard());
      beat.set_sent_ns(NanosecondsOf(now));
      beat.set_heard_ns(NanosecondsOf(state->heard_at));
      lock.unlock();
      if (!stream->Write(beat)) return;
      lock.lock();
      state->changed.wait_for(lock, kBeat, [state] { return state->ended; });
    }
  }

  void WriteOutput(Stream<v1::OutputAck, v1::OutputChunk>* stream) {
    pthread_setname_np(pthread_self(), "hvdd-output");
    OutputPiece piece;
    while (daemon_->output()->Take(&piece)) {
      v1::OutputChunk chunk;
      const bool is_timeline = piece.stream == OutputQueue::TimelineStream(daemon_->local_size());
      chunk.set_is_timeline(is_timeline);
      chunk.set_rank(is_timeline ? 0 : daemon_->first_rank() + piece.stream / 2);
      chunk.set_is_stderr(!is_timeline && piece.stream % 2 == 1);
      chunk.set_data(std::move(piece.data));
      chunk.set_skipped_lines(piece.skipped_lines);
      chunk.set_end(piece.end);
      if (!stream->Write(chunk)) return;
    }
  }

  Daemon* const daemon_;
  EventQueue* const events_;
  std::atomic<bool> beat_taken_{false};
  std::atomic<bool> control_taken_{false};
  std::atomic<bool> output_taken_{false};
};

}  // namespace

struct LinkA::Inside {
  Inside(Daemon* daemon, EventQueue* events) : service(daemon, events) {}
  Service service;
  std::unique_ptr<grpc::Server> server;
};

LinkA::LinkA(UniqueFd connection, Daemon* daemon, EventQueue* events)
    : inside_(std::make_unique<Inside>(daemon, events)) {
  grpc::ServerBuilder builder;
  builder.RegisterService(&inside_->service);
  builder.SetMaxReceiveMessageSize(-1);
  builder.SetMaxSendMessageSize(-1);
  builder.SetSyncServerOption(grpc::ServerBuilder::NUM_CQS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MIN_POLLERS, 1);
  builder.SetSyncServerOption(grpc::ServerBuilder::MAX_POLLERS, 2);
  inside_->server = builder.BuildAndStart();
  fcntl(connection.get(), F_SETFL, O_NONBLOCK);
  grpc::AddInsecureChannelFromFd(inside_->server.get(), connection.Release());
}

LinkA::~LinkA() { inside_->server->Shutdown(std::chrono::system_clock::now()); }

}  // namespace hvd
