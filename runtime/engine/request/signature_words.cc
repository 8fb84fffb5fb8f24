// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/request/signature_words.h"

#include <bit>

#include "proto/wire.h"

namespace hvd::rt {
namespace {

// Kept as they are so that versions can tell each other apart.
enum SignatureField {
  kRequestKind = 1,
  kDtype = 2,
  kOp = 3,
  kRoot = 4,
  kDevice = 5,
  kShape = 6,
  kGroupCount = 7,
  kGroupHash = 8,
  kCompression = 9,
  kPrescale = 10,  // the bits of a double
  kPostscale = 11,
  kRefusesJoined = 12,
  kGroupTypes = 13,
  kContents = 14,
};

}  // namespace

std::string EncodeSignature(const Signature& signature) {
  WireWriter words;
  if (signature.group_count != 0) {
    words.Number(kGroupCount, static_cast<uint32_t>(signature.group_count))
        .Number(kGroupHash, signature.group_hash)
        .Number(kGroupTypes, signature.group_types);
  }
  if (signature.contents != 0) words.Number(kContents, signature.contents);
  if (signature.compression != 0) words.Number(kCompression, signature.compression);
  if (signature.refuses_joined != 0) words.Number(kRefusesJoined, signature.refuses_joined);
  if (signature.prescale != 1.0) {
    words.Number(kPrescale, std::bit_cast<uint64_t>(signature.prescale));
  }
  if (signature.postscale != 1.0) {
    words.Number(kPostscale, std::bit_cast<uint64_t>(signature.postscale));
  }
  return words.Number(kRequestKind, static_cast<uint64_t>(signature.kind))
      .Number(kDtype, signature.dtype)
      .Number(kOp, signature.op)
      .Number(kRoot, static_cast<uint32_t>(signature.root))
      .Number(kDevice, signature.device_type)
      .Packed(kShape, {signature.shape.begin(), signature.shape.begin() + signature.ndim})
      .bytes();
}

bool DecodeSignature(std::string_view bytes, Signature* signature) {
  WireReader reader(bytes);
  std::vector<int64_t> shape;
  bool fine = true;
  while (reader.Next()) {
    const auto number = static_cast<uint32_t>(reader.number());
    if (reader.field() == kRequestKind) signature->kind = static_cast<RequestKind>(number);
    if (reader.field() == kDtype) signature->dtype = number;
    if (reader.field() == kOp) signature->op = number;
    if (reader.field() == kRoot) signature->root = static_cast<int32_t>(number);
    if (reader.field() == kDevice) signature->device_type = static_cast<uint16_t>(number);
    if (reader.field() == kShape) fine = reader.Packed(&shape);
    if (reader.field() == kGroupCount) signature->group_count = static_cast<int32_t>(number);
    if (reader.field() == kGroupHash) signature->group_hash = reader.number();
    if (reader.field() == kContents) signature->contents = reader.number();
    if (reader.field() == kGroupTypes) signature->group_types = static_cast<uint8_t>(number);
    if (reader.field() == kCompression) signature->compression = number;
    if (reader.field() == kRefusesJoined) signature->refuses_joined = number != 0 ? 1 : 0;
    if (reader.field() == kPrescale) signature->prescale = std::bit_cast<double>(reader.number());
    if (reader.field() == kPostscale) signature->postscale = std::bit_cast<double>(reader.number());
  }
  const auto kind = static_cast<uint32_t>(signature->kind);
  if (!fine || !reader.ok() || shape.size() > kMaxDimensions || kind < 1 ||
      kind > static_cast<uint32_t>(RequestKind::kRemoveProcessSet)) {
    return false;
  }
  signature->ndim = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), signature->shape.begin());
  return true;
}

}  // namespace hvd::rt
