// SPDX-License-Identifier: Apache-2.0
// The protobuf wire format without protobuf: libhvd's side of link B and the agreement between
// hosts. Debian's libprotobuf-lite.a is not position-independent, so it cannot be inside a shared
// library, and the shared libprotobuf must not be in the user's process. Only what our messages
// use: varints, length-delimited bytes, nested messages, packed varints.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hvd {

class WireWriter {
 public:
  WireWriter& Number(int field, uint64_t value);
  WireWriter& Bytes(int field, std::string_view value);
  // The same for `size` bytes that the caller sends behind what is written here.
  WireWriter& BytesAhead(int field, size_t size);
  WireWriter& Packed(int field, const std::vector<int64_t>& values);
  const std::string& bytes() const { return bytes_; }

 private:
  void Varint(uint64_t value);
  std::string bytes_;
};

// Reads field after field; unknown ones are the caller's to skip (by doing nothing).
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}
  // False at the end and on bytes that do not parse; see ok().
  bool Next();
  bool ok() const { return ok_; }
  int field() const { return field_; }
  uint64_t number() const { return number_; }
  std::string_view bytes() const { return value_; }
  // The current bytes as packed varints, appended. False: they do not parse.
  bool Packed(std::vector<int64_t>* values) const;

 private:
  static bool Varint(std::string_view* from, uint64_t* value);
  bool Fail();
  std::string_view rest_, value_;
  uint64_t number_ = 0;
  int field_ = 0;
  bool ok_ = true;
};

}  // namespace hvd
