# SPDX-License-Identifier: Apache-2.0
"""The room that meets libhvd: everything that hvd's faces share, and nothing that users import.

    collectives ──> handles ──> runtime ──> process_sets ──> library ──> errors ──> abi
    arrays ──> device_arrays ──> dlpack ──> streams ──> driver, library
    arrays ──> memory ──> library         runtime ──> patience, streams ──> library

abi: the structs and numbers of hvd.h.  errors: the exceptions.  library: finds and loads libhvd;
`LIBRARY` is the one that is loaded.  patience: long calls during which handlers of signals run.
process_sets, runtime: this process's part in the job; `RUNTIME` is the one.  handles: what an
asynchronous call returns.  collectives: each collective once, for any kind of tensor; an adapter
says where a tensor lies.  arrays (with dlpack): the adapter for NumPy and its like.  memory:
libhvd's memory, given back when the last tensor in it is gone.  device_arrays: arrays on GPUs.
streams: which CUDA stream a call belongs to, and tensors that the device still needs.  driver:
the little of NVIDIA's driver that these two need.

Enters: tensors, names, process sets. Leaves: calls of the C ABI, Handles, exceptions.

Threads: any thread may call; there is no lasting thread here. A submitting call keeps the
interpreter's lock, a waiting one gives it away. The child of a fork gets NotInitializedError.

Every room of the package may import it; it imports none of them. Only `arrays` needs NumPy: its
users import it when the first array comes, so that hvd.torch works without NumPy.
"""
