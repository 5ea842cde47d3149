"""An exported reward model read by others: how far their scores are from those of transformers, on pairs of one's own.

    rewardlab export runs/rm rm-hf
    VLLM_VENV/bin/python benchmarks/_exported.py vllm rm-hf pairs.jsonl
    python benchmarks/_exported.py openrlhf rm-hf pairs.jsonl

vllm: `LLM(FOLDER, runner="pooling").classify`, in float32, which gives the sigmoid of a score. openrlhf: its own loader
(`get_llm_for_sequence_regression`), which keeps weights in bfloat16: so does transformers here then. It needs openrlhf, deepspeed
and what they import; flash_attn, which only packed batches use and which needs a GPU to be built, is an empty module where it is
missing. pairs.jsonl: rows of prompt, chosen and rejected.
"""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

import torch

UNUSED = {"flash_attn.bert_padding": ("index_first_axis", "pad_input", "rearrange", "unpad_input"), "flash_attn.utils": (),
          "flash_attn.utils.distributed": ("all_gather",), "flash_attn": ()}  # fmt: skip
"""What OpenRLHF imports of flash_attn as it is loaded."""


def token_ids(folder: str, pairs: Path, count: int) -> list[list[int]]:
    """The ids of the conversations of the first pairs, as the checkpoint's chat template writes them."""
    from transformers import AutoTokenizer

    words = AutoTokenizer.from_pretrained(folder)
    rows = [json.loads(line) for line in pairs.read_text("utf-8").splitlines()[:count]]
    chats = [[("user", row["prompt"]), ("assistant", row[side])] for row in rows for side in ("chosen", "rejected")]
    turns = [[{"role": role, "content": text} for role, text in chat] for chat in chats]
    return [words(words.apply_chat_template(t, tokenize=False), add_special_tokens=False)["input_ids"] for t in turns]


@torch.no_grad()
def by_transformers(folder: str, rows: list[list[int]], dtype: torch.dtype) -> list[float]:
    """Scores; weights are rounded to dtype, and computed with in float32."""
    from transformers import AutoModelForSequenceClassification

    model = AutoModelForSequenceClassification.from_pretrained(folder, dtype=dtype).float().eval()
    return [float(model(input_ids=torch.tensor([ids])).logits[0, 0]) for ids in rows]


def by_vllm(folder: str, rows: list[list[int]]) -> list[float]:
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    from vllm import LLM

    longest = max(map(len, rows)) + 1
    engine = LLM(model=folder, runner="pooling", dtype="float32", enforce_eager=True, max_model_len=longest)
    return [float(out.outputs.probs[0]) for out in engine.classify([{"prompt_token_ids": ids} for ids in rows])]


@torch.no_grad()
def by_openrlhf(folder: str, rows: list[list[int]]) -> list[float]:
    if importlib.util.find_spec("flash_attn") is None:
        for name, members in UNUSED.items():
            module: Any = types.ModuleType(name)
            module.__spec__ = importlib.machinery.ModuleSpec(name, None)
            vars(module).update(dict.fromkeys(members))
            sys.modules[name] = module
    from openrlhf.models import get_llm_for_sequence_regression

    model = get_llm_for_sequence_regression(folder, "reward", param_dtype="bf16", attn_implementation="eager").float().eval()
    return [float(model(ids := torch.tensor([row]), torch.ones_like(ids))) for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("by", choices=("vllm", "openrlhf"))
    parser.add_argument("folder", help="the export")
    parser.add_argument("pairs", type=Path, help="rows of prompt, chosen and rejected")
    parser.add_argument("--count", type=int, default=8, help="pairs that are read")
    args = parser.parse_args()
    rows = token_ids(args.folder, args.pairs, args.count)
    if args.by == "vllm":
        known = torch.tensor(by_transformers(args.folder, rows, torch.float32)).sigmoid().tolist()
        found = by_vllm(args.folder, rows)
    else:
        known = by_transformers(args.folder, rows, torch.bfloat16)
        found = by_openrlhf(args.folder, rows)
    worst = max(abs(a - b) for a, b in zip(known, found, strict=True))
    print(json.dumps({"by": args.by, "replies": len(rows), "largest_difference": worst}))


if __name__ == "__main__":
    main()
