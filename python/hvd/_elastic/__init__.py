# SPDX-License-Identifier: Apache-2.0
"""The parts that elastic states are made of, below Python's objects.

    box ──> _core        epochs ──> _core

box: libhvd's one state of this process, which holds tensors and bytes by name.  epochs: the epoch
that this process is in, and how it gets to the next.

Enters: descriptions of tensors (abi.TensorStruct), bytes. Leaves: calls of the C ABI; errors.

Threads: any, one at a time.
"""
