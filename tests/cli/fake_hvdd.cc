// SPDX-License-Identifier: Apache-2.0
// A daemon that starts no process: it speaks link A and plays the scenes that the command names, so
// that hvdrun's processes are tested without hvdd. FAKE_HVDD in the environment chooses what goes
// wrong before gRPC.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "hvd/v1/link_a.grpc.pb.h"
#include "proto/hello.h"
#include "tests/cli/fake_elastic.h"

namespace {

using hvd::v1::Command;
using hvd::v1::Event;
using hvd::v1::OutputChunk;

class FakeDaemon final : public hvd::v1::Daemon::Service {
 public:
  grpc::Status Beat(
      grpc::ServerContext*,
      grpc::ServerReaderWriter<hvd::v1::HeartBeat, hvd::v1::HeartBeat>* stream) override {
    hvd::v1::HeartBeat beat;
    for (uint64_t number = 1; stream->Read(&beat); ++number) {
      if (getenv("FAKE_MUTE")) continue;
      beat.set_echo(beat.number());
      beat.set_number(number);
      stream->Write(beat);
    }
    return grpc::Status::OK;
  }

  grpc::Status Output(grpc::ServerContext*,
                      grpc::ServerReaderWriter<OutputChunk, hvd::v1::OutputAck>* stream) override {
    for (;;) {
      OutputChunk chunk;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return !chunks_.empty(); });
        chunk = std::move(chunks_.front());
        chunks_.pop_front();
      }
      if (!stream->Write(chunk)) return grpc::Status::OK;
      sent_ += chunk.data().size();
      hvd::v1::OutputAck ack;
      while (acknowledged_ + (1 << 16) < sent_) {
        if (!stream->Read(&ack)) return grpc::Status::OK;
        acknowledged_ = ack.bytes();
      }
    }
  }

  grpc::Status Control(grpc::ServerContext*,
                       grpc::ServerReaderWriter<Event, Command>* stream) override {
    stream_ = stream;
    Command command;
    hvd::cli::FakeElastic elastic({[stream](const Event& event) { stream->Write(event); },
                                   [this](const OutputChunk& chunk) { Put(chunk); }});
    while (stream->Read(&command)) {
      if (command.has_prepare_host()) prepare_ = command.prepare_host();
      if (prepare_.elastic()) {
        elastic.Take(command);
        continue;
      }
      if (command.has_epoch_propose()) Propose(command.epoch_propose());
      if (command.has_spawn_slots()) Spawn(command.spawn_slots());
      if (command.has_epoch_table()) {
        Event event;
        event.mutable_host_ready()->set_epoch(command.epoch_table().epoch());
        if (command.epoch_table().addresses_size() != size_) Exit(first_, 99, 0, false);
        stream->Write(event);
      }
      if (command.has_epoch_go()) {
        if (command.epoch_go().epoch() == 1 && scene_ == "twice") {
          Address(2);
        } else {
          ExitAll(0, 0, false);
        }
      }
      if (command.has_stdin_chunk()) Stdin(command.stdin_chunk());
      if (command.has_signal()) {
        if (scene_ == "signal") ExitAll(command.signal().signal() == SIGUSR1 ? 0 : 1, 0, false);
      }
      if (command.has_epoch_abort() && scene_ == "early") {
        if (alive_ > 0) ExitAll(1, 0, true);
      }
      if (command.has_stop()) Stop();
    }
    _exit(0);
  }

 private:
  void Propose(const hvd::v1::EpochPropose& propose) {
    if (propose.epoch() != ++proposed_) _exit(97);  // each epoch is proposed once
    first_ = size_ = 0;
    for (const auto& host : propose.hosts()) {
      if (host.host() < prepare_.host()) first_ += host.members_size();
      size_ += host.members_size();
    }
  }

  void Spawn(const hvd::v1::SpawnSlots& spawn) {
    if (proposed_ != 1) _exit(98);
    spawn_ = spawn;
    const auto& argv = prepare_.program().argv();
    scene_ = argv[0];
    ranks_ = spawn.seats_size();
    alive_ = ranks_;
    gone_.resize(ranks_);
    Event event;
    event.mutable_launched()->set_pid(getpid());
    event.mutable_launched()->set_containment(hvd::v1::CONTAINMENT_SUBREAPER);
    if (scene_ == "nolaunch") {
      event.mutable_launch_failed()->set_exit_code(127);
      event.mutable_launch_failed()->set_message("no-such-command: not found on PATH");
    }
    stream_->Write(event);
    if (scene_ == "nolaunch") return;
    for (int i = 0; i < ranks_; ++i) {
      Event started;
      started.mutable_rank_started()->set_member(MemberOf(first_ + i));
      started.mutable_rank_started()->set_pid(1000 + first_ + i);
      stream_->Write(started);
    }
    const int chosen = argv.size() > 1 ? atoi(argv[1].c_str()) : 0;
    const bool mine = chosen >= first_ && chosen < first_ + ranks_;
    if (scene_ == "true") ExitAll(0, 0, false);
    if (scene_ == "exit" && mine) Exit(chosen, atoi(argv[2].c_str()), 0, false);
    if (scene_ == "signal-death" && mine) Exit(chosen, 0, atoi(argv[2].c_str()), false);
    if (scene_ == "early" && mine) Exit(chosen, 0, 0, false);
    if (scene_ == "die" && mine) kill(getpid(), SIGKILL);
    if (scene_ == "garbled" && mine) Garble();
    if (scene_ == "print") {
      Say(first_, std::string(chosen, 'x') + "\n");
      ExitAll(0, 0, false);
    }
    if (scene_ == "epoch" || scene_ == "twice") Address(1);
    if (scene_ == "join-some" && mine) Address(1);
    if (scene_ == "broke" && mine) {
      Event broke;
      broke.mutable_rank_broke()->set_member(MemberOf(chosen));
      broke.mutable_rank_broke()->set_message("rank 1 on a closed its link to hvdd");
      stream_->Write(broke);
    }
  }

  uint64_t MemberOf(int rank) const { return spawn_.seats(rank - first_).member(); }

  // A notice whose bytes are none.
  void Garble() {
    Event event;
    event.GetReflection()->MutableUnknownFields(&event)->AddLengthDelimited(
        Event::kNoticeFieldNumber, "\xff");
    stream_->Write(event);
  }

  void Address(uint64_t epoch) {
    for (int i = 0; i < ranks_; ++i) {
      Event joined;
      joined.mutable_rank_joined()->set_epoch(epoch);
      joined.mutable_rank_joined()->set_member(MemberOf(first_ + i));
      stream_->Write(joined);
    }
    Event event;
    event.mutable_host_addresses()->set_epoch(epoch);
    for (int i = 0; i < ranks_; ++i) {
      auto* address = event.mutable_host_addresses()->add_addresses();
      address->set_rank(first_ + i);
      address->set_address("here");
    }
    stream_->Write(event);
  }

  void Stdin(const hvd::v1::StdinChunk& chunk) {
    Event credit;
    credit.mutable_stdin_credit()->set_bytes(chunk.data().size());
    stream_->Write(credit);
    if (scene_ != "cat") return;
    Say(first_, chunk.data());
    if (chunk.end()) ExitAll(0, 0, false);
  }

  void Say(int rank, std::string data) {
    for (size_t at = 0; at < data.size(); at += 10000) {
      OutputChunk chunk;
      chunk.set_member(MemberOf(rank));
      chunk.set_data(data.substr(at, 10000));
      Put(chunk);
    }
  }

  void Put(const OutputChunk& chunk) {
    const std::lock_guard<std::mutex> lock(mutex_);
    chunks_.push_back(chunk);
    changed_.notify_all();
  }

  void Exit(int rank, int code, int signal, bool after_abort) {
    if (gone_[rank - first_]) return;
    gone_[rank - first_] = true;
    --alive_;
    for (const bool is_stderr : {false, true}) {
      OutputChunk end;
      end.set_member(MemberOf(rank));
      end.set_is_stderr(is_stderr);
      end.set_end(true);
      Put(end);
    }
    Event event;
    event.mutable_rank_exited()->set_member(MemberOf(rank));
    event.mutable_rank_exited()->set_exit_code(code);
    event.mutable_rank_exited()->set_signal(signal);
    event.mutable_rank_exited()->set_after_abort(after_abort);
    event.mutable_rank_exited()->set_joined(true);
    event.mutable_rank_exited()->set_left(scene_ != "early");
    if (code != 0) event.mutable_rank_exited()->add_last_lines("the last words");
    stream_->Write(event);
  }

  void ExitAll(int code, int signal, bool after_abort) {
    for (int i = 0; i < ranks_; ++i) Exit(first_ + i, code, signal, after_abort);
  }

  void Stop() {
    if (scene_ == "stubborn") return;
    ExitAll(0, SIGTERM, true);
    Event event;
    event.mutable_stopped();
    stream_->Write(event);
  }

  std::string scene_;
  uint64_t proposed_ = 0;  // epochs
  hvd::v1::PrepareHost prepare_;
  hvd::v1::SpawnSlots spawn_;
  int first_ = 0, ranks_ = 0, size_ = 0, alive_ = 0;
  std::vector<bool> gone_;
  grpc::ServerReaderWriter<Event, Command>* stream_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<OutputChunk> chunks_;
  uint64_t sent_ = 0, acknowledged_ = 0;
};

void Put(const std::string& text) {
  if (write(1, text.data(), text.size()) < 0) _exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  std::string marker;
  for (int i = 1; i + 1 < argc; ++i) {
    if (strcmp(argv[i], "--marker") == 0) marker = argv[i + 1];
  }
  const char* wrong = getenv("FAKE_HVDD");
  const std::string fault = wrong ? wrong : "";
  hvd::Hello hello = {hvd::kLinkAProtocol, "0.0-fake"};
  if (fault == "noise") Put("Welcome to this host\nlast login: never\n" + marker.substr(0, 7));
  if (fault == "fail") {
    fprintf(stderr, "ssh: connect to host x port 22: Connection refused\n");
    return 255;
  }
  if (fault == "stuck") {  // and so does a child of it
    if (fork() < 0) return 1;
    for (;;) pause();
  }
  if (fault == "silent") {
    Put("stuck in a start-up file\n");
    for (char c; read(0, &c, 1) > 0;) continue;
    return 0;
  }
  if (fault == "protocol") hello.protocol = 999;
  Put(FormatHello(marker, hello));
  if (fault == "late") Put("backup finished: 17 files\n");
  const int fd = fcntl(0, F_DUPFD_CLOEXEC, 3);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  for (int i = 0; i < 2; ++i) dup2(open("/dev/null", O_RDWR), i);
  FakeDaemon daemon;
  grpc::ServerBuilder builder;
  builder.RegisterService(&daemon);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  grpc::AddInsecureChannelFromFd(server.get(), fd);
  server->Wait();
}
