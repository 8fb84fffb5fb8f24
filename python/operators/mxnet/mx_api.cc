// SPDX-License-Identifier: Apache-2.0
#include "python/operators/mxnet/mx_api.h"

#include <dlfcn.h>

namespace hvd::mx {
namespace {

// One that is missing fails the whole.
class Functions {
 public:
  explicit Functions(void* library) : library_(library) {}

  template <class Function>
  bool Find(const char* name, Function* function) const {
    *function = reinterpret_cast<Function>(dlsym(library_, name));
    return *function != nullptr;
  }
  template <class Function>
  void Need(const char* name, Function* function) {
    if (!Find(name, function) && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* const library_;
  std::string missing_;
};

void FindArrays(Functions* in, Api* api) {
  in->Need("MXGetLastError", &api->MXGetLastError);
  in->Need("MXShallowCopyNDArray", &api->MXShallowCopyNDArray);
  in->Need("MXNDArrayCreateEx64", &api->MXNDArrayCreateEx64);
  in->Need("MXNDArrayFree", &api->MXNDArrayFree);
  in->Need("MXNDArrayGetShapeEx64", &api->MXNDArrayGetShapeEx64);
  in->Need("MXNDArrayGetData", &api->MXNDArrayGetData);
  in->Need("MXNDArrayGetDType", &api->MXNDArrayGetDType);
  in->Need("MXNDArrayGetContext", &api->MXNDArrayGetContext);
  in->Need("MXNDArrayGetStorageType", &api->MXNDArrayGetStorageType);
  in->Need("MXNDArrayWaitToRead", &api->MXNDArrayWaitToRead);
  in->Need("MXEnginePushAsyncND", &api->MXEnginePushAsyncND);
}

void FindLayouts(Functions* in, Api* api) {
  if (!in->Find("_ZNK5mxnet7NDArray5Chunk8IsMKLDNNEv", &api->IsOwnLayout)) return;
  in->Need("_ZN5mxnet7NDArray5Chunk15Reorder2DefaultEv", &api->ToDefaultLayout);
  in->Need("_ZNK5mxnet7NDArray15Reorder2DefaultEv", &api->InDefaultLayout);
  in->Need("_ZN5mxnet7NDArrayD1Ev", &api->Destroy);
}

}  // namespace

Api mxnet;

std::string Load(const char* path, Api* api) {
  void* const library = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return std::string(path) + " is not loaded: import mxnet first";
  Functions functions(library);
  FindArrays(&functions, api);
  FindLayouts(&functions, api);
  if (functions.missing().empty()) return "";
  return std::string(path) + " has no " + functions.missing() +
         ": hvd.mxnet is made for MXNet 1.9.1";
}

}  // namespace hvd::mx
