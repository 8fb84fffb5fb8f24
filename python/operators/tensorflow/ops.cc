// SPDX-License-Identifier: Apache-2.0
// The ops, as TensorFlow's graphs have them. They are registered while tf.load_op_library loads
// this library, which makes Python's functions of what is registered then.
#include <hvd/hvd.h>

#include "python/operators/tensorflow/kernels.h"

namespace hvd::tf {
namespace {

// Why the library is of no use; empty: it is of use. (The library's constructor runs before its
// variables have theirs.)
std::string& Problem() {
  static std::string problem;
  return problem;
}

class Definition {
 public:
  explicit Definition(const char* name) : builder_(tensorflow.TF_NewOpDefinitionBuilder(name)) {}

  Definition& Input(const char* words) {
    tensorflow.TF_OpDefinitionBuilderAddInput(builder_, words);
    return *this;
  }
  Definition& Output(const char* words) {
    tensorflow.TF_OpDefinitionBuilderAddOutput(builder_, words);
    return *this;
  }
  Definition& Attribute(const char* words) {
    tensorflow.TF_OpDefinitionBuilderAddAttr(builder_, words);
    return *this;
  }
  // Marks an op that concerns the other ranks: TensorFlow neither leaves it out nor does it once
  // for all.
  // (It does not chain such ops either: hvd.tensorflow tells it not to.)
  Definition& Stateful() {
    tensorflow.TF_OpDefinitionBuilderSetIsStateful(builder_, true);
    return *this;
  }
  void Register(InferShapes infer, Status* status) {
    tensorflow.TF_OpDefinitionBuilderSetShapeInferenceFunction(builder_, infer);
    tensorflow.TF_RegisterOpDefinition(builder_, status->get());
  }

 private:
  TF_OpDefinitionBuilder* const builder_;  // TensorFlow's, once registered
};

void AsInputs(TF_ShapeInferenceContext* context, TF_Status* status) {
  TF_ShapeHandle* const shape = tensorflow.TF_NewShapeHandle();
  const auto count = static_cast<int>(tensorflow.TF_ShapeInferenceContextNumInputs(context));
  for (int i = 0; i < count && tensorflow.TF_GetCode(status) == 0; ++i) {
    tensorflow.TF_ShapeInferenceContextGetInput(context, i, shape, status);
    if (tensorflow.TF_GetCode(status) != 0) break;
    tensorflow.TF_ShapeInferenceContextSetOutput(context, i, shape, status);
  }
  tensorflow.TF_DeleteShapeHandle(shape);
}

// Only the exchange tells the rows. (hvd.tensorflow says the rest.)
void Unknown(TF_ShapeInferenceContext* context, TF_Status* status) {
  tensorflow.TF_ShapeInferenceContextSetUnknownShape(context, status);
}

void DefineCollective(const std::string& name, Status* status) {
  if (!status->ok()) return;
  Definition definition(name.c_str());
  definition.Input("tensors: T").Output("results: T").Attribute("T: list(type) >= 1");
  if (name == "HvdAlltoall") definition.Input("splits: int64").Output("received_splits: int64");
  for (const char* const words :
       {"call_name: string", "process_set: int", "op: int", "root: int", "prescale: int",
        "postscale: int", "compression: int", "flags: int", "contents: string = ''"}) {
    definition.Attribute(words);
  }
  const bool elementwise = name == "HvdAllreduce" || name == "HvdBroadcast";
  definition.Stateful().Register(elementwise ? AsInputs : Unknown, status);
}

void Register() {
  Problem() = Load(&tensorflow);
  if (!Problem().empty()) return;
  Status status;
  for (const char* const name : kCollectiveOps) DefineCollective(name, &status);
  if (status.ok()) {
    Definition place(kPlaceOp);
    place.Output("answer: int32").Attribute("what: int").Attribute("process_set: int");
    place.Stateful().Register(Unknown, &status);
  }
  RegisterCollectiveKernels(&status);
  RegisterPlaceKernel(&status);
  RegisterRefusals(&status);
  if (!status.ok()) Problem() = "TensorFlow refuses hvd's ops: " + status.message();
}

[[gnu::constructor]] void RegisterOnLoading() { Register(); }

}  // namespace
}  // namespace hvd::tf

// Why TensorFlow has no ops of hvd's; empty: it has.
extern "C" HVD_EXPORT const char* hvd_tensorflow_problem() { return hvd::tf::Problem().c_str(); }
