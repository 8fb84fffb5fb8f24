// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/request/request.h"

#include <cstdio>
#include <cstdlib>

namespace hvd::rt {

bool IsReserved(std::string_view name) {
  return !name.empty() && (name[0] == kOwnName[0] || name[0] == kPartName[0]);
}

std::string_view PlainName(std::string_view name) {
  while (IsReserved(name)) name.remove_prefix(1);
  return name;
}

std::string NamePart(std::string_view group_name, uint32_t dtype) {
  return kPartName + std::string(group_name) + " (" + DtypeName(static_cast<hvd_dtype_t>(dtype)) +
         ")";
}

const char* KindName(RequestKind kind) {
  switch (kind) {
    case RequestKind::kAllreduce:
      return "allreduce";
    case RequestKind::kAllgather:
      return "allgather";
    case RequestKind::kBroadcast:
      return "broadcast";
    case RequestKind::kBarrier:
      return "barrier";
    case RequestKind::kLeave:
      return "shutdown";
    case RequestKind::kReduceScatter:
      return "reduce-scatter";
    case RequestKind::kAlltoall:
      return "alltoall";
    case RequestKind::kJoin:
      return "join";
    case RequestKind::kAddProcessSet:
      return "add process set";
    case RequestKind::kRemoveProcessSet:
      return "remove process set";
    case RequestKind::kSend:
      return "send";
    case RequestKind::kReceive:
      return "receive";
  }
  return "unknown";
}

const char* OpName(uint32_t op) {
  if (op == kAverageOfContributors) return "average over contributors";
  return OpName(static_cast<hvd_op_t>(op));
}

namespace {

bool HasTensors(RequestKind kind) {
  return kind != RequestKind::kBarrier && kind != RequestKind::kLeave && kind != RequestKind::kJoin;
}

bool IsReduction(RequestKind kind) {
  return kind == RequestKind::kAllreduce || kind == RequestKind::kReduceScatter;
}

// "[64,10]"; with an ellipsis when there are more than the signature holds.
std::string Numbers(const Signature& signature, int count) {
  std::string text = "[";
  for (int d = 0; d < signature.ndim; ++d) {
    text += (d > 0 ? "," : "") + std::to_string(signature.shape[d]);
  }
  return text + (count > signature.ndim ? ",...]" : "]");
}

std::string Shape(const Signature& signature) {
  if (!signature.is_group()) return Numbers(signature, signature.ndim);
  Signature shown = signature;
  if (signature.group_count > kMaxDimensions) --shown.ndim;  // the last is a sum
  std::string text = std::to_string(signature.group_count) +
                     (signature.kind == RequestKind::kAllgather ? " tensors with rows of "
                                                                : " tensors with elements ") +
                     Numbers(shown, signature.group_count);
  if (signature.group_types > 1) {
    text += " and tensors of " + std::to_string(signature.group_types - 1) +
            (signature.group_types > 2 ? " more types" : " more type");
  }
  return text;
}

std::string Short(double number) {
  char text[32];
  snprintf(text, sizeof(text), "%.9g", number);
  return text;
}

std::string Reduction(const Signature& signature) {
  std::string text = std::string(" ") + OpName(signature.op);
  if (signature.prescale != 1) text += " prescale " + Short(signature.prescale);
  if (signature.postscale != 1) text += " postscale " + Short(signature.postscale);
  if (signature.compression == HVD_COMPRESSION_FP16) text += " compressed to float16";
  if (signature.compression == HVD_COMPRESSION_BF16) text += " compressed to bfloat16";
  return text;
}

}  // namespace

std::string Describe(const Signature& signature) {
  const std::string kind = KindName(signature.kind);
  if (signature.kind == RequestKind::kRemoveProcessSet) {
    return kind + " " + std::to_string(signature.shape[0]);
  }
  if (signature.kind == RequestKind::kAddProcessSet) {
    return kind + " " + Numbers(signature, signature.group_count);
  }
  const char* refuses = signature.refuses_joined != 0 ? " with HVD_REFUSE_JOINED" : "";
  if (!HasTensors(signature.kind)) return kind + refuses;
  std::string text = (signature.is_group() ? "grouped " : "") + kind + " " +
                     DtypeName(static_cast<hvd_dtype_t>(signature.dtype)) + " " + Shape(signature);
  if (IsReduction(signature.kind)) text += Reduction(signature);
  if (signature.kind == RequestKind::kBroadcast) {
    text += " from rank " + std::to_string(signature.root);
  }
  if (signature.device_type != HVD_CPU) text += " on GPU";
  return text + refuses;
}

Request::~Request() {
  void (*give_back)(void*) = result.free_owned != nullptr ? result.free_owned : free;
  give_back(result.owned);
  for (RequestPart& part : buffers.parts) give_back(part.owned_result);
}

}  // namespace hvd::rt
