"""Data tools: files of rows are filtered, paired, compared, mixed and ordered, without losing a row.

    from rewardlab import data

    data.dedupe_file("train.jsonl", "clean.jsonl", against=["test.jsonl"])
    data.filter_file("clean.jsonl", "kept.jsonl", between={"pass_rate": "0.1:0.9"})
    data.curriculum_file("kept.jsonl", "ordered.jsonl", by="pass_rate")

Each tool reads and writes JSON lines, .csv and .parquet ("-": standard input or output), replaces its output whole or not at all,
and writes what it leaves out to another file, with the reason. Nothing here imports torch; pass rates, which need a model, are
measured by `rewardlab.api.pass_rate_file`. The modules work on rows in memory: `filters`, `duplicates`, `pairing`, `mixing`,
`ordering`, `learning`, `diversity`, `cliques`, `keychain`, `masking`, `salient`, `openers`,
`templates`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cliques import clique_file
    from .diversity import diverse_file
    from .keychain import keychain_file
    from .learning import learning_file
    from .masking import ramp_file
    from .openers import openers_file
    from .salient import salient_file
    from .templates import template_file
    from .tools import curriculum_file, dedupe_file, filter_file, mix_files, pairs_file

_MODULE = {
    "clique_file": "cliques", "diverse_file": "diversity", "keychain_file": "keychain", "learning_file": "learning",
    "openers_file": "openers", "ramp_file": "masking", "salient_file": "salient", "template_file": "templates",
    "curriculum_file": "tools", "dedupe_file": "tools", "filter_file": "tools", "mix_files": "tools", "pairs_file": "tools",
}  # fmt: skip

__all__ = [
    "clique_file", "curriculum_file", "dedupe_file", "diverse_file", "filter_file", "keychain_file", "learning_file", "mix_files",
    "openers_file", "pairs_file", "ramp_file", "salient_file", "template_file",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    # loaded when first used: whoever reads the columns of a method need not wait for numpy
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULE[name]}", __name__), name)
