# SPDX-License-Identifier: Apache-2.0
"""horovod.common.util, answered by hvd: what other packages use of it."""
from __future__ import annotations

import contextlib
import functools
import importlib
import os
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import hvd
from hvd.basics import ccl_built as ccl_built
from hvd.basics import cuda_built as cuda_built
from hvd.basics import ddl_built as ddl_built
from hvd.basics import gloo_built as gloo_built
from hvd.basics import mpi_built as mpi_built
from hvd.basics import nccl_built as nccl_built
from hvd.basics import rocm_built as rocm_built

T = TypeVar("T")

EXTENSIONS = ["keras", "mxnet", "tensorflow", "torch"]
_cache = functools.cache


def get_ext_suffix() -> str:
    """The end of an extension module's file name."""
    import sysconfig

    return sysconfig.get_config_var("EXT_SUFFIX") or ".so"


def extension_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether hvd serves the framework ("torch", …), and it is installed."""
    try:
        check_extension(ext_base_name)
    except ImportError as error:
        if verbose:
            print(error)
        return False
    return True


def check_extension(ext_name: str, *details: object) -> None:
    """ImportError when hvd does not serve the framework, or it is missing. `details` say how
    Horovod's own would be built."""
    name = ext_name.rsplit(".", 1)[-1]
    if name not in EXTENSIONS:
        raise ImportError(f"hvd does not serve {name}; it serves {', '.join(EXTENSIONS)}")
    importlib.import_module(name)


def check_installed_version(name: str, installed_version: str, exception: object = None) -> None:
    """hvd is built for no certain version of a framework: any will do."""


def gpu_available(ext_base_name: str, verbose: bool = False) -> bool:
    """Whether this process sees a GPU, which collectives can use then."""
    return int(hvd.build_info()["gpus"]) > 0


@contextlib.contextmanager
def env(**values: str | None) -> Iterator[None]:
    """In this scope the environment has these values; None: has them not."""
    before = dict(os.environ)
    try:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def split_list(items: list[T], num_parts: int) -> list[list[T]]:
    """`items` in so many lists of about equal length; empty ones are left out."""
    size, more = divmod(len(items), num_parts)
    cuts = [part * size + min(part, more) for part in range(num_parts + 1)]
    return [items[a:b] for a, b in zip(cuts, cuts[1:], strict=False) if b > a]


def is_iterable(x: Any) -> bool:
    """Whether it can be gone through."""
    try:
        iter(x)
    except TypeError:
        return False
    return True


def num_rank_is_power_2(num_rank: int) -> bool:
    """Whether it is 1, 2, 4, …"""
    return num_rank > 0 and num_rank & (num_rank - 1) == 0


def is_version_greater_equal_than(ver: str, target: str) -> bool:
    """Whether version `ver` is `target` or later; both of the form 1.2.3."""
    def numbers(text: str) -> list[int]:
        return [int("".join(c for c in part if c.isdigit()) or 0)
                for part in text.partition("+")[0].split(".")[:3]]
    if target.count(".") != 2 or not all(part.isdigit() for part in target.split(".")):
        raise ValueError(f"a version has the form 1.2.3, not {target}")
    return numbers(ver) >= numbers(target)


def get_average_backwards_compatibility_fun(reduce_ops: object) -> Callable[..., int]:
    """The function that makes one op of `op` and the older `average`."""
    from hvd.torch.mpi_ops import handle_average_backwards_compatibility

    return handle_average_backwards_compatibility


def support_non_legacy_keras_optimizers(k: object) -> bool:
    """Whether Keras' newer optimizers may be given to DistributedOptimizer: those of any Keras that
    hvd serves. `k` is Keras' backend module."""
    return True


VERSION = hvd.library_version()
