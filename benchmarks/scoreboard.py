"""Scoring replies with a reward model: rewardlab against a plain loop of transformers, in padded batches of 16, on RM-Bench.

The model is SmolLM2-135M with a scalar head of random numbers: what it says is worthless, and takes as long as what a trained one
says. Tokens per second of processor time. Both sides read the same conversations in the order of the file; settings hold the
greatest difference of a score. Needs the folder that REWARDLAB_DATA names.

  rewardlab bench scoreboard
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _sides import Rows, in_own_process, main, row, smollm2_model, tidy

BATCH = 16


def made(base: str, folder: str) -> dict[str, Any]:
    """Write the reward model into a folder."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    torch.manual_seed(0)
    model = AutoModelForSequenceClassification.from_pretrained(base, num_labels=1, dtype=torch.float32)
    words = AutoTokenizer.from_pretrained(base)
    model.config.pad_token_id = words.eos_token_id if words.pad_token_id is None else words.pad_token_id
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return {}


def items(prompts: int) -> list[Any]:
    from rewardlab.scoreboard.asked import benchmark_of

    return random.Random(0).sample(benchmark_of("rm-bench").items(), prompts)


def processor_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor time, which other programs on the machine change little."""
    before = time.process_time()
    found = work()
    return time.process_time() - before, found


def ours(model: str, prompts: int) -> dict[str, Any]:
    from rewardlab.scoreboard.asked import benchmark_of
    from rewardlab.scoreboard.raters import load_rater

    rater, own, benchmark = load_rater(model, "cpu", "float32"), items(prompts), benchmark_of("rm-bench")
    rater.judge(own[:1], benchmark)
    seconds, verdicts = processor_seconds(lambda: rater.judge(own, benchmark))
    return {"seconds": seconds, "scores": [s for v in verdicts for s in v.scores], "tokens": sum(v.tokens for v in verdicts)}


def peer(model: str, prompts: int) -> dict[str, Any]:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    scorer = AutoModelForSequenceClassification.from_pretrained(model, dtype=torch.float32).eval()
    words = AutoTokenizer.from_pretrained(model, padding_side="right")
    texts = [
        words.apply_chat_template(
            [{"role": "user", "content": item.question}, {"role": "assistant", "content": reply}], tokenize=False
        )
        for item in items(prompts) for reply in item.replies
    ]  # fmt: skip

    def scored() -> list[float]:
        found: list[float] = []
        for start in range(0, len(texts), BATCH):
            part = words(texts[start : start + BATCH], return_tensors="pt", padding=True, add_special_tokens=False)
            with torch.inference_mode():
                found += scorer(**part).logits[:, 0].tolist()
        return found

    seconds, scores = processor_seconds(scored)
    return {"seconds": seconds, "scores": scores}


def run(*, prompts: int = 5, model: str = "") -> Rows:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        base = model or smollm2_model()
        in_own_process(__file__, "made", {"base": base, "folder": folder})
        fast, slow = (in_own_process(__file__, side, {"model": folder, "prompts": prompts}) for side in ("ours", "peer"))
    apart = max(abs(a - b) for a, b in zip(fast["scores"], slow["scores"], strict=True))
    about = {
        "peer": f"transformers, padded batches of {BATCH} in the order of the file", "model": Path(base).name,
        "dtype": "float32", "replies": len(fast["scores"]), "tokens": fast["tokens"], "greatest_difference": tidy(apart),
    }  # fmt: skip
    return [row("scoreboard", fast["tokens"] / fast["seconds"], fast["tokens"] / slow["seconds"], "tokens/s", about)]


if __name__ == "__main__":
    main(run, {"made": made, "ours": ours, "peer": peer})
