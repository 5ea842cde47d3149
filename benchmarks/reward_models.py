"""Training a reward model: rewardlab's bradley_terry against TRL's RewardTrainer, on the same short pairs of LLMBar.

SmolLM2-135M with a scalar head, all weights trained, float32, AdamW, the same batches. Tokens per second of processor time: each
side trains one step, and then from the start again one step and `steps` more; the difference is what `steps` steps take, without
loading the model. Needs TRL and the folder that REWARDLAB_DATA names.

  rewardlab bench reward-models
"""

from __future__ import annotations

import itertools
import json
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from _sides import Rows, in_own_process, main, row, smollm2_model

RATE = 1e-5


SIDES = ("chosen", "rejected")
SHORT = 800
"""Characters of a prompt with its replies."""


def pairs(count: int) -> list[dict[str, str]]:
    """Different short pairs, sampled once."""
    from rewardlab.scoreboard.asked import benchmark_of

    rows = [
        {"prompt": item.question, "chosen": item.replies[i], "rejected": item.replies[j]}
        for item in benchmark_of("llmbar").items() for i, j in item.pairs
    ]  # fmt: skip
    short = [row for row in rows if sum(map(len, row.values())) < SHORT]
    return random.Random(0).sample(list({row["prompt"]: row for row in short}.values()), count)


def tokens(model: str, rows: list[dict[str, str]]) -> int:
    from transformers import AutoTokenizer

    words = AutoTokenizer.from_pretrained(model)
    turns = [[{"role": "user", "content": r["prompt"]}, {"role": "assistant", "content": r[side]}] for r in rows for side in SIDES]
    return sum(len(words(words.apply_chat_template(t, tokenize=False), add_special_tokens=False)["input_ids"]) for t in turns)


def ours(model: str, batch: int, steps: int) -> dict[str, Any]:
    from rewardlab import api

    rows = pairs(batch * (steps + 1) + 1)
    runs = itertools.count()
    with tempfile.TemporaryDirectory() as folder:
        (data := Path(folder, "pairs.jsonl")).write_text("".join(json.dumps(r) + "\n" for r in rows[:-1]))
        (held_out := Path(folder, "test.jsonl")).write_text(json.dumps(rows[-1]) + "\n")

        def trained(n: int) -> None:
            api.train(
                "bradley_terry", model, str(data), test=str(held_out), settings={"problems": batch, "reward_lr": RATE}, steps=n,
                out=Path(folder, f"run-{next(runs)}"), device="cpu", dtype="float32", eval_problems=1,
                eval_every=10**6, checkpoint_every=10**6, max_new=1,
            )  # fmt: skip

        return {"seconds": _difference(trained, steps), "tokens": tokens(model, rows[batch : batch * (steps + 1)])}


def peer(model: str, batch: int, steps: int) -> dict[str, Any]:
    import torch
    from datasets import Dataset
    from transformers import AutoModelForSequenceClassification, AutoTokenizer
    from trl import RewardConfig, RewardTrainer

    rows = pairs(batch * (steps + 1) + 1)[:-1]
    data = Dataset.from_list(
        [{"prompt": [{"role": "user", "content": r["prompt"]}], **{s: [{"role": "assistant", "content": r[s]}] for s in SIDES}}
         for r in rows]
    )  # fmt: skip
    words = AutoTokenizer.from_pretrained(model)
    if words.pad_token_id is None:
        words.pad_token = words.eos_token

    def trained(n: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            scorer = AutoModelForSequenceClassification.from_pretrained(model, num_labels=1, dtype=torch.float32)
            scorer.config.pad_token_id = words.pad_token_id
            settings = RewardConfig(
                folder, per_device_train_batch_size=batch, max_steps=n, learning_rate=RATE, max_length=None, use_cpu=True,
                bf16=False, gradient_checkpointing=False, report_to=[], save_strategy="no", disable_tqdm=True, logging_steps=10**6,
            )  # fmt: skip
            RewardTrainer(scorer, settings, train_dataset=data, processing_class=words).train()

    return {"seconds": _difference(trained, steps)}


def _difference(trained: Any, steps: int) -> float:
    """Processor time of `steps` steps after the first. The first call, which imports and compiles, is not counted."""
    taken = []
    for n in (1, 1, steps + 1):
        before = time.process_time()
        trained(n)
        taken.append(time.process_time() - before)
    return taken[2] - taken[1]


def run(*, batch: int = 8, steps: int = 3, model: str = "") -> Rows:
    base = model or smollm2_model()
    fast, slow = (in_own_process(__file__, side, {"model": base, "batch": batch, "steps": steps}) for side in ("ours", "peer"))
    about = {"peer": "TRL, RewardTrainer", "model": Path(base).name, "dtype": "float32", "pairs": batch, "steps": steps}
    about |= {"tokens": fast["tokens"]}
    return [row("reward-models", fast["tokens"] / fast["seconds"], fast["tokens"] / slow["seconds"], "tokens/s", about)]


if __name__ == "__main__":
    main(run, {"ours": ours, "peer": peer})
