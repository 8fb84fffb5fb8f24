// SPDX-License-Identifier: Apache-2.0
#include "tests/system/programs/arena_room.h"

#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "hvd/hvd.hpp"
#include "tests/system/programs/address_space.h"

namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kFloats = kMiB / sizeof(float);  // in a MiB

void Say(const std::string& text) {
  std::printf("rank %d: %s\n", hvd::rank(), text.c_str());
  std::fflush(stdout);
}

// One value a page: what lies between them is summed as well, as zeros.
void Sum(hvd::Buffer<float>* tensor, const std::string& name) {
  constexpr size_t kStep = 1024;
  for (size_t i = 0; i < tensor->size(); i += kStep) {
    (*tensor)[i] = static_cast<float>((i / kStep) % 1000 + static_cast<size_t>(hvd::rank()));
  }
  hvd::allreduce(tensor->data(), tensor->size(), hvd::Op::kSum, name);
  const int size = hvd::size();
  for (size_t i = 0; i < tensor->size(); i += kStep) {
    const size_t sum = (i / kStep) % 1000 * static_cast<size_t>(size);
    if ((*tensor)[i] != static_cast<float>(sum) + static_cast<float>(size * (size - 1) / 2)) {
      throw std::runtime_error(name + ": element " + std::to_string(i) + " is wrong");
    }
  }
}

std::string More(rlim_t before) { return std::to_string((AddressSpace() - before) / kMiB) + " MB"; }

}  // namespace

int GrowRoom() {
  const rlim_t before = AddressSpace();
  const hvd::Session session;
  hvd::Buffer<float> small(kFloats);
  Sum(&small, "small");
  Say("small: " + More(before));
  hvd::Buffer<float> large(1024 * kFloats);
  Sum(&large, "large");
  Say("large: " + More(before));
  Sum(&small, "small");
  return 0;
}

int ScarceRoom() {
  const hvd::Session session;
  hvd::Buffer<float> small(kFloats);
  Sum(&small, "small");
  if (hvd::rank() == 1) {
    LimitAddressSpace(512 * kMiB);
    try {
      hvd::Buffer<float> large(1024 * kFloats);
      Say("had a gigabyte");
    } catch (const hvd::Error& error) {
      Say(std::string("was told: ") + error.what());
    }
  }
  hvd::Buffer<float> next(64 * kFloats);
  Sum(&next, "next");
  Sum(&small, "small");
  Say("went on");
  return 0;
}

int UnseenRoom() {
  std::signal(SIGTERM, SIG_IGN);  // hvdrun's, when the first has ended
  const hvd::Session session;
  hvd::Buffer<float> tensor(200 * kFloats);
  hvd::Buffer<float> small(kFloats);
  if (hvd::rank() == 1) LimitAddressSpace();
  try {
    Sum(&tensor, "tensor");
  } catch (const hvd::Error& error) {
    if (hvd::rank() == 1) LiftLimit();
    Say(std::string("was told: ") + error.what());
    return 1;
  }
  return 0;
}
