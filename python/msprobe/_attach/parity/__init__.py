"""`msprobe parity`: what each rank of a training computes in a step, with what each tensor is over the ranks.

client.py knows where steps begin and end, and looks at modules, gradients and parameters; engines.py finds the step of Megatron-LM
and DeepSpeed; places.py says which part of a tensor a rank holds; record.py writes; weights.py gives a reference the weights of
the ranks, and joined_batches.py above their batches.
"""
