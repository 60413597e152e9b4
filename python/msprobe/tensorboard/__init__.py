"""The page as a tab of TensorBoard: `tensorboard --logdir out`, then GRAPH_ASCEND (/#graph_ascend)."""
