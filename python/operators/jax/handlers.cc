// SPDX-License-Identifier: Apache-2.0
// The handlers that hvd.jax registers, one an operation: hvd_jax_allreduce and its like. XLA calls
// them from any of its threads; none waits for long.
#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "python/operators/calls/calls_by_name.h"
#include "python/operators/jax/under_way.h"
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

// Handles a step that only makes a program longer: see hvd/jax/side_by_side. One such step of a
// program also tells, by its only attribute, which calls the program has.
Error* DoNothing(const CallFrame& frame) try {
  if (Tell(frame) || frame.stage != kExecuteStage || frame.attributes.size == 0) return nullptr;
  int64_t run = 0;
  if (frame.attributes.types[0] != kStringAttribute || !ReadRunId(frame, &run)) return nullptr;
  const Span& keys = *static_cast<const Span*>(frame.attributes.values[0]);
  UnderWay::Get().Begin(run, std::string(keys.data, keys.size));
  return nullptr;
} catch (const std::exception& thrown) {
  return MakeError(*frame.api, kInternal, thrown.what());
}

std::vector<std::string> KeysIn(const std::string& text) {
  std::vector<std::string> keys;
  for (size_t at = 0, end = 0; end != std::string::npos; at = end + 1) {
    end = text.find(kBetweenKeys, at);
    if (end != at && at < text.size()) keys.push_back(text.substr(at, end - at));
  }
  return keys;
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

// For hvd/jax/orders; see UnderWay.

// Writes the keys of the calls under way, '\x1e', and those of all calls of their programs; what
// has no room is left out. *bytes: how much room there is, and how much it takes. Returns how often
// that has changed.
HVD_EXPORT uint64_t hvd_jax_look(char* buffer, size_t* bytes) {
  const hvd::xla::UnderWay::View view = hvd::xla::UnderWay::Get().Look();
  const std::string text = view.keys + '\x1e' + view.programs;
  (void)text.copy(buffer, *bytes);
  *bytes = text.size();
  return view.changes;
}
// `keys` is as that has them.
HVD_EXPORT void hvd_jax_judge(const char* keys, const char* text) {
  hvd::xla::UnderWay::Get().Judge(hvd::xla::KeysIn(keys), text);
}
HVD_EXPORT void hvd_jax_end(const char* keys) {
  hvd::xla::UnderWay::Get().End(hvd::xla::KeysIn(keys));
}
HVD_EXPORT void hvd_jax_acquit(const char* keys) {
  hvd::xla::UnderWay::Get().Acquit(hvd::xla::KeysIn(keys));
}

}  // extern "C"
