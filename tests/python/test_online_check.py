"""Calls of a training that are judged while it runs: what goes over the wire, who is let in, what is kept."""

import json
import os
import socket
import sys
import time
from pathlib import Path

import msprobe
import publish_online_check
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launch import HERE, run_python

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))
sys.path.append(str(Path(msprobe.__file__).parent))  # where the programs of the checker find each other

from _online_calls import RecordedCalls, check_call
from _online_journal import Journal, Segment
from _online_receiver import Receiver
from _online_tls import SetupError, read_token
from _online_wire import WireError, frame, frames_of, read_frame
from graph_cases import find_command

RUN = "0123456789abcdef"


def reader(data):
    """What a socket's recv() does."""
    rest = [data]

    def read(count):
        piece, rest[0] = rest[0][:count], rest[0][count:]
        return piece

    return read


def call(seq, name="Torch.exp.0", step=0, size=2):
    tensors = [{"name": "x.safetensors", "dtype": "torch.float32", "shape": [size]}]
    leaf = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [size], "data_name": "x.safetensors"}
    entry = {"input_args": [leaf], "input_kwargs": {}, "output": [leaf]}
    header = {"call": name, "seq": seq, "step": step, "forward": entry, "backward": None, "tensors": tensors}
    return header, b"\0" * 4 * size


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 300), st.binary(min_size=1, max_size=8))
def test_what_comes_is_a_frame_or_refused(body, at, change):
    whole = b"".join(frame({"a": 1}, (body,)))
    assert read_frame(reader(whole)) == ({"a": 1}, body)
    at %= len(whole)
    broken = (whole[:at] + change + whole[at + len(change) :])[: len(whole)]
    for data in (broken, whole[:at], body, b"MSPO\0\1\0\0" + body):
        if data != whole:
            with pytest.raises((WireError, EOFError)):
                read_frame(reader(data), most_body=1 << 20)


def test_a_call_fills_its_frame():
    header, body = call(1)
    check_call(header, body)
    tensor = header["tensors"][0]
    for wrong in (
        {"call": "../x"},
        {"seq": -1},
        {"seq": True},
        {"forward": []},
        {"tensors": [{**tensor, "shape": [3]}]},
        {"tensors": [{**tensor, "shape": [1 << 39, 1 << 39]}]},
        {"tensors": [{**tensor, "shape": [-1]}]},
        {"tensors": [{**tensor, "name": "../x.safetensors"}]},
        {"tensors": [{**tensor, "dtype": "torch.quint8"}]},
    ):
        with pytest.raises(WireError):
            check_call({**header, **wrong}, body)


def test_a_killed_checker_keeps_what_it_acknowledged(tmp_path):
    journal, segment = Journal(str(tmp_path)), Segment(str(tmp_path), RUN, 0, 3, 1)
    for number in (1, 2):
        segment.add(*(lambda header, body: (header, (body,)))(*call(number, step=3)))
    segment.commit()
    (path,) = tmp_path.glob("*.open")
    path.write_bytes(path.read_bytes() + b"".join(frame(*(lambda h, b: (h, (b,)))(*call(3))))[:-3])
    assert journal.waiting() == []
    journal.adopt()
    ((path, run, rank, step),) = journal.waiting()
    assert (run, rank, step) == (RUN, 0, 3) and journal.last(RUN, 0) == 2 and journal.last(RUN, 1) == 0
    with open(path, "rb") as file:
        assert [header["seq"] for header, _ in frames_of(file)] == [1, 2]
    journal.forget(path, run, rank, 2)
    assert journal.waiting() == [] and journal.last(RUN, 0) == 2


def test_a_token_is_for_one_pair_of_eyes(tmp_path):
    path = tmp_path / "token"
    path.write_text("sixteen letters and more\n")
    path.chmod(0o640)
    with pytest.raises(SetupError, match="chmod 600"):
        read_token(str(path))
    path.chmod(0o600)
    assert read_token(str(path)) == "sixteen letters and more" and read_token("") == ""
    path.write_text("short")
    with pytest.raises(SetupError, match="16 to"):
        read_token(str(path))


class Guest:
    """Somebody who connects."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 20)
        self.socket.settimeout(20)

    def say(self, header, body=b""):
        self.socket.sendall(b"".join(frame(header, (body,))))

    def hears(self):
        return read_frame(self.socket.recv)[0]


@pytest.fixture
def receiver(tmp_path):
    token = tmp_path / "token"
    token.write_text("the right token of the test")
    token.chmod(0o600)
    made = Receiver({"journal": str(tmp_path / "journal"), "ranks": [0], "most_bytes": 1 << 20})
    where = made.listen({"host": "127.0.0.1", "port": 0, "tls": "", "token": str(token)})
    return made, int(where.rpartition(":")[2])


def hello(port, **changes):
    guest = Guest(port)
    guest.say({"run": RUN, "rank": 0, "from": 1, "token": "the right token of the test", **changes})
    return guest, guest.hears()


def test_who_is_let_in(receiver):
    made, port = receiver
    assert "token" in hello(port, token="the wrong token of the test")[1]["refused"]
    assert "token" in hello(port, token=None)[1]["refused"]
    assert "rank 7" in hello(port, rank=7)[1]["refused"]
    assert "greeting" in hello(port, run="../../x")[1]["refused"]
    assert "too large" in hello(port, token="x" * 5000)[1]["refused"]
    publish_online_check.shout(port, os.urandom(100))
    guest, answer = hello(port)
    assert answer == {"acked": 0}
    guest.say(*call(1))
    assert guest.hears() == {"acked": 1}
    guest.say(*call(3))
    assert "3 comes after 1" in guest.hears()["refused"]
    # It comes back, and is told where to go on; what it says twice is not kept twice.
    guest, answer = hello(port)
    assert answer == {"acked": 1}
    guest.say(*call(2))
    guest.say({"end": True, "calls": 2, "steps_left_out": 1})
    answers = [guest.hears()]
    while "ended" not in answers[-1]:
        answers.append(guest.hears())
    assert answers[-1] == {"acked": 2, "ended": True}
    dumps = []
    while "ended" not in (found := made.next() or {}):
        if found:
            dumps.append(found)
            assert list(json.loads(Path(found["dump"]).read_text())["data"]) == ["Torch.exp.0.forward"]
            made.forget()
        else:
            time.sleep(0.01)
    assert [(found["step"], found["rank"], found["calls"]) for found in dumps] == [(0, 0, 1)] * 2
    assert found["ended"] == [{"rank": 0, "calls": 2, "left": None, "steps_left_out": 1}]
    assert len(made.warnings()) == 7


def test_without_a_secret_only_this_machine(tmp_path):
    made = Receiver({"journal": str(tmp_path), "ranks": [], "most_bytes": 1})
    with pytest.raises(SetupError, match="tls_path and token_path"):
        made.listen({"host": "0.0.0.0", "port": 0, "tls": "", "token": ""})


def test_a_training_is_judged_over_tls(tmp_path, monkeypatch):
    monkeypatch.setenv("MSPROBE_BIN", str(find_command()))
    tls, token = tmp_path / "tls", tmp_path / "token"
    publish_online_check.certificates(tls)
    token.write_text("the right token of the test")
    token.chmod(0o600)
    run = publish_online_check.Run(tmp_path / "run", 2, tls=tls, token=token).check()
    script = HERE / "online_scenario.py"
    losses = run_python([script, "none", 2, 2]).stdout
    assert run_python([script, run.config, 2, 2]).stdout == losses
    summary = run.summary()
    assert summary["judged"] == summary["sent"] == len(publish_online_check.rows(run.folder / "out")) > 10
    assert summary["device"] == "recorded" and summary["steps_left_out"] == 0
    assert summary["suspects"] == [] and summary["verdicts"]["round-off"] > 0
    assert not list((run.folder / "dump").rglob("*.pt"))


def test_numbers_of_a_dump_are_read_without_torch(tmp_path):
    script = (
        "import sys, torch; from msprobe.pytorch import PrecisionDebugger as D; d = D(sys.argv[1]); d.start();"
        "x = torch.ones(3, dtype=torch.bfloat16); torch.exp(x.expand(2, 3)); d.stop(); d.step()"
    )
    config = publish_online_check.config(tmp_path, online_run_ut=False)
    run_python(["-c", script, config])
    (folder,) = (tmp_path / "dump").glob("step0/rank*")
    calls = RecordedCalls(str(folder), True)
    header, bodies = calls.frame("Torch.exp.0")
    check_call({**header, "seq": 1, "step": 0}, b"".join(bodies))
    assert bodies[0] == b"\x80\x3f" * 6 and header["tensors"][0]["shape"] == [2, 3]
