// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/bucket/place.h"
#include "runtime/errors/forked.h"

namespace hvd::rt {
namespace {

constexpr size_t kLine = 64;

class HostBucketPlace : public BucketPlace {
 public:
  // Null memory: there is none.
  HostBucketPlace(size_t bytes, Arena* arena) : arena_(*arena) {
    absl::StatusOr<void*> memory = arena_.Allocate(bytes);
    in_arena_ = memory.ok();
    // Outside it the tensors are reduced as any others are.
    memory_ =
        static_cast<std::byte*>(in_arena_ ? *memory : aligned_alloc(kLine, std::max(kLine, bytes)));
  }
  ~HostBucketPlace() override {
    if (!in_arena_) {
      free(memory_);
    } else if (!IsForkedChild()) {      // a forked child has a copy, which ends with it
      (void)arena_.Free(memory_).ok();  // it is what Allocate gave
    }
  }

  std::byte* memory() const override { return memory_; }
  absl::Status Clear(std::byte* begin, size_t bytes) override {
    std::memset(begin, 0, bytes);
    return absl::OkStatus();
  }
  absl::Status Copy(const hvd_tensor_t& source, const CopyTarget& target,
                    const std::string& what) override {
    return CopyConverted(source, target, what);
  }

  absl::Status NoteWriter(size_t, void* stream) override {
    if (stream == nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "the bucket lies in the CPU's memory, which no stream writes; give it no stream");
  }
  absl::Status PutPlace(size_t, hvd_tensor_t*, hvd_options_t*) override { return absl::OkStatus(); }
  void EndCall(size_t, hvd_handle_t) override {}
  absl::Status LetFollow(void*) override { return absl::OkStatus(); }

 private:
  Arena& arena_;
  std::byte* memory_ = nullptr;
  bool in_arena_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<BucketPlace>> MakeHostPlace(size_t bytes, Arena* arena) {
  auto place = std::make_unique<HostBucketPlace>(bytes, arena);
  if (place->memory() != nullptr) return place;
  return absl::ResourceExhaustedError(absl::StrCat("no memory for its ", bytes, " bytes"));
}

}  // namespace hvd::rt
