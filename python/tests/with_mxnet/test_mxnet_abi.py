# SPDX-License-Identifier: Apache-2.0
"""MXNet's ABI as libhvd_mxnet declares it, against the headers of the MXNet that is installed."""
import ctypes
import pathlib
import shutil
import subprocess

import pytest

mx = pytest.importorskip("mxnet", reason="mxnet is not installed")

from hvd.mxnet import engine  # noqa: E402

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
FUNCTIONS = ["MXGetLastError", "MXShallowCopyNDArray", "MXNDArrayCreateEx64", "MXNDArrayFree",
             "MXNDArrayGetShapeEx64", "MXNDArrayGetData", "MXNDArrayGetDType",
             "MXNDArrayGetContext", "MXNDArrayGetStorageType", "MXNDArrayWaitToRead",
             "MXEnginePushAsyncND"]
TYPES = ["Float32", "Float64", "Float16", "Uint8", "Int32", "Int8", "Int64", "Bool", "Int16",
         "Uint16", "Uint32", "Uint64", "Bfloat16"]
PROGRAM = """
#include <cstddef>
#include <sstream>
#include <type_traits>
#include <mxnet/c_api.h>
#include <mxnet/engine.h>
#include <mxnet/ndarray.h>
#include "python/operators/mxnet/mx_api.h"
namespace ours = hvd::mx;

static_assert(sizeof(ours::Context) == sizeof(mxnet::Context));
static_assert(offsetof(ours::Context, type) == offsetof(mxnet::Context, dev_type));
static_assert(offsetof(ours::Context, id) == offsetof(mxnet::Context, dev_id));
static_assert(ours::kCpu == mxnet::Context::kCPU && ours::kGpu == mxnet::Context::kGPU);
static_assert(ours::kDefaultStorage == mxnet::kDefaultStorage);
static_assert(ours::kCpuPrioritized == int(mxnet::FnProperty::kCPUPrioritized));

using Theirs = mxnet::engine::CallbackOnComplete;
static_assert(sizeof(ours::OnComplete) == sizeof(Theirs));
static_assert(std::is_trivially_copyable_v<Theirs>);
static_assert(offsetof(ours::OnComplete, callback) == offsetof(Theirs, callback_));
static_assert(offsetof(ours::OnComplete, engine) == offsetof(Theirs, engine_));
static_assert(offsetof(ours::OnComplete, operation) == offsetof(Theirs, param_));
static_assert(std::is_base_of_v<std::runtime_error, dmlc::Error>);
static_assert(sizeof(std::runtime_error) == sizeof(dmlc::Error));

static_assert(sizeof(mxnet::NDArray) == ours::kArrayBytes);
static_assert(offsetof(mxnet::NDArray, ptr_) == 0);
// What the C++ functions are that are called by their mangled names.
static_assert(std::is_same_v<decltype(&mxnet::NDArray::Chunk::IsMKLDNN),
                             bool (mxnet::NDArray::Chunk::*)() const>);
static_assert(std::is_same_v<decltype(&mxnet::NDArray::Chunk::Reorder2Default),
                             void (mxnet::NDArray::Chunk::*)()>);
static_assert(std::is_same_v<decltype(&mxnet::NDArray::Reorder2Default),
                             mxnet::NDArray (mxnet::NDArray::*)() const>);

// Handles and enums aside, which all are pointers and ints.
template <class Function> struct Shape;
template <class Result, class... Arguments> struct Shape<Result (*)(Arguments...)> {
  static constexpr std::size_t count = sizeof...(Arguments);
  static constexpr std::size_t bytes[] = {sizeof(Result), sizeof(Arguments)..., 0};
};
template <class A, class B> constexpr bool Same() {
  if (Shape<A>::count != Shape<B>::count) return false;
  for (std::size_t i = 0; i <= Shape<A>::count; ++i) {
    if (Shape<A>::bytes[i] != Shape<B>::bytes[i]) return false;
  }
  return true;
}
"""


def program():
    yield PROGRAM
    for name in FUNCTIONS:
        yield f"static_assert(Same<decltype(ours::Api::{name}), decltype(&::{name})>());"
    for name in TYPES:
        yield f"static_assert(int{{ours::k{name}}} == int{{mshadow::k{name}}});"


def compiled(tmp_path, lines, *options):
    """The compiler's complaints, if any."""
    source = tmp_path / "abi.cc"
    source.write_text("\n".join([*lines, ""]))
    outcome = subprocess.run(["c++", "-w", "-fsyntax-only", *options,
                              f"-I{REPOSITORY}", source], capture_output=True, text=True)
    return outcome.stderr if outcome.returncode else ""


@pytest.fixture(autouse=True)
def one_compares(rank):
    if rank != 0 or shutil.which("c++") is None:
        pytest.skip("one rank compares, with a C++ compiler")


def test_mxnets_abi(tmp_path):
    headers = pathlib.Path(mx.libinfo.find_include_path())
    problem = compiled(
        tmp_path, program(), "-std=c++17", "-fno-access-control", "-DMXNET_USE_CUDA=0",
        "-DMXNET_USE_MKLDNN=1", "-DMSHADOW_USE_CUDA=0", "-DMSHADOW_USE_CBLAS=0",
        "-DMSHADOW_USE_MKL=0", "-DMSHADOW_USE_SSE=0", "-DDMLC_USE_CXX11=1", f"-I{headers}",
        f"-I{headers / 'mkldnn'}")
    assert not problem, problem


def test_our_own_abi(tmp_path):
    """Python and libhvd_mxnet agree about a call's struct and its kinds."""
    ours = engine.CallStruct
    lines = ['#include "python/operators/mxnet/operations.cc"', "#include <cstddef>",
             f"static_assert(sizeof(hvd_mxnet_call_t) == {ctypes.sizeof(ours)});"]
    lines += [f"static_assert(offsetof(hvd_mxnet_call_t, {name}) == {getattr(ours, name).offset});"
              for name, *_ in ours._fields_]
    lines += [f"static_assert(int(hvd::CallKind::k{kind.capitalize()}) == {number});"
              for kind, number in engine.KINDS.items()]
    problem = compiled(tmp_path, lines, "-std=c++20", f"-I{REPOSITORY / 'runtime' / 'include'}")
    assert not problem, problem
