# SPDX-License-Identifier: Apache-2.0
"""The names of MXNet that hvd uses: MXNet has no types of its own."""
from . import autograd as autograd
from . import base as base
from . import gluon as gluon
from . import nd as nd
from . import np as np
from . import optimizer as optimizer

__version__: str
