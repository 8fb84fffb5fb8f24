"""horovod.tensorflow.elastic, answered by hvd.tensorflow.elastic."""
from hvd.tensorflow.elastic import TensorFlowKerasState, TensorFlowState, run  # noqa: F401
