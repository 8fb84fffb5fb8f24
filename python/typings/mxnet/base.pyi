# SPDX-License-Identifier: Apache-2.0
import ctypes
from collections.abc import Callable

_LIB: ctypes.CDLL

class MXNetError(RuntimeError): ...

class NDArrayHandle(ctypes.c_void_p): ...

def register_error(func_name: str, cls: Callable[[str], Exception]) -> object: ...
