# SPDX-License-Identifier: Apache-2.0
"""The objects of either Keras as hvd asks them: types alone, for type checkers."""
from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

Tensor: TypeAlias = Any  # of Keras' backend, which is chosen when the program runs
Logs: TypeAlias = "dict[str, Any] | None"
T = TypeVar("T")


class Variable(Protocol):
    """A variable of Keras 3, of tf_keras or of TensorFlow."""

    @property
    def dtype(self) -> Any:
        """The type of its elements."""

    def assign(self, value: Any, /) -> Any:
        """Sets its value."""


class Layer(Protocol):
    """A layer, or a model."""

    @property
    def trainable_variables(self) -> Sequence[Any]:
        """Those that training changes."""


class Optimizer(Protocol):
    """An optimizer. Its learning rate is a number, a variable or a schedule."""

    learning_rate: Any
    variables: Any  # a list; of tf_keras.optimizers.legacy a function that gives one


class Model(Layer, Protocol):
    """A model that is trained."""

    optimizer: Any
    built: bool

    @property
    def weights(self) -> Sequence[Any]:
        """All variables."""


class Reduces(Protocol[T]):
    """How an optimizer's gradients, which are T's, are reduced: what each backend has."""

    @property
    def key_of(self) -> Callable[[Any], Hashable]:
        """Tells variables apart."""

    @property
    def scale_local(self) -> Callable[[T], T]:
        """A gradient that is not reduced, as large as if the others' had been zero."""

    def reduce(self, found: Sequence[T], variables: Sequence[Any], /) -> list[T]:
        """The gradients of all ranks; a None stays None."""


class ReducesKeras(Reduces[T], Protocol[T]):
    """What Keras 3's optimizers ask besides."""

    def greatest(self, found: Sequence[T], /) -> list[T]:
        """The greatest of all ranks', element by element."""

    def all_true(self, flag: Any, /) -> Any:
        """Whether it is true on all ranks of the process set."""
