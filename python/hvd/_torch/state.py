# SPDX-License-Identifier: Apache-2.0
"""TorchState: models, optimizers, samplers and anything else that training goes on with."""
from __future__ import annotations

from typing import Any

from .._state import ObjectState, Part
from .handlers import Handler, KeptHandler, StateHandler, handler_of


class TorchState(ObjectState):
    """The state that training goes on with. Each argument becomes an attribute. Modules,
    optimizers, ElasticSamplers, learning rate schedulers and gradient scalers (any number of them,
    by keyword) are kept by handlers, in place; everything else is pickled."""

    def __init__(self, model: object = None, optimizer: object = None, **kwargs: object) -> None:
        self._handlers: dict[str, Handler] = {}
        kwargs.update(model=model, optimizer=optimizer)
        handlers = {name: handler_of(value) for name, value in kwargs.items()}
        self._handlers = {name: one for name, one in handlers.items() if one is not None}
        plain: dict[str, Any] = {name: value for name, value in kwargs.items()
                                 if name not in self._handlers}
        super().__init__(**plain)
        for name, handler in self._handlers.items():
            object.__setattr__(self, name, handler.value)

    def _parts(self) -> dict[str, Part]:
        kept = {name: one for name, one in self._handlers.items() if isinstance(one, KeptHandler)}
        return {**kept, **super()._parts()}

    def _programs(self) -> list[StateHandler]:
        return [one for one in self._handlers.values() if not isinstance(one, KeptHandler)]

    def save(self) -> None:
        """See KeptState; programs' handlers save, too."""
        for handler in self._programs():
            handler.save()
        super().save()

    def restore(self) -> None:
        """See KeptState; programs' handlers restore, too. Samplers share out what is left."""
        for handler in self._programs():
            handler.restore()
        super().restore()
        self._share_out()

    def restores_in_sync(self) -> bool:
        """See State."""
        return type(self).restore is TorchState.restore and not self._programs()

    def sync(self) -> None:
        """See KeptState; programs' handlers sync, too. Samplers share out what is left."""
        for handler in self._programs():
            handler.sync()
        super().sync()
        self._share_out()

    def _share_out(self) -> None:
        for handler in self._handlers.values():
            if hasattr(handler.value, "remaining_indices"):
                handler.value.reset()

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.__dict__.get("_handlers", ()) and name in self.__dict__:
            self._handlers[name].set_value(value)
        super().__setattr__(name, value)
