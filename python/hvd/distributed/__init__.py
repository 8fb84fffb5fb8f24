# SPDX-License-Identifier: Apache-2.0
"""torch.distributed over hvd: `init_process_group("hvd")`.

With hvd's package installed torch finds the backend by itself; from a checkout: `import
hvd.distributed` first. Tensors in host memory and on CUDA GPUs.
"""
from hvd_torch_backend import register

__all__ = ["register"]

register()
