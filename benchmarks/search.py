"""Beam search guided by a process reward model: the searches here against the way of Hugging Face's search-and-learn.

    ours    all problems' beams grow together; the lean policy computes equal prefixes once, the reward model shared ones
    peer    its loop (search/beam_search.py), with transformers' `generate` in place of vLLM: one problem at a time, the whole text
            encoded anew for every step of every beam; then the reward model of transformers over the whole text, in batches of 4

Both have the same two models of one size: a language model, and its trunk with a random scalar head that is read at the last token.
search-and-learn fills the beam up with copies where replies have ended, and so goes on sampling n rows until none is open; here an
ended reply holds its place. So problems per second differ by more than speed, and tokens per second are compared too.
"""

from __future__ import annotations

import itertools
import statistics
import tempfile
from pathlib import Path
from typing import Any

from _sides import Rows, embedded_model, in_own_process, main, row, tidy, timed

PRM_BATCH = 4
"""Texts that search-and-learn's reward model reads at a time."""


def run(
    *, model: str | None = None, problems: int = 16, width: int = 4, branch: int = 4, max_new: int = 64, repeats: int = 3
) -> Rows:
    """model: a checkpoint folder (default: the embedded policy's).  width, branch: rows kept, and next steps of each."""
    with tempfile.TemporaryDirectory() as folder:
        shared = {"problems": problems, "width": width, "branch": branch, "max_new": max_new, "repeats": repeats}
        given = shared | {"model": model or embedded_model()["folder"], "judge": folder}
        in_own_process(__file__, "make_judge", {"model": given["model"], "judge": folder})
        before, peer, after = (in_own_process(__file__, side, given) for side in ("ours", "peer", "ours"))
    said = {"ours": [before, after], "peer": peer}
    rates = {unit: (statistics.mean((before[unit], after[unit])), peer[unit]) for unit in ("problems/s", "tokens/s")}
    return [row(f"search-{unit.partition('/')[0]}", *rates[unit], unit, shared | said) for unit in rates]


def make_judge(*, model: str, judge: str) -> None:
    """The trunk of the model with a random scalar head, as a checkpoint that both sides load."""
    import torch

    from rewardlab.policies.llama.policy import LlamaPolicy

    policy = LlamaPolicy.load(model, "cpu", "float32").copy("judge", value_head=True)
    with torch.no_grad():
        policy.model.value_head.normal_(generator=torch.Generator().manual_seed(0))  # type: ignore[union-attr]
    policy.save(Path(judge))


def ours(*, model: str, judge: str, problems: int, width: int, branch: int, max_new: int, repeats: int) -> dict[str, Any]:
    from rewardlab import registry
    from rewardlab.core import Run
    from rewardlab.policies.llama.policy import LlamaPolicy
    from rewardlab.rewards.model import model_score
    from rewardlab.rollouts.beams import beams

    test = list(registry.task("arithmetic").test[:problems])
    policy, prm = LlamaPolicy.load(model, "cpu", "float32"), LlamaPolicy.load(judge, "cpu", "float32", value_head=True)
    search, seeds = beams(score=model_score(model="judge"), width=width, branch=branch), itertools.count()

    def draw() -> int:
        before = policy.token_count.generated
        search(test, Run(policy, models={"judge": prm}, seed=next(seeds), max_new=max_new))
        return policy.token_count.generated - before

    return _rates(draw, problems, repeats)


def peer(*, model: str, judge: str, problems: int, width: int, branch: int, max_new: int, repeats: int) -> dict[str, Any]:
    import torch

    from rewardlab import registry

    questions = [p.question for p in registry.task("arithmetic").test[:problems]]
    searcher, seeds = _SearchAndLearn(model, judge, width * branch, branch, max_new), itertools.count()

    def draw() -> int:
        torch.manual_seed(next(seeds))
        return sum(searcher.search(question) for question in questions)

    return _rates(draw, problems, repeats)


def _rates(draw: Any, problems: int, repeats: int) -> dict[str, Any]:
    """Medians over the repeats, after one warm-up; draw() returns the tokens that were generated."""
    draw()
    runs = [timed(draw) for _ in range(repeats)]
    return {
        "problems/s": tidy(statistics.median(problems / seconds for seconds, _ in runs)),
        "tokens/s": tidy(statistics.median(tokens / seconds for seconds, tokens in runs)),
        "tokens_per_problem": tidy(statistics.mean(tokens for _, tokens in runs) / problems),
    }


class _SearchAndLearn:
    """Its beam search on transformers alone.  n: beams.  m: how many of them come from one that is kept."""

    def __init__(self, model: str, judge: str, n: int, m: int, max_new: int):
        from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(model, padding_side="left")
        self.reader = AutoTokenizer.from_pretrained(model, padding_side="right")
        for tokenizer in (self.tokenizer, self.reader):
            tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        self.model = AutoModelForCausalLM.from_pretrained(model, dtype="float32").eval()
        self.judge = AutoModelForSequenceClassification.from_pretrained(judge, dtype="float32").eval()
        self.judge.config.pad_token_id = self.reader.pad_token_id
        self.n, self.m, self.max_new = n, m, max_new

    def search(self, question: str) -> int:
        """Search one problem; the tokens generated."""
        chat = [{"role": "user", "content": question}]
        start = self.tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
        active, completed, tokens = [start] * self.n, [], 0
        for _ in range(self.max_new):
            # copies fill the beam up to n rows
            active = (active * self.n)[: self.n]
            texts, ended, sampled = self._extended(active, start)
            tokens += sampled
            scores = self._scores(texts)
            known = list(zip(scores, texts, ended, strict=True))
            completed += [(score, text) for score, text, over in known if over]
            still = sorted(((score, text) for score, text, over in known if not over), reverse=True)
            if not still:
                break
            active = [text for _, text in still[: self.n // self.m]]
        return tokens

    def _extended(self, texts: list[str], start: str) -> tuple[list[str], list[bool], int]:
        """One more line of each text, whether the reply is over with it, and the tokens sampled."""
        import torch

        encoded = self.tokenizer(texts, return_tensors="pt", padding=True, add_special_tokens=False)
        width, length = encoded.input_ids.shape[1], encoded.attention_mask.sum(1)
        prompt = len(self.tokenizer(start, add_special_tokens=False).input_ids)
        room = max(1, self.max_new - int(length.max() - prompt))
        with torch.inference_mode():
            out = self.model.generate(
                **encoded, do_sample=True, temperature=1.0, top_k=0, max_new_tokens=room, stop_strings=["\n"],
                tokenizer=self.tokenizer, pad_token_id=self.tokenizer.pad_token_id,
            )[:, width:]  # fmt: skip
        steps = self.tokenizer.batch_decode(out, skip_special_tokens=True)
        real = out != self.tokenizer.pad_token_id
        ends = out == self.tokenizer.eos_token_id
        counts = (real | (ends & (ends.cumsum(1) == 1))).sum(1)
        full = length - prompt + counts >= self.max_new
        stopped = full | ends.any(1)
        over = [bool(done) or not step.endswith("\n") for done, step in zip(stopped, steps, strict=True)]
        return [text + step for text, step in zip(texts, steps, strict=True)], over, int(counts.sum())

    def _scores(self, texts: list[str]) -> list[float]:
        import torch

        scores: list[float] = []
        for i in range(0, len(texts), PRM_BATCH):
            encoded = self.reader(texts[i : i + PRM_BATCH], return_tensors="pt", padding=True, add_special_tokens=False)
            with torch.inference_mode():
                scores += self.judge(**encoded).logits[:, 0].tolist()
        return scores


if __name__ == "__main__":
    main(run, {"make_judge": make_judge, "ours": ours, "peer": peer})
