// SPDX-License-Identifier: Apache-2.0
// What Python calls of this library (hvd/mxnet/engine.py).
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "python/operators/mxnet/mx_call.h"
#include "python/operators/mxnet/mx_epoch.h"

extern "C" {

// As hvd/mxnet/engine.py declares it.
struct hvd_mxnet_call_t {
  const hvd_options_t* options;  // with a name
  void** inputs;                 // NDArrayHandles, `count` of them
  // `inputs` again: in place. Otherwise the results' handles, which are made here: of the inputs'
  // shapes, or of this rank's rows of them. Null: `results` gets them.
  void** outputs;
  void* results;          // of hvd_mxnet_results_create, or null
  const int64_t* splits;  // of an alltoall; null: evenly
  int32_t kind;           // CallKind
  int32_t count;
  int32_t split_count;
  int32_t priority;
};

}  // extern "C"

namespace hvd::mx {
namespace {

// Keeps and returns what a function says to the thread that has called it.
const char* Say(std::string text) {
  static thread_local std::string said;
  said = std::move(text);
  return said.c_str();
}

std::shared_ptr<Results>& ResultsOf(void* results) {
  return *static_cast<std::shared_ptr<Results>*>(results);
}

std::vector<int64_t> OutputShape(const hvd_mxnet_call_t& asked, const Array& input) {
  std::vector<int64_t> shape = input.shape();
  if (static_cast<CallKind>(asked.kind) != CallKind::kReducescatter || shape.empty()) return shape;
  const int64_t members = hvd_process_set_size(asked.options->process_set);
  const int64_t rank = hvd_process_set_rank(asked.options->process_set);
  if (members <= 0 || rank < 0) return shape;  // the call itself will be refused
  shape[0] = shape[0] / members + (rank < shape[0] % members ? 1 : 0);
  return shape;
}

// Returns why not, or an empty text.
std::string TakeArrays(const hvd_mxnet_call_t& asked, Arrays* arrays) {
  for (int32_t i = 0; i < asked.count; ++i) {
    arrays->inputs.emplace_back(asked.inputs[i]);
    std::string problem = arrays->inputs.back().Problem();
    if (!problem.empty()) return problem;
  }
  if (asked.results != nullptr) arrays->results = ResultsOf(asked.results);
  if (asked.results != nullptr || asked.outputs == asked.inputs) return "";
  for (const Array& input : arrays->inputs) {
    arrays->outputs.emplace_back(OutputShape(asked, input), input.type(), input);
  }
  return "";
}

void GiveOutputs(const hvd_mxnet_call_t& asked, const Arrays& arrays) {
  for (size_t i = 0; i < arrays.outputs.size(); ++i) {
    asked.outputs[i] = Array(arrays.outputs[i].handle()).Release();
  }
}

}  // namespace
}  // namespace hvd::mx

using namespace hvd::mx;

extern "C" {

// Takes MXNet's functions from its library, which is loaded. Empty, or why there are none.
HVD_EXPORT const char* hvd_mxnet_load(const char* path) { return Say(Load(path, &mxnet)); }

// Pushes a call to MXNet's engine. Null, or why not.
HVD_EXPORT const char* hvd_mxnet_push(const hvd_mxnet_call_t* asked) try {
  Arrays arrays;
  const std::string problem = TakeArrays(*asked, &arrays);
  if (!problem.empty()) return Say(problem);
  GiveOutputs(*asked, arrays);
  Asked words;
  words.kind = static_cast<hvd::CallKind>(asked->kind);
  words.options = *asked->options;
  words.splits.assign(asked->splits, asked->splits + asked->split_count);
  MxCall::Push(std::make_unique<MxCall>(words, std::move(arrays)), asked->priority);
  return nullptr;
} catch (const std::exception& thrown) {
  return Say(std::string("HVD_ERR_INTERNAL: ") + thrown.what());
}

// Before this rank leaves the job: asked until it is 1, then hvd_mxnet_leave (see Epoch).
HVD_EXPORT int32_t hvd_mxnet_may_leave(int64_t microseconds) {
  return Epoch::Get().MayEnd(microseconds) ? 1 : 0;
}
HVD_EXPORT void hvd_mxnet_leave() { Epoch::Get().End(); }

// Results of a call of so many arrays, for hvd_mxnet_push; the caller's until
// hvd_mxnet_results_free.
HVD_EXPORT void* hvd_mxnet_results_create(int32_t count) {
  return new std::shared_ptr<Results>(std::make_shared<Results>(static_cast<size_t>(count)));
}
HVD_EXPORT void hvd_mxnet_results_free(void* results) { delete &ResultsOf(results); }

// Waits for the call's end, so long at most. 1: it has ended.
HVD_EXPORT int32_t hvd_mxnet_results_wait(void* results, int64_t microseconds) {
  return ResultsOf(results)->WaitFor(microseconds) ? 1 : 0;
}
// Then: why there are none; empty: there are.
HVD_EXPORT const char* hvd_mxnet_results_error(void* results) {
  return ResultsOf(results)->error().c_str();
}
// The NDArrayHandle of a result, which is the caller's then.
HVD_EXPORT void* hvd_mxnet_results_take(void* results, int32_t index) {
  return ResultsOf(results)->Take(static_cast<size_t>(index));
}
// Returns, for an alltoall, how many rows came from each member of the set.
HVD_EXPORT const int64_t* hvd_mxnet_results_received(void* results) {
  return ResultsOf(results)->received().data();
}

}  // extern "C"
