# SPDX-License-Identifier: Apache-2.0
from typing import Any

from . import experimental as experimental

class Dataset:
    def apply(self, transformation_func: Any) -> Dataset: ...
    send_to_data_service: Any  # which hvd puts there
