"""tools/check_layers.py and tools/cpp_types.py: what they refuse, and what they leave alone."""

import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import cpp_types  # noqa: E402


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
    (tmp_path / "tools").mkdir()
    for name in ("check_layers.py", "cpp_types.py"):
        shutil.copyfile(ROOT / "tools" / name, tmp_path / "tools" / name)
    (tmp_path / "CMakeLists.txt").write_text("msprobe_room(base)\nmsprobe_room(dump DEPS base)\n")
    for room in ("base", "dump"):
        (tmp_path / "src" / room).mkdir(parents=True)
    return tmp_path


def check(tree):
    result = subprocess.run([sys.executable, tree / "tools" / "check_layers.py"], capture_output=True, text=True)
    return result.returncode, result.stdout.splitlines()


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
