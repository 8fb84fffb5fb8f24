# SPDX-License-Identifier: Apache-2.0
"""A GPU as a framework has it, by the driver alone: memory, streams, and arrays that show
themselves in one of the ways in which frameworks do.

An array gives its memory back as soon as it is dropped: who still needs it then is found, by the
stand-in for the driver.
"""
import ctypes

import numpy as np

from hvd._core import abi, dlpack, driver

GPU = 0
_CALLS = {
    "cuMemAlloc_v2": [ctypes.POINTER(ctypes.c_uint64), ctypes.c_size_t],
    "cuMemFree_v2": [ctypes.c_uint64],
    "cuMemcpyHtoDAsync_v2": [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p],
    "cuMemcpyDtoHAsync_v2": [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p],
    "cuMemsetD8Async": [ctypes.c_uint64, ctypes.c_ubyte, ctypes.c_size_t, ctypes.c_void_p],
    "cuStreamCreateWithPriority": [ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint, ctypes.c_int],
    "cuStreamDestroy_v2": [ctypes.c_void_p],
}
_NON_BLOCKING = 1
_LAST_SPECIAL = 2  # 1 and 2 are names of the default streams


def why_none():
    """Why there is no GPU here; empty: there is."""
    try:
        driver.driver()
    except Exception as error:
        return str(error)
    return ""


def call(name, *arguments):
    function = getattr(ctypes.CDLL("libcuda.so.1"), name)
    function.argtypes = _CALLS[name]
    with driver.driver().entered(GPU):
        result = function(*arguments)
    assert result == 0, f"{name} fails: {result}"


def findings():
    """Returns what the stand-in has found; a real driver says nothing."""
    library = ctypes.CDLL("libcuda.so.1")
    if not hasattr(library, "hvd_stand_in_findings"):
        return []
    library.hvd_stand_in_findings.restype = ctypes.c_uint64
    library.hvd_stand_in_finding.argtypes = [ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t]
    found = []
    for index in range(library.hvd_stand_in_findings()):
        text = ctypes.create_string_buffer(500)
        library.hvd_stand_in_finding(index, text, len(text))
        found.append(text.value.decode())
    return found


class Stream:
    """As CuPy's: `ptr` is its number."""

    def __init__(self):
        self._made = [ctypes.c_void_p()]
        call("cuStreamCreateWithPriority", ctypes.byref(self._made[0]), _NON_BLOCKING, 0)
        while (self._made[-1].value or 0) <= _LAST_SPECIAL:  # so the stand-in begins to count
            self._made.append(ctypes.c_void_p())
            call("cuStreamCreateWithPriority", ctypes.byref(self._made[-1]), _NON_BLOCKING, 0)
        self.ptr = self._made[-1].value

    def close(self):
        for one in self._made:
            call("cuStreamDestroy_v2", one)


class Memory:
    def __init__(self, values, stream):
        """The values are on their way there, on `stream`."""
        values = np.ascontiguousarray(values)
        self.shape, self.dtype, self.stream = values.shape, values.dtype, stream
        address = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(address), max(values.nbytes, 1))
        self.address = address.value
        if values.nbytes:
            call("cuMemcpyHtoDAsync_v2", self.address, values.ctypes.data, values.nbytes, stream)

    def __del__(self):
        call("cuMemFree_v2", self.address)

    def interface(self):
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.address, False),
                "strides": None}


class Named(Memory):
    """As CuPy's arrays: it names its stream."""

    @property
    def __cuda_array_interface__(self):
        return self.interface() | {"version": 3, "stream": self.stream or 1}


class Nameless(Memory):
    """As torch's tensors show themselves: without a stream."""

    @property
    def __cuda_array_interface__(self):
        return self.interface() | {"version": 2}


class Shown(Memory):
    """By DLPack alone: the consumer's stream is made to go on behind its own."""

    def __dlpack_device__(self):
        return dlpack.CUDA_DEVICE, GPU

    def __dlpack__(self, *, stream=None, max_version=None):
        assert stream not in (0, None)
        driver.order(GPU, self.stream, 0 if stream == 1 else stream)
        code = {"float32": abi.FLOAT32, "int64": abi.INT64, "float16": abi.FLOAT16}[str(self.dtype)]
        struct = abi.tensor_struct(self.address, self.shape, code, abi.DevicePlace(GPU, 0))
        return dlpack.write(struct, None, max_version)


class Refusing(Shown):
    """Knows no versions of DLPack."""

    def __dlpack__(self, *, stream=None):  # type: ignore[override]
        return super().__dlpack__(stream=stream)


def fetch(array, stream=None):
    """Returns the array's values behind `stream`; without one, behind the stream that it names."""
    if isinstance(array, Memory):
        said, own = array.interface(), array.stream
    else:
        said = array.__cuda_array_interface__
        own = said["stream"]
    values = np.empty(said["shape"], said["typestr"])
    stream = own if stream is None else stream
    stream = 0 if stream == 1 else stream
    if values.nbytes:
        call("cuMemcpyDtoHAsync_v2", values.ctypes.data, said["data"][0], values.nbytes, stream)
    event = driver.Event(GPU, stream)
    event.wait()
    event.close()
    return values
