"""The structure of the documentation site, once for both languages.

A page with `{lang}` in its path exists in English and in Chinese; the others are in English only and are part of both sites.
"""

ROOT = {"en": "docs/en/symptoms", "zh": "docs/zh/symptoms"}
README = {"en": "README", "zh": "README.zh"}

GUIDES = (
    (
        {"en": "First steps", "zh": "入门"},
        ("install", "quickstart", "tutorial", "guide", "faq", "programs", "api", "porting", "glossary"),
    ),
    (
        {"en": "Capture", "zh": "采集"},
        (
            "capture/inserting",
            "capture/stacks",
            "capture/run",
            "capture/mindspore",
            "capture/config",
            "capture/tasks",
            "capture/tensor",
            "capture/parallel",
            "capture/values",
            "capture/estimate",
            "capture/budget",
            "capture/certify",
            "capture/resume",
            "capture/batches",
            "capture/safety",
        ),
    ),
    (
        {"en": "Monitor", "zh": "监控"},
        ("monitor/README", "monitor/config", "monitor/judge", "monitor/laws", "monitor/health"),
    ),
    (
        {"en": "Configuration", "zh": "配置"},
        (
            "checks/config_check",
            "checks/checklist",
            "checks/checkpoints",
            "checks/curves",
            "checks/optimizer_replay",
            "checks/parity",
            "checks/doctor",
        ),
    ),
    (
        {"en": "Rollout", "zh": "推理对照"},
        (
            "rollout/README",
            "rollout/weights",
            "rollout/ops",
            "rollout/responses",
            "rollout/vllm",
            "rollout/vllm_ascend",
            "rollout/sglang",
            "rollout/verl",
            "rollout/trl",
            "rollout/ms_swift",
            "rollout/slime",
        ),
    ),
    (
        {"en": "Comparison", "zh": "比对"},
        (
            "compare/README",
            "compare/verdict",
            "compare/first_divergence",
            "compare/anatomy",
            "compare/rewrites",
            "compare/layouts",
            "compare/report",
            "compare/overflow",
            "compare/matching",
            "compare/frameworks",
            "compare/structure",
            "compare/tensors",
            "compare/metrics",
            "compare/custom_metrics",
            "compare/ruler",
            "compare/replay",
            "compare/thresholds",
            "compare/postprocess",
            "compare/many_ranks",
            "compare/merge_result",
            "compare/json",
            "compare/kernels",
            "compare/atb",
            "compare/sabotage",
        ),
    ),
    (
        {"en": "Operators", "zh": "算子"},
        (
            "lab/acc_check",
            "lab/online",
            "lab/relations",
            "lab/free_benchmark",
            "lab/dispatch",
            "lab/compiled",
            "lab/lowp",
        ),
    ),
    (
        {"en": "Graphs", "zh": "图"},
        ("graph/README", "graph/tasks", "graph/page", "graph/merge", "graph/trends", "graph/database"),
    ),
)

SHARED = (
    (
        {"en": "Reference", "zh": "参考（英文）"},
        ("docs/compatibility", "docs/performance", "docs/page_api", "docs/dependencies", "CHANGELOG"),
    ),
    (
        {"en": "Development", "zh": "参与开发（英文）"},
        ("CONTRIBUTING", "docs/HACKING", "docs/architecture", "docs/testing"),
    ),
)


def sections(language):
    """The sections of one language, in order.

    Args:
        language: `en` or `zh`.

    Returns:
        A list of (caption, names of documents), relative to the root of the repository and without `.md`.
    """
    guides = [(title[language], [f"docs/{language}/{page}" for page in pages]) for title, pages in GUIDES]
    guides[0][1].insert(0, README[language])
    return guides + [(title[language], list(pages)) for title, pages in SHARED]


def documents(language):
    """Every document of one language, the landing page first.

    Args:
        language: `en` or `zh`.

    Returns:
        A list of names as in `sections`.
    """
    return [ROOT[language], *(page for _, pages in sections(language) for page in pages)]


def twin(document, language):
    """The document that another language has in the place of this one.

    Args:
        document: A name as in `documents`.
        language: The language of that document.

    Returns:
        Its name in the other language; the same name where both share the page.
    """
    other = "zh" if language == "en" else "en"
    if document == README[language]:
        return README[other]
    return document.replace(f"docs/{language}/", f"docs/{other}/", 1)
