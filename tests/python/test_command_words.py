"""Messages of the commands in English and Chinese: every text that a command can print has its Chinese."""

import json
import re
import sys
from pathlib import Path

import pytest
from message_texts import plain, templates_of, texts_of, without_template

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "golden"))

from graph_cases import TENSOR, run, write_rank

ROOT = Path(__file__).resolve().parents[2]
# What these say is printed by no command: the capture has words of its own, and a page asks with names of its own.
ELSEWHERE = re.compile(
    r"_test\.cc|_bench\.cc|src/(?:capture|bindings)/|src/serve/(?:\w*api|convert\w*|request_target)\.|"
    r"src/view/(?:matching|search|query)/|/match_edits\."
)
ENTRY = re.compile(r'MSP_WORDS\(\s*("(?:[^"\\]|\\.)*"),\s*("(?:[^"\\]|\\.)*")\)')
# Said by the system and by the parser of arguments.
BY_OTHERS = {
    "A subcommand is required",
    "Address already in use",
    "Cannot allocate memory",
    "Disk quota exceeded",
    "File name too long",
    "Input/output error",
    "Display program version information and exit",
    "Is a directory",
    "No space left on device",
    "No such file or directory",
    "Not a directory",
    "Operation not permitted",
    "Options",
    "Permission denied",
    "Positionals",
    "Print this help message and exit",
    "Read-only file system",
    "Subcommands",
    "Too many open files",
}


def entries():
    for path in sorted((ROOT / "src" / "base" / "words").glob("*.def")):
        for english, chinese in ENTRY.findall(path.read_text(encoding="utf-8")):
            yield plain(english[1:-1]), plain(chinese[1:-1])


WORDS = dict(entries())
HELP = (ROOT / "src" / "base" / "words" / "words_help.def").read_text(encoding="utf-8")  # CLI11 shows these
SOURCES = [p for p in sorted((ROOT / "src").rglob("*.*")) if p.suffix in (".cc", ".h") and "_test." not in p.name]
SAID = [p for p in SOURCES if not ELSEWHERE.search(p.as_posix())]


def sentences(text):
    """Whether a text says something besides its values."""
    return len(re.findall("[A-Za-z]", text.replace("{}", ""))) > 4


def test_every_message_has_its_chinese():
    missing = {
        f"{path.relative_to(ROOT)}: {line}"
        for path in SAID
        for line in templates_of(path)
        if line not in WORDS and sentences(line)
    }
    assert sorted(missing) == []


def test_every_failure_has_a_template():
    bare = {f"{path.relative_to(ROOT)}: {text}" for path in SAID for text in without_template(path)}
    assert sorted(bare) == []


def test_every_entry_is_the_words_of_a_message():
    templates = {line for path in SOURCES for line in templates_of(path)}
    lists = [path for path in (ROOT / "src").rglob("*.def") if path.parent.name != "words"]
    whole = "\n".join(text for path in [*SOURCES, *lists] for text in texts_of(path))
    scripts = "".join(p.read_text(encoding="utf-8") for p in (ROOT / "python" / "msprobe").rglob("*.py"))
    unused = [
        english
        for english in WORDS
        if english not in templates
        and english not in BY_OTHERS
        and (("{}" in english and english not in HELP) or (english not in whole and f'"{english}"' not in scripts))
    ]
    assert unused == []


def test_messages_are_read_out_of_the_sources(tmp_path):
    source = tmp_path / "a.cc"
    source.write_text(
        """
  // return BadInput("no text of a message");
  return BadInput(few ? Msg("{} holds few ops, "
                            "see {:.3f}\\n  {{x}}", path, Shown(a, "b")) : Msg("none"));
  return UsageError(path + " is empty");
  return {Code::kInternal, "a fault"};
  return BadInput(status.message());
"""
    )
    assert [*templates_of(source)] == ["{} holds few ops, see {}", "{x}", "none"]
    assert [*without_template(source)] == ['path + " is empty"', '"a fault"']


# What is asked for, and what is said to it in English and in Chinese.
WRONG = [
    (
        ["compare", "-tp", "absent", "-gp", "absent", "-o", "out"],
        "absent does not exist: give a dump.json or a dump directory",
        "absent 不存在：请给出 dump.json 或数据目录",
    ),
    (
        ["compare"],
        "compare needs -tp TARGET and -gp GOLDEN (or -i compare.json): see 'msprobe compare --help'",
        "compare 需要 -tp TARGET 和 -gp GOLDEN（或 -i compare.json）：见 'msprobe compare --help'",
    ),
    (
        ["compare", "-tp", "absent"],
        "compare needs the reference run, too: msprobe compare absent REFERENCE. One run by itself: msprobe ",
        "compare 还需要参考运行：msprobe compare absent REFERENCE。只检查这一次运行：msprobe overflow_check absent",
    ),
    (
        ["compare", "--frob"],
        "unknown option --frob: see 'msprobe compare --help'",
        "未知选项 --frob：见 'msprobe compare --help'",
    ),
    (
        ["frob"],
        "unknown command 'frob': 'msprobe --help' lists all",
        "未知命令 'frob'：'msprobe --help' 列出所有命令",
    ),
    (
        ["offline_dump", "-i", "config.json"],
        "msprobe does not have the command offline_dump of mindstudio-probe: ",
        "msprobe 没有 mindstudio-probe 的命令 offline_dump：",
    ),
    (
        ["overflow_check", "-i", "empty"],
        "empty is not a dump (",
        "empty 不是 dump 数据（",
    ),
    (
        ["graph_visualize", "-tp", "dump", "-o", "out", "--ep", "2"],
        "--cp, --ep, --layout and --plan only apply when ranks are merged: add --rank_size",
        "--cp、--ep、--layout 和 --plan 只在合并 rank 时有效：请加上 --rank_size",
    ),
    (
        ["serve", "a.txt", "--port", "0"],
        "a.txt is neither a directory nor a .vis.db or .trend.db file: give the directory with the .vis.db files",
        "a.txt 既不是目录，也不是 .vis.db 或 .trend.db 文件：请给出 .vis.db 文件所在的目录",
    ),
    (
        ["data2db", "--data", "a.txt", "--db", "out"],
        "a.txt is not a directory: give the directory with the data as --data",
        "a.txt 不是目录：请用 --data 给出数据所在的目录",
    ),
    (
        ["run", "--config", "c.json"],
        "run needs your command after '--': msprobe run --config config.json -- python train.py",
        "run 需要在 '--' 之后给出您的命令：msprobe run --config config.json -- python train.py",
    ),
    (
        ["verify-dump", "a.txt"],
        "a.txt is a file: give the directory it is in, a dump is judged with all its files",
        "a.txt 是文件：请给出它所在的目录，数据要与其全部文件一起检查",
    ),
]


@pytest.mark.parametrize(
    ("args", "english", "told"), WRONG, ids=lambda value: value[0] if isinstance(value, list) else ""
)
def test_an_error_in_both_languages(tmp_path, args, english, told):
    (tmp_path / "empty").mkdir()
    (tmp_path / "a.txt").write_text("text")
    for locale, text in (("C.UTF-8", english), ("", english), ("zh_CN.UTF-8", told), ("zh_TW", told)):
        done = run(args, cwd=tmp_path, check=False, env={"LC_ALL": locale, "LC_MESSAGES": "", "LANG": ""})
        assert done.returncode in (2, 3)
        assert done.stderr.startswith("[msprobe] error: " + text), done.stderr


def two_ops():
    construct = {"Module.fc.Linear.forward.0": None, "Torch.add.0.forward": "Module.fc.Linear.forward.0"}
    return construct, {name: {"input_args": [TENSOR], "input_kwargs": {}, "output": [TENSOR]} for name in construct}


def english(line):
    """Whether three English words follow one another that are no names."""
    plain_words = re.sub(r"\b(?:max|min|mean|inf|nan)\b|`[^`]*`|'[^']*'|\S*[/._\d=]\S*", "·", line)
    return re.search(r"\b[a-z]{2,}(?:[ ,;]+[a-z]{2,}){2,}\b", plain_words)


def in_chinese_of_a_difference(root, environment):
    """What the commands print where a weight differs and holds infinities."""
    construct, data = two_ops()
    weight = {**TENSOR, "Max": float("inf"), "Norm": float("inf")}
    bad = {name: {**op, "parameters": {"weight": weight}, "output": [weight]} for name, op in data.items()}
    good = {name: {**op, "parameters": {"weight": TENSOR}} for name, op in data.items()}
    stack = {"0": [[*data], ["File /m/model.py, line 7, in forward, \n x = self.fc(x)"]]}
    for side, ops in (("bad", bad), ("good", good)):
        write_rank(root / side / "step0" / "rank0", construct, ops)
        (root / side / "step0" / "rank0" / "stack.json").write_text(json.dumps(stack))
    both = ["-tp", "bad", "-gp", "good", "-o", "out"]
    for command in (
        ["compare", *both],
        ["graph_visualize", *both, "-oc"],
        ["overflow_check", "-i", "bad", "-o", "out"],
    ):
        text = run(command, cwd=root, env=environment).stdout
        assert "误差源头：" in text, text
        yield text


def test_summaries_in_both_languages(tmp_path):
    case = write_rank(tmp_path / "a" / "step0" / "rank0", *two_ops())
    write_rank(tmp_path / "b" / "step0" / "rank0", *two_ops())
    chinese = {"LC_ALL": "zh_CN.UTF-8"}
    compare = ["compare", "-tp", "a", "-gp", "b", "-o", "out"]
    told = run(compare, cwd=tmp_path, env=chinese).stdout
    assert "  算子：2，全部匹配\n" in told and "（统计量）\n" in told and "  结果：out/" in told
    assert "  首个差异：无，所有匹配的算子一致\n" in told
    assert not re.search("(?:result|ops|ruler|rows|old rule):", told)
    graph = run(["graph_visualize", "-tp", "a", "-gp", "b", "-o", "out"], cwd=tmp_path, env=chinese).stdout
    assert re.search(r"^图：out/\S+ \([\d.]+ MB\)$|^图：out/\S+（[\d.]+ MB）$", graph, re.MULTILINE), graph
    assert "节点：调试侧 " in graph and "旧规则：" in graph
    overflow = run(["overflow_check", "-i", str(case), "-o", "out"], cwd=tmp_path, env=chinese).stdout
    assert "检查了 1 个 step、1 个 rank：没有算子产生 NaN 或无穷" in overflow
    assert "正在查找通信之前的异常节点。\n" not in overflow and "未找到异常节点，不生成分析文件。\n" in overflow
    earlier = ["-f", "pytorch", "overflow_check", "-i", str(case), "-o", "out"]
    assert "正在查找通信之前的异常节点。\n" in run(earlier, cwd=tmp_path, env=chinese).stdout
    for text in (told, graph, overflow, *in_chinese_of_a_difference(tmp_path, chinese)):
        assert [line for line in text.splitlines() if english(line)] == []
    # What programs read is the same in every locale.
    plain = [run([*compare, "--json"], cwd=tmp_path, env={"LC_ALL": locale}) for locale in ("C", "zh_CN.UTF-8")]
    keys = [re.sub(r"\d{14}(?:_\d)?", "", done.stdout) for done in plain]
    assert keys[0] == keys[1]
