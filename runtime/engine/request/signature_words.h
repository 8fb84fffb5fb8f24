// SPDX-License-Identifier: Apache-2.0
// A signature in the protobuf wire format. Pure.
#pragma once

#include <string>
#include <string_view>

#include "runtime/engine/request/request.h"

namespace hvd::rt {

std::string EncodeSignature(const Signature& signature);
// False for bytes that do not parse, and for kinds and dimensions that no rank can have sent.
bool DecodeSignature(std::string_view bytes, Signature* signature);

}  // namespace hvd::rt
