// The handlers that hvd.jax registers, one an operation: hvd_jax_allreduce and its like. XLA calls
// them from any of its threads; none waits.
#include "python/operators/jax/calls_by_name.h"

namespace hvd::xla {
namespace {

bool IsGroup(const Call& call) { return call.inputs().size() != 1; }
int32_t Count(const Call& call) { return static_cast<int32_t>(call.inputs().size()); }

hvd_status_t Allreduce(const Call& call, const hvd_options_t& options, hvd_handle_t* handle) {
  if (IsGroup(call)) {
    return hvd_grouped_allreduce_async(call.inputs().data(), call.outputs().data(), Count(call),
                                       &options, handle);
  }
  return hvd_allreduce_async(call.inputs().data(), call.outputs().data(), &options, handle);
}

hvd_status_t Allgather(const Call& call, const hvd_options_t& options, hvd_handle_t* handle) {
  if (IsGroup(call)) {
    return hvd_grouped_allgather_async(call.inputs().data(), call.outputs().data(), Count(call),
                                       &options, handle);
  }
  return hvd_allgather_async(call.inputs().data(), call.outputs().data(), &options, handle);
}

hvd_status_t Reducescatter(const Call& call, const hvd_options_t& options, hvd_handle_t* handle) {
  if (IsGroup(call)) {
    return hvd_grouped_reducescatter_async(call.inputs().data(), call.outputs().data(), Count(call),
                                           &options, handle);
  }
  return hvd_reducescatter_async(call.inputs().data(), call.outputs().data(), &options, handle);
}

hvd_status_t Broadcast(const Call& call, const hvd_options_t& options, hvd_handle_t* handle) {
  return hvd_broadcast_async(call.inputs().data(), call.outputs().data(), &options, handle);
}

hvd_status_t Alltoall(const Call& call, const hvd_options_t& options, hvd_handle_t* handle) {
  return hvd_alltoall_async(call.inputs().data(), nullptr, 0, call.outputs().data(), &options,
                            handle);
}

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

Error* Handle(CallFrame* frame, Call::Submit submit) try {
  if (Tell(*frame) || frame->stage != kExecuteStage) return nullptr;
  Error* error = nullptr;
  std::unique_ptr<Call> call(Call::Make(frame, submit, &error));
  if (call != nullptr) CallsByName::Get().Start(std::move(call));
  return error;
} catch (const std::exception& thrown) {
  return MakeError(*frame->api, kInternal, thrown.what());
}

}  // namespace
}  // namespace hvd::xla

extern "C" {

HVD_EXPORT hvd::xla::Error* hvd_jax_allreduce(hvd::xla::CallFrame* frame) {
  return hvd::xla::Handle(frame, hvd::xla::Allreduce);
}
HVD_EXPORT hvd::xla::Error* hvd_jax_allgather(hvd::xla::CallFrame* frame) {
  return hvd::xla::Handle(frame, hvd::xla::Allgather);
}
HVD_EXPORT hvd::xla::Error* hvd_jax_reducescatter(hvd::xla::CallFrame* frame) {
  return hvd::xla::Handle(frame, hvd::xla::Reducescatter);
}
HVD_EXPORT hvd::xla::Error* hvd_jax_broadcast(hvd::xla::CallFrame* frame) {
  return hvd::xla::Handle(frame, hvd::xla::Broadcast);
}
HVD_EXPORT hvd::xla::Error* hvd_jax_alltoall(hvd::xla::CallFrame* frame) {
  return hvd::xla::Handle(frame, hvd::xla::Alltoall);
}

}  // extern "C"
