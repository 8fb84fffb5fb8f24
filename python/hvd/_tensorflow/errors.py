# SPDX-License-Identifier: Apache-2.0
"""hvd's errors, which TensorFlow's programs catch as TensorFlow's own, by Horovod's classes: where
ranks differ a FailedPreconditionError, what makes no sense by itself an InvalidArgumentError."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from .._core import abi, errors

# As the ops' kernels say it (operators/tensorflow/tf_call).
_THEIRS: dict[int, type[tf.errors.OpError]] = {
    abi.ERR_INVALID: tf.errors.InvalidArgumentError,
    abi.ERR_DUPLICATE: tf.errors.InvalidArgumentError,
    abi.ERR_MISMATCH: tf.errors.FailedPreconditionError,
    abi.ERR_NOT_INITIALIZED: tf.errors.FailedPreconditionError,
    abi.ERR_ABORTED: tf.errors.AbortedError,
    abi.ERR_UNSUPPORTED: tf.errors.UnimplementedError,
}


def _both(ours: type[errors.Error], theirs: type[tf.errors.OpError]) -> type[errors.Error]:
    """hvd's exception that is TensorFlow's, too. It is pickled as hvd's alone."""
    def init(self: Any, message: object = "", code: int = abi.ERR_INTERNAL,
             status: str = "HVD_ERR_INTERNAL") -> None:
        theirs.__init__(self, None, None, str(message))
        ours.__init__(self, message, code, status)

    def reduce(self: errors.Error) -> tuple[type[errors.Error], tuple[object, ...]]:
        return ours, (self.args[0], self.code, self.status)

    return type(ours.__name__, (ours, theirs), {
        "__doc__": ours.__doc__, "__module__": __name__, "__init__": init, "__reduce__": reduce})


_CLASSES = {code: _both(ours, _THEIRS.get(code, tf.errors.InternalError))
            for code, ours in errors.CLASSES.items()}


def of(error: errors.Error) -> errors.Error:
    """The same error, which is TensorFlow's, too."""
    kind = _CLASSES.get(error.code)
    if kind is None:
        return error
    made = kind(error.args[0], error.code, error.status)
    made.__dict__.update(vars(error))
    return made


def invalid(message: str) -> errors.Error:
    """The error of an argument that Python refuses."""
    return of(errors.invalid(message))


@contextlib.contextmanager
def ours_raised() -> Iterator[None]:
    """Makes hvd's own error of what hvd's ops raise within, when they run eagerly."""
    try:
        yield
    except tf.errors.OpError as error:
        mine = errors.error_of(RuntimeError(error.message.partition(" [Op:Hvd")[0]))
        if mine is None:
            raise
        raise of(mine) from None
