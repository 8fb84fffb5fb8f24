# SPDX-License-Identifier: Apache-2.0
"""horovod.data, answered by hvd."""
from horovod.data.data_loader_base import AsyncDataLoaderMixin as AsyncDataLoaderMixin
from horovod.data.data_loader_base import BaseDataLoader as BaseDataLoader
