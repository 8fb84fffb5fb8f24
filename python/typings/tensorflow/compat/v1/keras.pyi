# SPDX-License-Identifier: Apache-2.0
from tensorflow.compat.v1 import Session

class backend:
    @staticmethod
    def get_session() -> Session: ...
