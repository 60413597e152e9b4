"""Which tier a test belongs to. This file is the only list of it; a single test leaves `make test` by @pytest.mark.deep.

quick   `make test`: all that is not deep
deep    `make test-all`: DEEP, what is marked, what runs the earlier tool itself (the fixture old_python), as `make test` holds
        ours against its recorded answers; all pages that are not quick, all fuzz targets, all programs under sanitizers
chosen  `make test-ci`: what CI runs of the deep ones on every change: CHOSEN and the rows `chosen`

tests/tiers.py pages|fuzzers|asan|tsan quick|chosen|deep    what of these a tier has, for tools/run_tests.sh
tests/tiers.py left                                         how many tests are in files that `make test` does not read
"""

import re
import sys
from pathlib import Path

DEEP = (
    "conformance/",  # some twenty models under both tools, level by level
    "megatron/",  # trains in an environment of its own
    "mindspore/",  # records in an environment of its own
    "stacks/",  # trains in environments of their own
    "versions/",  # a pair of Python and PyTorch; `make test-versions` runs all
    "golden/test_graph_ray.py",
    "golden/test_old_plugins.py",
    "doctor/test_grafts.py",
    "megatron/test_two_programs.py",  # trains both programs in an environment of its own
    "megatron/test_vision.py",
    "python/test_compare_hypothesis.py",
    "python/test_compile.py",
    "python/test_distributed.py",
    "python/test_examples.py",
    "python/test_filters.py",
    "python/test_graph_gloo.py",
    "python/test_no_memory.py",
    "python/test_overflow_causes.py",
    "python/test_overflow_planted.py",
    "python/test_rollout_ops.py",
    "python/test_routes_fuzz.py",
    "python/test_run_processes.py",
    "python/test_served_load.py",
    "python/test_tensorboard.py",
    "python/test_torch_samples.py",
    "python/test_tutorial.py",
)

# Deep tests of CI: the file, and which of its tests, as pytest names them, with `*` for anything. docs/testing.md says why these.
ALL = ("*",)
MODELS = ("nested", "mixtral", "gpt2", "whisper", "recomputed", "fsdp2", "pipeline")  # of tests/conformance
ARCHITECTURES = (
    *("MambaForCausalLM", "DeepseekV2ForCausalLM", "FalconForCausalLM", "BartForConditionalGeneration"),
    *("DebertaV2ForMaskedLM", "ViTForImageClassification", "family_outputs", "family_experts", "family_recurrent"),
)
CHOSEN = {
    # What mindstudio-probe writes and answers now, and that it reads ours.
    "conformance/test_conformance.py": tuple(f"*[{model}-*" for model in MODELS),
    "conformance/test_architectures.py": tuple(f"*[{model}-*" for model in ARCHITECTURES),
    **dict.fromkeys(
        (
            "golden/test_precision_compare.py",
            "python/test_apis.py",
            "python/test_capture_tasks.py",
            "python/test_checkpoint_layouts.py",
            "python/test_commands_cli.py",
            "python/test_compare_atb.py",
            "python/test_compare_kernels.py",
            "python/test_compare_mapping_files.py",
            "python/test_compare_postprocess.py",
            "python/test_compare_tensors.py",
            "python/test_compare_training.py",
            "python/test_control.py",
            "python/test_data2db.py",
            "python/test_filters.py",
            "python/test_known_faults.py",
            "python/test_load.py",
            "python/test_monitor_old.py",
            "python/test_odd_values.py",
            "python/test_old_tool_accepts.py",
            "python/test_output_handlers.py",
            "python/test_programs.py",
            "python/test_save.py",
            "python/test_seed.py",
            "python/test_single_save.py",
            "python/test_tutorial.py",
            "python/test_tensor_files.py",
        ),
        ALL,
    ),
    "python/test_config_check.py": ("test_training_is_packed_as_the_earlier_tool_packs_it",),
    # The training: its bits, gradients, processes, memory.
    "conformance/test_bits.py": tuple(f"*[{model}]" for model in MODELS),
    "python/test_compile.py": ALL,
    "python/test_compiled_watchers.py": (
        *("test_the_command_*", "test_a_break_*", "test_laws_do_not_*", "test_all_watchers[parts-eager]"),
    ),
    "python/test_distributed.py": ALL,
    "python/test_gradient_moment.py": ALL,
    "python/test_no_memory.py": ALL,
    "python/test_capture_safety.py": ALL,
    "python/test_examples.py": ("test_plain_loop", "test_trainer", "test_accelerate", "test_the_readme_*"),
    # Megatron: layouts merged against one rank, with and without modules, checkpoints in each form against those of one rank.
    "megatron/test_megatron_checkpoints.py": ("*every_layout[tp2pp2]",),
    "megatron/test_megatron_calls.py": ("*against_one_rank[ep2]", "*against_one_rank[tied_pp2]"),
    "megatron/test_megatron.py": ("*against_one_rank[tp2pp2-mix]", "*against_one_rank[tp2sp-mix]"),
    # MindSpore.
    **dict.fromkeys(
        (
            "mindspore/test_apis.py",
            "mindspore/test_capture.py",
            "mindspore/test_control.py",
            "mindspore/test_ends.py",
            "mindspore/test_grad_probe.py",
            "mindspore/test_kernel_dump.py",
            "mindspore/test_late_reading.py",
            "mindspore/test_monitor_v2.py",
            "mindspore/test_old_tool_reads.py",
            "mindspore/test_optimizer_record.py",
            "mindspore/test_run.py",
            "mindspore/test_save.py",
            "golden/test_mindspore_golden.py",
            "golden/test_mindspore_ranks.py",
        ),
        ALL,
    ),
    "mindspore/test_free_benchmark_mindspore.py": ("test_rows_*", "test_planted_functions_are_found"),
    "mindspore/test_training_is_unchanged.py": ("test_graph_mode", "test_networks[mix-tensor]"),
    # Faults that are planted, and what must not be called one.
    "python/test_overflow_causes.py": ALL,
    "python/test_overflow_planted.py": ALL,
    "sabotage/test_layouts.py": (
        *(f"*[bits_{layout}]" for layout in ("fsdp1", "tensor_parallel", "one_f_one_b", "expert_parallel")),
        *("*[mask_fsdp1_half]", "*[shard_tensor_parallel]", "*[labels_one_f_one_b]", "*[not_combined_expert_parallel]"),
        *("*[gather_skipped_context_parallel]", "*[gradient_summed_data_parallel]", "*[same_tensor_parallel_mix]"),
    ),
    "sabotage/test_rewrites.py": ("*[*_gated_L1]",),
    "megatron/test_two_programs.py": (
        *(
            "*[fp32-L0-ddp-megatron-template]",
            "*[fp32-L0-ddp-hugging-none]",
            "*graph_says_the_same[fp32-megatron-none-mix]",
        ),
    ),
}
# Browser tests; those named nowhere are deep.
PAGES = {
    "quick": ("page", "tasks", "report"),
    "chosen": (
        *("states", "hosts", "search", "matching", "tensor", "keyboard", "trends", "run_graph"),
        *("overview", "runs", "moving", "convert", "configuration", "laboratory"),
    ),
}
# Fuzz targets; those named nowhere are deep. They are compiled with sanitizers, which is most of what they cost: CI has the
# readers of files in rooms that stand on few others.
FUZZERS = {
    "quick": (),
    "chosen": (
        *("json", "yaml", "shell_script", "log_settings", "dump_reader", "stack_reader", "construct_reader", "recover"),
        *(
            "pt_reader",
            "npy_reader",
            "safetensors_reader",
            "atb_reader",
            "sheet_reader",
            "kernel_dump",
            "adump",
            "ir_code",
        ),
        *("optimizer_record", "curves", "stats_differential", "device_kernel", "metrics_differential"),
    ),
}
# Unit tests under sanitizers, by the outermost room. ASAN of deep: all. TSAN: rooms with tests of threads (CMakePresets.json).
ASAN = {"chosen": ("base", "json", "dump", "tensor", "sheet", "config", "import")}
TSAN = {
    "chosen": ("base", "tensor", "dump", "capture"),
    "deep": ("base", "tensor", "dump", "capture", "compare", "graph", "view", "serve"),
}
TESTS = Path(__file__).resolve().parent


def is_deep(path):
    """`path`: of a test file, below tests/."""
    return path.startswith(DEEP)


def is_chosen(path, name):
    """`name`: of a test or of one of its cases, as pytest writes it behind the file."""
    return any(_matches(pattern, name) for pattern in CHOSEN.get(path, ()))


def unmatched(path, names):
    """Patterns of CHOSEN that no test of a file has: what they chose is called otherwise now."""
    return [pattern for pattern in CHOSEN.get(path, ()) if not any(_matches(pattern, name) for name in names)]


def _matches(pattern, name):
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name, re.DOTALL) is not None


def pages(tier):
    """Paths of browser tests."""
    return _of(tier, PAGES, TESTS / "e2e", ".test.mjs")


def fuzzers(tier):
    """Names of fuzz targets."""
    return [path.stem for path in _of(tier, FUZZERS, TESTS / "fuzz", "_fuzz.cc")]


def _of(tier, chosen, folder, ending):
    """Files that `chosen` gives a tier. `deep` has all that are not quick, as `make test-all` leaves nothing to CI."""
    there = {path.name.removesuffix(ending): path for path in folder.glob(f"*{ending}")}
    if gone := [name for names in chosen.values() for name in names if name not in there]:
        raise SystemExit(f"tests/tiers.py names what is not in {folder}: {gone}")
    names = sorted(there.keys() - set(chosen["quick"])) if tier == "deep" else chosen[tier]
    return [there[name] for name in names]


def programs(tier):
    """Targets to build with AddressSanitizer and to run; none: all there are."""
    return [] if tier == "deep" else [*fuzzers(tier), *(f"{room}_test" for room in ASAN[tier])]


def left():
    """Tests of files that `make test` does not read; parametrized ones count once."""
    read = {"py": r"^def test_", "mjs": r"^\s*(?:test|it)\("}
    files = [path for path in TESTS.glob("*/test_*.py") if is_deep(path.relative_to(TESTS).as_posix())] + pages("deep")
    return sum(len(re.findall(read[f.suffix[1:]], f.read_text(encoding="utf-8"), re.MULTILINE)) for f in files)


if __name__ == "__main__":
    if sys.argv[1] == "left":
        print(left())
    else:
        of = {
            "pages": pages,
            "fuzzers": fuzzers,
            "asan": programs,
            "tsan": lambda tier: [f"{room}_test" for room in TSAN[tier]],
        }
        print("\n".join(map(str, of[sys.argv[1]](sys.argv[2]))))
