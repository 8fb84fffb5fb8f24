# SPDX-License-Identifier: Apache-2.0
# mypy: disable-error-code="attr-defined, assignment"
"""torch's tensors on a GPU, where torch has none: their numbers lie in memory of the driver's (the
stand-in's, say), and torch.cuda has streams of the driver's. Only what hvd.torch asks of them is
there; a torch that has CUDA needs none of it.

torch's own work on such a tensor would be done on the CPU: tests fill and fetch them by the driver.
"""
import contextlib
import gc
import threading
import types

import device
import torch

from hvd._core import driver


class Stream:
    def __init__(self, number):
        self.cuda_stream = number

    def __eq__(self, other):
        return self.cuda_stream == other.cuda_stream

    __hash__ = None

    def wait_stream(self, other):
        driver.order(device.GPU, other.cuda_stream, self.cuda_stream)


class Cuda:
    """The part of torch.cuda that hvd.torch asks for."""

    def __init__(self):
        self._thread = threading.local()

    def current_stream(self, _):
        return getattr(self._thread, "stream", Stream(0))

    def default_stream(self, _):
        return Stream(0)

    @contextlib.contextmanager
    def stream(self, stream):
        before, self._thread.stream = self.current_stream(device.GPU), stream
        yield
        self._thread.stream = before


class Pool:
    """As torch's allocator: what is dropped is used again at once, in the order of the stream where
    it was made, and of those that were recorded. Code that still needs it then is found."""

    def __init__(self):
        self._old = []

    def reuse(self, address, size, streams):
        for stream in streams[1:]:
            driver.order(device.GPU, stream, streams[0])
        device.call("cuMemsetD8Async", address, 0xEE, size, streams[0])
        self._old.append(address)

    def close(self):
        while self._old:  # another thread may drop something meanwhile: that is waited for, too
            old, self._old = self._old, []
            driver.wait_for(device.GPU)
            for address in old:
                device.call("cuMemFree_v2", address)


POOL = Pool()
FUTURES = types.SimpleNamespace()  # torch.futures, as it is without devices


class Pooled(device.Named):
    """`streams`: where it was made, and those that were recorded."""

    def __init__(self, values, stream):
        super().__init__(values, stream)
        self.size = max(values.nbytes, 1)
        self.streams = [stream]

    def __del__(self):
        POOL.reuse(self.address, self.size, self.streams)


class Tensor(torch.Tensor):
    """`memory` holds the numbers. The torch.Tensor below has but shape and type."""

    @staticmethod
    def over(shape, dtype, memory):
        made = torch.empty(shape, dtype=dtype).as_subclass(Tensor)
        made.memory = memory
        return made

    is_cpu = property(lambda self: False)
    device = property(lambda self: torch.device("cuda", device.GPU))

    def data_ptr(self):
        return self.memory.address

    def detach(self):
        return self

    contiguous = resolve_conj = resolve_neg = detach

    def view(self, *shape):
        plain = self.as_subclass(torch.Tensor).view(*shape)
        return Tensor.over(plain.shape, plain.dtype, self.memory)

    def record_stream(self, stream):
        self.memory.streams.append(stream.cuda_stream)

    def fetch(self, stream):
        """The numbers behind the stream."""
        plain = torch.from_numpy(device.fetch(self.memory, stream)).view(self.dtype)
        return plain.view(self.shape)


def on_gpu(tensor, stream):
    """Its numbers are on their way, on the stream."""
    raw = tensor.contiguous().view(-1).view(torch.uint8).numpy()
    return Tensor.over(tensor.shape, tensor.dtype, Pooled(raw, stream.cuda_stream))


class Adopted:
    """A result of hvd's, as a Tensor has its memory."""

    def __init__(self, array):
        self.array = array.as_bytes()
        self.address = self.array.__cuda_array_interface__["data"][0]
        self.streams = []
        self.__cuda_array_interface__ = self.array.__cuda_array_interface__


def installed(monkeypatch):
    """hvd.torch meets these instead of torch's. Returns the torch.cuda of it."""
    from hvd._torch import cuda, operators

    fake = Cuda()

    def empty(shape, dtype, device=None):  # noqa: ARG001
        if device is None:
            return torch.empty(shape, dtype=dtype)
        return on_gpu(torch.zeros(shape, dtype=dtype), fake.current_stream(device))

    def over(array, like, shape):
        return Tensor.over(shape, like.dtype, Adopted(array))

    FUTURES.Future = lambda devices: torch.futures.Future()  # noqa: ARG005
    stand_in = types.SimpleNamespace(**{**vars(torch), "cuda": fake, "empty": empty,
                                        "futures": FUTURES})
    monkeypatch.setattr(cuda, "torch", stand_in)
    monkeypatch.setattr(operators, "torch", stand_in)
    monkeypatch.setattr(cuda, "tensor_over", over)
    return fake


def current(monkeypatch, stream):
    """Yields, for a fixture, a torch.cuda whose current stream is `stream`."""
    fake = installed(monkeypatch)
    with fake.stream(Stream(stream)):
        yield fake
    gc.collect()
    POOL.close()
