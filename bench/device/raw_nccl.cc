// SPDX-License-Identifier: Apache-2.0
#include "bench/device/raw_nccl.h"

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "hvd/hvd.hpp"

namespace gpu {
namespace {

constexpr std::chrono::seconds kMostForMeeting{60};

const std::map<hvd_dtype_t, hvd::rt::NcclType> kTypes = {
    {HVD_INT8, hvd::rt::kNcclInt8},       {HVD_UINT8, hvd::rt::kNcclUint8},
    {HVD_INT32, hvd::rt::kNcclInt32},     {HVD_UINT32, hvd::rt::kNcclUint32},
    {HVD_INT64, hvd::rt::kNcclInt64},     {HVD_UINT64, hvd::rt::kNcclUint64},
    {HVD_FLOAT16, hvd::rt::kNcclFloat16}, {HVD_FLOAT32, hvd::rt::kNcclFloat32},
    {HVD_FLOAT64, hvd::rt::kNcclFloat64}, {HVD_BFLOAT16, hvd::rt::kNcclBfloat16},
};

// Throws on all ranks when one has a problem, so that none waits for it; the others say so.
void AgreeOn(const std::string& problem) {
  int32_t fine = problem.empty() ? 1 : 0;
  hvd::allreduce(&fine, 1, hvd::Op::kMin, "raw_nccl.fine");
  if (fine == 1) return;
  throw Problem("raw NCCL cannot run: " +
                (problem.empty() ? std::string("another rank cannot, and says why") : problem));
}

std::string Words(const absl::Status& status) {
  return status.ok() ? "" : std::string(status.message());
}

// When the communicator is ready, or why it is not.
std::string AwaitReady(const hvd::rt::Communicator& communicator) {
  const auto until = std::chrono::steady_clock::now() + kMostForMeeting;
  for (;;) {
    const absl::StatusOr<bool> ready = communicator.IsReady();
    if (!ready.ok()) return Words(ready.status());
    if (*ready) return "";
    if (std::chrono::steady_clock::now() > until) return "the ranks did not meet within a minute";
    std::this_thread::yield();
  }
}

}  // namespace

RawNccl::RawNccl() {
  const char* named = std::getenv("HVD_NCCL_LIBRARY");
  hvd::rt::NcclPlaces places;
  places.named = named == nullptr ? "" : named;
  auto loaded = hvd::rt::NcclLibrary::Load(places);
  AgreeOn(Words(loaded.status()));
  nccl_ = std::make_unique<hvd::rt::NcclLibrary>(*std::move(loaded));
  Meet();
}

void RawNccl::Meet() {
  hvd::rt::Communicator::Place place;
  place.ranks = hvd::size();
  place.rank = hvd::rank();
  std::string problem;
  if (place.rank == 0) {
    const auto id = hvd::rt::Communicator::MakeId(*nccl_);
    problem = Words(id.status());
    if (id.ok()) place.id = *id;
  }
  AgreeOn(problem);
  std::vector<unsigned char> bytes(sizeof place.id);
  std::memcpy(bytes.data(), place.id.bytes, bytes.size());
  hvd::broadcast(bytes, 0, "raw_nccl.id");
  std::memcpy(place.id.bytes, bytes.data(), bytes.size());

  const hvd::rt::GpuDevice::Scope scope(Side::Get().device());
  auto made = hvd::rt::Communicator::Start(nccl_.get(), place);
  problem = Words(made.status());
  if (made.ok()) communicator_ = *std::move(made);
  if (problem.empty()) problem = AwaitReady(*communicator_);
  AgreeOn(problem);
}

RawNccl::~RawNccl() {
  if (communicator_ == nullptr) return;
  const hvd::rt::GpuDevice::Scope scope(Side::Get().device());
  // A communicator that does not end in order is aborted by its destructor.
  if (communicator_->BeginEnd().ok() && AwaitReady(*communicator_).empty()) {
    communicator_->End().IgnoreError();
  }
  communicator_ = nullptr;
}

void RawNccl::Must(hvd::rt::NcclResult result, const char* what) const {
  const absl::Status fine = nccl_->Check(result, what, communicator_->handle());
  if (!fine.ok()) throw Problem("raw NCCL: " + Words(fine));
}

std::string RawNccl::Refusal(const Call& call) const {
  if (kTypes.find(call.dtype) == kTypes.end()) return "NCCL has no such type";
  const size_t whole = std::max(call.from_count, call.to_count);
  const bool by_shares = call.op != "allreduce" && call.op != "broadcast";
  if (by_shares && whole % hvd::size() != 0) return "NCCL has equal shares only";
  return "";
}

void RawNccl::Launch(const Call& call, hvd::rt::CudaStream stream) {
  const hvd::rt::GpuDevice::Scope scope(Side::Get().device());
  const hvd::rt::NcclFunctions& calls = nccl_->calls();
  const hvd::rt::NcclType type = kTypes.at(call.dtype);
  const hvd::rt::NcclCommunicator all = communicator_->handle();
  if (call.op == "allreduce") {
    Must(calls.all_reduce(call.from, call.to, call.to_count, type, hvd::rt::kNcclSum, all, stream),
         "ncclAllReduce");
  } else if (call.op == "broadcast") {
    Must(calls.broadcast(call.from, call.to, call.to_count, type, 0, all, stream), "ncclBroadcast");
  } else if (call.op == "allgather") {
    Must(calls.all_gather(call.from, call.to, call.from_count, type, all, stream), "ncclAllGather");
  } else if (call.op == "reducescatter") {
    Must(calls.reduce_scatter(call.from, call.to, call.to_count, type, hvd::rt::kNcclSum, all,
                              stream),
         "ncclReduceScatter");
  } else {
    Exchange(call, type, stream);
  }
  // A communicator that does not block may still be launching.
  const std::string problem = AwaitReady(*communicator_);
  if (!problem.empty()) throw Problem("raw NCCL: " + problem);
}

void RawNccl::Exchange(const Call& call, hvd::rt::NcclType type, hvd::rt::CudaStream stream) {
  const hvd::rt::NcclFunctions& calls = nccl_->calls();
  const size_t share = call.from_count / hvd::size(), bytes = share * call.bytes_of_element;
  Must(calls.group_start(), "ncclGroupStart");
  for (int rank = 0; rank < hvd::size(); ++rank) {
    const auto* from = static_cast<const unsigned char*>(call.from) + rank * bytes;
    auto* to = static_cast<unsigned char*>(call.to) + rank * bytes;
    Must(calls.send(from, share, type, rank, communicator_->handle(), stream), "ncclSend");
    Must(calls.receive(to, share, type, rank, communicator_->handle(), stream), "ncclRecv");
  }
  Must(calls.group_end(), "ncclGroupEnd");
}

}  // namespace gpu
