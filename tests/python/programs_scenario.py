"""Programs that call PrecisionDebugger, driven by their own code: programs_scenario.py PROGRAM SITE CONFIG OUT [LACK].

SITE holds the unpacked wheels. The same file runs under both tools. What it prints at the end is what the program saw.
LACK names something that the tool is made to lack first, to see that the test notices it."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import nn

program, site, config, out, *lack = sys.argv[1:]
site, out = Path(site), Path(out)
sys.path.insert(0, str(site))
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method=f"file://{out.resolve()}.group", rank=0, world_size=1)

from stand_ins import StandIn, part_of, stand_in_for  # noqa: E402


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        torch.manual_seed(width)
        self.up = nn.Linear(4, width)
        self.middle = nn.ReLU()
        self.down = nn.Linear(width, 4)

    def forward(self, x):
        return self.down(self.middle(self.up(x)))


class Holder:
    """An object of a program with the attributes that matter; every other one is a stand-in."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def __getattr__(self, name):
        return StandIn(name)


def values(seed=0):
    return torch.randn(2, 4, generator=torch.Generator().manual_seed(seed))


def verl():
    """Two global steps of PPO: each stage of the worker is annotated as in verl/workers."""
    stand_in_for("ray")
    from verl.utils.profiler import DistProfiler, ProfilerConfig
    from verl.utils.profiler.config import PrecisionDebuggerToolConfig

    class Worker:
        def __init__(self):
            tool = PrecisionDebuggerToolConfig(config_path=config, strict=True)
            settings = ProfilerConfig(tool="precision_debugger", enable=True, save_path=str(out), tool_config=tool)
            self.profiler = DistProfiler(rank=0, config=settings, tool_config=tool)
            self.actor_module, self.ref_module, self.critic_module = Net(8), Net(6), Net(5)

        @DistProfiler.annotate(role="actor_compute_log_prob")
        def compute_log_prob(self, batch):
            with torch.no_grad():
                return self.actor_module(batch["x"]).log_softmax(-1)

        @DistProfiler.annotate(role="ref_compute_log_prob")
        def compute_ref_log_prob(self, batch):
            with torch.no_grad():
                return self.ref_module(batch["x"]).log_softmax(-1)

        @DistProfiler.annotate(role="compute_values")
        def compute_values(self, batch):
            with torch.no_grad():
                return self.critic_module(batch["x"])

        @DistProfiler.annotate(role="actor_update")
        def update_actor(self, batch):
            for _ in range(2):  # mini batches
                self.actor_module(batch["x"]).pow(2).mean().backward()

        @DistProfiler.annotate(role="critic_update")
        def update_critic(self, batch):
            self.critic_module(batch["x"]).sum().backward()

        @DistProfiler.annotate(role="rollout_generate")
        def generate(self, batch):
            return self.actor_module(batch["x"])

    worker = Worker()
    for step in (1, 2):
        batch = {"x": values(step), "global_steps": step}
        worker.profiler.start(profile_step=step)
        for stage in (worker.generate, worker.compute_log_prob, worker.compute_ref_log_prob, worker.compute_values):
            stage(batch)
        worker.update_critic(batch)
        worker.update_actor(batch)
        worker.profiler.stop()
    debugger = worker.profiler._impl._debugger
    return [debugger.service.current_iter, debugger.service.current_rank]


def sglang(data_parallel):
    """Three forwards of the model runner, the whole of ModelRunner.forward around the model."""
    runtime = site / "sglang" / "srt" / "model_executor"
    settings = SimpleNamespace(msprobe_dump_config=config)
    create = part_of(
        runtime / "model_runner_components" / "misc_utils.py",
        "create_msprobe_debugger",
        get_observability=lambda: settings,
    )
    forward = part_of(
        runtime / "model_runner.py",
        "ModelRunner.forward",
        get_parallel=lambda: SimpleNamespace(dp_size=data_parallel),
        contextlib=__import__("contextlib"),
    )
    model = Net(8)
    runner = Holder(
        msprobe_debugger=create(),
        model=model,
        gpu_id=5,
        forward_pass_id=0,
        is_draft_worker=True,
        enable_elastic_ep=False,
    )
    runner._forward_raw = lambda batch, *others: SimpleNamespace(logits=model(batch.x), can_run_graph=False)
    with torch.inference_mode():
        for number in range(3):
            batch = Holder(x=values(number))
            assert forward(runner, batch).logits.shape == (2, 4)
    return [runner.forward_pass_id, runner.msprobe_debugger.config.level]


def vllm_ascend():
    """Three executions of the runner on an NPU without a graph, and one forward that is not to be recorded."""
    from msprobe.pytorch import PrecisionDebugger

    source = site / "vllm_ascend" / "worker" / "model_runner_v1.py"
    start = part_of(source, "NPUModelRunner._start_dump_data")
    finalize = part_of(source, "NPUModelRunner._finalize_dump_data")
    runner = Holder(debugger=PrecisionDebugger(config), _debugger_started=False, model=Net(8))
    with torch.inference_mode():
        for number in range(3):
            start(runner)
            start(runner)  # a request that comes while the first is there
            runner.model(values(number))
            finalize(runner)
            finalize(runner)
            runner.model(values(number))
    return [runner._debugger_started]


def titan():
    """The trainer's own step, as scripts for TorchTitan wrap it: parts of a pipeline; stop and step after a failure, too."""
    from msprobe.pytorch import PrecisionDebugger, seed_all

    seed_all(seed=61, mode=True, rm_dropout=False)
    debugger = PrecisionDebugger(config_path=config)
    train_step = part_of(site / "torchtitan" / "trainer.py", "Trainer.train_step", torch=torch, IGNORE_INDEX=-100)
    parts = [Net(8), Net(6)]

    def forward_backward_step(input_dict, labels, global_valid_tokens):
        loss = (parts[1](parts[0](input_dict["input"])) - labels).pow(2).sum() / global_valid_tokens
        loss.backward()
        if trainer.step == 2:
            raise ValueError("a step that failed")
        return loss

    trainer = Holder(
        model_parts=parts,
        optimizers=torch.optim.SGD([p for part in parts for p in part.parameters()], lr=0.01),
        gradient_accumulation_steps=2,
        num_pipeline_parallel_microbatches=1,
        device=torch.device("cpu"),
        forward_backward_step=forward_backward_step,
    )
    failures = 0
    for number in range(1, 4):
        trainer.step = number
        batches = iter([({"input": values(number + more)}, values(9)) for more in range(2)])
        debugger.start(model=trainer.model_parts)
        try:
            train_step(trainer, batches)
        except ValueError:
            failures += 1
        finally:
            for operation in (debugger.stop, debugger.step):
                operation()
    return [failures]


def started_once():
    """As the guide of torchtitan-npu has it: start() before the loop, step() after each step, stop() at the end."""
    from msprobe.pytorch import PrecisionDebugger

    debugger = PrecisionDebugger(config_path=config)
    model = Net(8)
    debugger.start(model)
    for number in range(2):
        model(values(number)).sum().backward()
        debugger.step()
    debugger.stop()
    return []


def swift():
    """As the guide of ms-swift has it: constructed again in each training step, with the model chunks of Megatron."""
    from inspect import signature

    from msprobe.pytorch import PrecisionDebugger

    takes_model = "model" in signature(PrecisionDebugger.__init__).parameters  # not in 26.x of the earlier tool
    chunks, seen = [Net(8), Net(6)], []
    for number in range(3):
        given = {"model": chunks} if takes_model else {}
        debugger = PrecisionDebugger(dump_path=str(out), level="mix", **given)
        debugger.start(**({} if takes_model else {"model": chunks}))
        try:
            chunks[1](chunks[0](values(number))).sum().backward()
        finally:
            debugger.stop()
            debugger.step()
        seen.append(debugger is PrecisionDebugger())
    return seen


def omni():
    """As the guide of verl-omni has it: an older import path first, a directory of its own for each worker."""
    try:
        from msprobe.pytorch.common.utils import seed_all
        from msprobe.pytorch.debugger.precision_debugger import PrecisionDebugger
    except ImportError:
        from msprobe.pytorch import PrecisionDebugger, seed_all
    seed_all(mode=True)
    debugger = PrecisionDebugger(config_path=config)
    place = str(Path(str(debugger.config.dump_path)) / "worker")
    debugger.config.dump_path = place
    debugger.service.config.dump_path = place
    model, seen = Net(8), [Path(debugger.config.dump_path).name]
    for number in range(2):
        debugger.start(model=model)
        model(values(number)).sum().backward()
        debugger.stop()
        seen.append(debugger.service.current_iter)
        debugger.step()
    return seen


def slime():
    """Stages that name their directory themselves, reset by the method's earlier name."""
    from msprobe.pytorch import PrecisionDebugger

    debugger = PrecisionDebugger(config_path=config)
    model, seen = Net(8), []
    for stage in ("generate_sequences", "old_log_prob", "update"):
        debugger.service.config.dump_path = str(out / stage)
        debugger.start(model=model)
        y = model(values())
        if stage == "update":
            y.sum().backward()
        debugger.stop()
        debugger.service._reset_status()
        seen.append(debugger.service.config.dump_path == str(out / stage))
    debugger.step()
    seen.append(debugger.service.current_iter)
    debugger.start(model=model)
    seen.append(debugger.service.current_iter)
    model(values())
    debugger.stop()
    return seen


def nothing(*_, **__):
    """Stands for a method that does not do its work."""


def take_away(what):
    """Makes PrecisionDebugger of msprobe one that programs would not find enough."""
    from msprobe._capture.service import ServiceConfig
    from msprobe.pytorch import PrecisionDebugger

    if what == "the place of a stage":
        keep = ServiceConfig.__setattr__
        ServiceConfig.__setattr__ = lambda self, key, value: None if key == "dump_path" else keep(self, key, value)
    elif what == "service":
        PrecisionDebugger.service = property(nothing, nothing)
    elif what == "rank_id":
        start = PrecisionDebugger.start
        PrecisionDebugger.start = staticmethod(lambda *args, **kwargs: start(*args, **{**kwargs, "rank_id": None}))
    else:
        setattr(PrecisionDebugger, what, nothing)


PROGRAMS = {
    "verl": verl,
    "sglang": lambda: sglang(1),
    "sglang_dp": lambda: sglang(2),
    "vllm_ascend": vllm_ascend,
    "titan": titan,
    "started_once": started_once,
    "swift": swift,
    "omni": omni,
    "slime": slime,
}
for what in lack:
    take_away(what)
saw = PROGRAMS[program]()
(out.parent / f"{out.name}.saw.json").write_text(json.dumps(saw))
torch.distributed.destroy_process_group()
