// SPDX-License-Identifier: Apache-2.0
#include "proto/wire.h"

namespace hvd {
namespace {

enum WireType { kVarint = 0, kFixed64 = 1, kLength = 2, kFixed32 = 5 };

}  // namespace

void WireWriter::Varint(uint64_t value) {
  while (value >= 0x80) {
    bytes_.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  bytes_.push_back(static_cast<char>(value));
}

WireWriter& WireWriter::Number(int field, uint64_t value) {
  Varint(static_cast<uint64_t>(field) << 3 | kVarint);
  Varint(value);
  return *this;
}

WireWriter& WireWriter::BytesAhead(int field, size_t size) {
  Varint(static_cast<uint64_t>(field) << 3 | kLength);
  Varint(size);
  return *this;
}

WireWriter& WireWriter::Bytes(int field, std::string_view value) {
  BytesAhead(field, value.size());
  bytes_.append(value);
  return *this;
}

WireWriter& WireWriter::Packed(int field, const std::vector<int64_t>& values) {
  WireWriter packed;
  for (const int64_t value : values) packed.Varint(static_cast<uint64_t>(value));
  return Bytes(field, packed.bytes_);
}

bool WireReader::Varint(std::string_view* from, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 64 && !from->empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(from->front());
    from->remove_prefix(1);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

bool WireReader::Fail() {
  ok_ = false;
  rest_ = {};
  return false;
}

bool WireReader::Next() {
  if (rest_.empty()) return false;
  uint64_t key = 0;
  if (!Varint(&rest_, &key) || key >> 3 == 0 || key >> 3 > 0x1fffffff) return Fail();
  field_ = static_cast<int>(key >> 3);
  value_ = {};
  number_ = 0;
  size_t length = 0;
  switch (key & 7) {
    case kVarint:
      return Varint(&rest_, &number_) || Fail();
    case kFixed64:
      length = 8;
      break;
    case kFixed32:
      length = 4;
      break;
    case kLength:
      if (!Varint(&rest_, &number_)) return Fail();
      length = number_;
      break;
    default:
      return Fail();
  }
  if (length > rest_.size()) return Fail();
  value_ = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return true;
}

bool WireReader::Packed(std::vector<int64_t>* values) const {
  std::string_view rest = value_;
  uint64_t value = 0;
  while (!rest.empty()) {
    if (!Varint(&rest, &value)) return false;
    values->push_back(static_cast<int64_t>(value));
  }
  return true;
}

}  // namespace hvd
