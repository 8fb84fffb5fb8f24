// SPDX-License-Identifier: Apache-2.0
#include "daemon/shim/spawn_order.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

namespace hvd::daemon {
namespace {

class Packer {
 public:
  void Number(uint64_t value) { out_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void Text(const std::string& text) {
    Number(text.size());
    out_ += text;
  }
  void Texts(const std::vector<std::string>& texts) {
    Number(texts.size());
    for (const std::string& text : texts) Text(text);
  }
  std::string Take() { return std::move(out_); }

 private:
  std::string out_;
};

// Remembers the first failure; later reads give zeros.
class Unpacker {
 public:
  explicit Unpacker(std::string_view in) : in_(in) {}

  uint64_t Number() {
    uint64_t value = 0;
    if (in_.size() < sizeof(value)) return Fail();
    memcpy(&value, in_.data(), sizeof(value));
    in_.remove_prefix(sizeof(value));
    return value;
  }
  // A count of things that take at least 8 bytes each.
  uint64_t Count() {
    const uint64_t count = Number();
    return count <= in_.size() / sizeof(uint64_t) ? count : Fail();
  }
  std::string Text() {
    const uint64_t size = Number();
    if (size > in_.size()) Fail();
    if (failed_) return "";
    std::string text(in_.substr(0, size));
    in_.remove_prefix(size);
    return text;
  }
  std::vector<std::string> Texts() {
    std::vector<std::string> texts(Count());
    for (std::string& text : texts) text = Text();
    return texts;
  }
  bool ok() const { return !failed_ && in_.empty(); }

 private:
  uint64_t Fail() {
    failed_ = true;
    in_ = {};
    return 0;
  }

  std::string_view in_;
  bool failed_ = false;
};

}  // namespace

std::string PackOrder(const SpawnOrder& order) {
  Packer packer;
  packer.Texts(order.argv);
  packer.Texts(order.environment);
  packer.Text(order.directory);
  packer.Number(order.umask);
  packer.Number(order.door_fd);
  packer.Number(order.limits.size());
  for (const SoftLimit& limit : order.limits) {
    packer.Number(limit.resource);
    packer.Number(limit.soft);
  }
  packer.Number(order.cores.size());
  for (const int core : order.cores) packer.Number(core);
  packer.Text(order.claim);
  packer.Number(order.claim_patience_ms);
  packer.Number(order.claim_grace_ms);
  return packer.Take();
}

bool UnpackOrder(std::string_view packed, SpawnOrder* order) {
  Unpacker unpacker(packed);
  order->argv = unpacker.Texts();
  order->environment = unpacker.Texts();
  order->directory = unpacker.Text();
  order->umask = static_cast<uint32_t>(unpacker.Number());
  order->door_fd = static_cast<int>(unpacker.Number());
  order->limits.resize(unpacker.Count());
  for (SoftLimit& limit : order->limits) {
    limit.resource = static_cast<int>(unpacker.Number());
    limit.soft = unpacker.Number();
  }
  order->cores.resize(unpacker.Count());
  for (int& core : order->cores) core = static_cast<int>(unpacker.Number());
  order->claim = unpacker.Text();
  order->claim_patience_ms = static_cast<uint32_t>(unpacker.Number());
  order->claim_grace_ms = static_cast<uint32_t>(unpacker.Number());
  return unpacker.ok();
}

Descriptor OrderToFd(const SpawnOrder& order) {
  const std::string packed = PackOrder(order);
  Descriptor fd(memfd_create("hvd-order", MFD_CLOEXEC));
  size_t done = 0;
  while (fd.valid() && done < packed.size()) {
    const ssize_t n = write(fd.get(), packed.data() + done, packed.size() - done);
    if (n <= 0) fd.Reset();
    if (n > 0) done += n;
  }
  return fd;
}

bool OrderFromFd(int fd, SpawnOrder* order) {
  struct stat about {};
  if (fstat(fd, &about) != 0) return false;
  std::string packed(about.st_size, '\0');
  if (pread(fd, packed.data(), packed.size(), 0) != about.st_size) return false;
  return UnpackOrder(packed, order);
}

}  // namespace hvd::daemon
