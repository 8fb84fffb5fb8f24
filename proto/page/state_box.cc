// SPDX-License-Identifier: Apache-2.0
#include "proto/page/state_box.h"

#include <utility>

namespace hvd {
namespace {

StateWord WordOf(const StateCell& cell) {
  StateWord word;
  word.number = cell.number.load(std::memory_order_acquire);
  word.epoch = cell.epoch.load(std::memory_order_relaxed);
  word.layout = cell.layout.load(std::memory_order_relaxed);
  word.local_size = cell.local_size.load(std::memory_order_relaxed);
  word.steps = cell.steps.load(std::memory_order_relaxed);
  word.place = cell.place.load(std::memory_order_relaxed);
  return word;
}

bool Same(const StateWord& a, const StateWord& b) {
  return a.number == b.number && a.epoch == b.epoch && a.layout == b.layout &&
         a.local_size == b.local_size;
}

}  // namespace

void BeginState(StateCell* cell) {
  cell->number.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void EndState(StateCell* cell, const StateWord& word) {
  cell->epoch.store(word.epoch, std::memory_order_relaxed);
  cell->layout.store(word.layout, std::memory_order_relaxed);
  cell->local_size.store(word.local_size, std::memory_order_relaxed);
  cell->steps.store(word.steps, std::memory_order_relaxed);
  cell->place.store(word.place, std::memory_order_relaxed);
  cell->number.store(word.number, std::memory_order_release);
}

StateWord CompleteState(const StateHead& head) {
  const StateWord first = WordOf(head.cells[0]);
  if (first.local_size == 0 || first.local_size > kMaxLocalRanks) return {};
  for (uint32_t local_rank = 1; local_rank < first.local_size; ++local_rank) {
    if (!Same(WordOf(head.cells[local_rank]), first)) return {};
  }
  return first.number == 0 ? StateWord() : first;
}

KeptCommits KeptIn(const StateHead* one, const StateHead* other) {
  StateWord first = one == nullptr ? StateWord() : CompleteState(*one);
  StateWord second = other == nullptr ? StateWord() : CompleteState(*other);
  if (first.number < second.number) std::swap(first, second);
  return {first.number, second.number, first.steps, first.place};
}

void VoidStateBeyond(StateHead* head, uint64_t newest) {
  for (StateCell& cell : head->cells) {
    if (cell.number.load(std::memory_order_relaxed) > newest) BeginState(&cell);
  }
}

}  // namespace hvd
