// SPDX-License-Identifier: Apache-2.0
// The handlers that hvd.jax registers, one an operation: hvd_jax_allreduce and its like. XLA calls
// them from any of its threads; none waits for long.
#include <exception>
#include <utility>

#include "python/operators/calls/calls_by_name.h"
#include "python/operators/jax/xla_call.h"

namespace hvd::xla {
namespace {

// True: XLA only asks what this handler is.
bool Tell(const CallFrame& frame) {
  bool asked = false;
  for (Extension* each = frame.extensions; each != nullptr; each = each->next) {
    if (each->type != kMetadataExtension) continue;
    Metadata* const metadata = reinterpret_cast<MetadataExtension*>(each)->metadata;
    metadata->api_version.major_version = kMajorVersion;
    metadata->api_version.minor_version = kMinorVersion;
    asked = true;
  }
  return asked;
}

Error* Handle(CallFrame* frame, CallKind kind) try {
  if (Tell(*frame) || frame->stage != kExecuteStage) return nullptr;
  Error* error = nullptr;
  std::unique_ptr<XlaCall> call = XlaCall::Make(frame, kind, &error);
  if (call == nullptr) return error;
  const XlaCall::Beginning here(*call);
  CallsByName::Get().Start(std::move(call));
  return nullptr;
} catch (const std::exception& thrown) {
  return MakeError(*frame->api, kInternal, thrown.what());
}

// Of a step that only makes a program longer: see hvd/jax/side_by_side.
Error* DoNothing(const CallFrame& frame) {
  (void)Tell(frame);
  return nullptr;
}

}  // namespace
}  // namespace hvd::xla

extern "C" {

HVD_EXPORT hvd::xla::Error* hvd_jax_allreduce(hvd::xla::CallFrame* frame) {
  return hvd::xla::Handle(frame, hvd::CallKind::kAllreduce);
}
HVD_EXPORT hvd::xla::Error* hvd_jax_allgather(hvd::xla::CallFrame* frame) {
  return hvd::xla::Handle(frame, hvd::CallKind::kAllgather);
}
HVD_EXPORT hvd::xla::Error* hvd_jax_reducescatter(hvd::xla::CallFrame* frame) {
  return hvd::xla::Handle(frame, hvd::CallKind::kReducescatter);
}
HVD_EXPORT hvd::xla::Error* hvd_jax_broadcast(hvd::xla::CallFrame* frame) {
  return hvd::xla::Handle(frame, hvd::CallKind::kBroadcast);
}
HVD_EXPORT hvd::xla::Error* hvd_jax_alltoall(hvd::xla::CallFrame* frame) {
  return hvd::xla::Handle(frame, hvd::CallKind::kAlltoall);
}
HVD_EXPORT hvd::xla::Error* hvd_jax_nothing(hvd::xla::CallFrame* frame) {
  return hvd::xla::DoNothing(*frame);
}

}  // extern "C"
