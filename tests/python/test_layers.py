"""tools/check_layers.py and tools/layers: what they refuse, and what they leave alone."""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from layers import circles, cpp_types, sizes  # noqa: E402


@pytest.mark.parametrize(
    "text,names",
    [
        ("namespace msprobe { struct A { int x; }; class B final : public C<D> { }; }", ["msprobe::A", "msprobe::B"]),
        ("namespace msprobe::view {\nenum class E : uint8_t { a };\n}", ["msprobe::view::E"]),
        ("namespace msprobe { namespace { struct Mine { int x; }; } struct Ours { int y; }; }", ["msprobe::Ours"]),
        ("namespace msprobe { class Outer { struct Inner { int x; }; }; }", ["msprobe::Outer"]),
        ("namespace msprobe { struct Outer::Inner { int x; }; class Declared; }", []),
        ("namespace msprobe { void F() { struct Local { int x; }; } struct After {}; }", ["msprobe::After"]),
        ("namespace n {\n#define X struct No {\nconst char* s = \"}{\"; // {\nchar c = '{'; struct S {}; }", ["n::S"]),
        ('namespace n { auto r = R"(}}} " struct No {)"; int x = 1\'000; struct S {}; }', ["n::S"]),
        ("namespace n { template <class T> struct P {}; template <> struct P<int> {}; }", ["n::P", "n::P<int>"]),
        ('extern "C" { struct Plain { int x; }; }', ["Plain"]),
        ("namespace n { template <class T>\nvoid F(T t) { } T G(class X x) { } }", []),
    ],
)
def test_types_at_namespace_scope(text, names):
    assert [name for name, _ in cpp_types.types_of(text)] == names


def test_line_of_a_type():
    assert list(cpp_types.types_of("/* a\n b */\nnamespace n {\n\nstruct S {\n};\n}\n")) == [("n::S", 5)]


@pytest.fixture
def tree(tmp_path):
    shutil.copytree(ROOT / "tools" / "layers", tmp_path / "tools" / "layers")
    shutil.copyfile(ROOT / "tools" / "check_layers.py", tmp_path / "tools" / "check_layers.py")
    set_left(tmp_path, "{}")
    (tmp_path / "CMakeLists.txt").write_text("msprobe_room(base)\nmsprobe_room(dump DEPS base)\n")
    for room in ("base", "dump"):
        (tmp_path / "src" / room).mkdir(parents=True)
    return tmp_path


def set_left(tree, left):
    path = tree / "tools" / "check_layers.py"
    path.write_text(re.sub(r"^LEFT = \{.*?\}\n", f"LEFT = {left}\n", path.read_text(), flags=re.DOTALL | re.MULTILINE))


def check(tree):
    result = subprocess.run([sys.executable, tree / "tools" / "check_layers.py"], capture_output=True, text=True)
    return result.returncode, result.stdout.splitlines()


def write(tree, **files):
    """Files by their paths, with "__" for "/" and the ending behind the last "_"."""
    for name, text in files.items():
        path = tree / ".".join(name.replace("__", "/").rsplit("_", 1))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_type_in_two_rooms_is_refused(tree):
    (tree / "src" / "base" / "a.h").write_text("namespace msprobe {\nstruct Part { int x; };\n}\n")
    assert check(tree) == (0, ["layers: 0 faults"])
    (tree / "src" / "dump" / "b.cc").write_text("namespace msprobe {\n\nclass Part { double y; };\n}\n")
    code, lines = check(tree)
    assert code == 1 and len(lines) == 2
    assert lines[0].startswith("src/base/a.h:2: msprobe::Part is also defined at src/dump/b.cc:3")


def test_an_include_against_the_flow_is_refused(tree):
    (tree / "src" / "dump" / "b.cc").write_text('#include "base/a.h"\n')
    assert check(tree)[0] == 0
    (tree / "src" / "base" / "a.h").write_text('#include "dump/b.h"\n')
    code, lines = check(tree)
    assert code == 1 and lines[0] == "src/base/a.h:1: base may not include dump"


def test_one_name_in_two_namespaces_is_refused_but_for_tests(tree):
    write(tree, src__base__a_h="namespace msprobe {\nstruct Part { int x; };\n}\n")
    write(tree, src__dump__test_b_h="namespace msprobe::test {\nstruct Part { int x; };\n}\n")
    assert check(tree)[0] == 0
    write(tree, src__dump__b_h="namespace msprobe::dump {\nstruct Part { int x; };\n}\n")
    code, lines = check(tree)
    assert code == 1 and len(lines) == 2
    assert lines[0].startswith(
        "src/base/a.h:2 (msprobe::Part): Part is also defined at src/dump/b.h:2 (msprobe::dump::"
    )


def test_circles_of_units_are_refused(tree):
    write(tree, src__base__a_h='#include "base/b.h"\n', src__base__b_cc='#include "base/b.h"\n', src__base__b_h="")
    write(tree, src__base__a_test_cc='#include "base/b.h"\n', src__base__b_test_cc='#include "base/a.h"\n')
    assert check(tree) == (0, ["layers: 0 faults"])
    write(tree, **{"src__base__b-inl_h": '#include "base/c.h"\n', "src__base__c_cc": '\n#include "base/a.h"\n'})
    write(tree, src__base__c_h="")
    code, lines = check(tree)
    assert code == 1 and len(lines) == 2
    assert lines[0].startswith("src/base/a.h:1: base/a, base/b, base/c include each other (src/base/a.h:1, src/base/b-")


def test_circles_of_the_page_are_refused(tree):
    write(tree, web__src__model__a_ts='import type { B } from "./b";\n', web__src__model__b_tsx="export type B = 1;\n")
    write(tree, **{"web__src__model__b.test_ts": 'import "./a";\n'})
    assert check(tree) == (0, ["layers: 0 faults"])
    write(tree, web__src__model__b_tsx='import {\n  A,\n} from "./a";\n')
    code, lines = check(tree)
    assert code == 1 and lines[0].startswith(
        "web/src/model/a.ts:1: web/src/model/a.ts, web/src/model/b.tsx include each"
    )


def test_circles_are_found_whatever_hangs_on_them():
    graph = {"a": {"b"}, "b": {"c", "x"}, "c": {"b"}, "x": {"y"}, "z": {"a"}, "p": {"q"}, "q": {"p"}}
    assert circles.circles(graph) == [("b", "c"), ("p", "q")]


@pytest.mark.parametrize("folder,end", [("src/base", "cc"), ("python/msprobe", "py"), ("web/src/model", "ts")])
def test_a_folder_of_many_files_is_refused(tree, folder, end):
    (tree / folder).mkdir(parents=True, exist_ok=True)
    for i in range(sizes.MOST_FILES):
        (tree / folder / f"file{i}.{end}").write_text("")
    for name in ("a_test.cc", "test_a.h", "a_bench.cc", "a.test.ts", "notes.md"):
        (tree / folder / name).write_text("")
    assert check(tree) == (0, ["layers: 0 faults"])
    (tree / folder / f"more.{end}").write_text("")
    assert check(tree) == (1, [f"{folder}: 41 production files, at most 40: make rooms of it", "layers: 1 faults"])


@pytest.mark.parametrize("name", ["src/base/a.cc", "src/base/a.h", "python/msprobe/a.py", "web/src/model/a.tsx"])
def test_a_long_file_is_refused(tree, name):
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    (tree / name).write_text("\n" * sizes.MOST_LINES)
    assert check(tree)[0] == 0
    (tree / name).write_text("\n" * (sizes.MOST_LINES + 1))
    assert check(tree) == (1, [f"{name}: 501 lines, at most 500", "layers: 1 faults"])


def test_a_long_function_is_refused(tree):
    body = "\n" * (sizes.MOST_FUNCTION_LINES - 1)
    write(tree, src__base__a_cc=f"namespace n {{\nvoid F() {{{body}}}\n}}\n")
    write(tree, python__msprobe__a_py="def f():\n" + "    x = 1\n" * (sizes.MOST_FUNCTION_LINES - 1))
    assert check(tree) == (0, ["layers: 0 faults"])
    write(tree, src__base__a_cc=f"namespace n {{\nvoid F() {{{body}\n}}\n}}\n")
    write(tree, python__msprobe__a_py="def f():\n" + "    x = 1\n" * sizes.MOST_FUNCTION_LINES)
    assert check(tree) == (
        1,
        [
            "src/base/a.cc:2: F has 81 lines, at most 80",
            "python/msprobe/a.py:1: f has 81 lines, at most 80",
            "layers: 2 faults",
        ],
    )


@pytest.mark.parametrize(
    "text,functions",
    [
        ("int F(int a,\n      int b) {\n  return a;\n}\n", [("F", 1, 4)]),
        ("namespace n {\n// why\nstruct S : public T {\n  S() : a_(1) {}\n};\n}", [("S", 4, 1)]),
        ("class C {\n public:\n  int f() const noexcept override {\n    if (x) { y(); }\n  }\n};", [("f", 3, 3)]),
        ("template <class T>\nvoid N::F(T t) {\n  auto g = [&](int x) {\n    return x;\n  };\n}", [("F", 1, 6)]),
        ("const int kA[] = {\n  1, 2 };\nconst T k = Make({\n1});\nstd::vector<int> v{1, 2};", []),
        ("struct N::In {\n  bool operator==(const In& o) const { return true; }\n};", [("operator==", 2, 1)]),
        ("N::~N() {\n}\nauto G() -> std::string {\n}", [("~N", 1, 2), ("G", 3, 2)]),
        ("enum class E : int {\n  a\n};\nNB_MODULE(_core, m) {\n}", [("NB_MODULE", 4, 2)]),
    ],
)
def test_functions_and_their_lengths(text, functions):
    assert list(cpp_types.functions_of(text)) == functions


def test_what_is_left_is_counted_and_named_when_it_is_done(tree):
    set_left(tree, '{"src/base/a.cc": "long", "src/dump/": "done"}')
    (tree / "src" / "base" / "a.cc").write_text("\n" * 600)
    assert check(tree) == (
        0,
        ["tools/check_layers.py: nothing is left of src/dump/: remove it from LEFT", "layers: 0 faults, 1 left"],
    )


def test_what_starts_threads_is_tested_under_the_thread_sanitizer():
    """The preset builds test files by words in the names of their tests."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    (words,) = [preset["cacheVariables"]["MSPROBE_TEST_FILTER"] for preset in presets if preset["name"] == "tsan"]
    name = re.compile(rf"(TEST|TEST_F|TEST_P|INSTANTIATE_TEST_SUITE_P)\([^)]*({words})")
    other_process = {"monitor_trend_test.cc"}  # its thread stands in for the training that writes the file
    files = {path: path.read_text() for path in (ROOT / "src").rglob("*_test.cc") if path.name not in other_process}
    threaded = [path for path, text in files.items() if re.search(r"std::(j?thread|async)\b", text)]
    assert len(threaded) > 5
    assert [path.name for path in threaded if not name.search(files[path])] == []


def test_headers_stand_above_namespaces(tree):
    (tree / "src" / "base" / "table.h").write_text("#pragma once\n")
    (tree / "src" / "base" / "table.cc").write_text(
        'namespace msprobe {\nint kTable[] = {\n#include "base/table.h"\n#include "base/rows.def"\n};\n}\n'
    )
    assert check(tree) == (1, ["src/base/table.cc:3: a header is included inside of a namespace", "layers: 1 faults"])
