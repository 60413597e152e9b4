"""The checklist asked of what checkpoints say about the training that wrote them."""

import json

import numpy as np
import pytest
import torch
from checkpoint_savers import llama, save_distributed, save_megatron, save_safetensors
from graph_cases import run


def checklist(target, golden=None, code=None):
    sides = ["-tp", target, *(["-gp", golden] if golden else [])]
    done = run(["config_check", *sides, "--json"], check=False)
    assert done.returncode in ((0, 1) if code is None else (code,)), done.stderr
    return json.loads(done.stdout) if code != 3 else done.stderr


def failing(report):
    return {f["rule"]: f for f in report["findings"] if f["verdict"] == "fail"}


def change_arguments(directory, **changes):
    for file in directory.glob("iter_*/*/model_optim_rng.pt"):
        saved = torch.load(file, weights_only=False)
        for name, value in changes.items():
            setattr(saved["args"], name, value)
        torch.save(saved, file)


ARGUMENTS = {"num_layers": 4, "lr": 1e-4, "adam_beta2": 0.95, "seq_length": 64, "hidden_dropout": 0.0, "bf16": True}


def test_arguments_of_megatron_are_compared_with_those_of_a_script(tmp_path):
    save_megatron(llama(), tmp_path / "a")
    change_arguments(tmp_path / "a", **ARGUMENTS)
    save_megatron(llama(), tmp_path / "b")
    change_arguments(tmp_path / "b", **ARGUMENTS, params_dtype=torch.bfloat16)
    assert not {"optimizer.lr", "optimizer.beta2", "structure.num_layers"} & {
        *failing(checklist(tmp_path / "a", tmp_path / "b"))
    }
    change_arguments(tmp_path / "b", lr=2e-4, adam_beta2=0.999)
    found = failing(checklist(tmp_path / "a", tmp_path / "b"))
    assert {"optimizer.lr", "optimizer.beta2"} <= {*found}
    assert (found["optimizer.lr"]["target"], found["optimizer.lr"]["golden"]) == ("0.0001", "0.0002")
    assert "model_optim_rng.pt" in found["optimizer.lr"]["golden_from"]
    script = tmp_path / "run.sh"
    script.write_text("torchrun pretrain_gpt.py --num-layers 4 --lr 3e-4 --seq-length 64 --bf16\n")
    found = failing(checklist(tmp_path / "a" / "iter_0000005" / "mp_rank_00_000" / "model_optim_rng.pt", script))
    assert found["optimizer.lr"]["golden_from"] == f"{script}:1"


def test_a_model_of_transformers_is_its_config_and_its_trainer_state(tmp_path):
    save_safetensors(llama(), tmp_path / "a")
    save_safetensors(llama(), tmp_path / "b")
    config = json.loads((tmp_path / "b" / "config.json").read_text())
    (tmp_path / "b" / "config.json").write_text(json.dumps({**config, "num_hidden_layers": 6}))
    (tmp_path / "b" / "trainer_state.json").write_text('{"max_steps": 7, "log_history": [{"loss": 2.0}]}')
    assert "structure.num_layers" in failing(checklist(tmp_path / "a", tmp_path / "b"))


def test_checkpoints_that_say_nothing_and_no_checkpoints(tmp_path):
    save_distributed(llama(), tmp_path / "dcp")
    assert "holds no arguments of a training" in checklist(tmp_path / "dcp", code=3)
    (tmp_path / "empty").mkdir()
    assert "holds no configuration" in checklist(tmp_path / "empty", code=3)
    (tmp_path / "bad.pt").write_bytes(b"\x80\x02cos\nsystem\n(X\x04\x00\x00\x00truetR.")
    assert "bad.pt" in checklist(tmp_path / "bad.pt", code=3)


@pytest.mark.deep
def test_training_arguments_of_transformers(tmp_path):
    from transformers import TrainingArguments

    for name, lr in (("a", 1e-4), ("b", 3e-4)):
        save_safetensors(llama(), tmp_path / name)
        arguments = TrainingArguments(output_dir=str(tmp_path / "out"), learning_rate=lr, lr_scheduler_type="cosine")
        torch.save(arguments, tmp_path / name / "training_args.bin")
    found = failing(checklist(tmp_path / "a", tmp_path / "b"))
    assert (found["optimizer.lr"]["target"], found["optimizer.lr"]["golden"]) == ("0.0001", "0.0003")
    assert "training_args.bin" in found["optimizer.lr"]["target_from"]


def test_tokens_of_recorded_batches_are_words_of_the_vocabulary(tmp_path):
    save_safetensors(llama(), tmp_path / "model")  # of 96 words
    rng = np.random.default_rng(0)
    for step in range(2):
        for rank in range(2):
            directory = tmp_path / "batches" / f"step_{step}" / f"rank_{rank}"
            directory.mkdir(parents=True)
            np.save(directory / "tokens.npy", rng.integers(0, 96, (2, 8)).astype(np.int32))
            np.save(directory / "labels.npy", np.full((2, 8), -100))

    def verdict(*more):
        done = run(["config_check", "-tp", tmp_path / "model", *more, "--json"], check=False)
        assert done.returncode in (0, 1), done.stderr
        return {f["rule"]: f["verdict"] for f in json.loads(done.stdout)["findings"]}["other.input_ids"]

    assert verdict() == "ask"
    assert verdict(tmp_path / "batches") == "pass"
    for bad in (96, -1):
        tokens = np.zeros((2, 8), np.int64)
        tokens[1, 3] = bad
        np.save(tmp_path / "batches" / "step_1" / "rank_1" / "tokens.npy", tokens)
        assert verdict(tmp_path / "batches") == "fail"
    (tmp_path / "batches" / "step_1" / "rank_1" / "tokens.npy").write_bytes(b"no array")
    assert "tokens.npy" in checklist(tmp_path / "batches", code=3)
