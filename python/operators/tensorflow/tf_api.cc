// SPDX-License-Identifier: Apache-2.0
#include "python/operators/tensorflow/tf_api.h"

#include <dlfcn.h>

namespace hvd::tf {
namespace {

constexpr char kLibrary[] = "libtensorflow_framework.so.2";
// TensorFlow tells of an asynchronous kernel's end by a std::function, which is copied here: it
// must be the same C++ library's. This is a function that no other has.
constexpr char kOfSameCppLibrary[] = "_ZSt20__throw_length_errorPKc";

// One that is missing fails the whole.
class Functions {
 public:
  explicit Functions(void* library) : library_(library) {}
  template <class Function>
  void Find(const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(library_, name));
    if (*function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* const library_;
  std::string missing_;
};

void FindTensors(Functions* in, Api* api) {
  in->Find("TF_NewStatus", &api->TF_NewStatus);
  in->Find("TF_DeleteStatus", &api->TF_DeleteStatus);
  in->Find("TF_SetStatus", &api->TF_SetStatus);
  in->Find("TF_GetCode", &api->TF_GetCode);
  in->Find("TF_Message", &api->TF_Message);
  in->Find("TF_DeleteTensor", &api->TF_DeleteTensor);
  in->Find("TF_TensorType", &api->TF_TensorType);
  in->Find("TF_NumDims", &api->TF_NumDims);
  in->Find("TF_Dim", &api->TF_Dim);
  in->Find("TF_TensorByteSize", &api->TF_TensorByteSize);
  in->Find("TF_TensorData", &api->TF_TensorData);
}

void FindOps(Functions* in, Api* api) {
  in->Find("TF_NewOpDefinitionBuilder", &api->TF_NewOpDefinitionBuilder);
  in->Find("TF_RegisterOpDefinition", &api->TF_RegisterOpDefinition);
  in->Find("TF_OpDefinitionBuilderAddAttr", &api->TF_OpDefinitionBuilderAddAttr);
  in->Find("TF_OpDefinitionBuilderAddInput", &api->TF_OpDefinitionBuilderAddInput);
  in->Find("TF_OpDefinitionBuilderAddOutput", &api->TF_OpDefinitionBuilderAddOutput);
  in->Find("TF_OpDefinitionBuilderSetIsStateful", &api->TF_OpDefinitionBuilderSetIsStateful);
  in->Find("TF_OpDefinitionBuilderSetShapeInferenceFunction",
           &api->TF_OpDefinitionBuilderSetShapeInferenceFunction);
  in->Find("TF_ShapeInferenceContextNumInputs", &api->TF_ShapeInferenceContextNumInputs);
  in->Find("TF_NewShapeHandle", &api->TF_NewShapeHandle);
  in->Find("TF_DeleteShapeHandle", &api->TF_DeleteShapeHandle);
  in->Find("TF_ShapeInferenceContextGetInput", &api->TF_ShapeInferenceContextGetInput);
  in->Find("TF_ShapeInferenceContextSetOutput", &api->TF_ShapeInferenceContextSetOutput);
  in->Find("TF_ShapeInferenceContextSetUnknownShape",
           &api->TF_ShapeInferenceContextSetUnknownShape);
}

void FindKernels(Functions* in, Api* api) {
  in->Find("TF_NewKernelBuilder", &api->TF_NewKernelBuilder);
  in->Find("TF_NewAsyncKernelBuilder", &api->TF_NewAsyncKernelBuilder);
  in->Find("TF_RegisterKernelBuilder", &api->TF_RegisterKernelBuilder);
  in->Find("TF_OpKernelConstruction_Failure", &api->TF_OpKernelConstruction_Failure);
  in->Find("TF_OpKernelConstruction_GetAttrSize", &api->TF_OpKernelConstruction_GetAttrSize);
  in->Find("TF_OpKernelConstruction_GetAttrInt64", &api->TF_OpKernelConstruction_GetAttrInt64);
  in->Find("TF_OpKernelConstruction_GetAttrString", &api->TF_OpKernelConstruction_GetAttrString);
  in->Find("TF_OpKernelContext_Failure", &api->TF_OpKernelContext_Failure);
  in->Find("TF_NumInputs", &api->TF_NumInputs);
  in->Find("TF_GetInput", &api->TF_GetInput);
  in->Find("TF_AllocateOutput", &api->TF_AllocateOutput);
  in->Find("TF_ForwardInputOrAllocateOutput", &api->TF_ForwardInputOrAllocateOutput);
}

}  // namespace

Api tensorflow = {};

std::string Load(Api* api) {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return std::string("the process has not loaded ") + kLibrary;
  if (dlsym(library, kOfSameCppLibrary) == nullptr) {
    return std::string(kLibrary) + " was built with another C++ library than libstdc++";
  }
  Functions functions(library);
  FindTensors(&functions, api);
  FindOps(&functions, api);
  FindKernels(&functions, api);
  if (functions.missing().empty()) return "";
  return std::string(kLibrary) + " has no " + functions.missing() +
         "; hvd.tensorflow is for TensorFlow 2.16 and later";
}

}  // namespace hvd::tf
