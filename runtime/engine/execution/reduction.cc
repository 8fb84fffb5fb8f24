// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/reduction.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "runtime/collective/adasum.h"
#include "runtime/collective/kernels/reduce_kernels.h"
#include "runtime/collective/narrow.h"

namespace hvd::rt {
namespace {

// Elements that are compressed at a time: what is converted should still be in a cache when it is
// sent.
constexpr size_t kCompressedPiece = size_t{2} << 20;

hvd_dtype_t Dtype(const Signature& signature) { return static_cast<hvd_dtype_t>(signature.dtype); }

hvd_dtype_t WireDtype(const Signature& signature) {
  return signature.compression == HVD_COMPRESSION_FP16 ? HVD_FLOAT16 : HVD_BFLOAT16;
}

// Puts op, scales and divisor of either kind of reduction.
template <class Args>
void PutOperation(const LogEntry& entry, Args* args) {
  const Signature& signature = entry.signature;
  args->dtype = Dtype(signature);
  const bool of_contributors = signature.op == kAverageOfContributors;
  args->op = of_contributors ? HVD_AVERAGE : static_cast<hvd_op_t>(signature.op);
  args->divisor = of_contributors ? entry.contributors : 0;
  args->prescale = signature.prescale;
  args->postscale = signature.postscale;
}

// Runs on the collectives, as the entry's signature says.
absl::Status ReduceParts(const LogEntry& entry, absl::Span<const ReducePart> parts,
                         Collectives* collectives) {
  if (entry.signature.op == HVD_ADASUM) {
    AdasumArgs args;
    args.parts = parts;
    args.dtype = Dtype(entry.signature);
    args.prescale = entry.signature.prescale;
    args.postscale = entry.signature.postscale;
    return Adasum(args, collectives);
  }
  ReduceArgs args;
  PutOperation(entry, &args);
  if (parts.size() == 1 && parts[0].host_inputs.empty()) {
    args.input = parts[0].input;
    args.output = parts[0].output;
    args.count = parts[0].count;
  } else {
    args.parts = parts;
  }
  return collectives->Allreduce(args);
}

// Elements [begin, begin + count) of the parts, as if they lay one after the other, part by part.
template <class Visit>
void ForRange(absl::Span<const ReducePart> parts, size_t begin, size_t count, Visit visit) {
  size_t first = 0;
  for (const ReducePart& part : parts) {
    const size_t from = std::max(begin, first);
    const size_t to = std::min(begin + count, first + part.count);
    if (from < to) visit(part, from - first, from - begin, to - from);
    first += part.count;
  }
}

// How a compressed reduction goes: what is done in the wide type, and what is left for 16 bits.
// Each input is scaled before it is rounded; a result grows only when it is wide again.
struct Compression {
  NarrowPair types;
  double prescale;
  double postscale;  // of what is wide again
  LogEntry within;   // the reduction of 16-bit floats

  explicit Compression(const LogEntry& entry)
      : types{Dtype(entry.signature), WireDtype(entry.signature)},
        prescale(entry.signature.prescale),
        postscale(std::abs(entry.signature.postscale) > 1 ? entry.signature.postscale : 1) {
    within.signature = entry.signature;
    within.contributors = entry.contributors;
    within.signature.dtype = types.narrow;
    within.signature.prescale = 1;
    if (postscale != 1) within.signature.postscale = 1;
  }
  void In(const void* wide, uint16_t* narrow, size_t count) const {
    Narrow(types, wide, narrow, count, prescale);
  }
  void Out(const uint16_t* narrow, void* wide, size_t count) const {
    Widen(types, narrow, wide, count, postscale);
  }
};

absl::Status ReduceCompressed(const LogEntry& entry, absl::Span<const ReducePart> parts,
                              Collectives* collectives) {
  const Compression compression(entry);
  const size_t width = DtypeBytes(compression.types.wide);
  size_t total = 0;
  for (const ReducePart& part : parts) total += part.count;
  const std::unique_ptr<uint16_t[]> room(new uint16_t[std::min(total, kCompressedPiece)]);
  for (size_t begin = 0; begin < total; begin += kCompressedPiece) {
    const size_t count = std::min(kCompressedPiece, total - begin);
    ForRange(parts, begin, count, [&](const ReducePart& part, size_t at, size_t to, size_t n) {
      compression.In(static_cast<const std::byte*>(part.input) + at * width, room.get() + to, n);
    });
    ReducePart piece;
    piece.input = piece.output = room.get();
    piece.count = count;
    absl::Status reduced = ReduceParts(compression.within, {&piece, 1}, collectives);
    if (!reduced.ok()) return reduced;
    ForRange(parts, begin, count, [&](const ReducePart& part, size_t at, size_t from, size_t n) {
      compression.Out(room.get() + from, static_cast<std::byte*>(part.output) + at * width, n);
    });
  }
  return absl::OkStatus();
}

// Adasum's coefficients are a whole tensor's, so its pieces cannot be cut: all at once.
absl::Status AdasumCompressed(const LogEntry& entry, absl::Span<const ReducePart> parts,
                              Collectives* collectives) {
  const Compression compression(entry);
  size_t total = 0;
  for (const ReducePart& part : parts) total += part.count;
  const std::unique_ptr<uint16_t[]> room(new uint16_t[std::max<size_t>(total, 1)]);
  std::vector<ReducePart> narrow(parts.begin(), parts.end());
  uint16_t* at = room.get();
  for (ReducePart& part : narrow) {
    compression.In(part.input, at, part.count);
    part.input = part.output = at;
    at += part.count;
  }
  absl::Status reduced = ReduceParts(compression.within, narrow, collectives);
  for (size_t i = 0; reduced.ok() && i < parts.size(); ++i) {
    compression.Out(static_cast<const uint16_t*>(narrow[i].output), parts[i].output,
                    parts[i].count);
  }
  return reduced;
}

}  // namespace

absl::Status Reduce(const LogEntry& entry, absl::Span<const ReducePart> parts,
                    Collectives* collectives) {
  if (entry.signature.compression == HVD_COMPRESSION_NONE) {
    return ReduceParts(entry, parts, collectives);
  }
  return entry.signature.op == HVD_ADASUM ? AdasumCompressed(entry, parts, collectives)
                                          : ReduceCompressed(entry, parts, collectives);
}

absl::Status Scatter(const LogEntry& entry, ReduceScatterArgs args, Collectives* collectives) {
  if (entry.signature.compression == HVD_COMPRESSION_NONE) {
    PutOperation(entry, &args);
    return collectives->ReduceScatter(args);
  }
  const Compression compression(entry);
  size_t total = 0;
  for (const size_t count : args.count_by_rank) total += count;
  const size_t mine = args.count_by_rank[collectives->rank()];
  const std::unique_ptr<uint16_t[]> room(new uint16_t[total + mine + 1]);
  compression.In(args.input, room.get(), total);
  ReduceScatterArgs narrow = args;
  PutOperation(compression.within, &narrow);
  narrow.input = room.get();
  narrow.output = room.get() + total;
  absl::Status scattered = collectives->ReduceScatter(narrow);
  if (scattered.ok()) compression.Out(room.get() + total, args.output, mine);
  return scattered;
}

void AppendParts(const Request& request, std::vector<ReducePart>* parts) {
  if (!request.signature.is_group()) {
    ReducePart& part = parts->emplace_back();
    part.input = request.buffers.input;
    part.output = request.buffers.output;
    part.count = request.signature.elements();
    return;
  }
  for (const RequestPart& one : request.buffers.parts) {
    ReducePart& part = parts->emplace_back();
    part.input = one.input;
    part.output = one.output;
    part.count = 1;
    for (const int64_t extent : one.shape) part.count *= static_cast<size_t>(extent);
  }
}

bool AllContribute(const LogEntry& entry, int size) { return entry.contributors >= size; }

bool ScalesFirst(const LogEntry& entry, int size) {
  const Signature& s = entry.signature;
  const bool ordered = s.op == HVD_MIN || s.op == HVD_MAX || s.op == HVD_PRODUCT;
  return !AllContribute(entry, size) && s.kind == RequestKind::kAllreduce && ordered &&
         s.prescale != 1;
}

absl::Status CheckJoined(const LogEntry& entry, int size) {
  if (!ScalesFirst(entry, size) || !entry.signature.is_on_device()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      std::to_string(size - entry.contributors) + " of " + std::to_string(size) +
      " ranks have joined, and what they would bring has no neutral value under a "
      "prescale: " +
      Describe(entry.signature));
}

LogEntry WithoutPrescale(const LogEntry& entry) {
  LogEntry rest = entry;
  rest.signature.prescale = 1;
  return rest;
}

// Each scaled value is the type's own, as the reduction of one tensor makes it.
absl::Status ReduceScaledFirst(const LogEntry& entry, absl::Span<const ReducePart> parts,
                               Collectives* collectives) {
  const Signature& s = entry.signature;
  const ReduceKernel kernel =
      FindReduceKernel(Dtype(s), static_cast<hvd_op_t>(s.op), BestKernelLevel());
  if (kernel == nullptr) return absl::InternalError("no kernel for " + Describe(s));
  const size_t width = DtypeBytes(Dtype(s));
  std::vector<std::byte> room(s.elements() * width);
  std::vector<ReducePart> scaled(parts.begin(), parts.end());
  std::byte* at = room.data();
  for (ReducePart& part : scaled) {
    void* const to = at;
    ReduceTask task;
    task.sources = &part.input;
    task.source_count = 1;
    task.destinations = &to;
    task.destination_count = 1;
    task.count = part.count;
    task.prescale = s.prescale;
    kernel(task);
    part.input = to;
    at += part.count * width;
  }
  return Reduce(WithoutPrescale(entry), scaled, collectives);
}

ReduceArgs PlainArgs(const LogEntry& entry, absl::Span<const ReducePart> parts) {
  ReduceArgs args;
  PutOperation(entry, &args);
  args.parts = parts;
  return args;
}

}  // namespace hvd::rt
