// SPDX-License-Identifier: Apache-2.0
// TensorFlow's C API: the part that is used here, declared by hand, so that no header of
// TensorFlow's is needed to build, and found in the TensorFlow of the process. A test compares it
// with the real headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

// TensorFlow's own names, as its header has them.
struct TF_AsyncOpKernelDoneCallback;
struct TF_KernelBuilder;
struct TF_OpDefinitionBuilder;
struct TF_OpKernelConstruction;
struct TF_OpKernelContext;
struct TF_ShapeHandle;
struct TF_ShapeInferenceContext;
struct TF_Status;
struct TF_Tensor;

namespace hvd::tf {

// Values of TF_Code.
inline constexpr int kInvalidArgument = 3, kFailedPrecondition = 9, kAborted = 10,
                     kUnimplemented = 12, kInternal = 13;

// Values of TF_DataType.
inline constexpr int kFloat = 1, kDouble = 2, kInt32 = 3, kUint8 = 4, kInt16 = 5, kInt8 = 6,
                     kComplex64 = 8, kInt64 = 9, kBool = 10, kBfloat16 = 14, kUint16 = 17,
                     kComplex128 = 18, kHalf = 19, kUint32 = 22, kUint64 = 23, kFloat8E5m2 = 24,
                     kFloat8E4m3fn = 25;

using CreateKernel = void* (*)(TF_OpKernelConstruction*);
using ComputeKernel = void (*)(void*, TF_OpKernelContext*);
using ComputeKernelAsync = void (*)(void*, TF_OpKernelContext*, TF_AsyncOpKernelDoneCallback*);
using DeleteKernel = void (*)(void*);
using InferShapes = void (*)(TF_ShapeInferenceContext*, TF_Status*);

// Each is TensorFlow's function of that name.
struct Api {
  TF_Status* (*TF_NewStatus)();
  void (*TF_DeleteStatus)(TF_Status*);
  void (*TF_SetStatus)(TF_Status*, int code, const char* message);
  int (*TF_GetCode)(const TF_Status*);
  const char* (*TF_Message)(const TF_Status*);

  void (*TF_DeleteTensor)(TF_Tensor*);
  int (*TF_TensorType)(const TF_Tensor*);
  int (*TF_NumDims)(const TF_Tensor*);
  int64_t (*TF_Dim)(const TF_Tensor*, int index);
  size_t (*TF_TensorByteSize)(const TF_Tensor*);
  void* (*TF_TensorData)(const TF_Tensor*);

  TF_OpDefinitionBuilder* (*TF_NewOpDefinitionBuilder)(const char* name);
  void (*TF_RegisterOpDefinition)(TF_OpDefinitionBuilder*, TF_Status*);
  void (*TF_OpDefinitionBuilderAddAttr)(TF_OpDefinitionBuilder*, const char* words);
  void (*TF_OpDefinitionBuilderAddInput)(TF_OpDefinitionBuilder*, const char* words);
  void (*TF_OpDefinitionBuilderAddOutput)(TF_OpDefinitionBuilder*, const char* words);
  void (*TF_OpDefinitionBuilderSetIsStateful)(TF_OpDefinitionBuilder*, bool);
  void (*TF_OpDefinitionBuilderSetShapeInferenceFunction)(TF_OpDefinitionBuilder*, InferShapes);
  int64_t (*TF_ShapeInferenceContextNumInputs)(TF_ShapeInferenceContext*);
  TF_ShapeHandle* (*TF_NewShapeHandle)();
  void (*TF_DeleteShapeHandle)(TF_ShapeHandle*);
  void (*TF_ShapeInferenceContextGetInput)(TF_ShapeInferenceContext*, int, TF_ShapeHandle*,
                                           TF_Status*);
  void (*TF_ShapeInferenceContextSetOutput)(TF_ShapeInferenceContext*, int, TF_ShapeHandle*,
                                            TF_Status*);
  void (*TF_ShapeInferenceContextSetUnknownShape)(TF_ShapeInferenceContext*, TF_Status*);

  TF_KernelBuilder* (*TF_NewKernelBuilder)(const char* op, const char* device, CreateKernel,
                                           ComputeKernel, DeleteKernel);
  TF_KernelBuilder* (*TF_NewAsyncKernelBuilder)(const char* op, const char* device, CreateKernel,
                                                ComputeKernelAsync, DeleteKernel);
  void (*TF_RegisterKernelBuilder)(const char* name, TF_KernelBuilder*, TF_Status*);
  void (*TF_OpKernelConstruction_Failure)(TF_OpKernelConstruction*, TF_Status*);
  void (*TF_OpKernelConstruction_GetAttrSize)(TF_OpKernelConstruction*, const char* name,
                                              int32_t* count, int32_t* bytes, TF_Status*);
  void (*TF_OpKernelConstruction_GetAttrInt64)(TF_OpKernelConstruction*, const char* name, int64_t*,
                                               TF_Status*);
  void (*TF_OpKernelConstruction_GetAttrString)(TF_OpKernelConstruction*, const char* name, char*,
                                                size_t room, TF_Status*);
  void (*TF_OpKernelContext_Failure)(TF_OpKernelContext*, TF_Status*);
  int (*TF_NumInputs)(TF_OpKernelContext*);
  void (*TF_GetInput)(TF_OpKernelContext*, int, TF_Tensor**, TF_Status*);
  TF_Tensor* (*TF_AllocateOutput)(TF_OpKernelContext*, int, int type, const int64_t* shape,
                                  int ndim, size_t bytes, TF_Status*);
  TF_Tensor* (*TF_ForwardInputOrAllocateOutput)(TF_OpKernelContext*, const int* candidates,
                                                int count, int output, const int64_t* shape,
                                                int ndim, int* forwarded, TF_Status*);
};

// Looks for the TensorFlow that the process has loaded. Empty: every function is there; else why
// not.
std::string Load(Api* api);

// The functions of this process's TensorFlow; what calls them runs in TensorFlow, so it has been
// loaded.
extern Api tensorflow;

// A TF_Status of TensorFlow's.
class Status {
 public:
  Status() : status_(tensorflow.TF_NewStatus()) {}
  ~Status() { tensorflow.TF_DeleteStatus(status_); }
  Status(const Status&) = delete;
  Status& operator=(const Status&) = delete;

  void Set(int code, const std::string& text) {
    tensorflow.TF_SetStatus(status_, code, text.c_str());
  }
  TF_Status* get() { return status_; }
  bool ok() const { return tensorflow.TF_GetCode(status_) == 0; }
  std::string message() const { return tensorflow.TF_Message(status_); }

 private:
  TF_Status* const status_;
};

}  // namespace hvd::tf
