"""The Trainer of torchtitan with a small Llama 3 under FSDP2, two micro batches a step: `titan_llama.py DIRECTORY [--insert] [--fault]`.

`titan_llama.py DIRECTORY --files` makes the tokenizer; nothing is downloaded. `--insert`: torchtitan/trainer.py is read with the lines
of insertions.py in it. On a CPU torchtitan needs three things to be said: that the device is one, that its Triton kernels
of one kind of expert parallelism are not there, and an attention that has a backward pass (FlexAttention of a CPU has none).
"""

import os
import sys
import types
from pathlib import Path

import torch
from insertions import read_edited
from small import MICRO, STEPS, Told
from tiny_qwen import make_tokenizer, sentences
from torch.distributed.fsdp import FSDPModule

ROWS, LENGTH = 2, 16


class Absent(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)


class Device:
    """What torchtitan asks an accelerator for, of a CPU."""

    set_device = reset_peak_memory_stats = empty_cache = synchronize = staticmethod(lambda *_: None)
    device_count = staticmethod(lambda: 1)
    current_device = staticmethod(lambda: 0)
    get_device_name = staticmethod(lambda device: "CPU")
    get_device_properties = staticmethod(lambda *_: types.SimpleNamespace(total_memory=1 << 30, name="CPU"))
    memory_stats = staticmethod(lambda device: {})


def use_cpu():
    utils = torch._utils
    kept = utils._get_available_device_type, utils._get_device_module
    utils._get_available_device_type, utils._get_device_module = lambda: "cpu", lambda kind: Device
    import torchtitan.tools.utils  # noqa: F401 - it asks when it is imported

    utils._get_available_device_type, utils._get_device_module = kept
    kernels = "torchtitan.distributed.minimal_async_ep.kernels"
    sys.modules[kernels] = Absent(kernels)


def configuration(directory, files):
    from datasets import Dataset
    from torchtitan.hf_datasets import text_datasets
    from torchtitan.models.common.attention import ScaledDotProductAttention
    from torchtitan.models.llama3 import config_registry

    config = config_registry.llama3_debugmodel()
    model = config.model_spec.model
    del model.layers[3:]
    for layer in model.layers:
        layer.attention.inner_attention = ScaledDotProductAttention.Config()
    if "--fault" in sys.argv:
        model.layers[1].ffn_norm.eps = 0.1
    text_datasets.DATASETS["rows"] = text_datasets.DatasetConfig(
        path="rows",
        loader=lambda path: Dataset.from_list([{"text": line} for line in sentences() * 8]),
        sample_processor=lambda row: row["text"],
    )
    config.dataloader.dataset = "rows"
    config.hf_assets_path, config.dump_folder = str(files), str(directory / "output")
    training = config.training
    training.steps, training.seq_len, training.local_batch_size, training.global_batch_size = (
        STEPS,
        LENGTH,
        ROWS,
        ROWS * MICRO * int(os.environ["WORLD_SIZE"]),
    )
    training.disable_cuda_graphs, training.mixed_precision_param = True, "float32"
    # The default asks fully_shard for what PyTorch 2.13 does not have.
    config.parallelism.spmd_backend = "partial_dtensor"
    config.debug.seed = 5
    return config


def train(directory, files):
    if "--insert" in sys.argv:
        read_edited("torchtitan.trainer")
    use_cpu()
    import torchtitan.distributed.utils

    torchtitan.distributed.utils.set_pg_timeouts = lambda **_: None  # by a function that PyTorch 2.13 does not have
    trainer, told = configuration(directory, files).build(), Told()
    (model,) = trainer.model_parts
    for module in model.modules():
        if isinstance(module, FSDPModule):
            module.set_force_sum_reduction_for_comms(True)  # gloo has no sum that multiplies first
    told.watch(dict(model.named_parameters()))
    model.tok_embeddings.register_forward_pre_hook(lambda module, inputs: told.saw(inputs[0]))
    log = trainer.metrics_processor.log
    trainer.metrics_processor.log = lambda step, loss, *rest, **named: (
        told.lost(torch.tensor(loss)),
        log(step, loss, *rest, **named),
    )
    trainer.train()
    told.write(directory, torch.distributed.get_rank(), model.parameters())
    trainer.close()
    torch.distributed.destroy_process_group()


torch.set_num_threads(1)
where = Path(sys.argv[1]).resolve()
if "--files" in sys.argv:
    make_tokenizer(where)
else:
    train(where, where.parent / "files")
