"""The examples of docs/*/capture/inserting.md run as they are, and train as they do without the tool."""

import json
import re
from importlib.metadata import version

import pytest
from graph_cases import run as run_command
from launch import REPO, WARM, run_python

EXAMPLES = REPO / "examples" / "capture"
# What nearly every example imports.
WARM_MODEL = (*WARM, "transformers.models.llama.modeling_llama")
LAYERS = [f"Module.model.layers.{n}.LlamaDecoderLayer.forward.0" for n in (0, 1)]


def run(tmp_path, name, launcher=(), **config):
    """Names of the ops of each step and rank, and what the example prints with the tool and without."""
    printed = []
    for place, step in (("on", []), ("off", [1000])):
        directory = tmp_path / place
        directory.mkdir()
        keys = json.loads((EXAMPLES / "config.json").read_text())
        (directory / "config.json").write_text(json.dumps({**keys, "step": step, **({} if step else config)}))
        command, options = [*launcher, EXAMPLES / name, "config.json"], {"cwd": directory, "warm": WARM_MODEL}
        done = run_python(command, check=False, **options)
        # Now and then a process of gloo ends so, also where the tool records nothing.
        if place == "off" and "terminate called without an active exception" in done.stderr:
            done = run_python(command, check=False, **options)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-6000:]
        printed.append([line for line in done.stdout.split("\n") if line.startswith(("loss", "["))])
    assert not (tmp_path / "off" / "dump").exists()
    dumps = {
        f"{path.parent.parent.name}/{path.parent.name}": list(json.loads(path.read_text())["data"])
        for path in (tmp_path / "on" / "dump").glob("*/*/dump.json")
    }
    assert printed[0] == printed[1] and printed[0]
    return dumps


def test_plain_loop(tmp_path):
    dumps = run(tmp_path, "plain_loop.py", level="L0")
    assert sorted(dumps) == [f"step{n}/rank" for n in range(4)]
    assert dumps["step0/rank"] == dumps["step3/rank"]
    assert {*LAYERS, *(name.replace("forward", "backward") for name in LAYERS)} <= set(dumps["step0/rank"])


def test_trainer(tmp_path):
    dumps = run(tmp_path, "hf_trainer.py", level="L0")
    assert sorted(dumps) == ["step0/rank", "step1/rank"]
    # Two micro batches.
    assert {*LAYERS, LAYERS[0][:-1] + "1"} <= set(dumps["step1/rank"])


def test_generate_by_token_range(tmp_path):
    dumps = run(tmp_path, "generate_per_token.py")
    (names,) = dumps.values()
    forwards = [name for name in names if name.startswith("Module.lm_head.Linear")]
    assert forwards == ["Module.lm_head.Linear.forward.0", "Module.lm_head.Linear.forward.1"]


def test_a_step_for_each_token(tmp_path):
    dumps = run(tmp_path, "token_steps.py", step=["1-2"])
    assert sorted(dumps) == ["step1/rank", "step2/rank"]
    assert set(LAYERS) <= set(dumps["step1/rank"])


def test_megatron_style(tmp_path):
    dumps = run(tmp_path, "megatron_style.py", level="L0")
    assert sorted(dumps) == ["step0/rank", "step1/rank"]
    wanted = [f"Module.{chunk}.lm_head.Linear.forward.{micro}" for micro in (0, 1) for chunk in (0, 1)]
    assert [name for name in dumps["step1/rank"] if ".lm_head.Linear.forward" in name] == wanted


def test_accelerate(tmp_path):
    dumps = run(tmp_path, "accelerate_loop.py", level="L0")
    assert sorted(dumps) == ["step0/rank", "step1/rank"]
    assert {LAYERS[0], LAYERS[0][:-1] + "1"} <= set(dumps["step0/rank"])


def test_fsdp(tmp_path):
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    dumps = run(tmp_path, "fsdp.py", launcher, level="L0")
    assert sorted(dumps) == [f"step{step}/rank{rank}" for step in (0, 1) for rank in (0, 1)]
    assert dumps["step0/rank0"] == dumps["step0/rank1"] and any("layers.1" in name for name in dumps["step0/rank0"])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_guides_name_every_example(language):
    text = (REPO / "docs" / language / "capture" / "inserting.md").read_text(encoding="utf-8")
    examples = {path.name for path in EXAMPLES.glob("*.py")} - {"tiny.py"}
    assert {name for name in examples if name in text} == examples


def test_the_readme_shows_what_the_demo_prints(tmp_path):
    """Lines that end in dots are cut. With other releases of transformers the counts of ops are different ones."""
    for side, sabotage in (("golden", "none"), ("problem", "weight")):
        script = REPO / "examples" / "quickstart" / "train.py"
        run_python([script, "--dump", side, "--sabotage", sabotage, "--steps", "1"], cwd=tmp_path, warm=WARM_MODEL)
    for name, locale in (("README.md", "C"), ("README.zh.md", "zh_CN.UTF-8")):
        sides = ["-tp", "problem/step0", "-gp", "golden/step0"]
        done = run_command(["compare", *sides, "-o", "out"], cwd=tmp_path, env={"LC_ALL": locale})
        text = (REPO / name).read_text(encoding="utf-8")
        shown = re.search(r"```\n((?:Origin|误差源头)[^`]*)```", text)[1].splitlines()
        printed = done.stdout.splitlines()[: len(shown)]
        if f"| {version('transformers')} |" not in text:
            shown, printed = ([re.sub(r"\d+", "N", line) for line in lines] for lines in (shown, printed))
        cut = [line[: len(mine) - 3] + "..." if mine.endswith("...") else line for mine, line in zip(shown, printed)]
        assert cut == shown, name
