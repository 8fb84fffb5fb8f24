// SPDX-License-Identifier: Apache-2.0
#include "python/operators/mxnet/mx_call.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <utility>

#include "python/operators/mxnet/mx_epoch.h"

namespace hvd::mx {
namespace {

// Returns the name that MXNet's profiler shows.
const char* NameOf(CallKind kind) {
  switch (kind) {
    case CallKind::kAllreduce:
      return "hvd_allreduce";
    case CallKind::kAllgather:
      return "hvd_allgather";
    case CallKind::kReducescatter:
      return "hvd_reducescatter";
    case CallKind::kBroadcast:
      return "hvd_broadcast";
    case CallKind::kAlltoall:
      break;
  }
  return "hvd_alltoall";
}

// The tensor of a rank that cannot use its arrays: it holds nothing, and has a shape of its own.
constexpr int64_t kNothingShape[] = {0, 0};
constexpr hvd_tensor_t kNothing = {
    sizeof(hvd_tensor_t), nullptr, kNothingShape, 2, HVD_FLOAT32, HVD_CPU, 0, nullptr};

// Each chunk once: the engine would have an operation wait for itself.
std::vector<NDArrayHandle> EachOnce(const std::vector<Array>& arrays) {
  std::vector<NDArrayHandle> handles;
  std::vector<void*> seen;
  for (const Array& array : arrays) {
    if (std::find(seen.begin(), seen.end(), array.chunk()) != seen.end()) continue;
    seen.push_back(array.chunk());
    handles.push_back(array.handle());
  }
  return handles;
}

}  // namespace

struct MxCall::Waiting {
  explicit Waiting(std::unique_ptr<MxCall> its)
      : call(std::move(its)), turn(CallsByName::Get().TakeTurn(call->key())) {}
  ~Waiting() {
    if (call == nullptr) return;
    call->GiveUpArrays("HVD_ERR_INVALID: an array of the call has an error");
    Start(std::move(call), turn);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  std::unique_ptr<MxCall> call;
  const CallsByName::Turn turn;
};

MxCall::MxCall(const Asked& asked, Arrays arrays)
    : arrays_(std::move(arrays)), epoch_(Epoch::Get().number(Epoch::Get().Hold())) {
  request().kind = asked.kind;
  request().name = asked.options.name;
  if (asked.options.contents != nullptr) request().contents = asked.options.contents;
  request().options = asked.options;
  request().splits = asked.splits;
}

void MxCall::Push(std::unique_ptr<MxCall> call, int priority) {
  std::vector<NDArrayHandle> read, written;
  (call->in_place() ? written : read) = EachOnce(call->arrays_.inputs);
  if (!call->arrays_.outputs.empty()) written = EachOnce(call->arrays_.outputs);
  const char* const name = NameOf(call->request().kind);
  Context context = {kCpu, 0};
  int property = kCpuPrioritized;
  // The engine destroys what waits, whatever comes.
  if (mxnet.MXEnginePushAsyncND(
          &MxCall::Run, new Waiting(std::move(call)),
          [](void* waiting) { delete static_cast<Waiting*>(waiting); }, &context, read.data(),
          static_cast<int>(read.size()), written.data(), static_cast<int>(written.size()),
          &property, priority, name, false) != 0) {
    throw std::runtime_error(mxnet.MXGetLastError());
  }
}

// On a thread of the engine's, which destroys what waited as soon as it hears of the end.
void MxCall::Run(void*, void* on_complete, void* waiting) {
  auto* const its = static_cast<Waiting*>(waiting);
  std::unique_ptr<MxCall> call = std::move(its->call);
  const CallsByName::Turn turn = its->turn;
  call->on_complete_ = *static_cast<const OnComplete*>(on_complete);
  try {
    call->Read();
  } catch (const std::exception& thrown) {
    call->GiveUpArrays(std::string("HVD_ERR_INTERNAL: ") + thrown.what());
  }
  Start(std::move(call), turn);
}

void MxCall::Start(std::unique_ptr<MxCall> call, const CallsByName::Turn& turn) {
  const auto held = Epoch::Get().Hold();
  if (call->epoch_ == Epoch::Get().number(held)) {
    CallsByName::Get().Fill(turn, std::move(call));
    return;
  }
  CallsByName::Get().Leave(turn);
  call->Tell("HVD_ERR_ABORTED: this rank has left the job before MXNet's engine began '" +
             call->request().name + "'");
}

void MxCall::Read() {
  for (Array& input : arrays_.inputs) request().inputs.push_back(input.Describe(in_place()));
  for (Array& output : arrays_.outputs) request().outputs.push_back(output.Describe(true));
  if (in_place()) request().outputs = request().inputs;
  if (arrays_.results == nullptr) return;
  request().options.result_fn = &MxCall::MakeResult;
  request().options.result_arg = this;
  if (request().kind != CallKind::kAlltoall) return;
  // A set that is none is refused by the call itself.
  const int32_t members = hvd_process_set_size(request().options.process_set);
  received_ = arrays_.results->MakeReceived(static_cast<size_t>(std::max(members, 0)));
}

void* MxCall::MakeResult(void* call, const int64_t* shape, int32_t ndim, int32_t, int32_t index) {
  const Arrays& arrays = static_cast<MxCall*>(call)->arrays_;
  const auto i = static_cast<size_t>(index);
  return arrays.results->Make({shape, shape + ndim}, arrays.inputs[i], i);
}

void MxCall::End(hvd_handle_t handle, hvd_status_t status) {
  if (status == HVD_OK && received_ != nullptr) {
    status = hvd_wait_alltoall(handle, nullptr, received_);
  }
  std::string error = status == HVD_OK ? "" : ErrorText(status);
  if (status == HVD_ERR_MISMATCH && error.find("[0,0") != std::string::npos) {
    error += ". A rank asks for [0,0] where MXNet has failed at its own arrays: its error says why";
  }
  Tell(error);
}

void MxCall::GiveUpArrays(const std::string& error) {
  Tell(error);
  CallRequest& asked = request();
  const bool elementwise = asked.kind == CallKind::kAllreduce || asked.kind == CallKind::kBroadcast;
  asked.inputs.assign(arrays_.inputs.size(), kNothing);
  asked.outputs.assign(elementwise ? arrays_.inputs.size() : 0, kNothing);
  asked.splits.clear();
  asked.options.result_fn = nullptr;
  arrays_ = {};
  received_ = nullptr;
}

// The engine may go on with what waits for the arrays, on its own threads.
void MxCall::Tell(const std::string& error) {
  const std::runtime_error text(error);
  // A caller that waits for results is told of the error there.
  const bool told_there = error.empty() || arrays_.results != nullptr;
  if (on_complete_.callback != nullptr) on_complete_(told_there ? nullptr : &text);
  on_complete_.callback = nullptr;
  if (arrays_.results != nullptr) arrays_.results->End(error);
}

}  // namespace hvd::mx
