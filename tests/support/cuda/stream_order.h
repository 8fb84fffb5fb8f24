// SPDX-License-Identifier: Apache-2.0
// Which work of a device is ordered after which: vector clocks over streams, in the manner of race
// detectors (Lamport's happened-before; one component a stream). It follows from what the host asks
// for alone, not from when the device gets to it, so a missing event is found however lucky the
// run was. Pure; no thread of its own, and no lock.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hvd::rt {

// The work that a stream has behind it: of each stream, up to which of its steps.
class OrderClock {
 public:
  uint64_t of(int stream) const;
  void Advance(int stream) { ++steps_[stream]; }
  // Also behind all that `other` has.
  void Join(const OrderClock& other);

 private:
  std::map<int, uint64_t> steps_;
};

// A step of a stream.
struct OrderStep {
  int stream = 0;
  uint64_t number = 0;
};

class StreamOrder {
 public:
  int AddStream();
  // The next step of `stream`, as the host asks for it now.
  OrderStep Enqueue(int stream);
  // Returns what an event holds when it is recorded there.
  OrderClock Record(int stream) const { return clocks_.at(stream); }
  // Work that follows in `stream` comes after what the event holds.
  void Await(int stream, const OrderClock& event) { clocks_.at(stream).Join(event); }
  // The host has seen the event: what it asks for from now on comes after that, in any stream.
  void HostSaw(const OrderClock& event) { host_.Join(event); }

  // Whether `step` lies behind `stream` as it stands.
  bool IsBehind(const OrderStep& step, int stream) const;
  // … behind the host: it has waited for it.
  bool IsBehindHost(const OrderStep& step) const { return host_.of(step.stream) >= step.number; }

 private:
  std::map<int, OrderClock> clocks_;  // by stream
  OrderClock host_;
  int last_ = 0;
};

// Knows who has touched a piece of memory, and whether the next one may. Addresses are those of the
// device's memory, or of pinned memory of the host.
class AccessLog {
 public:
  explicit AccessLog(const StreamOrder* order) : order_(order) {}

  struct Access {
    uint64_t address = 0;
    uint64_t bytes = 0;
    bool writes = false;
  };
  // `step` touches it. The earlier step that it is not ordered after, if there is one: they race.
  std::optional<OrderStep> Note(const OrderStep& step, const Access& access);
  // The memory is given back by the host: a step that still may touch it then.
  std::optional<OrderStep> Free(uint64_t address, uint64_t bytes);

 private:
  // A piece that has been touched alike in all of its bytes. It ends where the next one begins.
  struct Piece {
    std::optional<OrderStep> write;
    std::map<int, uint64_t> reads;  // since that: the last step of each stream
  };
  using Pieces = std::map<uint64_t, Piece>;  // by first address; what nobody has touched is empty

  void Cut(uint64_t address);
  Pieces::iterator From(uint64_t address);

  const StreamOrder* const order_;
  Pieces pieces_ = {{0, {}}};
};

}  // namespace hvd::rt
