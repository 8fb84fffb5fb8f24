# SPDX-License-Identifier: Apache-2.0
from . import v1 as v1
