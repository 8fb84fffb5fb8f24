# SPDX-License-Identifier: Apache-2.0
"""The parts of hvd.torch, hvd.torch.elastic and backend "hvd" of torch.distributed.

    state ──> handlers ──> sampler, memory ──┐
                      gradients/ ──> sparse ──┴──> operators ──> cuda

operators, cuda: torch's tensors as libhvd takes them, and their streams.  sparse: sparse ones.
gradients/: how those of an optimizer travel.  memory: tensors of an elastic state.  sampler:
ElasticSampler.  handlers: what is kept of a model, an optimizer, …  state: TorchState.  groups:
torch.distributed's default group across a reset.  context: types that torch's stubs leave open.
"""
