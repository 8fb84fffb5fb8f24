# SPDX-License-Identifier: Apache-2.0
from . import Tensor

def divide_no_nan(x: Tensor, y: Tensor) -> Tensor: ...
