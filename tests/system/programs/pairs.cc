// SPDX-License-Identifier: Apache-2.0
// pairs MODE: sends and receives between two ranks.
//   ring      each sends to its right neighbour before it receives from its left, sizes up to 80 MB
//   storm     all to all, many at once, tags and sizes in an order that each rank draws for itself,
//             beside allreduces
//   set       the same within a process set of the last ranks
//   mismatch  what does not fit is one error in the same words on both sides; then all goes well
//   refused   what makes no sense is refused at once
//   joined    a peer that has joined is named, and sends again after the join
//   left      a peer that has called shutdown is named
//   told      ends are told by callbacks, into queues, and waited for with a limit
//   died      rank 1 kills itself: what others have pending with it ends with the cause
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/system/programs/checks.h"

namespace {

int Right() { return (hvd::rank() + 1) % hvd::size(); }
int Left() { return (hvd::rank() + hvd::size() - 1) % hvd::size(); }

void Need(bool holds, const std::string& what) {
  if (!holds) Fail(what + ": " + hvd_last_error());
}

uint32_t Seed(int from, int to, size_t count, int64_t tag) {
  return static_cast<uint32_t>(from * 1000003 + to * 10007 + static_cast<int>(count % 9973) +
                               static_cast<int>(tag) * 31);
}
// Every element differs from its neighbours: pieces that go astray are seen.
std::vector<int32_t> Filled(size_t count, uint32_t seed) {
  std::vector<int32_t> data(count);
  for (size_t i = 0; i < count; ++i) data[i] = static_cast<int32_t>((seed + i) * 2654435761u);
  return data;
}

void Ring() {
  for (const size_t count : {size_t{0}, size_t{1}, size_t{64}, size_t{65}, size_t{16384},
                             size_t{16385}, size_t{1} << 20, size_t{20} << 20}) {
    std::vector<int32_t> out = Filled(count, Seed(hvd::rank(), Right(), count, 0));
    std::vector<int32_t> in(count, -1);
    hvd::Handle sent = hvd::send_async(out.data(), count, Right());
    hvd::recv(in.data(), count, Left());
    sent.wait();
    Need(in == Filled(count, Seed(Left(), hvd::rank(), count, 0)),
         "wrong in the ring of " + std::to_string(count));
  }
}

struct Message {
  int peer;
  int64_t tag;
  size_t count;
  bool sends;
  std::vector<int32_t> data = {};
};

// Draws messages. Their order counts within one tag, so each tag has one size a round.
std::vector<Message> DrawMessages(const std::vector<int>& ranks, uint32_t seed) {
  std::vector<Message> messages;
  for (const int peer : ranks) {
    if (peer == hvd::rank()) continue;
    for (int64_t tag = -4; tag < 5; ++tag) {
      const size_t count = size_t{1} << (2 * (tag + 4));
      messages.push_back({peer, tag, count, true});
      messages.push_back({peer, tag, count, false});
    }
  }
  std::mt19937 random(seed + static_cast<uint32_t>(hvd::rank()));
  std::shuffle(messages.begin(), messages.end(), random);
  return messages;
}

void Storm(const std::vector<int>& ranks, int set) {
  for (uint32_t round = 0; round < 10; ++round) {
    std::vector<Message> messages = DrawMessages(ranks, round);
    std::vector<hvd::Handle> handles;
    for (Message& message : messages) {
      if (message.sends) {
        message.data =
            Filled(message.count, Seed(hvd::rank(), message.peer, message.count, message.tag));
        handles.push_back(
            hvd::send_async(message.data.data(), message.count, message.peer, message.tag, set));
      } else {
        message.data.assign(message.count, 0);
        handles.push_back(
            hvd::recv_async(message.data.data(), message.count, message.peer, message.tag, set));
      }
      if (handles.size() % 16 != 0) continue;
      std::vector<float> ones(1000, 1);
      hvd::Options options;
      options.op = hvd::Op::kSum;
      options.process_set = set;
      hvd::allreduce(ones, options);
      Need(ones[999] == static_cast<float>(ranks.size()), "a sum beside");
    }
    for (hvd::Handle& handle : handles) handle.wait();
    for (const Message& message : messages) {
      const uint32_t seed = message.sends
                                ? Seed(hvd::rank(), message.peer, message.count, message.tag)
                                : Seed(message.peer, hvd::rank(), message.count, message.tag);
      Need(message.data == Filled(message.count, seed), "wrong in the storm");
    }
  }
}

std::vector<int> Ranks(int first) {
  std::vector<int> ranks;
  for (int rank = first; rank < hvd::size(); ++rank) ranks.push_back(rank);
  return ranks;
}

void InSet() {
  const std::vector<int> ranks = Ranks(hvd::size() > 2 ? 1 : 0);
  for (int time = 0; time < 3; ++time) {
    const std::vector<int32_t> members(ranks.begin(), ranks.end());
    int32_t set = 0;
    const hvd_status_t added =
        hvd_add_process_set(members.data(), static_cast<int32_t>(members.size()), &set);
    Need(added == HVD_OK || added == HVD_ERR_DUPLICATE, "add_process_set");
    if (hvd_process_set_rank(set) >= 0) Storm(ranks, set);
    if (added == HVD_OK) Must(hvd_remove_process_set(set), "remove_process_set");
  }
}

void Mismatch() {
  std::vector<float> floats(30, static_cast<float>(hvd::rank()));
  std::vector<double> doubles(30, 0);
  if (hvd::rank() > 1) return;
  const int peer = 1 - hvd::rank();
  char words[2][512] = {};
  for (const size_t count : {size_t{30}, size_t{29}}) {
    try {
      if (hvd::rank() == 0) hvd::send(floats.data(), count, peer, 4);
      if (hvd::rank() == 1 && count == 30) hvd::recv(doubles.data(), count, peer, 4);
      if (hvd::rank() == 1 && count == 29) hvd::recv(floats.data(), 30, peer, 4);
      Fail("what does not fit was taken");
    } catch (const hvd::Error& error) {
      Need(error.code() == HVD_ERR_MISMATCH, "the code");
      std::snprintf(words[hvd::rank()], sizeof(words[0]), "%s", error.what());
    }
    if (hvd::rank() == 0) hvd::send(words[0], sizeof(words[0]), peer, 4);
    if (hvd::rank() == 1) {
      hvd::recv(words[0], sizeof(words[0]), peer, 4);
      Need(std::strcmp(words[0], words[1]) == 0, std::string(words[0]) + " / " + words[1]);
      const char* wanted = count == 30 ? "rank 0 sends float32 [30], rank 1 receives float64 [30]"
                                       : "rank 0 sends float32 [29], rank 1 receives float32 [30]";
      Need(std::strstr(words[1], wanted) != nullptr, words[1]);
    }
  }
}

void Refuses(const char* text, hvd_status_t status) {
  Need(status == HVD_ERR_INVALID && std::strstr(hvd_last_error(), text) != nullptr, text);
}

void Refused() {
  std::vector<float> data(3);
  const hvd::internal::Tensor<float> tensor(data.data(), data.size());
  hvd_handle_t handle = 0;
  Refuses("is not one of the", hvd_send(tensor.get(), hvd::size(), 0, nullptr));
  Refuses("is not one of the", hvd_recv(tensor.get(), -1, 0, nullptr));
  Refuses("is this rank itself", hvd_send(tensor.get(), hvd::rank(), 0, nullptr));
  Refuses("tensor is NULL", hvd_recv_async(nullptr, Right(), 0, nullptr, &handle));
  Refuses("handle is NULL", hvd_send_async(tensor.get(), Right(), 0, nullptr, nullptr));
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = "a name";
  Refuses("options.name", hvd_send(tensor.get(), Right(), 0, &options));
  options.name = nullptr;
  options.op = HVD_MAX;
  Refuses("options.op", hvd_send(tensor.get(), Right(), 0, &options));
}

void Joined() {
  std::vector<float> data(1000, 7);
  if (hvd::rank() == 0) {
    try {
      hvd::recv(data.data(), data.size(), 1, 1);
      Fail("a rank that has joined has sent");
    } catch (const hvd::Error& error) {
      Need(error.code() == HVD_ERR_MISMATCH, "the code");
      Need(std::strstr(error.what(), "rank 1 has joined") != nullptr, error.what());
    }
  }
  hvd::join();
  Ring();
}

void LeftBehind() {
  std::vector<float> data(1000, 7);
  if (hvd::rank() != 0) return;
  try {
    hvd::send(data.data(), data.size(), 1, 1);
    Fail("a rank that has left has received");
  } catch (const hvd::Error& error) {
    Need(error.code() == HVD_ERR_ABORTED, "the code");
    Need(std::strstr(error.what(), "rank 1 has called shutdown") != nullptr, error.what());
  }
}

void Told() {
  static std::atomic<int> told{0};
  std::vector<int32_t> out = Filled(50000, 1), in(50000);
  const hvd::internal::Tensor<int32_t> sent(out.data(), out.size()), got(in.data(), in.size());
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.done = [](void*, hvd_handle_t, hvd_status_t status) { told += status == HVD_OK; };
  hvd_handle_t send = 0, receive = 0;
  int32_t done = 1;
  Must(hvd_recv_async(got.get(), Left(), 3, &options, &receive), "recv_async");
  Must(hvd_poll(receive, &done), "poll");
  Need(done == 0, "a receive is done before anybody has sent");
  Must(hvd_barrier_async(nullptr, &send), "barrier_async");  // all have looked
  Must(hvd_wait(send), "wait");
  hvd_queue_t* queue = nullptr;
  Must(hvd_queue_create(&queue), "queue_create");
  hvd_options_t queued = HVD_OPTIONS_INIT;
  queued.queue = queue;
  queued.tag = 77;
  Must(hvd_send_async(sent.get(), Right(), 3, &queued, &send), "send_async");
  pollfd readable = {hvd_queue_fd(queue), POLLIN, 0};
  Need(poll(&readable, 1, 60000) == 1, "the queue says nothing");
  hvd_completion_t end = {};
  int32_t count = 0;
  Must(hvd_queue_next(queue, &end, 1, &count), "queue_next");
  Need(count == 1 && end.tag == 77 && end.handle == send && end.status == HVD_OK, "the end");
  for (done = 0; done == 0;) Must(hvd_wait_for(receive, 1000, &done), "wait_for");
  Must(hvd_wait(receive), "wait");
  Must(hvd_wait(send), "wait");
  hvd::barrier();
  Need(told == 1 && in == out, "told");
  Must(hvd_queue_destroy(queue), "queue_destroy");
}

void Died() {
  signal(SIGTERM, SIG_IGN);  // the job's end must not come before we have said what was told
  std::vector<float> data(100000);
  hvd::barrier();
  if (hvd::rank() == 1) {
    hvd::Handle never = hvd::recv_async(data.data(), data.size(), 0, 1);
    kill(getpid(), SIGKILL);
  }
  try {
    hvd::recv(data.data(), data.size(), 1, 1);
    Fail("a dead rank has sent");
  } catch (const hvd::Error& error) {
    if (error.code() == HVD_ERR_ABORTED) std::printf("%s\n", error.what());
    std::fflush(stdout);
  }
}

// Rank 0 waits for what the last rank never sends; another pair has met.
void Stalled() {
  Ring();
  std::vector<float> data(1000);
  if (hvd::rank() != 0) {
    for (;;) pause();
  }
  hvd::recv(data.data(), data.size(), hvd::size() - 1, 9);
}

int Run(const std::string& mode) {
  hvd::Session session;
  if (mode == "ring") Ring();
  if (mode == "storm") Storm(Ranks(0), HVD_GLOBAL_PROCESS_SET);
  if (mode == "set") InSet();
  if (mode == "mismatch") Mismatch();
  if (mode == "refused") Refused();
  if (mode == "joined") Joined();
  if (mode == "left") LeftBehind();
  if (mode == "told") Told();
  if (mode == "died") Died();
  if (mode == "stalled") Stalled();
  std::printf("rank %d: %s is right\n", hvd::rank(), mode.c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) try {
  return Run(argc == 2 ? argv[1] : "");
} catch (const hvd::Error& error) {
  Fail(error.what());
}
