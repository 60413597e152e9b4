"""config.json: defaults, overrides, every way to be wrong, and what the message says then."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msprobe._capture.config import Config, Load, MsprobeException, Slice, load_config, parse_index_list

PREFIX = "[msprobe] Invalid parameter: "

# The sample of the public guide for collecting statistics, with its trailing comma.
GUIDE_SAMPLE = """{ "task": "statistics", "dump_path": "/xxx/msprobe_base_L1", "rank": [], "step": [0], "level": "L1",
"seed": 1234, "is_deterministic": false,
"statistics": { "scope": [], "list": [], "data_mode": ["all"], "summary_mode": "statistics" }, }"""


@pytest.fixture
def load(tmp_path):
    def load_text(content, **overrides):
        path = tmp_path / "config.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8")
        return load_config(str(path), **overrides)

    return load_text


def minimal(**keys):
    return {"dump_path": "/d", **keys}


def message_of(load, content, **overrides):
    with pytest.raises(MsprobeException) as caught:
        load(content, **overrides)
    assert str(caught.value).startswith(PREFIX)
    assert caught.value.code == MsprobeException.INVALID_PARAM_ERROR
    return str(caught.value)


def test_the_shipped_default():
    config = load_config()
    assert (config.task, config.level, config.dump_path) == ("statistics", "L1", "./dump_path")
    assert (config.rank, config.step, config.scope, config.list_) == ([], [], [], [])
    assert (config.data_mode, config.summary_mode, config.risk_level) == (["all"], "statistics", "FOCUS")
    assert config.extra_info is True
    assert config.warnings == []


def test_the_sample_of_the_guide(load):
    config = load(GUIDE_SAMPLE)
    assert config.dump_path == "/xxx/msprobe_base_L1"
    assert (config.step, config.seed, config.is_deterministic) == ([0], 1234, False)
    assert config.warnings == []


def test_keys_of_the_8x_default_file_are_known(load):
    keys = {
        "task": "statistics",
        "dump_path": "/d",
        "rank": [],
        "step": [],
        "level": "L1",
        "enable_dataloader": False,
        "async_dump": False,
        "statistics": {"scope": [], "list": [], "tensor_list": [], "data_mode": ["all"], "summary_mode": "statistics"},
        "tensor": {"scope": [], "list": [], "data_mode": ["all"], "file_format": "npy"},
        "overflow_check": {"overflow_nums": 1, "check_mode": "all"},
        "run_ut": {"white_list": [], "black_list": [], "error_data_path": "./"},
        "grad_probe": {"grad_level": "L1", "param_list": [], "bounds": [-1, 0, 1]},
        "free_benchmark": {
            "scope": [],
            "list": [],
            "fuzz_device": "npu",
            "pert_mode": "improve_precision",
            "handler_type": "check",
            "fuzz_level": "L1",
            "fuzz_stage": "forward",
            "if_preheat": False,
            "preheat_step": 15,
            "max_sample": 20,
        },
    }
    assert load(keys).warnings == []


def test_keys_of_26x_are_kept(load, tmp_path):
    keys = minimal(
        dump_enable=True,
        precision="high",
        risk_level="CORE",
        custom_op_namespaces=["mine"],
        load={"path": str(tmp_path), "modules": ["Module.a.A.forward.0"], "step": ["1-3"]},
        statistics={"tensor_list": ["relu"], "request_id": "r1", "slice": [{"dim": 1, "begin": 2}]},
    )
    config = load(keys)
    assert (config.dump_enable, config.precision, config.risk_level) == (True, "high", "CORE")
    assert config.custom_op_namespaces == ["mine"]
    assert config.load == Load(str(tmp_path), ("Module.a.A.forward.0",), (1, 2, 3), (), False)
    assert (config.tensor_list, config.request_id) == (["relu"], "r1")
    assert config.slice_ == [Slice(1, None, 2, None)]
    assert config.warnings == []


LOAD = {"modules": ["Module.a.A.forward.0"]}


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"path": "/not/there"}, "load.path"),
        ({"modules": []}, "load.modules"),
        ({"modules": ["Functional.linear.0.forward"]}, "load.modules"),
        ({"modules": ["Module.a.A.backward.0"]}, "load.modules"),
        ({"modules": ["Module.a.A.forward.0"] * 2}, "load.modules"),
        ({"step": "3"}, "load.step"),
        ({"rank": [-1]}, "load.rank"),
        ({"dump_after_load": 1}, "load.dump_after_load"),
    ],
)
def test_what_is_wrong_in_load_is_named_with_its_line(load, tmp_path, wrong, key):
    message = message_of(load, {"load": {"path": str(tmp_path), **LOAD, **wrong}})
    lines = (tmp_path / "config.json").read_text().split("\n")
    number = next(i for i, line in enumerate(lines, 1) if f'"{key[5:]}"' in line)
    assert f"{key} is " in message and "; allowed: " in message and message.endswith(f"line {number})")


def test_what_is_missing_in_load_has_the_line_of_load(load, tmp_path):
    message = message_of(load, {"load": LOAD})
    lines = (tmp_path / "config.json").read_text().split("\n")
    number = next(i for i, line in enumerate(lines, 1) if '"load"' in line)
    assert "load.path is None" in message and message.endswith(f"line {number})")


def test_load_needs_a_dump_path_only_to_record(load, tmp_path):
    section = {"path": str(tmp_path), **LOAD}
    config = load({"load": {**section, "modulse": []}})
    assert (config.dump_path, config.only_loads) == ("", True)
    assert len(config.warnings) == 1 and '"load.modulse"' in config.warnings[0] and '"modules"' in config.warnings[0]
    assert "dump_path" in message_of(load, {"load": {**section, "dump_after_load": True}})


def test_the_end_of_the_range(load):
    assert load(minimal()).exits_after_range is False
    assert load(minimal(enable_dataloader=True)).exits_after_range is True
    assert load(minimal(enable_dataloader=True, exit_after_range=False)).exits_after_range is False
    assert load(minimal(exit_after_range=True)).exits_after_range is True
    assert "exit_after_range" in message_of(load, minimal(exit_after_range="yes"))


def test_a_list_of_functions_beside_the_file(load, tmp_path):
    (tmp_path / "custom_wrap_ops.yaml").write_text("# mine\nmy.kernels:\n  - fused\n")
    assert load(minimal()).custom_apis == {"my.kernels": ["fused"]}
    assert load(minimal(custom_apis={})).custom_apis == {}


def test_tensor_list_has_no_effect_at_level_debug(load):
    config = load(minimal(level="debug", statistics={"tensor_list": ["relu"]}))
    assert config.tensor_list == [] and "tensor_list" in config.warnings[0]


def test_null_is_not_given(load):
    keys = minimal(task=None, level=None, rank=None, step=None, statistics={"scope": None, "data_mode": None})
    config = load(keys)
    assert (config.task, config.level, config.rank, config.step) == ("statistics", "L1", [], [])
    assert (config.scope, config.data_mode) == ([], ["all"])


def test_risk_level_that_is_empty_filters_nothing(load):
    assert load(minimal(risk_level=None)).risk_level == "ALL"
    assert load(minimal()).risk_level == "FOCUS"


def test_arguments_win_over_the_file(load):
    keys = minimal(level="L1", step=[1], tensor={"list": ["conv"]}, statistics={"list": ["relu"]})
    config = load(keys, task="tensor", level="mix", dump_path="/other", step=["2-4"])
    assert (config.task, config.level, config.dump_path, config.step) == ("tensor", "mix", "/other", [2, 3, 4])
    assert config.list_ == ["conv"], "the section is the one of the task that is used"


def test_arguments_not_given_leave_the_file(load):
    config = load(minimal(level="L0"), task=None, level=None, dump_path="")
    assert (config.task, config.level, config.dump_path) == ("statistics", "L0", "/d")


def test_an_argument_that_does_not_exist_is_a_programming_error(load):
    with pytest.raises(TypeError, match="lewel"):
        load(minimal(), lewel="L0")


@pytest.mark.parametrize(
    "given, expected",
    [
        (["forward"], ["input", "output", "forward"]),
        (["input"], ["input", "forward", "backward"]),
        (["backward", "output"], ["output", "backward"]),
        (["input", "output", "forward", "backward"], ["input", "output", "forward", "backward"]),
        ([], ["all"]),
    ],
)
def test_data_mode_is_completed(load, given, expected):
    config = load(minimal(statistics={"data_mode": given}))
    assert config.data_mode == expected
    for what in ("input", "output", "forward", "backward"):
        assert config.collects(what) == (expected == ["all"] or what in expected)


def test_later_slice_of_a_dimension_replaces_the_earlier(load):
    slices = [{"begin": 1}, {"dim": 1, "size": 8, "end": -1}, {"dim": 0, "end": 3}]
    config = load(minimal(statistics={"slice": slices}))
    assert config.slice_ == [Slice(0, None, 0, 3), Slice(1, 8, 0, -1)]


def test_run_ut_and_acc_check_name_one_section(load):
    assert load(minimal(task="acc_check", run_ut={"white_list": ["add"]})).section == {"white_list": ["add"]}
    assert load(minimal(task="run_ut", acc_check={"white_list": ["add"]})).section == {"white_list": ["add"]}


def test_scope_and_list_may_be_combined(load):
    scope = ["Module.a.Linear.forward.0", "Functional.relu.3.backward"]
    config = load(minimal(level="mix", statistics={"scope": scope, "list": ["relu"]}))
    assert (config.scope, config.list_) == (scope, ["relu"])


# ---- what is wrong, and where


@pytest.mark.parametrize(
    "key, value, allowed",
    [
        ("task", "statistic", "statistics, tensor, structure"),
        ("task", 3, "statistics"),
        ("level", "L3", "L0, L1, L2, mix, debug"),
        ("dump_path", 5, "directory"),
        ("dump_path", "a" * 300, "255"),
        ("rank", 3, "list"),
        ("rank", [True], "0 to 1000000"),
        ("rank", [-1], "0 to 1000000"),
        ("step", ["5-3"], "not above"),
        ("step", ["x"], '"3-5"'),
        ("step", [1000001], "0 to 1000000"),
        ("step", [1.0], "0 to 1000000"),
        ("extra_info", 1, "true or false"),
        ("async_dump", "yes", "true or false"),
        ("dump_enable", 0, "true or false"),
        ("enable_dataloader", [], "true or false"),
        ("is_deterministic", 2, "true or false"),
        ("precision", "medium", "low, high"),
        ("risk_level", "LOW", "CORE, FOCUS, ALL"),
        ("custom_op_namespaces", "_C", "list of strings"),
        ("seed", -1, "4294967295"),
        ("seed", True, "integer"),
        ("load", [], "object"),
        ("statistics", [], "object"),
        ("exclude_apis", "gelu", "list of strings"),
        ("custom_apis", {"torch": [1]}, "module.path"),
    ],
)
def test_a_wrong_value_is_named_with_key_value_allowed_and_line(load, key, value, allowed):
    other = '"dump_path": "/d"' if key != "dump_path" else '"level": "L1"'
    text = message_of(load, f'{{\n\n {other},\n "{key}": {json.dumps(value)}\n}}')
    assert text.startswith(f"{PREFIX}{key} is ")
    assert allowed in text
    assert "config.json, line 4)" in text


@pytest.mark.parametrize(
    "key, value, allowed",
    [
        ("scope", ["Functional.relu.0.forward"], "exactly two"),
        ("scope", "Functional.relu.0.forward", "list of strings"),
        ("scope", ["Module.a.A.forward.0", "Module.b.B.forward.0"], "level L1"),
        ("list", [1], "list of strings"),
        ("data_mode", ["all", "input"], '["all"]'),
        ("data_mode", ["sideways"], "input, output, forward, backward"),
        ("summary_mode", "sha256", "statistics, md5, xor"),
        ("tensor_list", "relu", "list of strings"),
        ("slice", {"dim": 0}, "list of objects"),
        ("slice", [{"dim": True}], "integers"),
        ("slice", [{"dim": -1}], "not below 0"),
        ("slice", [{"start": 1}], "list of objects"),
        ("request_id", 7, "string"),
    ],
)
def test_a_wrong_value_of_the_section_has_its_line(load, key, value, allowed):
    text = message_of(load, f'{{"dump_path": "/d",\n "statistics": {{\n  "{key}": {json.dumps(value)}}}}}')
    assert text.startswith(f"{PREFIX}{key} is ")
    assert allowed in text
    assert "config.json, line 3)" in text


def test_a_wrong_argument_is_named_as_such(load):
    text = message_of(load, minimal(level="L0"), level="L9")
    assert 'level is "L9"' in text
    assert "(argument level)" in text


def test_dump_path_is_required(load):
    assert "dump_path" in message_of(load, {"task": "statistics"})


def test_async_dump_goes_with_neither_checksums_nor_everything(load):
    assert "async_dump" in message_of(load, minimal(async_dump=True, statistics={"summary_mode": "md5"}))
    assert "async_dump" in message_of(load, minimal(async_dump=True, task="tensor"))
    assert load(minimal(async_dump=True, task="tensor", tensor={"list": ["relu"]})).async_dump is True


@pytest.mark.parametrize(
    "text, what, line",
    [
        ('{"a": 1', "object", 1),
        ('{"a": 1,\n\n', "double quotes", 3),
        ('{\n"a" 1}', '":"', 2),
        ('{"a":\n\n tru}', "expected a value", 3),
        ('{"a": "x\n', "valid JSON", 1),
        ('{"a": [1 2]}', "',' or ']'", 1),
        ("{}\n{}", "after the end", 2),
        ("[]", "object", 1),
        ("", "ends", 1),
        ('{"a": ' + "[" * 200 + "]" * 200 + "}", "nested deeper", 1),
        ('{"a": ' + "9" * 5000 + "}", "digits", 1),
    ],
)
def test_a_broken_file_is_named_with_its_line(load, text, what, line):
    message = message_of(load, text)
    assert f"config.json, line {line}:" in message
    assert what in message


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    for path, what in ((tmp_path / "none.json", "No such file"), (tmp_path, "directory")):
        with pytest.raises(MsprobeException, match=what) as caught:
            load_config(str(path))
        assert str(path) in str(caught.value)
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"{\n\xff}")
    with pytest.raises(MsprobeException, match="line 2.*UTF-8"):
        load_config(str(binary))


# ---- warnings


def test_unknown_keys_are_named_with_the_nearest_right_one(load):
    config = load(
        '{"dump_path": "/d",\n"lvel": "L0",\n"scope": [],\n"statistics": {\n"data_modes": ["all"]},\n"zzz": 1}'
    )
    assert len(config.warnings) == 4
    typo, misplaced, inner, strange = config.warnings
    assert '"lvel"' in typo and '"level"' in typo and "line 2" in typo
    assert '"scope"' in misplaced and 'belongs into the object "statistics"' in misplaced and "line 3" in misplaced
    assert '"statistics.data_modes"' in inner and '"data_mode"' in inner and "line 5" in inner
    assert '"zzz"' in strange and "did you mean" not in strange


def test_a_key_that_occurs_twice_is_named(load):
    config = load('{"dump_path": "/a",\n"dump_path": "/b"}')
    assert config.dump_path == "/b"
    assert len(config.warnings) == 1 and "twice" in config.warnings[0] and "line 2" in config.warnings[0]


def test_structure_is_recorded_at_level_mix(load):
    config = load(minimal(task="structure", level="L1"))
    assert config.level == "mix"
    assert "structure" in config.warnings[0]
    for level in ("L0", "mix"):
        config = load(minimal(task="structure", level=level))
        assert (config.level, config.warnings) == (level, [])


def test_slice_without_effect_is_named(load):
    config = load(minimal(level="debug", statistics={"slice": [{"begin": 1}], "request_id": "r"}))
    assert (config.slice_, config.request_id) == ([], None)
    assert len(config.warnings) == 2


# ---- the user's own lists of functions


@pytest.mark.parametrize(
    "name, text",
    [
        ("apis.json", '{"torch.Tensor": ["__getitem__"], "a.b": ["f", "g"],}'),
        ("apis.yaml", '# mine\ntorch.Tensor:\n  - __getitem__   # knob\n\n"a.b":\n- f\n- "g"\n'),
        ("apis.yml", "torch.Tensor: [__getitem__]\na.b: [f, 'g']\n"),
    ],
)
def test_lists_of_functions_from_a_file_beside_the_configuration(load, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    config = load(minimal(custom_apis=name, exclude_apis=["gelu"]))
    assert config.custom_apis == {"torch.Tensor": ["__getitem__"], "a.b": ["f", "g"]}
    assert config.exclude_apis == ["gelu"]


def test_lists_of_functions_in_the_configuration(load):
    assert load(minimal(custom_apis={"a": "f", "b": ["g"]})).custom_apis == {"a": ["f"], "b": ["g"]}


@pytest.mark.parametrize("text, line", [("- f\n", 1), ("a:\n  b: c\n", 2), ("a:\n - f\nstray\n", 3)])
def test_a_wrong_list_of_functions_has_its_line(load, tmp_path, text, line):
    (tmp_path / "apis.yaml").write_text(text)
    message = message_of(load, minimal(custom_apis="apis.yaml"))
    assert f"apis.yaml, line {line}" in message
    assert "config.json, line 3" in message


# ---- properties


@given(st.lists(st.integers(0, 50) | st.tuples(st.integers(0, 50), st.integers(0, 20))))
def test_index_lists_are_the_sorted_set_of_their_parts(parts):
    spelled = [part if isinstance(part, int) else f"{part[0]}-{sum(part)}" for part in parts]
    expected = set()
    for part in parts:
        expected.update([part] if isinstance(part, int) else range(part[0], sum(part) + 1))
    assert parse_index_list(spelled) == sorted(expected)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(), json_values), st.sampled_from([None, 0, 2]), st.booleans())
def test_the_parser_agrees_with_json(tmp_path_factory, value, indent, ascii_only):
    from msprobe._capture.config.file import read_json

    path = tmp_path_factory.getbasetemp() / "agree.json"
    path.write_text(json.dumps(value, indent=indent, ensure_ascii=ascii_only), encoding="utf-8", errors="surrogatepass")
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return
    assert read_json(str(path)).data == value


keys = st.sampled_from(
    "task level rank step dump_path statistics tensor seed load risk_level custom_apis slice scope".split()
)


@given(st.dictionaries(keys, json_values | st.dictionaries(keys, json_values)))
def test_any_file_gives_a_configuration_or_one_clear_error(tmp_path_factory, value):
    path = tmp_path_factory.getbasetemp() / "any.json"
    path.write_text(json.dumps(value))
    try:
        assert isinstance(load_config(str(path), dump_path="/d"), Config)
    except MsprobeException as error:
        assert str(error).startswith(PREFIX)
        assert "\n" not in str(error)
