// SPDX-License-Identifier: Apache-2.0
#include "tests/system/programs/fuzz_call.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace fuzz {
namespace {

constexpr size_t kMargin = 64;
constexpr unsigned char kMark = 0xA5;
constexpr const char* kKindNames[] = {"allreduce", "allgather", "reducescatter", "broadcast",
                                      "alltoall",  "barrier",   "send"};

hvd_tensor_t TensorOf(const Type& type, const std::vector<int64_t>& shape, void* data) {
  hvd_tensor_t tensor = HVD_TENSOR_INIT;
  tensor.data = data;
  tensor.shape = shape.data();
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = type.code;
  return tensor;
}

int64_t Count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

}  // namespace

void Fail(const std::string& what) {
  static auto* const first = new std::mutex;
  std::fprintf(stderr, "fuzz: rank %d: %s\n", hvd_rank(), what.c_str());
  first->lock();  // one thread alone may call exit
  std::exit(1);
}

Room::Room(size_t bytes, Random* own) : bytes_(bytes) {
  const size_t shift = static_cast<size_t>(own->OneIn(2) ? 0 : own->Below(4)) * 16;
  const size_t all = bytes + 2 * kMargin + shift;
  unsigned char* begin = nullptr;
  if (own->OneIn(2) && hvd_alloc(all, &shared_) == HVD_OK) {
    begin = static_cast<unsigned char*>(shared_);
  } else {
    private_.resize(all);
    begin = private_.data();
  }
  std::memset(begin, kMark, all);
  data_ = begin + kMargin + shift;
}

Room::~Room() { hvd_free(shared_); }

bool Room::IsWhole() const {
  const auto marked = [](unsigned char byte) { return byte == kMark; };
  return std::all_of(data_ - kMargin, data_, marked) &&
         std::all_of(data_ + bytes_, data_ + bytes_ + kMargin, marked);
}

Call::Call(const Operation& operation, int member, Random* own)
    : agreed_(operation),
      called_(AsCalledBy(operation, member)),
      member_(member),
      manner_(own->Below(3)) {
  const bool may_allocate = called_.kind == Kind::kAllgather || called_.kind == Kind::kAlltoall ||
                            called_.kind == Kind::kReducescatter;
  const bool may_lie_in_place =
      called_.kind == Kind::kAllreduce || called_.kind == Kind::kBroadcast;
  by_library_ = may_allocate && own->OneIn(2);
  in_place_ = may_lie_in_place && own->OneIn(2);
  Lay(own);
}

Call::~Call() {
  for (hvd_tensor_t& result : results_) hvd_free_result(&result);
}

// Makes rooms and tensors. A tensor without elements may have no address.
void Call::Lay(Random* own) {
  const size_t count = called_.parts.size();
  shapes_.reserve(2 * count);
  const auto place = [&](const Type& type, std::vector<int64_t> shape) {
    const auto elements = static_cast<size_t>(Count(shape));
    shapes_.push_back(std::move(shape));
    if (elements == 0 && own->OneIn(2)) return TensorOf(type, shapes_.back(), nullptr);
    rooms_.push_back(std::make_unique<Room>(elements * type.bytes, own));
    return TensorOf(type, shapes_.back(), rooms_.back()->data());
  };
  for (size_t i = 0; i < count; ++i) {
    const Part& part = called_.parts[i];
    inputs_.push_back(place(part.type, part.Shape(member_)));
    const bool receives = called_.kind == Kind::kSend && member_ == called_.to;
    const int64_t elements = receives ? 0 : part.Elements(member_);
    for (int64_t element = 0; element < elements; ++element) {
      Store(part.type, Input(called_, i, member_, element),
            static_cast<unsigned char*>(inputs_[i].data) +
                static_cast<size_t>(element) * part.type.bytes);
    }
    if (called_.kind == Kind::kSend || in_place_) {
      outputs_.push_back(inputs_[i]);
    } else if (!by_library_) {
      outputs_.push_back(place(part.type, ExpectedShape(called_, i, member_)));
    }
  }
  if (by_library_) results_.assign(count, hvd_tensor_t(HVD_TENSOR_INIT));
}

hvd_options_t Call::Options() const {
  hvd_options_t options = HVD_OPTIONS_INIT;
  options.name = called_.name.c_str();
  options.process_set = called_.set.id;
  options.root =
      called_.kind == Kind::kBroadcast ? called_.set.ranks[static_cast<size_t>(called_.root)] : 0;
  if (called_.kind == Kind::kAllreduce || called_.kind == Kind::kReducescatter) {
    options.op = called_.op;
    options.prescale = called_.prescale;
    options.postscale = called_.postscale;
    options.compression = called_.compression;
    options.flags = called_.flags;
  }
  return options;
}

bool Call::tells = false;

void Call::Tell(const char* what) const {
  if (tells) std::fprintf(stderr, "%s%s\n", what, Words().c_str());
}

void Call::Begin() {
  Tell(called_.blocking ? "begins, and blocks in, " : "begins ");
  const hvd_options_t options = Options();
  if (called_.kind == Kind::kSend) {
    status_ = BeginSend(&options);
  } else if (called_.kind == Kind::kBarrier) {
    status_ = called_.blocking ? hvd_barrier(&options) : hvd_barrier_async(&options, &handle_);
  } else if (called_.group) {
    status_ = BeginGroup(&options);
  } else if (called_.kind == Kind::kAllreduce || called_.kind == Kind::kReducescatter) {
    status_ = BeginReduction(&options);
  } else {
    status_ = BeginExchange(&options);
  }
  if (!called_.blocking && status_ != HVD_OK) Fail(Words() + " is refused: " + hvd_last_error());
}

hvd_status_t Call::BeginReduction(const hvd_options_t* options) {
  const hvd_tensor_t* output = by_library_ ? nullptr : outputs_.data();
  hvd_tensor_t* result = by_library_ ? results_.data() : nullptr;
  if (called_.kind == Kind::kAllreduce) {
    return called_.blocking ? hvd_allreduce(inputs_.data(), output, options)
                            : hvd_allreduce_async(inputs_.data(), output, options, &handle_);
  }
  return called_.blocking ? hvd_reducescatter(inputs_.data(), output, options, result)
                          : hvd_reducescatter_async(inputs_.data(), output, options, &handle_);
}

hvd_status_t Call::BeginExchange(const hvd_options_t* options) {
  const hvd_tensor_t* input = inputs_.data();
  const hvd_tensor_t* output = by_library_ ? nullptr : outputs_.data();
  hvd_tensor_t* result = by_library_ ? results_.data() : nullptr;
  if (called_.kind == Kind::kAllgather) {
    return called_.blocking ? hvd_allgather(input, output, options, result)
                            : hvd_allgather_async(input, output, options, &handle_);
  }
  if (called_.kind == Kind::kBroadcast) {
    return called_.blocking ? hvd_broadcast(input, output, options)
                            : hvd_broadcast_async(input, output, options, &handle_);
  }
  const auto& mine = called_.splits[static_cast<size_t>(member_)];
  const int64_t* splits = called_.even_splits ? nullptr : mine.data();
  const auto count = called_.even_splits ? 0 : static_cast<int32_t>(mine.size());
  received_.assign(mine.size(), -1);
  return called_.blocking
             ? hvd_alltoall(input, splits, count, output, options, result, received_.data())
             : hvd_alltoall_async(input, splits, count, output, options, &handle_);
}

hvd_status_t Call::BeginGroup(const hvd_options_t* options) {
  const auto count = static_cast<int32_t>(inputs_.size());
  const hvd_tensor_t* outputs = by_library_ ? nullptr : outputs_.data();
  hvd_tensor_t* results = by_library_ ? results_.data() : nullptr;
  const hvd_tensor_t* inputs = inputs_.data();
  switch (called_.kind) {
    case Kind::kAllreduce:
      return called_.blocking
                 ? hvd_grouped_allreduce(inputs, outputs, count, options)
                 : hvd_grouped_allreduce_async(inputs, outputs, count, options, &handle_);
    case Kind::kAllgather:
      return called_.blocking
                 ? hvd_grouped_allgather(inputs, outputs, count, options, results)
                 : hvd_grouped_allgather_async(inputs, outputs, count, options, &handle_);
    default:
      return called_.blocking
                 ? hvd_grouped_reducescatter(inputs, outputs, count, options, results)
                 : hvd_grouped_reducescatter_async(inputs, outputs, count, options, &handle_);
  }
}

hvd_status_t Call::BeginSend(const hvd_options_t* options) {
  const int tag = called_.index % 3;
  const std::vector<int>& ranks = called_.set.ranks;
  if (member_ == called_.from) {
    return hvd_send_async(inputs_.data(), ranks[static_cast<size_t>(called_.to)], tag, options,
                          &handle_);
  }
  return hvd_recv_async(outputs_.data(), ranks[static_cast<size_t>(called_.from)], tag, options,
                        &handle_);
}

hvd_status_t Call::Wait() {
  int32_t done = 0;
  while (manner_ == 1 && done == 0) {
    if (hvd_wait_for(handle_, 2000, &done) != HVD_OK) Fail("wait_for: " + Words());
  }
  if (manner_ == 2 && hvd_poll(handle_, &done) != HVD_OK) Fail("poll: " + Words());
  if (called_.kind == Kind::kAlltoall) {
    return hvd_wait_alltoall(handle_, by_library_ ? results_.data() : nullptr, received_.data());
  }
  if (!by_library_) return hvd_wait(handle_);
  if (!called_.group) return hvd_wait_result(handle_, results_.data());
  return hvd_wait_results(handle_, results_.data(), static_cast<int32_t>(results_.size()));
}

void Call::End() {
  Tell("ends ");
  if (!called_.blocking) status_ = Wait();
  const hvd_status_t expected = ExpectedStatus(agreed_);
  if (status_ != expected) {
    Fail(Words() + " ended with " + hvd_status_name(status_) + ", not with " +
         hvd_status_name(expected) +
         (status_ == HVD_OK ? "" : std::string(": ") + hvd_last_error()));
  }
  for (const auto& room : rooms_) {
    if (!room->IsWhole()) Fail(Words() + " has written beside a tensor");
  }
  if (expected == HVD_OK) CheckResults();
}

void Call::CheckResults() const {
  if (called_.kind == Kind::kBarrier) return;
  for (size_t part = 0; part < called_.parts.size(); ++part) CheckPart(part);
  if (called_.kind != Kind::kAlltoall) return;
  for (size_t from = 0; from < received_.size(); ++from) {
    const int64_t expected = called_.splits[from][static_cast<size_t>(member_)];
    if (received_[from] != expected) Fail(Words() + " tells other splits than were sent");
  }
}

void Call::CheckPart(size_t part) const {
  const Type& type = called_.parts[part].type;
  const hvd_tensor_t& found = by_library_ ? results_[part] : outputs_[part];
  const std::vector<int64_t> shape = ExpectedShape(called_, part, member_);
  if (!std::equal(shape.begin(), shape.end(), found.shape, found.shape + found.ndim) ||
      found.dtype != type.code) {
    Fail(Words() + " has a result of another shape or type");
  }
  for (int64_t element = 0; element < Count(shape); ++element) {
    const auto* place =
        static_cast<const unsigned char*>(found.data) + static_cast<size_t>(element) * type.bytes;
    const Value value = Load(type, place), expected = Expected(agreed_, part, member_, element);
    const double allowed =
        IsExact(agreed_, agreed_.parts[part]) ? 0 : Precision(type) * std::abs(expected);
    if (std::abs(value - expected) <= allowed) continue;
    char words[160];
    std::snprintf(words, sizeof words, ": element %lld of tensor %zu is %.9g%+.9gi, not %.9g%+.9gi",
                  static_cast<long long>(element), part, value.real(), value.imag(),
                  expected.real(), expected.imag());
    Fail(Words() + words);
  }
}

std::string Call::Words() const {
  std::string words = "call " + std::to_string(agreed_.index) + " ('" + agreed_.name + "'), ";
  if (agreed_.group) words += "a group's ";
  words += kKindNames[static_cast<int>(agreed_.kind)];
  words += " of " + std::to_string(agreed_.parts.size()) + " tensors in set " +
           std::to_string(agreed_.set.id);
  for (const Part& part : agreed_.parts) {
    words += " [type " + std::to_string(part.type.code) + ", " +
             std::to_string(part.Elements(member_)) + " elements]";
  }
  words += ", op " + std::to_string(agreed_.op) + ", scales " + std::to_string(agreed_.prescale) +
           " and " + std::to_string(agreed_.postscale);
  if (agreed_.spoiler >= 0) {
    words += ", which member " + std::to_string(agreed_.spoiler) + " asks for otherwise (" +
             std::to_string(static_cast<int>(agreed_.spoil)) + ")";
  }
  return words;
}

}  // namespace fuzz
