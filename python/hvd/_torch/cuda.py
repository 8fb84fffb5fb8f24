# SPDX-License-Identifier: Apache-2.0
"""CUDA as hvd.torch meets it: which stream a call belongs to, who goes on behind its result, and
memory that torch's allocator must not give away too early.

A call belongs to the stream that is current at the submission, on its tensors' GPU. A wait has that
one go on behind the result, and the one that is current for the waiter. The host goes on when the
result is on its way.

Threads: any.
"""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TypeVar

import torch
import torch.utils.dlpack

from .._core import abi, device_arrays
from .._core.library import LIBRARY

R = TypeVar("R")


class DeviceCall:
    """A call's GPU and stream; see streams.OnDevice."""

    __slots__ = ("device", "stream")

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.stream = torch.cuda.current_stream(device)

    def place(self) -> abi.DevicePlace:
        return abi.DevicePlace(self.device.index, self.stream.cuda_stream)

    def before_wait(self, number: int) -> None:
        waiter = torch.cuda.current_stream(self.device)
        if waiter != self.stream:
            LIBRARY.check(LIBRARY.released.hvd_wait_on(number, waiter.cuda_stream))

    def wait_again(self) -> None:
        waiter = torch.cuda.current_stream(self.device)
        if waiter != self.stream:
            waiter.wait_stream(self.stream)

    def keep(self, tensors: object) -> None:
        """Both streams go on behind the call: the allocator waits for these before it gives the
        memory to another one. (Nothing happens to memory that was allocated on them.)"""
        waiter = torch.cuda.current_stream(self.device)
        for tensor in _tensors_in(tensors):
            tensor.record_stream(self.stream)
            if waiter != self.stream:
                tensor.record_stream(waiter)

    def end_dropped(self, number: int, tensors: object) -> int:
        # By the default stream: the call's own may have been destroyed.
        default = torch.cuda.default_stream(self.device)
        status = int(LIBRARY.held.hvd_wait_on(number, default.cuda_stream))
        LIBRARY.held.hvd_release(number)
        for tensor in _tensors_in(tensors):
            tensor.record_stream(default)
        return status


def on_stream_of(call: DeviceCall | None) -> contextlib.AbstractContextManager[object]:
    """A context where the call's stream is current. None: nothing changes."""
    return contextlib.nullcontext() if call is None else torch.cuda.stream(call.stream)


def new_future(call: DeviceCall | None) -> torch.futures.Future[R]:
    """A future of a call's results: who waits for it has its own stream go on behind the one that
    is current where it is completed."""
    return torch.futures.Future(devices=None if call is None else [call.device])


def _tensors_in(kept: object) -> Iterator[torch.Tensor]:
    if isinstance(kept, torch.Tensor):
        yield kept
    elif isinstance(kept, (tuple, list)):
        for one in kept:
            yield from _tensors_in(one)


def tensor_over(array: device_arrays.DeviceArray, like: torch.Tensor,
                shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor of like's type in memory of hvd's, which it keeps alive."""
    if array.nbytes == 0:
        return torch.empty(shape, dtype=like.dtype, device=like.device)
    # As bytes: not every torch takes float8 so.
    return torch.utils.dlpack.from_dlpack(array.as_bytes()).view(like.dtype).view(shape)
