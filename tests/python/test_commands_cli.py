"""What compare and graph_visualize have in common when the input, the machine or the command line is bad.

Each case has an exit code (2 usage, 3 bad input, 4 the machine, 130 Ctrl-C), one line that says what, where and what
next, and leaves nothing behind."""

import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import openpyxl
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import TENSOR, find_command, golden_set, run, write_rank

COMMANDS = ["compare", "graph_visualize"]


def op(**output):
    return {"input_args": [TENSOR], "input_kwargs": {}, "output": [{**TENSOR, **output}]}


def make_rank(path, calls=3, head=None, data=None, **more):
    """A rank directory with modules and calls, good for both commands."""
    module = "Module.fc.Linear.forward.0"
    names = [f"Torch.add.{i}.forward" for i in range(calls)]
    construct = {**dict.fromkeys(names, module), module: None}
    data = {name: op() for name in construct} if data is None else data
    rank = write_rank(path, construct, data, **more)
    if head:
        dump = json.loads((rank / "dump.json").read_text())
        (rank / "dump.json").write_text(json.dumps({**dump, **head}))
    return rank


def files_in(directory):
    """Without the answer that `compare` writes beside its tables."""
    files = [str(p.relative_to(directory)) for p in Path(directory).rglob("*") if not p.is_dir()]
    return sorted(name for name in files if name != "first_divergence.json")


def assert_refused(done, out, code, *words):
    assert done.returncode == code, (done.stdout, done.stderr)
    lines = done.stderr.splitlines()
    assert len(lines) == 1 and lines[0].startswith("[msprobe] error: "), done.stderr
    for word in words:
        assert str(word) in lines[0]
    assert not Path(out).is_dir() or files_in(out) == []


@pytest.fixture(params=COMMANDS)
def command(request):
    return request.param


@pytest.fixture
def good(tmp_path):
    return make_rank(tmp_path / "good")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out"


def both(command, target, golden, out, *options, **more):
    return run([command, "-tp", target, "-gp", golden, "-o", out, *options], check=False, **more)


# Paths.


@pytest.mark.parametrize("side", [0, 1])
def test_no_such_path(command, good, tmp_path, out, side):
    paths = [good, good]
    paths[side] = tmp_path / "absent"
    assert_refused(both(command, *paths, out), out, 3, "absent does not exist", "give a dump.json or a dump directory")


def test_a_path_cannot_break_the_line(command, good, out):
    assert_refused(both(command, "/no\nsuch\x1b[2Jpath", good, out), out, 3, "/no\\nsuch\\x1b[2Jpath")


def test_empty_target_path(command, good, out):
    done = both(command, "", good, out)
    assert_refused(done, out, 2, "-tp")


def test_not_json(command, good, tmp_path, out):
    bad = make_rank(tmp_path / "bad")
    (bad / "dump.json").write_text("hello")
    assert_refused(both(command, bad, good, out), out, 3, bad / "dump.json", "'h'")


def test_truncated_dump(command, good, tmp_path, out):
    rank = make_rank(tmp_path / "cut", calls=30)
    text = (rank / "dump.json").read_text()
    (rank / "dump.json").write_text(text[: len(text) // 2])
    done = both(command, rank, good, out)
    assert done.returncode == 3
    assert "was cut: its dump.json ends early" in done.stdout.splitlines()[0]
    assert done.stderr.startswith("[msprobe] warning: ") and "complete ops were recovered" in done.stderr
    assert len(done.stderr.splitlines()) == 2 and "is not whole" in done.stderr.splitlines()[1]


def test_missing_stack(command, good, tmp_path, out):
    rank = make_rank(tmp_path / "a")
    (rank / "stack.json").unlink()
    done = both(command, rank, good, out)
    assert done.returncode == 0 and len(files_in(out)) == 1
    assert done.stderr == "" if command == "compare" else "stack.json does not exist" in done.stderr


@pytest.mark.parametrize("content", ["", "[1]", '{"Torch.add.0.forward": 5}', "{}"])
def test_bad_construct(command, good, tmp_path, out, content):
    """The table does not need it; the graph does."""
    rank = make_rank(tmp_path / "a", data={"Module.fc.Linear.forward.0": op(Norm=5.0)})
    (rank / "construct.json").write_text(content)
    done = both(command, rank, good, out)
    if command == "graph_visualize":
        return assert_refused(done, out, 3, "construct.json")
    assert done.returncode == 0 and len(files_in(out)) == 1
    assert ("construct.json" in done.stderr) == (content != "{}")
    return None


def test_truncated_stack_and_construct_are_said(command, tmp_path, out):
    rank = make_rank(tmp_path / "a", data={"Module.fc.Linear.forward.0": op(Norm=5.0)})
    (rank / "stack.json").write_text('{"0": [["Module.fc.Linear.forward.0"], ["File a, line 1, in f"]], "1": [[')
    text = (rank / "construct.json").read_text()
    (rank / "construct.json").write_text(text.rstrip("}\n ") + ",")
    done = both(command, rank, make_rank(tmp_path / "b"), out)
    assert done.returncode == 0, done.stderr
    assert "stack.json ends at byte" in done.stderr and "construct.json ends at byte" in done.stderr


@pytest.mark.parametrize("file", ["dump.json", "construct.json", "stack.json"])
def test_a_pipe_for_a_file_does_not_wait(command, good, tmp_path, out, file):
    rank = make_rank(tmp_path / "a")
    (rank / file).unlink()
    os.mkfifo(rank / file)
    done = both(command, rank, good, out)
    if command == "compare" and file != "dump.json":
        assert done.returncode == 0
    else:
        assert_refused(done, out, 3)


def test_kinds_of_directories(command, tmp_path, out):
    for side in "ab":
        make_rank(tmp_path / side / "step0" / "rank0")
    dump, step = tmp_path / "a", tmp_path / "b" / "step0"
    assert_refused(both(command, step, step / "rank0", out), out, 3, "step", "rank", "the same kind")
    assert_refused(both(command, dump, step, out), out, 3, "dump", "step", "the same kind")


def test_kinds_of_dumps(command, good, tmp_path, out):
    sums = {"Module.fc.Linear.forward.0": op(md5="0badcafe"), "Torch.add.0.forward": op(md5="0badcafe")}
    assert_refused(
        both(command, make_rank(tmp_path / "md5", data=sums), good, out), out, 3, "checksums", "summary_mode"
    )
    other = make_rank(tmp_path / "ms", framework="mindspore")
    done = both(command, other, good, tmp_path / "frameworks")
    assert done.returncode == 0 and len(files_in(tmp_path / "frameworks")) >= 1
    assert_refused(both(command, make_rank(tmp_path / "s", task="structure"), good, out), out, 3, "structure")


def test_modules_against_apis(command, tmp_path, out):
    modules = make_rank(tmp_path / "L0", head={"level": "L0"}, data={"Module.fc.Linear.forward.0": op()})
    apis = make_rank(tmp_path / "L1", head={"level": "L1"}, data={"Torch.add.0.forward": op()})
    (apis / "construct.json").write_text("{}")
    done = both(command, modules, apis, out)
    assert_refused(done, out, 3, "level", "L0")


def test_two_ranks_of_one_number(command, tmp_path, out):
    for name in ("t/rank", "t/rank0", "g/rank0"):
        make_rank(tmp_path / name)
    assert_refused(both(command, tmp_path / "t", tmp_path / "g", out), out, 3, "rank and rank0")
    for name in ("T/step1/rank0", "T/step01/rank0", "G/step1/rank0"):
        make_rank(tmp_path / name)
    assert_refused(both(command, tmp_path / "T", tmp_path / "G", out), out, 3, "step01 and step1")


def test_input_is_not_touched(command, tmp_path, out):
    a, b = make_rank(tmp_path / "a"), make_rank(tmp_path / "b")
    before = [(p, p.stat().st_mtime_ns) for p in sorted((tmp_path / "a").iterdir())]
    for path in (a, b):
        for file in path.iterdir():
            file.chmod(0o440)
        path.chmod(0o550)
    assert both(command, a, b, out).returncode == 0
    assert before == [(p, p.stat().st_mtime_ns) for p in sorted((tmp_path / "a").iterdir())]
    for path in (a, b):
        path.chmod(0o750)


def test_letters_and_spaces_in_paths(command, tmp_path):
    out = tmp_path / "ergebnis ü 结果"
    done = both(command, make_rank(tmp_path / "дамп 转储 a"), make_rank(tmp_path / "b'\"c"), out)
    assert done.returncode == 0, done.stderr
    assert len(files_in(out)) == 1 and str(out) in done.stdout


def test_names_that_are_not_utf8(command, tmp_path, out):
    rank = tmp_path / "a"
    rank.mkdir()
    name = b'"Torch.a\xff\xfe.0.forward"'
    value = b'{"input_args": [{"type": "str", "value": "\xff\x80z"}], "output": []}'
    head = b'{"task": "statistics", "level": "mix", "framework": "pytorch", "data": {'
    (rank / "dump.json").write_bytes(head + name + b": " + value + b"}}")
    (rank / "construct.json").write_bytes(b"{" + name + b": null}")
    (rank / "stack.json").write_bytes(b'{"0": [[' + name + b'], ["File \xff, line 1, in f"]]}')
    assert both(command, rank, rank, out).returncode == 0
    (result,) = (out / name for name in files_in(out))
    if command == "compare":
        text = result.read_text(encoding="utf-8")
        assert "Torch.a\ufffd\ufffd.0.forward.input.0" in text and "\ufffd\ufffdz" in text
        assert both(command, rank, rank, tmp_path / "xlsx", "--xlsx").returncode == 0
        (book,) = (tmp_path / "xlsx" / name for name in files_in(tmp_path / "xlsx"))
        assert openpyxl.load_workbook(book).active.cell(2, 1).value == "Torch.a\ufffd\ufffd.0.forward.input.0"
    else:
        db = sqlite3.connect(result)
        names = [row[0] for row in db.execute("SELECT node_name FROM tb_nodes")]
        db.close()
        assert "Torch.a\ufffd\ufffd.0.forward" in names


# Outputs.


def test_output_cannot_be_made(command, good, tmp_path):
    assert_refused(both(command, good, good, "/proc/here"), "/proc/here", 3, "/proc/here", "another output directory")
    (tmp_path / "file").write_text("mine")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        assert_refused(
            both(command, good, good, path), path, 3, tmp_path / "file", "not a directory", "another output directory"
        )
    assert (tmp_path / "file").read_text() == "mine"
    assert both(command, good, good, "").returncode in (2, 3)


def test_output_on_a_file_system_that_is_read_only(command, good, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    assert_refused(both(command, good, good, small_disk), small_disk, 3, small_disk, "-o")


def test_results_of_the_same_second_stay(command, good, out):
    """Commands that run side by side into one directory must not overwrite each other's results."""
    args = [find_command(), command, "-tp", good, "-gp", good, "-o", out]
    running = [subprocess.Popen(list(map(str, args)), stdout=subprocess.PIPE, text=True) for _ in range(6)]
    said = "".join(p.communicate(timeout=60)[0] for p in running)
    assert all(p.returncode == 0 for p in running)
    assert len(files_in(out)) == 6
    assert all(name in said for name in files_in(out))


def test_full_disk(command, tmp_path, small_disk):
    rank = make_rank(tmp_path / "a", calls=20000)
    assert_refused(both(command, rank, rank, small_disk / "out"), small_disk / "out", 4, "could not be written", "-o")


def test_full_disk_behind_a_workbook(tmp_path, small_disk):
    rank = make_rank(tmp_path / "a", calls=20000)
    done = both("compare", rank, rank, small_disk / "out", "--xlsx")
    assert_refused(done, small_disk / "out", 4, "could not be written", "-o")


def rank_results(directory, rows):
    """Results of two ranks, small ones, for merge_result; the configuration that merges them."""
    directory.mkdir(parents=True)
    for rank in range(2):
        lines = [f"Torch.add.{i}.forward.output.0,{value},1,1" for i, value in enumerate(rows)]
        text = "\n".join(["NPU Name,Max diff,NPU max,Bench max", *lines, ""])
        (directory / f"compare_result_rank{rank}_20260101120000.csv").write_text(text)
    config = directory.parent / "merge.yaml"
    config.write_text("api:\n- Torch.add\n")
    return ["merge_result", "-i", directory, "-config", config]


def test_full_disk_behind_a_merged_workbook(tmp_path, small_disk):
    merge = rank_results(tmp_path / "ranks", [f"0.{i}" for i in range(20000)])
    assert run([*merge, "-o", tmp_path / "out"]).returncode == 0
    done = run([*merge, "-o", small_disk / "out"], check=False)
    assert_refused(done, small_disk / "out", 4, "could not be written", "-o")


def test_a_merged_workbook_has_no_numbers_that_are_none(tmp_path):
    merge = rank_results(tmp_path / "ranks", ["nan", "inf", "1.5"])
    run([*merge, "-o", tmp_path / "out"])
    (book,) = (tmp_path / "out" / name for name in files_in(tmp_path / "out"))
    with zipfile.ZipFile(book) as members:
        sheet = members.read("xl/worksheets/sheet1.xml")
    assert b"<v>nan</v>" not in sheet and b"<v>inf</v>" not in sheet
    rows = list(openpyxl.load_workbook(book).active.values)
    assert [row[1:] for row in rows[1:]] == [("nan", "nan"), ("inf", "inf"), (1.5, 1.5)]


def test_workbook_without_room_for_temporary_files_elsewhere(tmp_path, small_disk, out):
    """The rows wait beside the result: a small TMPDIR must not shorten the workbook."""
    rank = make_rank(tmp_path / "a", calls=20000)
    done = both("compare", rank, rank, out, "--xlsx", env={"TMPDIR": str(small_disk)})
    assert done.returncode == 0, done.stderr
    (book,) = (out / name for name in files_in(out))
    assert openpyxl.load_workbook(book, read_only=True).active.max_row == 1 + 2 * 20001


def test_output_that_nobody_can_read(command, good, out):
    with open("/dev/full", "w") as full:
        args = [find_command(), command, "-tp", good, "-gp", good, "-o", out]
        done = subprocess.run(list(map(str, args)), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 4
    assert "cannot print the summary" in done.stderr and len(done.stderr.splitlines()) == 1
    assert len(files_in(out)) == 1, "the result itself is written"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(command, good, tmp_path, out, closed):
    line = '"$0" "$1" -tp "$2" -gp "$3" -o "$4" ' + closed
    args = ["bash", "-c", line, find_command(), command]
    assert subprocess.run([*args, good, good, out], capture_output=True, check=False).returncode == 0
    (result,) = (out / name for name in files_in(out))
    assert not result.read_bytes().startswith(b"[msprobe]")
    bad = [*args, tmp_path / "absent", good, tmp_path / "no"]
    assert subprocess.run(bad, capture_output=True, check=False).returncode == 3


def test_a_reader_that_leaves_loses_nothing(command, good, out):
    read_end, write_end = os.pipe()
    os.close(read_end)
    args = [find_command(), command, "-tp", good, "-gp", good, "-o", out]
    done = subprocess.run(list(map(str, args)), stdout=write_end, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write_end)
    assert done.returncode == 0 and done.stderr == ""
    assert len(files_in(out)) == 1


# The machine.


def limited(command, rank, out, kind, limit):
    args = [find_command(), command, "-tp", rank, "-gp", rank, "-o", out]
    return subprocess.run(
        list(map(str, args)),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(kind, (limit, limit)),
    )


def test_no_memory(command, tmp_path, out):
    rank = make_rank(tmp_path / "a", calls=20000)
    codes = set()
    for megabytes in (24, 32, 48, 80):
        done = limited(command, rank, out, resource.RLIMIT_AS, megabytes << 20)
        codes.add(done.returncode)
        if done.returncode == 0:
            continue
        if done.returncode == 127:  # not even the loader got its memory
            continue
        assert done.returncode in (3, 4), (megabytes, done.stderr)
        assert done.stderr.startswith("[msprobe] error: ") and len(done.stderr.splitlines()) == 1
    assert codes & {3, 4}
    assert not [name for name in files_in(out) if ".tmp" in name]


def test_no_threads(command, good, out):
    """Without more threads the work is done by the one there is. Stacks larger than all memory keep them from starting."""

    def prepare():
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        resource.setrlimit(resource.RLIMIT_STACK, (2 << 30, resource.getrlimit(resource.RLIMIT_STACK)[1]))

    args = [find_command(), command, "-tp", good, "-gp", good, "-o", out]
    more = {"env": {**os.environ, "MSPROBE_THREADS": "4"}, "preexec_fn": prepare}
    done = subprocess.run(list(map(str, args)), capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stderr
    assert len(files_in(out)) == 1


def test_absurd_number_of_threads(command, good, out):
    assert both(command, good, good, out, env={"MSPROBE_THREADS": "1000000"}).returncode == 0


def start(command, rank, out):
    args = [find_command(), command, "-tp", rank, "-gp", rank, "-o", out]
    running = subprocess.Popen(
        list(map(str, args)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Under nohup these tests would inherit that SIGHUP is ignored, as the command rightly does.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while running.poll() is None and time.monotonic() < deadline and not (out.is_dir() and files_in(out)):
        time.sleep(0.001)
    assert running.poll() is None, "too fast to be interrupted"
    return running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_leave_nothing(command, tmp_path, out, number):
    running = start(command, make_rank(tmp_path / "a", calls=40000), out)
    running.send_signal(number)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130, errors
    assert errors == "[msprobe] error: interrupted: nothing was written; run the command again\n"
    assert files_in(out) == []


def test_the_second_ctrl_c_ends_at_once_and_tidies(command, tmp_path, out):
    running = start(command, make_rank(tmp_path / "a", calls=40000), out)
    running.send_signal(signal.SIGSTOP)
    running.send_signal(signal.SIGINT)
    running.send_signal(signal.SIGTERM)
    running.send_signal(signal.SIGCONT)
    running.communicate(timeout=60)
    assert running.returncode == 130
    assert files_in(out) == []


def test_a_dump_that_shrinks_while_it_is_read(command, tmp_path, out):
    """As when the run that writes it starts again: no crash, no half result."""
    rank = make_rank(tmp_path / "a", calls=40000)
    running = start(command, rank, out)
    running.send_signal(signal.SIGSTOP)
    os.truncate(rank / "dump.json", 4096)
    running.send_signal(signal.SIGCONT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 3, errors
    assert errors.startswith("[msprobe] error: ") and len(errors.splitlines()) == 1
    assert files_in(out) == []


# The command line.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--frob"], ["unknown option --frob"]),
        (["-xy", "3"], ["unknown option -xy"]),
        (["surplus"], ["unexpected argument surplus"]),
    ],
    ids=["long", "short", "argument"],
)
def test_unknown_options(command, good, out, options, words):
    done = both(command, good, good, out, *options)
    assert_refused(done, out, 2, *words, f"'msprobe {command} --help'")


def test_option_without_its_value(command, good, out):
    assert_refused(run([command, "-gp", good, "-o", out, "-tp"], check=False), out, 2, "-tp needs a path")


def test_missing_options(command, good, out):
    assert_refused(run([command, "-gp", good, "-o", out], check=False), out, 2, f"'msprobe {command} --help'")


def test_commands():
    assert_refused(run(["frob"], check=False), "/absent", 2, "unknown command 'frob'", "'msprobe --help'")
    bare = run([], check=False)
    assert bare.returncode == 2 and "a command is missing" in bare.stderr and "compare" in bare.stdout
    assert_refused(run(["-f", "tensorflow", "compare"], check=False), "/absent", 2, "tensorflow")


@pytest.mark.parametrize(
    ("args", "meant"),
    [
        (["comapre"], "compare"),
        (["graph_visualise", "-tp", "x"], "graph_visualize"),
        (["overflow_chek"], "overflow_check"),
        (["nan_analyse"], "nan_analyze"),
        (["ckpt_compare"], None),
        (["compare", "--goldenpath", "x"], "--golden_path (-gp)"),
        (["graph_visualize", "--layer_maping=x"], "--layer_mapping (-lm)"),
        (["doctor", "a", "b", "--alsoa", "c"], "--also-a"),
        (["run", "--dump_path", "x", "--", "true"], "--dump-path"),
        (["overflow_check", "-i", "x", "--frobnicate"], None),
    ],
)
def test_what_was_likely_meant(args, meant):
    done = run(args, check=False)
    assert_refused(done, "/absent", 2, f"did you mean {meant}?" if meant else "help'")
    assert ("did you mean" in done.stderr) == bool(meant)


@pytest.mark.parametrize("words", [["compare"], ["ckpt", "compare"], []])
def test_help_is_a_command(words):
    assert run(["help", *words]).stdout == run([*words, "--help"]).stdout != ""


def test_help_is_by_intent_and_ends_in_examples():
    listed = run(["--help"]).stdout
    groups = ["Record", "Compare", "One run", "Two trainings", "Operators", "Compatibility", "Shell"]
    assert [line[:-1] for line in listed.splitlines() if re.fullmatch(r"[A-Z][a-z ]+:", line)][1:] == groups
    for name in re.findall(r"^  ([a-z_0-9-]+)  ", listed.partition("Record:")[2], re.M):
        text = run([name, "--help"]).stdout
        lines = [line.split()[1] for line in text.splitlines() if line.startswith("  msprobe ")]
        assert set(lines) <= {name}
    brief, whole = run(["compare", "--help"]).stdout, run(["compare", "--help-all"]).stdout
    options = re.compile(r"^  (?:-\w,)?--\w", re.M)
    assert len(options.findall(brief)) <= 22 < 36 <= len(options.findall(whole))
    assert "Which ops are partners:" in brief
    assert "--is_print_compare_log" in whole.replace(brief, "") and "--is_print_compare_log" not in brief


def test_help_is_in_the_language_of_the_locale():
    """A line of the English help that the Chinese help shows as well has no translation."""

    def help_of(*words, locale):
        environment = {**os.environ, "LC_ALL": locale}
        command = [str(find_command()), *words, "--help-all"]
        return subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout

    listed = help_of(locale="C.UTF-8").partition("Record:")[2]
    commands = [[], *([name] for name in re.findall(r"^  ([a-z_0-9-]+)  ", listed, re.M))]
    commands += [["ckpt", "compare"], ["ckpt", "show"], ["ckpt", "convert"], ["monitor", "judge"], ["monitor", "show"]]
    for words in [*commands, ["monitor", "status"]]:
        english = help_of(*words, locale="C.UTF-8").splitlines()
        chinese = set(help_of(*words, locale="zh_CN.UTF-8").splitlines())
        told = [line for line in english if re.search(r"[a-z]+ [a-z]+ [a-z]+", line) and "msprobe " not in line]
        assert [line for line in told if line in chinese] == [], words


def test_runs_without_option_names(good, out, tmp_path):
    named = run(["compare", "-tp", good, "-gp", good, "-o", tmp_path / "named", "--json"])
    bare = run(["compare", good, good, "-o", out, "--json"])
    # The names of files have the second in which they were written.
    told = [
        re.sub(r"_\d{14}\.", ".", done.stdout.replace(str(at), ""))
        for done, at in ((named, tmp_path / "named"), (bare, out))
    ]
    assert told[0] == told[1]
    graph = run(["graph", good, good, "-o", tmp_path / "graph"])
    assert graph.returncode == 0 and list((tmp_path / "graph").glob("*.vis.db"))
    assert run(["overflow_check", good, "-o", out]).returncode == 0
    assert_refused(run(["compare", good, good, good], check=False), "/absent", 2, "unexpected argument")


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("offline_dump", "run"),
        ("install_deps", "--help"),
    ],
)
def test_commands_of_the_earlier_tool_say_what_does_their_job(name, instead):
    """With the options that they had, and in the form of 8.x."""
    for args in ([name], [name, "-d", "x", "--mode", "offline"], ["-f", "pytorch", name, "-api_info", "dump.json"]):
        done = run(args, check=False)
        assert_refused(done, "/absent", 2, f"the command {name} of mindstudio-probe", f"'msprobe {instead}")
        assert "use compare, graph_visualize" not in done.stderr


def test_no_command_of_the_earlier_tool_is_unknown(old_python):
    (source,) = old_python.parents[1].glob("lib/python3*/site-packages/msprobe/msprobe.py")
    names = re.findall(r"add_parser\(['\"](\w+)['\"]\)", source.read_text(encoding="utf-8"))
    assert {"compare", "acc_check", "parse"} <= set(names)
    for name in names:
        assert "unknown command" not in run([name], check=False).stderr, name


def test_older_name_of_graph_visualize(good, out):
    done = run(["-f", "pytorch", "graph", "-tp", good, "-o", out], check=False)
    assert done.returncode == 0, done.stderr


def test_help_and_version(command):
    assert run([command, "--help"]).stdout.strip()
    assert run(["--version"]).stdout.startswith("msprobe ")


# More than one rank.


def test_ctrl_c_after_the_first_ranks_says_what_is_complete(tmp_path, out):
    make_rank(tmp_path / "t" / "rank0")
    make_rank(tmp_path / "t" / "rank1", calls=60000)
    args = [find_command(), "compare", "-tp", tmp_path / "t", "-gp", tmp_path / "t", "-o", out]
    running = subprocess.Popen(list(map(str, args)), stderr=subprocess.PIPE, text=True)
    while running.poll() is None and not (out.is_dir() and any("rank1" in name for name in files_in(out))):
        time.sleep(0.001)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert running.returncode == 130
    assert errors.startswith("[msprobe] error: interrupted; the results of the first 1 of 2 pairs are complete in ")
    assert [name.split("_")[2] for name in files_in(out)] == ["rank0"]


def test_graphs_of_different_kinds_do_not_share_a_file(tmp_path, out):
    sums = {"Module.fc.Linear.forward.0": op(md5="0badcafe")}
    for side in "tg":
        make_rank(tmp_path / side / "rank0")
        make_rank(tmp_path / side / "rank1", data=sums)
    assert_refused(both("graph_visualize", tmp_path / "t", tmp_path / "g", out), out, 3, "rank1", "md5", "summary")


# The summary, on real dumps.


def first_difference(target, golden, out, *options):
    done = both("compare", golden_set() / "data" / target, golden_set() / "data" / golden, out, "--json", *options)
    pair = json.loads(done.stdout)["pairs"][0]
    return pair["first_difference"], pair["earlier_input_difference"]


RANK = "step0/rank0"
FIRST_BF16 = "Functional.embedding.0.forward"
WEIGHT = "Functional.linear.13.forward"
DOWN = "Module.model.layers.1.mlp.down_proj.Linear.forward.0"


@pytest.mark.parametrize(
    ("target", "golden", "name", "item", "module"),
    [
        ("m1_mix_stat/weight", "m1_mix_stat/bench", WEIGHT, ".input.1", DOWN),
        ("m1_mix_stat/nan", "m1_mix_stat/bench", WEIGHT, ".input.1", DOWN),
        ("m1_mix_stat/ckpt", "m1_mix_stat/bench", WEIGHT, ".input.1", DOWN),
        ("m1_mix_md5/weight", "m1_mix_md5/bench", WEIGHT, ".input.1", DOWN),
        ("m1_mix_xor/weight", "m1_mix_xor/bench", WEIGHT, ".input.1", DOWN),
        ("m1_L1_stat/weight", "m1_L1_stat/bench", WEIGHT, ".input.1", ""),
        ("m1_L1_md5/weight", "m1_L1_md5/bench", WEIGHT, ".input.1", ""),
        ("m1_L0_stat/weight", "m1_L0_stat/bench", DOWN, ".parameters.weight", ""),
        ("m1_L0_md5/weight", "m1_L0_md5/bench", DOWN, ".parameters.weight", ""),
        (
            "m1_mix_stat/rope",
            "m1_mix_stat/bench",
            "Tensor.__mul__.0.forward",
            ".input.1",
            "Module.model.rotary_emb.LlamaRotaryEmbedding.forward.0",
        ),
    ],
)
def test_a_changed_parameter_is_found_where_it_enters(out, target, golden, name, item, module):
    """No later op is blamed: what follows only passes the difference on."""
    first, source = first_difference(f"{target}/{RANK}", f"{golden}/{RANK}", out)
    assert first is None
    kind = "parameter" if item.startswith(".parameters.") or name == WEIGHT else "input"
    assert (source["kind"], source["op"], source["item"], source["module"]) == (kind, name, item, module)


def test_a_coarser_dtype_is_no_fault_of_an_op(out):
    """bfloat16 against float32: nothing before the optimizer is further apart than bfloat16 explains."""
    first, source = first_difference(f"m1_mix_stat/bf16/{RANK}", f"m1_mix_stat/bench/{RANK}", out)
    assert first is None
    assert (source["kind"], source["module"]) == ("grows", "optimizer")


def test_the_op_where_another_dtype_begins_is_named(out):
    data = golden_set() / "data" / "m1_mix_stat"
    done = both("compare", data / "bf16" / RANK, data / "bench" / RANK, out, "--json")
    pair = json.loads(done.stdout)["pairs"][0]
    assert pair["other_dtype_ops"] > 10
    assert pair["other_dtype"]["op"] == FIRST_BF16
    assert pair["other_dtype"]["detail"] == "is of torch.bfloat16 against torch.float32"
    text = both("compare", data / "bf16" / RANK, data / "bench" / RANK, out).stdout
    assert f"  different dtypes: {pair['other_dtype_ops']} ops, first {FIRST_BF16} (" in text


def test_nan_that_appears_inside_an_op(out):
    first, source = first_difference("tp_mix_stat/bwdnan/step0/rank1", "tp_mix_stat/bench/step0/rank1", out)
    assert source is None
    # The hook of the run that multiplies by NaN: an op that the golden run lacks.
    assert (first["kind"], first["op"]) == ("extra_op", "Tensor.__mul__.0.forward")
    assert first["module"] == "Module.module.decoder.layers.2.mlp.linear_fc2.RowParallelLinear.backward.1"


def test_nan_that_another_rank_sends(out):
    first, _ = first_difference("tp_mix_stat/nan/step0/rank0", "tp_mix_stat/bench/step0/rank0", out)
    assert (first["kind"], first["op"]) == ("communication", "Distributed.all_reduce.6.forward")


@pytest.mark.parametrize("dump", ["m1_mix_stat", "m1_mix_md5", "m1_L0_stat", "m1_L0_md5"])
def test_nothing_differs(out, dump):
    path = golden_set() / "data" / dump / "bench" / RANK
    done = both("compare", path, path, out)
    assert "first difference: none, all matched ops agree" in done.stdout
    assert ", 0 warning, 0 error)" in done.stdout


def test_nothing_matches(tmp_path, out):
    a = make_rank(tmp_path / "a", data={"Torch.add.0.forward": op()})
    b = make_rank(tmp_path / "b", data={"Torch.mul.0.forward": op()})
    done = both("compare", a, b, out)
    assert done.returncode == 0
    assert "ops: 0 matched, 1 only in the target, 1 only in the golden run" in done.stdout
    assert "first difference: unknown, no op of the target has a partner; try -lm or -fm" in done.stdout


@pytest.mark.parametrize("options", [(), ("-fm",)])
def test_different_calls_against_each_other_are_not_the_answer(out, options):
    """The table pairs backward calls by number, the answer by order."""
    path = golden_set() / "data" / "m1_mix_stat"
    text = both("compare", path / "extra" / RANK, path / "bench" / RANK, out, *options).stdout
    # One run adds the sum of |weight| of the embedding to its loss; its gradient differs for that.
    assert "Origin: the golden run has no Torch.abs.0.forward (rank 0, step 0)" in text


def test_no_key_of_the_summary_stands_twice(out):
    def once(pairs):
        assert len({key for key, _ in pairs}) == len(pairs), pairs
        return dict(pairs)

    path = golden_set() / "data" / "m1_mix_stat"
    done = both("compare", path / "weight" / RANK, path / "bench" / RANK, out, "--json")
    (pair,) = json.loads(done.stdout, object_pairs_hook=once)["pairs"]
    assert pair["ruler"]["bug"] == 1 and pair["ruler"]["infected_ops"] > 100 and pair["ruler"]["none"] >= 0


def test_names_cannot_steer_the_terminal(tmp_path, out):
    evil = "Torch.a\u001b[2J\nb.0.forward"
    a = make_rank(tmp_path / "a", data={evil: op(Norm=5.0), "Torch.c\u001b.0.forward": op()})
    b = make_rank(tmp_path / "b", data={evil: op()})
    done = both("compare", a, b, out)
    assert done.returncode == 0 and "\x1b" not in done.stdout
    assert "first difference: Torch.a\\x1b[2J\\nb.0.forward" in done.stdout


@pytest.mark.parametrize("lone", [False, True])
def test_modules_that_contain_each_other(command, tmp_path, lone):
    """A construct.json that leads in a circle, around the first op that differs and around one that only one run has."""
    a, b = "Module.a.A.forward.0", "Module.b.B.forward.0"
    construct = {"Torch.x.0.forward": a, "Torch.y.0.forward": a, a: b, b: a}
    last = {**op(Max=9.0), "input_args": [{**TENSOR, "Max": 9.0, "Norm": 9.0}]}
    data = {**({"Torch.x.0.forward": op(), a: op(), b: op()} if lone else {}), "Torch.y.0.forward": last}
    target = write_rank(tmp_path / "t", construct, data)
    golden = write_rank(tmp_path / "g", construct, {"Torch.y.0.forward": op()})
    args = [find_command(), command, "-tp", target, "-gp", golden, "-o", tmp_path / "out"]
    done = subprocess.run(list(map(str, args)), capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode in (0, 3), done.stderr
