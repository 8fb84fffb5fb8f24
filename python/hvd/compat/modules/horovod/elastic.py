# SPDX-License-Identifier: Apache-2.0
"""horovod.elastic, answered by hvd.elastic."""
from hvd.elastic import ObjectState, State, run, run_fn  # noqa: F401
