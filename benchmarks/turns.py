"""Episodes of several turns: what was computed of a text is kept while it goes on, against computing it anew at each turn.

A policy replies, something answers, and so on; every reply continues the whole conversation. Without an answer's latency, which
`rewardlab bench agents` is about. `anew` is rewardlab's own sampling outside `keeping`, `transformers` its `generate`, called for
all episodes of a turn with the whole conversations, as trainers do that know nothing of turns. In the rows of `hf`, our side is run
by transformers too, as models are that the lean policy does not know. Episodes a second of the clock, the median of `repeats`; all
sides sample the same number of tokens, and no reply ends early.

The policy is SmolLM2-135M: of the small embedded one nothing is kept.

  rewardlab bench turns
"""

from __future__ import annotations

import statistics
import time
from contextlib import nullcontext
from typing import Any

from _sides import DEVICE, Rows, in_own_process, main, row, smollm2_model

ANSWER = "You are in room {i}. There is a red key on the table, and a door in the north. What do you do now? Say why, and be brief."


def run(*, episodes: int = 8, turns: int = 10, max_new: int = 16, repeats: int = 3) -> Rows:
    settings = {"model": smollm2_model(), "episodes": episodes, "turns": turns, "max_new": max_new, "repeats": repeats}
    found = in_own_process(__file__, "ours", settings)
    by_transformers = in_own_process(__file__, "ours", {**settings, "model": f"hf:{settings['model']}"})
    peer = in_own_process(__file__, "transformers", settings)

    def of(name: str, ours: dict[str, Any], rate: float) -> dict[str, Any]:
        about = {**settings, "model": "smollm2", "tokens": ours["tokens"], "seconds": ours["seconds"]}
        return row(f"turns-{name}", ours["kept"], rate, "episodes/s", about)

    return [
        of("anew", found, found["anew"]),
        of("transformers", found, peer["rate"]),
        of("hf-anew", by_transformers, by_transformers["anew"]),
        of("hf-transformers", by_transformers, peer["rate"]),
    ]


def ours(model: str, episodes: int, turns: int, max_new: int, repeats: int) -> dict[str, Any]:
    import torch

    from rewardlab.core import Message, Sampling, Trajectory, ask
    from rewardlab.models.load import load_policy

    policy = load_policy(model, DEVICE)
    policy.ends = frozenset()
    problems = [ask(ANSWER.format(i=i)) for i in range(episodes)]

    def seconds(keeping: bool, seed: int) -> tuple[float, int]:
        rng = torch.Generator().manual_seed(seed)
        rows = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
        began = time.perf_counter()
        with policy.keeping() if keeping else nullcontext():
            for turn in range(turns):
                if turn:
                    rows = policy.read(rows, [(Message("user", ANSWER.format(i=turn)),)] * episodes)
                rows = policy.extend(rows, Sampling(max_new), rng)
        return time.perf_counter() - began, sum(map(len, rows))

    seconds(True, 0)
    taken: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(1, repeats + 1):
        for keeping, times in taken.items():
            spent, tokens = seconds(keeping, seed)
            times.append(spent)
    rates = {name: episodes / statistics.median(taken[keeping]) for name, keeping in (("kept", True), ("anew", False))}
    shown = {name: [round(t, 2) for t in taken[keeping]] for name, keeping in (("kept", True), ("anew", False))}
    return {**rates, "tokens": tokens // episodes, "seconds": shown}


def peer(model: str, episodes: int, turns: int, max_new: int, repeats: int) -> dict[str, Any]:
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(model, padding_side="left")
    policy = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.bfloat16).to(DEVICE)

    def seconds() -> float:
        talks = [[{"role": "user", "content": ANSWER.format(i=i)}] for i in range(episodes)]
        began = time.perf_counter()
        for turn in range(turns):
            texts = tokenizer.apply_chat_template(
                talks, add_generation_prompt=True, return_tensors="pt", return_dict=True, padding=True
            ).to(DEVICE)
            length = texts["input_ids"].shape[1]
            done = policy.generate(**texts, do_sample=True, max_new_tokens=max_new, min_new_tokens=max_new, top_k=0)
            for talk, reply in zip(talks, tokenizer.batch_decode(done[:, length:], skip_special_tokens=True), strict=True):
                talk += [{"role": "assistant", "content": reply}, {"role": "user", "content": ANSWER.format(i=turn + 1)}]
        return time.perf_counter() - began

    seconds()
    return {"rate": episodes / statistics.median(seconds() for _ in range(repeats))}


if __name__ == "__main__":
    main(run, {"ours": ours, "transformers": peer})
