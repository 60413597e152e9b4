"""msprobe config_check over programs whose settings come from a file and a command, and over what one side alone says."""

import json

from graph_cases import run

PROGRAM = """import os
batch_size = 12
gradient_accumulation_steps = 5 * 8
learning_rate = 3e-4
block_size = 256
n_layer = 4
n_embd = 128
bias = False
{more}
exec(open('configurator.py').read())
if int(os.environ.get('RANK', -1)) != -1:
    gradient_accumulation_steps //= int(os.environ['WORLD_SIZE'])
optimizer = torch.optim.AdamW(model.parameters(), lr=learning_rate)
"""
NANO = "decay_lr = True\nwarmup_iters = 100\nmin_lr = 6e-5\nmax_iters = 5000\n"
FILE = "batch_size = 6\ngradient_accumulation_steps = 4 * 8\nbias = True\n"
CLM = (
    'cd "$(dirname "$0")"\n'
    "torchrun --nproc_per_node 8 run_clm.py --config_name model --block_size 256 --per_device_train_batch_size 6 "
    "--gradient_accumulation_steps 4 --learning_rate 5e-4 --max_steps 5000 --do_train --output_dir out\n"
)
MODEL = {"model_type": "gpt2", "n_layer": 4, "n_head": 4, "n_embd": 128, "vocab_size": 50304, "n_positions": 256}


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def compare(target, golden):
    done = run(["config_check", "-tp", *target, "-gp", *golden, "--json"], check=False)
    assert done.returncode in (0, 1), done.stderr
    report = json.loads(done.stdout)
    return report, {finding["rule"]: finding for finding in report["findings"]}


def nano(folder, more, command):
    files = {
        "train.py": PROGRAM.format(more=more),
        "config/run.py": FILE,
        "run.sh": command,
        "configurator.py": "pass\n",
    }
    return write(folder, files)


def test_a_configurator_overrides_the_constants_of_its_program(tmp_path):
    command = "torchrun --nproc_per_node=8 train.py config/run.py --learning_rate=5e-4\n"
    golden = write(tmp_path / "b", {"run.sh": CLM, "model/config.json": json.dumps(MODEL)})
    for name, more in (("nano", NANO),):
        target = nano(tmp_path / name, more, command)
        report, found = compare([target], [golden])
        # The steps of accumulation are those of all processes together.
        assert found["optimizer.global_batch_size"]["verdict"] == "pass", name
        assert found["optimizer.global_batch_size"]["target"] == "192"
        assert found["optimizer.lr"]["verdict"] == "pass"
        assert found["structure.num_layers"]["verdict"] == "pass", "the model that --config_name names"
        assert "True" in found["precision.bias_add"]["target"]
        if name == "nano":
            assert found["structure.qkv_bias"]["verdict"] == "pass" and report["target_frameworks"][0] == "nanoGPT"
        assert not [warning for warning in report["warnings"] if "model.yaml" in warning]


def test_a_configuration_name_of_hydra_is_a_yaml(tmp_path):
    command = "python train.py --config-name tiny --config-path conf trainer.lr=0.1 batch_size=4\n"
    side = write(tmp_path, {"run.sh": command})
    done = run(["config_check", "-tp", side / "run.sh", "-gp", side / "run.sh", "--json"], check=False)
    report = json.loads(done.stdout)
    assert done.returncode == 5 and report["not_read"] == ["tiny.yaml", "tiny.yaml"], "it may set anything"
    assert any("tiny.yaml is not here" in warning for warning in report["warnings"])


def test_options_of_timm_tell_it(tmp_path):
    options = "--opt adamw --lr 1e-3 --sched cosine --warmup-epochs 20 --reprob 0.25"
    timm = write(tmp_path / "a", {"run.sh": f"torchrun --nproc_per_node=8 train.py /d --model vit -b 128 {options}\n"})
    deit = write(tmp_path / "b", {"run.sh": f"torchrun --nproc_per_node=8 main.py --data /d --model vit {options}\n"})
    report, found = compare([timm / "run.sh"], [timm / "run.sh"])
    assert report["target_frameworks"] == ["timm"] and found["optimizer.global_batch_size"]["target"] == "1024"
    report, _ = compare([deit / "run.sh"], [deit / "run.sh"])
    assert report["target_frameworks"] == ["own program"], "another program with the same options"


def test_settings_of_one_side_alone_are_listed_together(tmp_path):
    command = "accelerate launch train_it.py --learning_rate=1e-5 --train_batch_size=4 --seed=7 --use_ema\n"
    dump = "learning_rate: 1.0e-5\ntrain_batch_size: 4\nseed: 7\nlr_warmup_steps: 500\nimage_column: image\ncrops: 2\n"
    side = write(tmp_path, {"run.sh": command, "hparams.yml": dump})
    report, found = compare([side / "run.sh"], [side / "hparams.yml"])
    together = found["settings.one_side"]
    assert (
        together["verdict"] == "ask" and "lr_warmup_steps 500" in together["golden"] and "crops 2" in together["golden"]
    )
    # A flag that is not given is off.
    assert [rule for rule in found if rule.startswith("setting.")] == ["setting.use_ema"]
    assert report["verdicts"]["ask"] == sum(f["verdict"] == "ask" for f in report["findings"])
    # Where the program is here, it says what it takes.
    option = 'parser.add_argument("--{}", type=int, default={})\n'
    program = (
        "import argparse\nparser = argparse.ArgumentParser()\n" + option.format("crops", 1) + option.format("seed", 1)
    )
    write(tmp_path, {"train_it.py": program})
    _, found = compare([side / "run.sh"], [side / "hparams.yml"])
    assert (found["setting.crops"]["target"], found["setting.crops"]["golden"]) == ("1", "2")
    text = run(["config_check", "-tp", side / "run.sh", "-gp", side / "hparams.yml"], check=False).stdout
    assert "it differs" in text


def test_settings_spelled_out_at_what_does_nothing_are_no_difference(tmp_path):
    options = (
        "--tensor-model-parallel-size 2 --train-iters 10 --lr-decay-style cosine --untie-embeddings-and-output-weights"
    )
    launch = f"torchrun --nproc_per_node 8 pretrain_gpt.py {options}"
    a = write(tmp_path / "a", {"run.sh": f"NNODES=1 {launch}\n"})
    usual = "--dataloader-type single --transformer-impl transformer_engine"
    b = write(tmp_path / "b", {"run.sh": f"{launch} {usual}\n"})
    _, found = compare([a / "run.sh"], [b / "run.sh"])
    assert not [rule for rule, f in found.items() if rule.startswith("setting.") and f["verdict"] == "warn"]
    write(tmp_path / "b", {"run.sh": f"{launch} {usual.replace('single', 'cyclic')}\n"})
    _, found = compare([a / "run.sh"], [b / "run.sh"])
    assert found["setting.dataloader_type"]["golden"] == "cyclic"


def test_numbers_in_a_unit_that_is_not_known_are_not_decided(tmp_path):
    own = "warmup_steps: 6400\nglobal_batch_size: 64\nlearning_rate: 1.0e-3\nsteps: 9000\nmodel_dim: 64\n"
    stack = "--train-iters 9000 --lr-warmup-iters 100 --global-batch-size 64 --lr 1e-3 --lr-decay-style cosine"
    side = write(tmp_path, {"own.yaml": own, "run.sh": f"torchrun --nproc_per_node 8 pretrain_gpt.py {stack}\n"})
    done = run(["config_check", "-tp", side / "own.yaml", "-gp", side / "run.sh", "--json"], check=False)
    report = json.loads(done.stdout)
    assert "optimizer.warmup_ratio" in report["not_compared"], report
    assert done.returncode == (1 if report["verdicts"]["fail"] else 5)
