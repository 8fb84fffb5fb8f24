# SPDX-License-Identifier: Apache-2.0
"""hvd/_core/abi.py says what hvd.h says."""
import ctypes
import pathlib
import re

import pytest

from hvd._core import abi

HEADER = pathlib.Path(__file__).parents[2] / "runtime" / "include" / "hvd" / "hvd.h"
pytestmark = pytest.mark.apart


@pytest.fixture(scope="module")
def header():
    if not HEADER.exists():
        pytest.skip("no source checkout")
    return re.sub(r"/\*.*?\*/", "", HEADER.read_text(), flags=re.S)


def test_numbers(header):
    said = dict(re.findall(r"HVD_(\w+) = (\d+)", header))
    for name in ("OK", "CPU", "CUDA", "AVERAGE_OVER_CONTRIBUTORS", "WAIT_ON_HOST",
                 "STATE_REPLICATED", "STATE_FIRST", "STATE_PRIVATE", "BUCKET_COMPARED"):
        assert getattr(abi, name) == int(said[name])
    kinds = [name for name in said if name.startswith(("ERR_", "COMPRESSION_"))
             or name in ("AVERAGE", "SUM", "ADASUM", "MIN", "MAX", "PRODUCT", "BAND", "BOR", "BXOR")
             or re.fullmatch(r"U?INT\d+|B?FLOAT\d+(_\w+)?|BOOL|COMPLEX\d+", name)]
    assert len(kinds) == 11 + 3 + 9 + 17
    for name in kinds:
        assert getattr(abi, name) == int(said[name]), name


@pytest.mark.parametrize("struct, name", [
    (abi.TensorStruct, "hvd_tensor_t"), (abi.OptionsStruct, "hvd_options_t"),
    (abi.InitOptionsStruct, "hvd_init_options_t"),
    (abi.BucketOptionsStruct, "hvd_bucket_options_t"),
    (abi.ErrorInfoStruct, "hvd_error_info_t"), (abi.StoreValueStruct, "hvd_store_value_t"),
    (abi.EpochStruct, "hvd_epoch_t"), (abi.StateEntryStruct, "hvd_state_entry_t")])
def test_structs(header, struct, name):
    body = re.search(rf"typedef struct {name} \{{(.*?)\}} {name};", header, flags=re.S).group(1)
    body = re.sub(r"void\*? \(\*(\w+)\)\([^)]*\);", r"void* \1;", body)
    kinds = {"size_t": 8, "int32_t": 4, "uint64_t": 8, "double": 8,
             "hvd_tensor_t": ctypes.sizeof(abi.TensorStruct)}
    said = [(field, 8 if "*" in kind else kinds[kind.strip()])
            for kind, field in re.findall(r"((?:const )?\w+[\s*const]*[\s*])(\w+);", body)]
    ours = [(field[0], ctypes.sizeof(field[1])) for field in struct._fields_]
    assert ours == said
