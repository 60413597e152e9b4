"""The lines that a user inserts into the files of a framework, and a way to import such a file as if they were in it."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys

IMPORT = 'from msprobe.{} import PrecisionDebugger\ndebugger = PrecisionDebugger(config_path="config.json")\n'
# Module -> [(lines of the file, or others after a |, lines before the last of these, lines after it)], indented as that is.
INSERTIONS = {
    "transformers.trainer": [
        ("self.current_gradient_accumulation_steps = len(batch_samples)", "", "debugger.start(model=model)"),
        (
            # From transformers 5 on there is no such comment.
            "# We also need to break out of the nested loop|break\nif self.control.should_epoch_stop or self.control.should_training_stop:",
            "debugger.stop()\ndebugger.step()",
            "",
        ),
    ],
    "torchtitan.trainer": [
        (
            "self.train_step(data_iterator)",
            "debugger.start(model=self.model_parts)",
            "debugger.stop()\ndebugger.step()",
        ),
    ],
    "mindone.transformers.trainer": [
        (
            "tr_loss_step, overflow = self.training_step(self.train_model, inputs)",
            "debugger.start(self.model)",
            "debugger.stop()\ndebugger.step()",
        ),
    ],
    "mmengine.runner.loops": [
        (
            "self.run_iter(idx, data_batch)",
            "debugger.start(model=self.runner.model)",
            "debugger.stop()\nif self.runner.optim_wrapper.should_update():\n    debugger.step()",
        ),
    ],
}


def _last_of(anchor, lines):
    """The number of the last line of the first place of the anchor."""
    stripped = [line.strip() for line in lines]
    places = [
        n
        for wanted in (one.splitlines() for one in anchor.split("|"))
        for n in range(len(lines))
        if stripped[n + 1 - len(wanted) : n + 1] == wanted
    ]
    return places[0]


def edited(source, edits, framework="pytorch"):
    """The source with the insertions of each anchor at its first place, and the debugger made behind the imports."""
    lines = source.splitlines(keepends=True)
    for anchor, before, after in edits:
        place = _last_of(anchor, lines)
        indent = lines[place][: -len(lines[place].lstrip())]
        lines[place + 1 : place + 1] = [f"{indent}{line}\n" for line in after.splitlines()]
        lines[place:place] = [f"{indent}{line}\n" for line in before.splitlines()]
    first_class = next(n for n, line in enumerate(lines) if line.startswith(("class ", "@")))
    lines[first_class:first_class] = [IMPORT.format(framework)]
    return "".join(lines)


class _Reader(importlib.machinery.SourceFileLoader):
    def source_to_code(self, data, path, **options):
        framework = "mindspore" if self.name.startswith("mindone.") else "pytorch"
        return super().source_to_code(edited(data.decode(), INSERTIONS[self.name], framework), path, **options)

    def get_code(self, fullname):
        return self.source_to_code(self.get_data(self.path), self.path)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, name):
        self._name = name

    def find_spec(self, name, path=None, target=None):
        if name != self._name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        return importlib.util.spec_from_file_location(name, spec.origin, loader=_Reader(name, spec.origin))


def read_edited(name):
    """The module is imported from its file with the lines of INSERTIONS in it."""
    assert name not in sys.modules
    sys.meta_path.insert(0, _Finder(name))
