"""Error messages of the capture in English and Chinese: every text has both, with the same places for values."""

import ast
import re
from pathlib import Path

import pytest
from capture_helpers import capture
from msprobe._capture.config import MsprobeException, load_config
from msprobe._capture.words import CHINESE
from test_control import NET

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "msprobe"
SAYS = ("say", "wrong", "_wrong", "_fail", "_invalid", "_refuse", "refuse", "ConfigFileError", "ValueError")
VALUE = re.compile(r"%\((\w+)\)s")
NAMES = re.compile(r"[\w.]*|L0.*|\d.*|torch\.nn\.Module")  # arguments, not sentences


def texts_of(path):
    """The constants that are arguments of what makes messages, also by way of a variable."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            constants = [
                n.value for n in ast.walk(node.value) if isinstance(n, ast.Constant) and isinstance(n.value, str)
            ]
            named.setdefault(node.targets[0].id, []).extend(constants)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in SAYS:
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value
                elif isinstance(argument, ast.Name) and argument.id in ("text", "allowed"):
                    yield from named.get(argument.id, ())


def test_every_message_has_its_chinese():
    rooms = ("_capture", "mindspore", "pytorch")
    sources = [path for room in rooms for path in (PACKAGE / room).rglob("*.py") if path.name != "words.py"]
    used = {text for path in sources for text in texts_of(path)}
    sentences = {text for text in used if not NAMES.fullmatch(text)}
    assert sorted(sentences - set(CHINESE)) == []
    everything = "".join(ast.unparse(ast.parse(path.read_text(encoding="utf-8"))) for path in sources)
    unused = [text for text in CHINESE if repr(text)[1:-1] not in everything and repr(text) not in everything]
    assert [text for text in unused if "allowed:" not in text] == []


@pytest.mark.parametrize("text", CHINESE)
def test_both_languages_name_the_same_values(text):
    assert sorted(VALUE.findall(text)) == sorted(VALUE.findall(CHINESE[text]))
    assert re.search("[\u4e00-\u9fff]", CHINESE[text])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"level": "L9"}', '无效参数：level 为 "L9"；允许：L0, L1, L2, mix, debug（{path}，第 1 行）'),
        (
            '{"dump_path": "d",\n"seed": -1}',
            "无效参数：seed 为 -1；允许：0 到 4294967295 的整数（{path}，第 2 行）",
        ),
        ('{"step": ["5-3"]}', "无效参数：step 为 ['5-3']；允许：范围 \"A-B\"，A 不大于 B（{path}，第 1 行）"),
        ('{"level" "L0"}', '无效参数：config_path：{path}，第 1 行：该文件不是有效的 JSON：键 "level" 之后应为 ":"'),
    ],
)
def test_a_wrong_file_in_a_chinese_locale(tmp_path, monkeypatch, content, told):
    path = tmp_path / "config.json"
    path.write_text(content)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    with pytest.raises(MsprobeException) as error:
        load_config(str(path), **({} if "dump_path" in content else {"dump_path": "d"}))
    assert str(error.value) == "[msprobe] " + told.format(path=path)


def test_wrong_calls_in_a_chinese_locale(tmp_path):
    body = (
        NET
        + """
os.environ["LC_ALL"] = "zh_CN.UTF-8"
from msprobe.pytorch import seed_all
for call in (
    lambda: seed_all(-1),
    lambda: debugger.start(model=3),
    lambda: debugger.start(token_range=[3, 1], model=net),
    lambda: debugger.register_custom_api(json, "nothing"),
    lambda: setattr(debugger.config, "task", "run_ut"),
):
    try:
        call()
    except Exception as error:
        print(error)
"""
    )
    told = capture(tmp_path, body, level="mix").script.stdout.splitlines()
    assert len(told) == 5 and all(line.startswith("[msprobe] 无效参数：") for line in told)
    assert not [
        line for line in told if re.search(r"\\b(is|allowed|of|the)\\b", re.sub(r"（argument .*|<.*>", "", line))
    ]
