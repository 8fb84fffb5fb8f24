# SPDX-License-Identifier: Apache-2.0
from .optimizers import Optimizer

class LossScaleOptimizer(Optimizer):
    inner_optimizer: Optimizer
