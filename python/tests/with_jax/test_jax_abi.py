# SPDX-License-Identifier: Apache-2.0
"""XLA's ABI as libhvd_jax declares it, against the header of the jaxlib that is installed."""
import pathlib
import shutil
import subprocess

import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
# Ours → theirs, and the fields that are used.
STRUCTS = {
    "Extension": ("Extension_Base", {"type": "type", "next": "next"}),
    "ApiVersion": ("Api_Version", {"major_version": "major_version",
                                   "minor_version": "minor_version"}),
    "Metadata": ("Metadata", {"api_version": "api_version"}),
    "MetadataExtension": ("Metadata_Extension", {"metadata": "metadata"}),
    "ErrorCreateArgs": ("Error_Create_Args", {"message": "message", "code": "errc"}),
    "FutureCreateArgs": ("Future_Create_Args", {"future": "future"}),
    "FutureSetAvailableArgs": ("Future_SetAvailable_Args", {"future": "future"}),
    "FutureSetErrorArgs": ("Future_SetError_Args", {"future": "future", "error": "error"}),
    "RunIdGetArgs": ("RunId_Get_Args", {"context": "ctx", "run_id": "run_id"}),
    "Buffer": ("Buffer", {"dtype": "dtype", "data": "data", "rank": "rank", "dims": "dims"}),
    "Span": ("ByteSpan", {"data": "ptr", "size": "len"}),
    "Scalar": ("Scalar", {"dtype": "dtype", "value": "value"}),
    "Buffers": ("Args", {"size": "size", "types": "types", "buffers": "args"}),
    "Attributes": ("Attrs", {"size": "size", "types": "types", "names": "names",
                             "values": "attrs"}),
    "CallFrame": ("CallFrame", {"api": "api", "context": "ctx", "stage": "stage",
                                "arguments": "args", "results": "rets", "attributes": "attrs",
                                "future": "future"}),
    # Younger ones have more functions behind those that are used.
    "Api": ("Api", {"version": "api_version", "error_create": "XLA_FFI_Error_Create",
                    "future_create": "XLA_FFI_Future_Create",
                    "future_set_available": "XLA_FFI_Future_SetAvailable",
                    "future_set_error": "XLA_FFI_Future_SetError",
                    "run_id_get": "XLA_FFI_RunId_Get"}),
}
GROWS = {"Api", "Metadata", "MetadataExtension"}
VALUES = {"kMetadataExtension": "Extension_Metadata", "kExecuteStage": "ExecutionStage_EXECUTE",
          "kScalarAttribute": "AttrType_SCALAR", "kStringAttribute": "AttrType_STRING",
          "kInvalidArgument": "Error_Code_INVALID_ARGUMENT", "kAborted": "Error_Code_ABORTED",
          "kInternal": "Error_Code_INTERNAL"}
TYPES = {"kPred": "PRED", "kS8": "S8", "kS16": "S16", "kS32": "S32", "kS64": "S64", "kU8": "U8",
         "kU16": "U16", "kU32": "U32", "kU64": "U64", "kF16": "F16", "kF32": "F32", "kF64": "F64",
         "kC64": "C64", "kBf16": "BF16", "kC128": "C128", "kF8E5m2": "F8E5M2",
         "kF8E4m3fn": "F8E4M3FN"}


def program():
    yield '#include "xla/ffi/api/c_api.h"'
    yield '#include "python/operators/jax/xla_ffi.h"'
    yield "#include <cstddef>"
    yield "using namespace hvd::xla;"
    for ours, (theirs, fields) in STRUCTS.items():
        if ours not in GROWS:
            yield f'static_assert(sizeof({ours}) == sizeof(XLA_FFI_{theirs}), "{ours}");'
        for mine, other in fields.items():
            yield (f"static_assert(offsetof({ours}, {mine}) == offsetof(XLA_FFI_{theirs}, {other}),"
                   f' "{ours}.{mine}");')
    values = VALUES | {ours: f"DataType_{theirs}" for ours, theirs in TYPES.items()}
    for ours, theirs in values.items():
        yield f'static_assert(int{{{ours}}} == int{{XLA_FFI_{theirs}}}, "{ours}");'
    yield 'static_assert(kMajorVersion == XLA_FFI_API_MAJOR, "major");'
    yield 'static_assert(kMinorVersion <= XLA_FFI_API_MINOR, "minor");'


def test_abi(rank, tmp_path):
    compiler = shutil.which("c++")
    if rank != 0 or compiler is None:
        pytest.skip("one rank compares, with a C++ compiler")
    source = tmp_path / "abi.cc"
    source.write_text("\n".join([*program(), ""]))
    outcome = subprocess.run([compiler, "-std=c++17", "-Wno-invalid-offsetof", "-fsyntax-only",
                              f"-I{jax.ffi.include_dir()}", f"-I{REPOSITORY}", source],
                             capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
