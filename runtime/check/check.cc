// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/check.h"

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "base/stable_hash.h"
#include "runtime/check/check_tensor.h"
#include "runtime/collective/collectives.h"

namespace hvd::rt {
namespace {

// Where a tensor without elements lies that has no address: it is still a tensor, and this rank's
// part of a call goes on with an address as everybody's.
char nowhere;

void* AddressOf(const hvd_tensor_t& tensor) {
  return tensor.data != nullptr || tensor.device_type != HVD_CPU ? tensor.data : &nowhere;
}

absl::Status CheckScalar(RequestKind kind, int ndim) {
  const bool rows = kind == RequestKind::kAllgather || kind == RequestKind::kReduceScatter ||
                    kind == RequestKind::kAlltoall;
  if (!rows || ndim > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      std::string(KindName(kind)) +
      " works along the first dimension, and input is a scalar, which has none; give it the "
      "shape [1]");
}

std::string MembersOf(const Membership& set) {
  return set.id == HVD_GLOBAL_PROCESS_SET ? std::to_string(set.size()) + " ranks"
                                          : "members of process set " + std::to_string(set.id);
}

// The tensor is what is sent, or where it comes: `input` in both cases.
absl::Status CheckPair(const Call& call, const Membership& set, Request* request) {
  const bool sends = call.kind == RequestKind::kSend;
  const char* what = sends ? "destination" : "source";
  if (!request->name.empty()) {
    return absl::InvalidArgumentError(
        "options.name: sends and receives are told apart by their tag; give no name");
  }
  const auto at = std::lower_bound(set.ranks.begin(), set.ranks.end(), call.peer);
  if (at == set.ranks.end() || *at != call.peer) {
    return absl::InvalidArgumentError(std::string(what) + ": rank " + std::to_string(call.peer) +
                                      " is not one of the " + MembersOf(set));
  }
  request->peer = static_cast<int>(at - set.ranks.begin());
  request->tag = call.tag;
  request->unnamed = false;
  request->buffers.output = sends ? nullptr : AddressOf(*call.input);
  if (request->peer != set.index) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string(what) + ": rank " + std::to_string(call.peer) +
                                    " is this rank itself; copy the tensor instead");
}

// Copied: its message may come when the caller's text is gone.
void PutContents(const char* contents, Request* request) {
  if (contents == nullptr || *contents == '\0') return;
  request->contents = contents;
  request->signature.contents = std::max<uint64_t>(StableHash().Add(request->contents).value(), 1);
}

absl::Status CheckRoot(int32_t root, const Membership& set, Request* request) {
  const auto at = std::lower_bound(set.ranks.begin(), set.ranks.end(), root);
  if (at == set.ranks.end() || *at != root) {
    return absl::InvalidArgumentError("options.root: rank " + std::to_string(root) +
                                      " is not one of the " + MembersOf(set));
  }
  request->signature.root = root;
  request->root_index = static_cast<int>(at - set.ranks.begin());
  return absl::OkStatus();
}

// Rows to each rank; empty when none are given.
absl::Status CheckSplits(const Call& call, const Membership& set, Request* request) {
  const int64_t rows = call.input->shape[0];
  if (call.splits == nullptr) {
    if (rows % set.size() == 0) return absl::OkStatus();
    return absl::InvalidArgumentError("input's " + std::to_string(rows) +
                                      " rows cannot be divided evenly among " +
                                      std::to_string(set.size()) + " ranks; give splits");
  }
  if (call.split_count != set.size()) {
    return absl::InvalidArgumentError("nsplits is " + std::to_string(call.split_count) +
                                      "; there must be one for each of the " +
                                      std::to_string(set.size()) + " ranks");
  }
  int64_t left = rows;
  for (int r = 0; r < call.split_count; ++r) {
    if (call.splits[r] < 0 || call.splits[r] > left) {
      return absl::InvalidArgumentError(
          "splits[" + std::to_string(r) + "] is " + std::to_string(call.splits[r]) + "; " +
          (call.splits[r] < 0 ? std::string("it must not be negative")
                              : "only " + std::to_string(left) + " of input's " +
                                    std::to_string(rows) + " rows are left"));
    }
    left -= call.splits[r];
  }
  request->buffers.splits.assign(call.splits, call.splits + call.split_count);
  return absl::OkStatus();
}

// Where a call's tensors lie, and their sizes in bytes.
struct Spans {
  uintptr_t input, output;
  size_t inputs, outputs;
};

// The output's rows are known only after the exchange.
bool RowsComeLater(RequestKind kind) {
  return kind == RequestKind::kAllgather || kind == RequestKind::kAlltoall;
}

// Where an allgather's input lies in its output, or a reduce-scatter's output in its input, when
// the call is in place. For an allgather, only the execution knows the ranks' rows (PlaceResult).
bool IsInPlace(const Call& call, const Membership& set, const Spans& spans) {
  if (call.kind == RequestKind::kReduceScatter) {
    const ScatteredRows mine(call.input->shape[0], set.size(), set.index);
    return spans.inputs > 0 &&
           spans.output == spans.input + spans.inputs / call.input->shape[0] * mine.begin;
  }
  if (call.kind != RequestKind::kAllgather) return spans.input == spans.output;
  return spans.input >= spans.output && spans.input + spans.inputs <= spans.output + spans.outputs;
}

// An output is written while other ranks, or this one, still read the input.
absl::Status CheckOverlap(const Call& call, const Membership& set) {
  const size_t element = DtypeBytes(static_cast<hvd_dtype_t>(call.input->dtype));
  const Spans spans = {reinterpret_cast<uintptr_t>(call.input->data),
                       reinterpret_cast<uintptr_t>(call.output->data),
                       ElementsOf(*call.input) * element, ElementsOf(*call.output) * element};
  const bool any = spans.inputs > 0 && spans.outputs > 0;
  if (!any || spans.input + spans.inputs <= spans.output ||
      spans.output + spans.outputs <= spans.input) {
    return absl::OkStatus();
  }
  if (call.kind != RequestKind::kAlltoall && IsInPlace(call, set, spans)) return absl::OkStatus();
  const char* place = "";
  if (call.kind == RequestKind::kReduceScatter) place = ", or this rank's rows of input";
  if (call.kind == RequestKind::kAllgather) place = ", or an input that is its rows there";
  if (call.kind == RequestKind::kAllreduce || call.kind == RequestKind::kBroadcast) {
    place = ", or input's from its beginning";
  }
  return absl::InvalidArgumentError(
      std::string("input and output overlap; give output memory of its own") + place);
}

absl::Status CheckOutput(const Call& call, const Membership& set, Request* request) {
  const bool scatters = call.kind == RequestKind::kReduceScatter;
  const bool may_allocate = scatters || RowsComeLater(call.kind);
  if (may_allocate && call.output == nullptr) return absl::OkStatus();
  if (call.options.result_fn != nullptr) {
    return absl::InvalidArgumentError("options.result_fn and an output are given; give one");
  }
  if (!may_allocate && call.output == call.input) {  // in place, and checked already
    request->buffers.output = call.output->data != nullptr ? call.output->data : &nowhere;
    return absl::OkStatus();
  }
  if (absl::Status status = CheckTensor(call.output, "output"); !status.ok()) return status;
  if (!SamePlace(*call.input, *call.output)) {
    return absl::InvalidArgumentError("input lies " + PlaceOf(*call.input) + ", output " +
                                      PlaceOf(*call.output) + "; give both in one place");
  }
  if (!SameShape(*call.input, *call.output, may_allocate ? 1 : 0)) {
    return absl::InvalidArgumentError(
        may_allocate ? "output must have input's dtype and its shape beyond the first dimension"
                     : "output must have input's dtype and shape");
  }
  if (scatters) {
    const int64_t mine = ScatteredRows(call.input->shape[0], set.size(), set.index).count;
    if (call.output->shape[0] != mine) {
      return absl::InvalidArgumentError("output has " + std::to_string(call.output->shape[0]) +
                                        " rows; this rank gets " + std::to_string(mine) + " of " +
                                        std::to_string(call.input->shape[0]));
    }
  }
  request->buffers.output_rows = may_allocate ? call.output->shape[0] : 0;
  request->buffers.output = call.output->data != nullptr ? call.output->data : &nowhere;
  if (absl::Status status = CheckData(*call.output, "output"); !status.ok()) return status;
  return CheckOverlap(call, set);
}

void PutDevice(const Call& call, Request* request) {
  request->signature.device_type = static_cast<uint16_t>(call.input->device_type);
  if (call.input->device_type == HVD_CPU) return;
  DevicePlace& device = request->buffers.device;
  device.id = call.input->device_id;
  device.stream = call.input->stream;
  device.ready_event = call.options.ready_event;
  device.waits_on_host = (call.options.flags & HVD_WAIT_ON_HOST) != 0;
}

}  // namespace

absl::Status CheckCall(const Call& call, const Membership& set, Request* request) {
  Signature& signature = request->signature;
  signature.kind = call.kind;
  if (absl::Status status = CheckOptions(call.options, call.kind); !status.ok()) return status;
  if (call.options.name != nullptr) request->name = call.options.name;
  request->unnamed = request->name.empty();
  signature.refuses_joined = (call.options.flags & HVD_REFUSE_JOINED) != 0 ? 1 : 0;
  request->buffers.source = {call.options.result_fn, call.options.result_arg};
  PutContents(call.options.contents, request);
  const bool on_gpu = call.input != nullptr && call.kind != RequestKind::kBarrier &&
                      call.input->device_type == HVD_CUDA;
  if (call.options.ready_event != nullptr && !on_gpu) {
    return absl::InvalidArgumentError("options.ready_event is for tensors on a GPU");
  }
  if (call.kind == RequestKind::kBarrier) return absl::OkStatus();

  const char* what = IsPair(call.kind) ? "tensor" : "input";
  if (absl::Status status = CheckTensor(call.input, what); !status.ok()) return status;
  if (absl::Status status = CheckData(*call.input, what); !status.ok()) return status;
  if (absl::Status status = CheckScalar(call.kind, call.input->ndim); !status.ok()) return status;
  signature.dtype = static_cast<uint32_t>(call.input->dtype);
  signature.ndim = call.input->ndim;
  std::copy_n(call.input->shape, signature.ndim, signature.shape.begin());
  request->buffers.input = AddressOf(*call.input);
  PutDevice(call, request);
  if (IsPair(call.kind)) return CheckPair(call, set, request);

  absl::Status status = CheckOutput(call, set, request);
  if (status.ok() && call.kind == RequestKind::kBroadcast) {
    status = CheckRoot(call.options.root, set, request);
  }
  if (status.ok() && call.kind == RequestKind::kAlltoall) status = CheckSplits(call, set, request);
  if (status.ok() &&
      (call.kind == RequestKind::kAllreduce || call.kind == RequestKind::kReduceScatter)) {
    status = PutReduction(call.options, &signature);
  }
  return status;
}

}  // namespace hvd::rt
