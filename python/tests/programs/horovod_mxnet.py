# SPDX-License-Identifier: Apache-2.0
"""Horovod's MXNet example in its usual form, on made-up digits instead of a download; no word of
hvd. For tests/system/test_python_mxnet.py."""
import argparse
import logging
import time

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

import horovod.mxnet as hvd

parser = argparse.ArgumentParser(description="MXNet MNIST Example")
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--dtype", type=str, default="float32")
parser.add_argument("--epochs", type=int, default=3)
parser.add_argument("--lr", type=float, default=0.02)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--no-cuda", action="store_true", default=False)
parser.add_argument("--fp16-allreduce", action="store_true", default=False)
parser.add_argument("--gradient-predivide-factor", type=float, default=1.0)
args = parser.parse_args()
if not args.no_cuda and not mx.test_utils.list_gpus():
    args.no_cuda = True
logging.basicConfig(level=logging.INFO)


def digits(count, seed):
    """Pictures of 12 by 12 whose brightest column says which digit it is."""
    values = np.random.RandomState(seed)
    pictures = values.rand(count, 1, 12, 12).astype("float32")
    labels = values.randint(0, 10, count)
    pictures[np.arange(count), 0, :, labels] += 1
    return pictures, labels.astype("float32")


def get_iterators(rank, size):
    pictures, labels = digits(640, 1)
    train = mx.io.NDArrayIter(pictures[rank::size], labels[rank::size], args.batch_size,
                              shuffle=True, last_batch_handle="discard")
    return train, mx.io.NDArrayIter(*digits(160, 2), args.batch_size)


def conv_nets():
    net = gluon.nn.HybridSequential()
    with net.name_scope():
        net.add(gluon.nn.Conv2D(channels=16, kernel_size=3, activation="relu"))
        net.add(gluon.nn.MaxPool2D(pool_size=(2, 1)))
        net.add(gluon.nn.Flatten())
        net.add(gluon.nn.Dense(32, activation="relu"))
        net.add(gluon.nn.Dense(10))
    return net


def evaluate(model, data_iter, context):
    data_iter.reset()
    metric = mx.metric.Accuracy()
    for batch in data_iter:
        data = batch.data[0].as_in_context(context)
        label = batch.label[0].as_in_context(context)
        output = model(data.astype(args.dtype, copy=False))
        metric.update([label], [output])
    return metric.get()


# Initialize Horovod
hvd.init()

# Horovod: pin context to local rank
context = mx.cpu(hvd.local_rank()) if args.no_cuda else mx.gpu(hvd.local_rank())
train_data, val_data = get_iterators(hvd.rank(), hvd.size())
model = conv_nets()
model.cast(args.dtype)
model.hybridize()
optimizer_params = {"momentum": args.momentum, "learning_rate": args.lr * hvd.size()}
opt = mx.optimizer.create("sgd", **optimizer_params)
mx.random.seed(hvd.rank())
np.random.seed(hvd.rank())
initializer = mx.init.Xavier(rnd_type="gaussian", factor_type="in", magnitude=2)
model.initialize(initializer, ctx=context)

# Horovod: fetch and broadcast parameters
params = model.collect_params()
if params is not None:
    hvd.broadcast_parameters(params, root_rank=0)

# Horovod: create DistributedTrainer, a subclass of gluon.Trainer
compression = hvd.Compression.fp16 if args.fp16_allreduce else hvd.Compression.none
trainer = hvd.DistributedTrainer(params, opt, compression=compression,
                                 gradient_predivide_factor=args.gradient_predivide_factor)
loss_fn = gluon.loss.SoftmaxCrossEntropyLoss()
metric = mx.metric.Accuracy()

for epoch in range(args.epochs):
    tic = time.time()
    train_data.reset()
    metric.reset()
    for batch in train_data:
        data = batch.data[0].as_in_context(context)
        label = batch.label[0].as_in_context(context)
        with autograd.record():
            output = model(data.astype(args.dtype, copy=False))
            loss = loss_fn(output, label)
        loss.backward()
        trainer.step(args.batch_size)
        metric.update([label], [output])
    name, val_acc = evaluate(model, val_data, context)
    if hvd.rank() == 0:
        logging.info("Epoch[%d]\tTime cost=%f\tTrain: %s=%f\tValidation: %s=%f", epoch,
                     time.time() - tic, name, metric.get()[1], name, val_acc)

assert val_acc > 0.8, val_acc
sums = hvd.allgather(mx.nd.concat(*[p.data().reshape(-1) for p in params.values()], dim=0)
                     .reshape((1, -1)), name="weights")
assert (sums.asnumpy() == sums[0].asnumpy()).all()
print(f"rank {hvd.rank()} of {hvd.size()}: validation accuracy {val_acc:.3f}")
