"""What a framework calls back: a fault of ours never reaches the training, and tools/check_callbacks.py sees what is not guarded."""

import copy
import importlib.util
import pickle

import pytest
from conftest import REPO

torch = pytest.importorskip("torch")

from msprobe._capture import guard  # noqa: E402
from msprobe._capture.errors import MsprobeException  # noqa: E402
from msprobe.pytorch import hook_points  # noqa: E402
from msprobe.pytorch.hook_points import HookSet  # noqa: E402


def load_check():
    spec = importlib.util.spec_from_file_location("check_callbacks", REPO / "tools" / "check_callbacks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Odd(Exception):
    """Of no kind that a list of faults has."""


def test_faults_of_ours_are_counted_and_lost():
    def failing(*_):
        raise Odd("ours")

    model = torch.nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    hooks = HookSet()
    hooks.before(model, failing, kwargs=True)
    hooks.after(model, failing)
    hooks.around_step(optimizer, failing, failing)
    hooks.on_gradient(model.weight, failing)
    hooks.on_accumulated(model.weight, failing)
    before = sum(guard._lost.values())
    loss = model(torch.ones(2, 4)).sum()
    loss.backward()
    optimizer.step()
    assert sum(guard._lost.values()) - before == 6
    hooks.remove()
    model(torch.ones(2, 4)).sum().backward()
    assert sum(guard._lost.values()) - before == 6
    guard._lost.clear()  # else they are told when the tests end
    assert not model._forward_hooks and not model._forward_pre_hooks and not optimizer._optimizer_step_pre_hooks


def test_what_is_raised_on_purpose_goes_on():
    def stop(*_):
        raise MsprobeException(MsprobeException.CAPTURE_ERROR, "the end")

    def of_user(*_):
        raise Odd("theirs")

    with pytest.raises(MsprobeException):
        guard.shielded(stop)()
    with pytest.raises(Odd):
        guard.shielded(lambda: guard.of_the_script(of_user))()
    with pytest.raises(SystemExit):
        guard.shielded(lambda: exit(3))()
    assert guard.shielded(of_user, otherwise=5)() == 5


def test_copies_and_files_of_a_hooked_model(tmp_path, recwarn):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3))
    calls = []
    hooks = HookSet()
    hooks.after(model[0], lambda *_: calls.append(1))
    hooks.on_gradient(model[0].weight, lambda g: None)
    torch.save(model, tmp_path / "model.pt")
    assert b"msprobe" not in (tmp_path / "model.pt").read_bytes()
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other(torch.ones(1, 3))
    assert calls == []
    model(torch.ones(1, 3))
    assert calls == [1]
    assert not [w for w in recwarn if "hook" in str(w.message)]
    hooks.remove()


class Own(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.linear(x)


@pytest.mark.parametrize("most", [1, 2])
def test_hooks_are_put_away_and_back(most):
    """While compiled code runs (1) and is traced (2), whatever the script does with its own hooks meanwhile."""
    models = [Own() for _ in range(3)]
    hooks, calls = HookSet(), []
    for number, model in enumerate(models):
        hooks.before(model.linear, lambda *_, n=number: calls.append(("before", n)), kwargs=True)
        hooks.after(model.linear, lambda *_, n=number: calls.append(("after", n)))
        hooks.after(model, lambda *_, n=number: calls.append(("model", n)))
    first = models[1].linear.register_forward_hook(lambda *_: calls.append("of the script"))

    def run():
        calls.clear()
        for model in models:
            model(torch.ones(1, 2))
        return list(calls)

    of_script = [number for number, call in enumerate(run()) if call == "of the script"]
    whole = run()
    assert len(whole) == 10 and of_script == [5]
    for _ in range(2):
        hook_points._hide(1)
        assert run() == [("model", 0), "of the script", ("model", 1), ("model", 2)]
        if most == 2:
            hook_points._hide(2)
            assert run() == ["of the script"]
        second = models[2].linear.register_forward_hook(lambda *_: calls.append("second"))
        if most == 2:
            hook_points._hide(1)
        hook_points._hide(0)
        assert [call for call in run() if call != "second"] == whole and "second" in calls
        hook_points._hide(1)
        assert run() == [("model", 0), "of the script", ("model", 1), "second", ("model", 2)]
        hook_points._hide(0)
        models[2].linear._forward_hooks.pop(second.id)
        assert run() == whole
    hook_points._hide(1)
    first.remove()
    hooks.after(models[0], lambda *_: calls.append("late"))
    hook_points._hide(0)
    assert run().count("late") == 1 and "of the script" not in calls and len(calls) == 10
    hook_points._hide(1)
    hooks.remove()
    hook_points._hide(0)
    assert run() == [] and not any(id(m) in hook_points._homes for model in models for m in model.modules())


@pytest.mark.parametrize(
    "line, found",
    [
        ("module.register_forward_hook(hook)", 1),
        ("module.register_forward_hook(lambda *_: None)", 1),
        ("module.register_forward_hook(self._after, always_call=True)", 1),
        ("future.add_done_callback(functools.partial(f, 1))", 1),
        ("atexit.register(f)", 1),
        ("module.register_forward_hook(hook=f)", 1),
        ("module.register_forward_hook(shielded(hook))", 0),
        ("tensor.register_hook(callback(lambda g: g))", 0),
        ("call = shielded(f)\nmodule.register_forward_hook(call)", 0),
        ("@shielded\ndef call(*_): ...\nmodule.register_forward_hook(call)", 0),
        ("parsers.register(f)", 0),
    ],
)
def test_the_check_of_callbacks(line, found):
    assert len(load_check().faults("some.py", line)) == found


def test_each_callback_of_the_package_is_guarded(capsys):
    assert load_check().main() == 0, capsys.readouterr().out
