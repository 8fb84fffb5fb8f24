# SPDX-License-Identifier: Apache-2.0
"""Runs a function, and the way back through it, for the tests of the operators."""


def run(function, inputs):
    """Results, and the gradients of the sum of the squares of those that have one."""
    tracked = [tensor.clone().requires_grad_() for tensor in inputs]
    results = function(*tracked)
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    sum(result.square().sum() for result in results if result.requires_grad).backward()
    return [result.detach() for result in results] + [tensor.grad for tensor in tracked]
