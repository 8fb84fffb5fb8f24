"""horovod.common.elastic, answered by hvd.elastic."""
from hvd.elastic import ObjectState, State, run_fn  # noqa: F401
