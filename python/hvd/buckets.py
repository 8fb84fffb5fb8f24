# SPDX-License-Identifier: Apache-2.0
"""Tensors that are reduced together as they become ready."""
from __future__ import annotations

import contextlib
import ctypes
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ._core import abi, device_arrays, driver, errors, patience, streams
from ._core.handles import LOOK_AROUND
from ._core.library import LIBRARY
from ._core.memory import Buffer
from ._core.runtime import RUNTIME
from .basics import global_process_set
from .ops import _collectives
from .process_sets import ProcessSet

if TYPE_CHECKING:
    from ._core.arrays import Array, ArrayLike

_ready = LIBRARY.held.hvd_bucket_ready
_ready_on = LIBRARY.held.hvd_bucket_ready_on
_wait_for = LIBRARY.released.hvd_bucket_wait_for
_wait_tensor = LIBRARY.released.hvd_bucket_wait_tensor


class _Step:
    """Whether some tensor is ready, and nobody has waited since."""

    __slots__ = ("under_way",)

    def __init__(self) -> None:
        self.under_way = False


def _let_go(bucket: int, step: _Step, device: int | None) -> None:
    if device is not None:
        # Nobody knows who uses the views, and on which streams.
        with contextlib.suppress(errors.Error):  # a GPU that has failed is through with everything
            driver.wait_for(device)
    # Destroying waits for what is under way, which the other ranks may never send: the collector
    # of garbage must not. It is done when the job has been left.
    if step.under_way and LIBRARY.held.hvd_is_initialized():
        RUNTIME.buckets.append(bucket)
    else:
        LIBRARY.released.hvd_bucket_destroy(bucket)


class _View:
    """Memory of a bucket on a GPU, which it keeps."""

    def __init__(self, address: int, bucket: Bucket) -> None:
        self.address = address
        self.bucket = bucket


class Bucket:
    """Tensors one after the other in memory that all ranks of a host see, or on a GPU. A step
    writes each into its view and calls ready(index); neighbours travel together as soon as all of
    them are ready; wait() ends the step, and the views hold the results.

    All ranks make the same bucket; the order of ready() may differ. Any thread may call ready(),
    one at a time wait(). The memory lives as long as the bucket or any view does, also across
    shutdown() and init().

    On a GPU the calls keep the order of streams: ready() is behind what its stream has been asked
    for, and that of `on_stream`, else the default one, goes on behind wait().
    """

    def __init__(self, counts: Sequence[int], dtype: int = abi.FLOAT32, name: str | None = None,
                 op: int = abi.AVERAGE, prescale_factor: float = 1.0,
                 postscale_factor: float = 1.0, process_set: ProcessSet = global_process_set,
                 compression: int = abi.COMPRESSION_NONE, chunk_bytes: int = 0,
                 device: int | None = None, *, compared: bool = False,
                 contents: str = "") -> None:
        """`counts`: elements of each tensor. `dtype` is an hvd_dtype_t. `chunk_bytes`: tensors that
        travel together; 0: chosen. Buckets without a name belong together by the order in which
        they are made on their process set. `device`: the GPU, counted as this process sees them;
        None: the CPU's memory.
        `contents`: what the tensors are, for instance their names in their order; a mismatch where
        the ranks do not say the same.
        `compared`: the caller has seen to it that all ranks make the same one of this name, which
        is not asked again."""
        if dtype not in abi.ITEM_BYTES:
            raise errors.invalid(f"{dtype} is no hvd_dtype_t")
        self.counts = [int(count) for count in counts]
        self.dtype = dtype
        self.device = device
        name = name or RUNTIME.next_bucket_name(process_set)
        reduction = RUNTIME.options("", name, process_set, op, 0, prescale_factor, postscale_factor,
                                    compression, contents)
        options = abi.BucketOptionsStruct(ctypes.sizeof(abi.BucketOptionsStruct), chunk_bytes)
        options.reduction = ctypes.pointer(abi.options_in(reduction))
        options.dtype = dtype
        options.flags = abi.BUCKET_COMPARED if compared else 0
        if device is not None:
            options.device_type, options.device_id = abi.CUDA, device
        made = ctypes.c_void_p()
        LIBRARY.check(LIBRARY.released.hvd_bucket_create(
            (ctypes.c_int64 * max(len(self.counts), 1))(*self.counts), len(self.counts),
            ctypes.byref(options), ctypes.byref(made)))
        self._bucket = made.value or 0
        self._step = _Step()
        # Not at exit: views may be used until the process ends.
        weakref.finalize(self, _let_go, self._bucket, self._step, device).atexit = False

    def memory(self, index: int) -> Buffer:
        """The bytes of tensor `index`, rounded up to a power of two (see memory.own). It keeps the
        bucket. Not on a GPU, whose memory the host cannot touch."""
        address = self._address(index)
        size = max(self.counts[index] * abi.ITEM_BYTES[self.dtype], 1)
        room = ctypes.c_char * (1 << (size - 1).bit_length())
        buffer = room.from_address(address)
        buffer.bucket = self  # type: ignore[attr-defined]
        return buffer

    def _address(self, index: int) -> int:
        address = ctypes.c_void_p()
        LIBRARY.check(LIBRARY.held.hvd_bucket_view(self._bucket, index, ctypes.byref(address)))
        return address.value or 0

    def view(self, index: int) -> Array:
        """Tensor `index` as a flat array: always the same memory. NumPy's; or on a GPU one that
        CuPy, torch and others take by `__cuda_array_interface__` or DLPack."""
        if self.device is not None:
            memory = _View(self._address(index), self)
            return device_arrays.DeviceArray(memory, (self.counts[index],), self.dtype,
                                             abi.DevicePlace(self.device, streams.chosen()))
        import numpy as np

        from ._core.arrays import _DTYPES

        dtype = _DTYPES.get(self.dtype)
        if dtype is None:
            raise errors.invalid("NumPy has no type for this bucket's elements")
        return np.frombuffer(  # NumPy's stubs know no buffers of ctypes
            self.memory(index), dtype, self.counts[index])  # type: ignore[call-overload]

    def ready(self, index: int, stream: object = None) -> None:
        """Tensor `index` is written; until wait() returns, it is hvd's. InvalidError when it is
        ready already. On a GPU: by what `stream` (as in on_stream) has been asked for; None: that
        of on_stream, else the default one. It stays until wait() has returned."""
        self._step.under_way = True
        if self.device is None and stream is None:
            status = _ready(self._bucket, index)
        else:
            number = streams.chosen() if stream is None else streams.number_of(stream)
            status = _ready_on(self._bucket, index, number)
        if status:
            raise LIBRARY.error(status)

    def wait(self) -> None:
        """Returns when all tensors are reduced, and begins the next step. InvalidError, naming the
        tensors, when some are not ready: nothing has changed then. MismatchError when the ranks
        have made the bucket differently; the views' contents are undefined then."""
        done = ctypes.c_int32()
        status = 0
        while not status and not done.value:  # what is wrong, the wait says
            status = _wait_for(self._bucket, LOOK_AROUND, ctypes.byref(done))
        if self.device is None:
            status = LIBRARY.released.hvd_bucket_wait(self._bucket)
        else:
            status = LIBRARY.released.hvd_bucket_wait_on(self._bucket, streams.chosen())
        self._step.under_way = status == abi.ERR_INVALID  # then nothing has changed
        LIBRARY.check(status)

    def put(self, index: int, values: ArrayLike) -> None:
        """Copies `values` into tensor `index` and makes it ready: an array, or anything hvd takes,
        of as many elements, of its type or another float type. It may be used again at once.
        InvalidError when it does not fit, or the tensor is ready already."""
        source = _collectives().describe(values)
        status = LIBRARY.held.hvd_bucket_put(self._bucket, index, source.reference)
        if status:
            raise LIBRARY.error(status)
        self._step.under_way = True
        if source.device is not None:
            source.device.keep((values, source))

    def wait_tensor(self, index: int) -> None:
        """Returns when tensor `index` is reduced; its view is the caller's then. wait() still ends
        the step. InvalidError, naming them, when it or tensors that travel with it are not
        ready."""
        done = ctypes.c_int32()
        while not done.value:
            LIBRARY.check(_wait_tensor(self._bucket, index, LOOK_AROUND, ctypes.byref(done)))

    def reset(self) -> None:
        """Gives up a step that has begun: what is not ready counts as zeros, and the step ends as
        in wait(), which the other ranks call, or this. The views' contents are of no use then.
        Does nothing when no tensor is ready."""
        patience.call(lambda: LIBRARY.released.hvd_bucket_reset(self._bucket))
        self._step.under_way = False

    def __repr__(self) -> str:
        return f"<hvd.Bucket of {len(self.counts)} tensors, {sum(self.counts)} elements>"
