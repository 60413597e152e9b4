"""msprobe config_check: packs, their comparison with mindstudio-probe both ways, logs of verl and slime, the checklist."""

import base64
import csv
import gzip
import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import openpyxl
import pytest
from graph_cases import run

CHECKS = Path(__file__).resolve().parents[1] / "checks"
TRAINING = """
import random, sys, torch
import numpy as np
from msprobe.core.config_check import ConfigChecker
ConfigChecker.apply_patches()
torch.manual_seed(int(sys.argv[2]))
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Linear(3, 2, dtype=torch.float32))
def draw():
    return [random.random() for _ in range(3)], np.random.rand(2), torch.rand(2)
draw()
ConfigChecker(model=model, shell_path=[sys.argv[3]], output_zip_path=sys.argv[1])
for step in range(2):
    model(torch.ones(2, 4)).sum().backward()
"""


def assert_refused(done, out, code, text):
    """One line that says why, and no result."""
    assert done.returncode == code, done.stderr
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("[msprobe] error: ") and text in line, line
    assert not out.exists()


def script(folder, text, name="run.sh"):
    path = folder / name
    path.write_text("#!/bin/bash\n" + text, encoding="utf-8")
    return path


def settings_of(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("hyperparameters/hyperparameters_static.json"))


def sheets_of(path):
    book = openpyxl.load_workbook(path, read_only=True)
    return {sheet.title: [list(row) for row in sheet.values] for sheet in book}


def train(python, folder, name, seed, launch):
    program = folder / "train.py"
    program.write_text(TRAINING, encoding="utf-8")
    env = {k: v for k, v in os.environ.items() if k not in ("MSPROBE_BIN", "PYTHONPATH")}
    done = subprocess.run(
        [str(python), str(program), str(folder / name), str(seed), str(launch)],
        capture_output=True,
        encoding="utf-8",
        env=env,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / name


def page_data(path):
    """What the command put into a page of the HTML report."""
    packed = re.search(r'id="data">([^<]*)<', path.read_text(encoding="utf-8"))[1]
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def test_pack_holds_no_secrets(tmp_path):
    script(tmp_path, "export WANDB_API_KEY=0123456789abcdef\nHF=hf_abcdefghijklmnopqrstuvwx\n", "secret.sh")
    launch = script(
        tmp_path,
        "source secret.sh\nexport HCCL_DETERMINISTIC=true\n"
        "torchrun --nproc_per_node 2 train.py --bf16 --lr 1e-4 --hf-token $HF --wandb-api-key $WANDB_API_KEY --pad-token '<pad>'\n",
    )
    out = tmp_path / "a.zip"
    run(
        ["config_check", "-d", launch, "-o", out],
        env={"MY_TOKEN": "x", "NCCL_SECRET": "plain words", "NCCL_ALGO": "Ring", "HF_TOKEN": "hf_" + "a" * 30},
    )
    with zipfile.ZipFile(out) as archive:
        assert archive.testzip() is None
        environment = json.loads(archive.read("env"))
        everything = b"".join(archive.read(name) for name in archive.namelist())
        packages = archive.read("pip").decode()
    for secret in (b"0123456789abcdef", b"hf_abc", b"hf_aaa", b"plain words", b"MY_TOKEN"):
        assert secret not in everything
    assert environment["HCCL_DETERMINISTIC"] == "true" and environment["NCCL_ALGO"] == "Ring"
    assert "HOME" not in environment and "PATH" not in environment
    assert re.search(r"^openpyxl=\d", packages, re.M)
    hidden = "<hidden by msprobe>"
    assert settings_of(out) == {
        "nproc_per_node": "2",
        "bf16": True,
        "lr": "1e-4",
        "hf-token": hidden,
        "wandb-api-key": hidden,
        "pad-token": "<pad>",
    }


def test_pack_of_the_environment_alone(tmp_path):
    """Also in a directory that has to be made, and by the Python face."""
    from msprobe.core.config_check import ConfigChecker

    run(["config_check", "-d", "-o", tmp_path / "new" / "a.zip"])
    ConfigChecker(output_zip_path=str(tmp_path / "b.zip"))
    for path in (tmp_path / "new" / "a.zip", tmp_path / "b.zip"):
        with zipfile.ZipFile(path) as archive:
            assert sorted(archive.namelist()) == ["env", "pip"]
    ConfigChecker.compare(str(tmp_path / "b.zip"), str(tmp_path / "new" / "a.zip"), str(tmp_path / "out"))
    assert sheets_of(tmp_path / "out" / "result.xlsx")["summary"][1:] == [["env", "pass"], ["pip", "pass"]]


def test_packs_compare(tmp_path):
    for name, rate, batch in (("a", "1e-4", 8), ("b", "2e-4", 8.0)):
        run(
            [
                "config_check",
                "-d",
                script(tmp_path, f"python3 train.py --lr {rate} --global-batch-size {batch} --seed 1\n"),
                "-o",
                tmp_path / f"{name}.zip",
            ]
        )
    done = run(["config_check", "-c", tmp_path / "a.zip", tmp_path / "b.zip", "-o", tmp_path / "out", "--json"])
    assert json.loads(done.stdout)["parts"] == {"env": "pass", "pip": "pass", "hyperparameters": "error"}
    sheets = sheets_of(tmp_path / "out" / "result.xlsx")
    assert list(sheets) == ["summary", "env", "pip", "hyperparameters"]
    assert sheets["hyperparameters"][1:] == [
        ["hyperparameters_static.json", "lr", "lr", "1e-4", "2e-4", "pure name", "error"]
    ]
    assert (tmp_path / "out" / "bench" / "env").is_file() and (tmp_path / "out" / "cmp" / "pip").is_file()
    data = page_data(tmp_path / "out" / "result.html")["configuration"]
    assert [(part["name"], part["verdict"]) for part in data["parts"]] == list(json.loads(done.stdout)["parts"].items())
    assert data["parts"][2]["rows"] == sheets["hyperparameters"][1:] and data["golden"]["files"] == [
        str(tmp_path / "a.zip")
    ]


def test_training_is_packed_as_the_earlier_tool_packs_it(tmp_path, old_python):
    launch = script(tmp_path, "torchrun --nproc_per_node 1 train.py --lr 1e-4 --num-layers 2\n")
    ours = train(sys.executable, tmp_path, "ours.zip", 1, launch)
    theirs = train(old_python, tmp_path, "theirs.zip", 1, launch)
    with zipfile.ZipFile(ours) as a, zipfile.ZipFile(theirs) as b:
        assert set(b.namelist()) == set(a.namelist())
        for name in a.namelist():
            if name.startswith(("dataset", "weights")):
                assert json.loads(a.read(name)) == json.loads(b.read(name)), name
        mine, others = (json.loads(z.read("random/rank0.json")) for z in (a, b))
    for name in ("random.random", "np.random.rand", "torch.rand", "torch.manual_seed"):
        assert mine[name] == others[name], name
    # Each tool reads the other's file, and finds data and weights equal.
    run(["config_check", "-c", ours, theirs, "-o", tmp_path / "by_us"])
    old = subprocess.run(
        [old_python.parent / "msprobe", "config_check", "-c", ours, theirs, "-o", tmp_path / "by_them"],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert old.returncode == 0, old.stdout + old.stderr
    for folder in ("by_us", "by_them"):
        sheets = sheets_of(tmp_path / folder / "result.xlsx")
        verdicts = dict(sheets["summary"][1:])
        assert verdicts["dataset"] == verdicts["weights"] == "pass", folder
        assert len(sheets["weights"]) == 1 + 2 * 4 and len(sheets["dataset"]) == 1 + 2
    mine, others = (sheets_of(tmp_path / f / "result.xlsx") for f in ("by_us", "by_them"))
    assert list(mine) == list(others)
    assert all(mine[title][0] == others[title][0] for title in mine)


def test_settings_of_a_script_and_a_yaml_are_packed_byte_by_byte(tmp_path, old_python):
    launch = script(
        tmp_path,
        'LR=1e-4\nGPT_ARGS="\n  --num-layers 2 \\\n  --lr $LR\n"\ntorchrun --nproc_per_node 2 train.py $GPT_ARGS --seed 1 --lr 2\n',
    )
    yaml = tmp_path / "a.yaml"
    yaml.write_text(
        "model:\n  layers: 2\n  dims: [1, 2]\n  none:\nopt:\n  lr: 1.0e-5\n  name: 'Ädam'\nflag: true\nmixed: [{a: 1}, 2]\n"
    )
    for path in (launch, yaml):
        run(["config_check", "-d", path, "-o", tmp_path / "ours.zip"])
        theirs = tmp_path / f"{path.name}.zip"
        old = subprocess.run(
            [old_python.parent / "msprobe", "config_check", "-d", path, "-o", theirs], capture_output=True, check=False
        )
        assert old.returncode == 0
        name = "hyperparameters/hyperparameters_static.json"
        with zipfile.ZipFile(tmp_path / "ours.zip") as a, zipfile.ZipFile(theirs) as b:
            assert a.read(name).decode() == b.read(name).decode()


def test_other_weights_and_a_second_run_are_found(tmp_path):
    launch = script(tmp_path, "python train.py --lr 1e-4\n")
    first = train(sys.executable, tmp_path, "first.zip", 1, launch)
    train(sys.executable, tmp_path, "second.zip", 1, launch)
    second = train(sys.executable, tmp_path, "second.zip", 2, launch)  # takes the place of the first
    with zipfile.ZipFile(second) as archive:
        assert len(archive.namelist()) == len(set(archive.namelist()))
    done = run(["config_check", "-c", first, second, "-o", tmp_path / "out", "--json"])
    parts = json.loads(done.stdout)["parts"]
    assert parts["weights"] == "error" and parts["dataset"] == parts["random"] == parts["hyperparameters"] == "pass"


@pytest.mark.deep
def test_ranks_share_one_file(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(
        "import os, sys, torch\n"
        "from msprobe.core.config_check import ConfigChecker\n"
        "ConfigChecker.apply_patches()\n"
        "torch.distributed.init_process_group('gloo', rank=int(sys.argv[2]), world_size=2, init_method='file://' + sys.argv[3])\n"
        "torch.manual_seed(int(sys.argv[2]))\n"
        "model = torch.nn.Linear(2, 2)\n"
        "ConfigChecker(model, output_zip_path=sys.argv[1])\n"
        "torch.distributed.barrier()\n"
        "for _ in range(5):\n    model(torch.ones(1, 2))\n"
    )
    arguments = [str(tmp_path / "a.zip")], [str(tmp_path / "store")]
    ranks = [
        subprocess.Popen([sys.executable, str(program), *arguments[0], str(rank), *arguments[1]]) for rank in range(2)
    ]
    assert [rank.wait(timeout=200) for rank in ranks] == [0, 0]
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        names = archive.namelist()
    expected = {
        f"{kind}/step{s}/rank{r}/{file}.json"
        for kind, file in (("dataset", "dataset"), ("weights", "weight"))
        for s in range(5)
        for r in range(2)
    }
    assert sorted(names) == sorted(expected | {"env", "pip", "random/rank0.json", "random/rank1.json"})


def test_a_failure_while_packing_leaves_the_training_alone(tmp_path):
    program = tmp_path / "train.py"
    program.write_text(
        TRAINING.replace("for step", f"import os, shutil; shutil.rmtree({str(tmp_path / 'gone')!r})\nfor step")
    )
    done = subprocess.run(
        [
            sys.executable,
            str(program),
            str(tmp_path / "gone" / "a.zip"),
            "1",
            str(script(tmp_path, "python a.py --n 1\n")),
        ],
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "could not be packed" in done.stderr and "no more steps" in done.stderr


def test_arguments_of_the_checker_are_checked(tmp_path):
    from msprobe.core.config_check import ConfigChecker

    for wrong in (
        {"output_zip_path": str(tmp_path / "a.tar")},
        {"model": 3, "output_zip_path": str(tmp_path / "a.zip")},
        {"shell_path": str(tmp_path / "absent.sh"), "output_zip_path": str(tmp_path / "a.zip")},
    ):
        with pytest.raises(ValueError, match=r"zip|Module|absent.sh does not exist"):
            ConfigChecker(**wrong)
    with pytest.raises(ValueError, match="pytorch or mindspore"):
        ConfigChecker.apply_patches("jax")


def test_logs_of_verl_and_slime(tmp_path):
    def verl(name, rate):
        (tmp_path / name).write_text(
            f"start\n(T pid=1) {{'actor_rollout_ref': {{'actor': {{'lr': {rate}, 'shuffle': True}}}},\n"
            "(W pid=2) {'noise': 1}\n(T pid=1)  'ray_init': {'n': 1}, 'x': None}\n"
        )
        return tmp_path / name

    a, b = verl("a.log", "1e-06"), verl("b.txt", "2e-06")
    done = run(["config_check", "-vc", a, b, "-o", tmp_path / "vc"])
    assert "1 of 3 settings differ" in done.stdout
    rows = list(csv.reader((tmp_path / "vc" / "hyper_params_compare.csv").open(encoding="utf-8-sig")))
    assert rows[1:] == [
        ["actor_rollout_ref/actor/lr", "1e-06", "2e-06", "否"],
        ["actor_rollout_ref/actor/shuffle", "True", "True", "是"],
        ["x", "None", "None", "是"],
    ]
    needs = tmp_path / "needs.yaml"
    needs.write_text("actor_rollout_ref:\n  actor:\n    shuffle: false\n    gone: 1\n")
    run(["config_check", "-vv", needs, a, "-o", tmp_path / "vv"])
    rows = list(csv.reader((tmp_path / "vv" / "hyper_params_verify.csv").open(encoding="utf-8-sig")))
    assert rows[1:] == [
        ["actor_rollout_ref/actor/gone", "1", "NA", "否"],
        ["actor_rollout_ref/actor/shuffle", "False", "True", "否"],
    ]
    slime = tmp_path / "s.log"
    slime.write_text("---- arguments ----\n  lr ..... 1e-06\n  profile_x .. 1\n---- end of arguments ----\n")
    run(["config_check", "-sc", slime, slime, "-o", tmp_path / "sc"])
    rows = list(csv.reader((tmp_path / "sc" / "hyper_params_compare.csv").open(encoding="utf-8-sig")))
    assert rows[1:] == [["lr", "1e-06", "1e-06", "是"]]


def test_checklist_of_a_pair_and_of_one_run(tmp_path):
    dense, yaml = CHECKS / "megatron_dense.sh", CHECKS / "mindformers_dense.yaml"
    done = run(["config_check", "-tp", dense, "-gp", yaml, "-o", tmp_path / "out", "--json"])
    report = json.loads(done.stdout)
    assert report["verdicts"]["fail"] == 0 and report["verdicts"]["pass"] > 40
    assert report["target_frameworks"] == ["Megatron"] and report["golden_frameworks"] == ["MindFormers"]
    assert json.loads((tmp_path / "out" / "checklist.json").read_text()) == report
    sheets = sheets_of(tmp_path / "out" / "checklist.xlsx")
    assert len(sheets["checklist"]) == 1 + len(report["findings"]) and ["num_layers", "32", "32"] in [
        row[:3] for row in sheets["effective"]
    ]
    page = (tmp_path / "out" / "checklist.html").read_text(encoding="utf-8")
    data = page_data(tmp_path / "out" / "checklist.html")["configuration"]
    assert [f["rule"] for f in data["findings"]] and len(data["findings"]) == len(report["findings"])
    assert "structure.num_layers" not in page, "the data is packed"
    assert data["target"] == {"files": [str(dense)], "frameworks": ["Megatron"]}
    other = tmp_path / "other.yaml"
    other.write_text(yaml.read_text().replace("num_layers: 32", "num_layers: 30"))
    done = run(["config_check", "-tp", other, "-gp", dense], check=False)
    assert done.returncode == 1 and "fail  structure.num_layers" in done.stdout and "other.yaml:75" in done.stdout
    chinese = run(["config_check", "-tp", other, "-gp", dense], check=False, env={"LC_ALL": "zh_CN.UTF-8"})
    assert "两侧模型层数不同" in chinese.stdout
    alone = json.loads(run(["config_check", "-tp", yaml, "--json"]).stdout)
    assert alone["golden_frameworks"] == [] and alone["verdicts"]["fail"] == 0


def verdicts(*arguments):
    done = run(["config_check", *arguments, "--json"], check=False)
    assert done.returncode in (0, 1), done.stderr
    return {finding["rule"]: finding["verdict"] for finding in json.loads(done.stdout)["findings"]}


def tokenizer(directory, tokens, eos="</s>", piece=False):
    """The files of a tokenizer with these tokens, as the library tokenizers or SentencePiece writes them."""
    directory.mkdir()
    if piece:

        def field(number, body):
            return bytes([number << 3 | 2, len(body)]) + body

        model = b"".join(field(1, field(1, token.encode())) for token in tokens)
        (directory / "tokenizer.model").write_bytes(model)
        return directory
    vocabulary = {token: number for number, token in enumerate(tokens)}
    (directory / "tokenizer.json").write_text(json.dumps({"model": {"type": "BPE", "vocab": vocabulary}}))
    (directory / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": eos}}))
    return directory


def test_tokenizers_against_the_model_and_each_other(tmp_path):
    tokens = ["<unk>", "<s>", "</s>", "a", "b"]
    fine = tokenizer(tmp_path / "fine", tokens)
    pieces = tokenizer(tmp_path / "pieces", tokens, piece=True)
    other = tokenizer(tmp_path / "other", [*tokens[:3], "b", "a"], eos="a")
    large = tokenizer(tmp_path / "large", [f"t{i}" for i in range(40000)])
    yaml = CHECKS / "mindformers_dense.yaml"
    same = verdicts("-tp", yaml, fine, "-gp", yaml, pieces)
    assert [same[f"other.tokenizer{part}"] for part in ("", "_ids", "_size")] == ["pass", "pass", "pass"]
    assert verdicts("-tp", yaml, fine, "-gp", yaml, other)["other.tokenizer"] == "fail"
    assert verdicts("-tp", yaml, other)["other.tokenizer_ids"] == "fail"
    assert verdicts("-tp", yaml, large)["other.tokenizer_size"] == "fail"
    (tmp_path / "fine" / "tokenizer.json").write_text('{"model": {"vocab"')
    done = run(["config_check", "-tp", yaml, fine], check=False)
    assert done.returncode == 3 and "tokenizer.json" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.deep
def test_the_vocabulary_of_a_real_tokenizer(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=300, special_tokens=["<unk>", "<s>", "</s>"], show_progress=False
    )
    made.train_from_iterator(["msprobe finds where a training run goes wrong"] * 9, trainer)
    (tmp_path / "t").mkdir()
    made.save(str(tmp_path / "t" / "tokenizer.json"))
    run(["config_check", "-tp", CHECKS / "mindformers_dense.yaml", tmp_path / "t", "-o", tmp_path / "out"])
    shown = {row[0]: row[1] for row in sheets_of(tmp_path / "out" / "checklist.xlsx")["effective"]}
    assert shown["tokenizer_vocabulary"].startswith(f"{made.get_vocab_size()} tokens, ")
    assert int(shown["tokenizer_largest_id"]) == max(made.get_vocab().values())


SENTENCES = ["msprobe finds where a training run goes wrong", "the loss of step 3 is 0.1 higher", "损失在第 3 步升高"]


def trained_tokenizer(directory, sentences, size=300):
    """A byte-level BPE as transformers saves it, trained on sentences."""
    tokenizers, transformers = pytest.importorskip("tokenizers"), pytest.importorskip("transformers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    specials = ["<unk>", "<s>", "</s>"]
    made.train_from_iterator(
        sentences * 9,
        tokenizers.trainers.BpeTrainer(
            vocab_size=size, special_tokens=specials, initial_alphabet=alphabet, show_progress=False
        ),
    )
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    fast.save_pretrained(directory)
    return fast


@pytest.mark.deep
def test_recorded_ids_come_back_through_a_real_tokenizer(tmp_path):
    own = trained_tokenizer(tmp_path / "own", SENTENCES)
    trained_tokenizer(tmp_path / "other", ["zebra quartz jumps", "vex nymph", "fjord waltz"])
    rank = tmp_path / "batches" / "step_0" / "rank_0"
    rank.mkdir(parents=True)
    rows = [own.encode("<s>" + s + "</s>", add_special_tokens=False) for s in SENTENCES * 2]
    np.save(rank / "tokens.npy", np.array([(row * 40)[:40] for row in rows]))
    found = {}
    for name in ("own", "other"):
        found[name] = verdicts("-tp", CHECKS / "mindformers_dense.yaml", tmp_path / "batches", tmp_path / name)
    assert found["own"]["other.round_trip"] == "pass"
    assert found["other"]["other.round_trip"] == "fail"


def test_pack_tells_the_range_of_the_tokens(tmp_path):
    def packed(name, most):
        place = tmp_path / name
        with zipfile.ZipFile(place, "w") as archive:
            features = {"max": most, "min": 0.0, "mean": 1.5, "norm": 2.0}
            archive.writestr("dataset/step0/rank0/dataset.json", json.dumps({"args": {"0": features}, "kwargs": {}}))
        return place

    for most, verdict in ((31999.0, "pass"), (32000.0, "fail")):
        done = run(
            ["config_check", "-tp", CHECKS / "mindformers_dense.yaml", packed("a.zip", most), "--json"], check=False
        )
        found = {f["rule"]: f["verdict"] for f in json.loads(done.stdout)["findings"]}
        assert found["other.input_ids"] == verdict
        assert done.returncode == (verdict == "fail")


WRONG = [
    (["-d", "absent.sh", "-o", "out.zip"], 3, "absent.sh does not exist"),
    (["-d", "-o", "a.tar"], 2, "must end in .zip"),
    (["-c", "a.zip", "b.zip"], 3, "a.zip does not exist"),
    (["-c", "dir", "dir"], 3, "holds no checkpoint"),
    (["-c", "text.zip", "text.zip"], 3, "is not a zip archive"),
    (["-vc", "a.json", "b.log"], 2, "is not a log"),
    (["-vc", "empty.log", "empty.log"], 3, "no configuration of verl"),
    (["-sc", "empty.log", "empty.log"], 3, "no list of arguments"),
    (["-vv", "empty.log", "empty.log"], 2, "is not a yaml file"),
    (["-tp", "empty.log"], 3, "no configuration that is known"),
    (["-tp", "nothing.yaml"], 3, "sets nothing that"),
    (["-gp", "nothing.yaml"], 2, "needs the run under test"),
    ([], 2, "config_check needs one of"),
]


@pytest.mark.parametrize(("arguments", "code", "text"), WRONG)
def test_wrong_input(arguments, code, text, tmp_path):
    (tmp_path / "dir").mkdir()
    (tmp_path / "text.zip").write_text("text")
    (tmp_path / "empty.log").write_text("step 1\n")
    (tmp_path / "nothing.yaml").write_text("a: 1\n")
    output = [] if "-o" in arguments else ["-o", "out"]
    done = run(["config_check", *arguments, *output], check=False, cwd=tmp_path)
    assert_refused(done, tmp_path / "out", code, text)


def test_links_and_bombs_of_archives(tmp_path):
    link = tmp_path / "link.zip"
    with zipfile.ZipFile(link, "w") as archive:
        entry = zipfile.ZipInfo("env")
        entry.external_attr = 0o120777 << 16
        archive.writestr(entry, json.dumps({"NCCL_ALGO": "Ring"}))
        archive.writestr("../outside", "x")
    run(["config_check", "-c", link, link, "-o", tmp_path / "out"])
    assert not (tmp_path / "out" / "bench" / "env").is_symlink()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.zip", "out"]
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("env", b" " * (200 << 20))
    done = run(["config_check", "-c", bomb, bomb, "-o", tmp_path / "none"], check=False)
    assert_refused(done, tmp_path / "none", 3, "more than a pack holds")
