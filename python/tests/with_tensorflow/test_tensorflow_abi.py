# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's C API as libhvd_tensorflow declares it, against the headers of the TensorFlow that
is installed."""
import pathlib
import re
import shutil
import subprocess

import pytest

tf = pytest.importorskip("tensorflow", reason="tensorflow is not installed")

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
HEADER = "python/operators/tensorflow/tf_api.h"
CODES = {"kInvalidArgument": "INVALID_ARGUMENT", "kFailedPrecondition": "FAILED_PRECONDITION",
         "kAborted": "ABORTED",
         "kUnimplemented": "UNIMPLEMENTED", "kInternal": "INTERNAL"}
TYPES = {"kFloat": "FLOAT", "kDouble": "DOUBLE", "kInt32": "INT32", "kUint8": "UINT8",
         "kInt16": "INT16", "kInt8": "INT8", "kComplex64": "COMPLEX64", "kInt64": "INT64",
         "kBool": "BOOL", "kBfloat16": "BFLOAT16", "kUint16": "UINT16",
         "kComplex128": "COMPLEX128", "kHalf": "HALF", "kUint32": "UINT32", "kUint64": "UINT64",
         "kFloat8E5m2": "FLOAT8_E5M2", "kFloat8E4m3fn": "FLOAT8_E4M3FN"}


def program():
    for header in ("c_api.h", "kernels.h", "ops.h", "tf_tensor.h"):
        yield f'#include "tensorflow/c/{header}"'
    yield "#define TF_Status TSL_Status  // an alias of theirs, which cannot be declared twice"
    yield f'#include "{HEADER}"'
    yield "#include <type_traits>"
    # Theirs have enumerations where ours have int: of the same size, and passed alike.
    yield "template <class T> using Plain = std::conditional_t<std::is_enum_v<T>, int, T>;"
    yield "template <class F> struct Of;"
    yield ("template <class R, class... A> struct Of<R (*)(A...)> "
           "{ using type = Plain<R> (*)(Plain<A>...); };")
    for name in functions():
        yield (f"static_assert(std::is_same_v<Of<decltype(&{name})>::type, "
               f'Of<decltype(hvd::tf::Api::{name})>::type>, "{name}");')
    for ours, theirs in (CODES | TYPES).items():
        yield f'static_assert(hvd::tf::{ours} == TF_{theirs}, "{ours}");'


def functions():
    text = (REPOSITORY / HEADER).read_text()
    return re.findall(r"\(\*(TF_\w+)\)\(", text)


def test_abi(rank, tmp_path):
    compiler = shutil.which("c++")
    if rank != 0 or compiler is None:
        pytest.skip("one rank compares, with a C++ compiler")
    assert len(functions()) > 30
    source = tmp_path / "abi.cc"
    source.write_text("\n".join([*program(), ""]))
    outcome = subprocess.run([compiler, "-std=c++17", "-fsyntax-only",
                              f"-I{tf.sysconfig.get_include()}", f"-I{REPOSITORY}", source],
                             capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
