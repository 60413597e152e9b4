"""msprobe ckpt compare: recognisable causes are told where every element proves them, and what no side ever saves is no finding."""

import json

import pytest
import torch
from graph_cases import run
from safetensors.torch import save_file


def compare(a, b, *options, code):
    """The result as JSON."""
    done = run(["ckpt", "compare", a, b, *options, "--json"], check=False)
    assert done.returncode == code, done.stderr + done.stdout[:2000]
    return json.loads(done.stdout)


def differing(result):
    return {w["a"]: w for w in result["weights"] if w["verdict"] == "differs"}


def weights(**sizes):
    torch.manual_seed(4)
    return {name: torch.randn(*size) for name, size in sizes.items()}


CAUSES = {
    "transposed": ("mixer.weight", lambda w: w.t().contiguous(), "transposed"),
    "gates": ("lstm.weight_ih_l0", lambda w: w.view(4, 12, 9)[[0, 2, 1, 3]].reshape(48, 9), "blocks of 12 rows"),
    "halves": ("gate_up.weight", lambda w: torch.cat(w.chunk(2)[::-1]), "halves are exchanged"),
    "columns": ("mixer.weight", lambda w: w[:, torch.arange(23, -1, -1)].contiguous(), "columns of B"),
    "rounded": ("mixer.weight", lambda w: w.half().float(), "A is B rounded to float16"),
    "zeros": ("gate_up.weight", torch.zeros_like, "A is all zeros"),
}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_that_all_elements_prove_is_told(tmp_path, cause):
    name, wrong, words = CAUSES[cause]
    good = weights(**{"mixer.weight": (24, 24), "lstm.weight_ih_l0": (48, 9), "gate_up.weight": (36, 7)})
    save_file(good, tmp_path / "b.safetensors")
    save_file({**good, name: wrong(good[name])}, tmp_path / "a.safetensors")
    (found,) = differing(compare(tmp_path / "a.safetensors", tmp_path / "b.safetensors", code=1)).values()
    assert found["a"] == name and words in found["how"], found.get("how")
    text = run(["ckpt", "compare", tmp_path / "a.safetensors", tmp_path / "b.safetensors"], check=False).stdout
    assert f"how: {found['how']}" in text


def test_one_element_off_is_no_proof(tmp_path):
    good = weights(**{"mixer.weight": (24, 24)})
    wrong = good["mixer.weight"].t().contiguous()
    wrong[3, 5] += 0.25
    save_file(good, tmp_path / "b.safetensors")
    save_file({"mixer.weight": wrong}, tmp_path / "a.safetensors")
    (found,) = differing(compare(tmp_path / "a.safetensors", tmp_path / "b.safetensors", code=1)).values()
    assert "how" not in found


def test_two_weights_that_are_exchanged_name_each_other(tmp_path):
    good = weights(**{"left.weight": (6, 5), "right.weight": (6, 5), "middle.weight": (6, 5)})
    save_file(good, tmp_path / "b.safetensors")
    save_file(
        {**good, "left.weight": good["right.weight"], "right.weight": good["left.weight"]}, tmp_path / "a.safetensors"
    )
    found = differing(compare(tmp_path / "a.safetensors", tmp_path / "b.safetensors", code=1))
    assert {n: w["how"] for n, w in found.items()} == {
        "left.weight": "exchanged with right.weight",
        "right.weight": "exchanged with left.weight",
    }


@pytest.mark.parametrize(("units", "verdict"), [(1, "round-off"), (3, "differs")])
def test_bfloat16_allows_each_element_one_unit(tmp_path, units, verdict):
    good = weights(**{"up.weight": (64, 32)})["up.weight"].bfloat16()
    bits = good.view(torch.int16).clone()
    bits[5, 7] += units  # one of 2048
    bits[5, 8] += 1
    save_file({"up.weight": good}, tmp_path / "b.safetensors")
    save_file({"up.weight": bits.view(torch.bfloat16)}, tmp_path / "a.safetensors")
    result = compare(tmp_path / "a.safetensors", tmp_path / "b.safetensors", code=0 if verdict == "round-off" else 1)
    assert [w["verdict"] for w in result["weights"]] == [verdict]


def test_a_float32_weight_that_is_not_the_one_rounded_differs(tmp_path):
    good = weights(**{"up.weight": (64, 32)})["up.weight"]
    later = good.clone()
    later[::3] *= 1 - 2**-7  # an update of about one unit of bfloat16
    save_file({"up.weight": good.bfloat16()}, tmp_path / "a.safetensors")
    save_file({"up.weight": good}, tmp_path / "b.safetensors")
    save_file({"up.weight": later}, tmp_path / "c.safetensors")
    assert compare(tmp_path / "a.safetensors", tmp_path / "b.safetensors", code=0)["weights"][0]["verdict"] == "rounded"
    assert compare(tmp_path / "a.safetensors", tmp_path / "c.safetensors", code=1)["weights"][0]["verdict"] == "differs"


def test_a_file_of_another_step_is_named(tmp_path):
    good = weights(**{f"layers.{i}.{n}": (8, 8) for i in range(2) for n in ("q", "k", "v", "o")})
    good |= {f"layers.{i}.norm": torch.ones(8) for i in range(2)}
    for side in "ab":
        (tmp_path / side).mkdir()
        places = {}
        for i in range(2):
            part = {n: w.clone() for n, w in good.items() if n.startswith(f"layers.{i}")}
            if side == "a" and i == 1:
                part = {n: w - 3e-6 * torch.sign(w) for n, w in part.items()}
            save_file(part, tmp_path / side / f"model-{i}.safetensors")
            places |= dict.fromkeys(part, f"model-{i}.safetensors")
        (tmp_path / side / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    result = compare(tmp_path / "a", tmp_path / "b", code=1)
    assert set(differing(result)) == {n for n in good if n.startswith("layers.1")}
    assert any("model-1.safetensors" in note and "stale" in note for note in result["notes"])


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv1d(3, 6, 3)
        self.bn = torch.nn.BatchNorm1d(6)
        self.fc = torch.nn.Linear(6, 2)


def test_what_mindspore_never_saves_is_no_finding(tmp_path):
    torch.save(Net().state_dict(), tmp_path / "net.pth")
    run(["ckpt", "convert", tmp_path / "net.pth", tmp_path / "net.ckpt"])
    for a, b in (("net.ckpt", "net.pth"), ("net.pth", "net.ckpt")):
        result = compare(tmp_path / a, tmp_path / b, code=0)
        assert result["only_a"] == result["only_b"] == []
        assert any("num_batches_tracked" in note for note in result["notes"])
    # Of two files of PyTorch it is a buffer that one has lost.
    torch.save({n: w for n, w in Net().state_dict().items() if "tracked" not in n}, tmp_path / "lost.pth")
    torch.save(Net().state_dict(), tmp_path / "net.pth")
    assert "bn.num_batches_tracked" in compare(tmp_path / "net.pth", tmp_path / "lost.pth", code=1)["only_a"]


def test_names_of_one_tied_weight_are_no_finding_and_copies_of_ones_are(tmp_path):
    table = weights(**{"table": (40, 8)})["table"]
    bias = torch.randn(40)
    once = {
        "roberta.embeddings.word_embeddings.weight": table,
        "lm_head.bias": bias,
        "lm_head.layer_norm.weight": torch.ones(8),
    }
    twice = {**once, "lm_head.decoder.weight": table.clone(), "lm_head.decoder.bias": bias.clone()}
    for side, held in (("a", twice), ("b", once)):
        (tmp_path / side).mkdir()
        save_file(held, tmp_path / side / "model.safetensors")
        (tmp_path / side / "config.json").write_text(json.dumps({"tie_word_embeddings": True}))
    result = compare(tmp_path / "a", tmp_path / "b", code=0)
    assert sorted(w["a"] for w in result["weights"] if w["matched_by"] == "tied") == [
        "lm_head.decoder.bias",
        "lm_head.decoder.weight",
    ]
    save_file({**twice, "encoder.norm.weight": torch.ones(8)}, tmp_path / "a" / "model.safetensors")
    assert compare(tmp_path / "a", tmp_path / "b", code=1)["only_a"] == ["encoder.norm.weight"]


def test_what_the_trainer_saves_beside_the_weights_is_compared(tmp_path):
    model = Net()
    groups = [{"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": 0.1}]
    groups.append({"params": [p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0})
    optimizer = torch.optim.AdamW(groups, lr=1e-3, fused=False)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)
    for p in model.parameters():
        p.grad = torch.randn_like(p)
    optimizer.step()
    scheduler.step()

    def save(side):
        path = tmp_path / side
        path.mkdir()
        save_file(model.state_dict(), path / "model.safetensors")
        torch.save(optimizer.state_dict(), path / "optimizer.pt")
        torch.save(scheduler.state_dict(), path / "scheduler.pt")
        (path / "trainer_state.json").write_text(json.dumps({"global_step": 1}))
        return path

    b, same = save("b"), save("same")
    optimizer.param_groups[1]["lr"] = optimizer.param_groups[1]["initial_lr"]
    optimizer.param_groups[0]["foreach"] = True  # another way to the same numbers
    a = save("a")
    assert len(compare(same, b, "--optimizer", code=0)["weights"]) > 20
    (found,) = differing(compare(a, b, "--optimizer", code=1)).values()
    assert found["a"] == "param_groups.1.lr" and found["first"]["file_a"].endswith("optimizer.pt")
    assert (found["first"]["a"], found["first"]["b"]) == (1e-3, 5e-4)
