"""Judges that write: a verdict on two replies in both orders, or a score of each; of a local model, or of a served one.

    judge:MODEL                      pairs, by the benchmark's own prompt if it has one, else by ours
    judge:MODEL?kind=scale           a score from 1 to 10 of each reply
    judge:MODEL?kind=verdict         whether a reply is right, or a step, where a benchmark asks about steps
    judge:openai:URL#NAME?template=FILE

The verdict of a local model is read from the chances of the marks that it might write ([[A]] or [[B]]), as is a served one's where
the server gives them; `by=text` has it write, and takes the last mark. Pictures of the item's prompt are shown before the text, to
a local vision-language model scaled to the size that it reads; a judge that reads text alone gives no verdict on such an item.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rewardlab.clients.client import client_of
from rewardlab.clients.endpoint import is_served
from rewardlab.clients.judging import LIKELY, PREFERENCES, VERDICTS, Kind, Marks, asked, template_of
from rewardlab.clients.messages import Failure, Reply, Request
from rewardlab.core import Message, Problem, Sampling, Trajectory, Turn
from rewardlab.data.pictures import address_of
from rewardlab.errors import RewardlabError, unknown
from rewardlab.scoreboard.items import Item, Verdict, flat
from rewardlab.scoreboard.raters.likelihood import weights
from rewardlab.scoreboard.raters.passes import next_logits, seeing, shown
from rewardlab.scoreboard.raters.rater import Rater, verdicts

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark

KINDS = ("pairwise", "scale", "verdict")  # and nway, which chooses among all replies at once: nway.py
LOW, HIGH = 1, 10
STEP = (
    "Judge the last step of a solution.\n\n[Question]\n{prompt}\n\n[Steps before it]\n{before}\n\n[Last step]\n{reply}\n\n"
    "[End of the step]\nIs the last step right? Say only [[yes]] or [[no]]."
)
"""What is asked about a step; a template of one's own may have the place {before} too."""
Shown = tuple[str, tuple[Any, ...]]
"""A judge's prompt, and the pictures that come before it."""


class Judge(Rater):
    """kind: pairwise, scale or verdict.  template: a text or a file; without it the benchmark's, else ours.  by: "chances" or
    "text".  max_new: the longest judgement in tokens."""

    places = True

    def __init__(
        self, name: str, model: str, device: str, dtype: str, *, kind: str = "pairwise", template: str = "", by: str = "",
        max_new: int = 512,
    ):  # fmt: skip
        super().__init__(name)
        if kind not in KINDS:
            raise unknown("kind of judge", kind, (*KINDS, "nway"))
        self.kind, self.model, self.max_new = cast(Kind, kind), model, max_new
        self.template = template_of(template, self.kind) if template else ""
        self.by, self.places = by or "chances", kind == "pairwise"
        self.asks = ("replies", "steps") if kind == "verdict" else ("replies",)
        self.marks = Marks(PREFERENCES) if self.places else Marks(VERDICTS) if kind == "verdict" else Marks(low=LOW, high=HIGH)
        self.policy: Any = None
        if not is_served(model):
            from rewardlab.models.load import load_policy

            self.policy = load_policy(model, device, dtype)
        self.sees = self.policy is None or seeing(self.policy)

    def fingerprint(self) -> str:
        who = self.model if self.policy is None else f"{weights(self.model)} {self.policy.dtype}"
        template = hashlib.sha256(self.template.encode()).hexdigest()[:12] if self.template else ""
        return f"judge {who} {self.kind} {template} {self.by} {self.max_new}"

    def judge(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
        if benchmark.asks == "steps":
            return self._of_steps(items)
        text = self.template or template_of(benchmark.prompt if self.places else "", self.kind)
        text = text.replace("{low}", str(LOW)).replace("{high}", str(HIGH))
        if not self.places:
            prompts = [(asked(text, i.answer, prompt=i.question, reply=i.replies[k]), i.pictures) for i, k in flat(items)]
            values = self._values(prompts)
            why = ["" if v is not None else said for v, said in values]
            return verdicts(items, [v for v, _ in values], why)
        orders = [[pair for p in item.shown for pair in (p, p[::-1])] for item in items]
        prompts = [
            (asked(text, item.answer, prompt=item.question, first=item.replies[i], second=item.replies[j]), item.pictures)
            for item, own in zip(items, orders, strict=True) for i, j in own
        ]  # fmt: skip
        found = iter(self._values(prompts))
        return [self._compared(own, [next(found) for _ in own]) for own in orders]

    def _of_steps(self, items: Sequence[Item]) -> list[Verdict]:
        """The chance that each step is right, given those before it; none of a reply where one of its steps has none."""
        prompts = [
            (asked(self.template or STEP, i.answer, prompt=i.question, before="\n".join(steps[:n]), reply=step), i.pictures)
            for i in items for steps in i.steps for n, step in enumerate(steps)
        ]  # fmt: skip
        found = iter(self._values(prompts))
        verdicts = []
        for item in items:
            rows = [[next(found) for _ in steps] for steps in item.steps]
            why = next((said for row in rows for value, said in row if value is None), "")
            chances = [tuple(v for v, _ in row if v is not None) for row in rows]
            whole = tuple(c if len(c) == len(row) else None for c, row in zip(chances, rows, strict=True))
            verdicts.append(Verdict(steps=whole, why=why))
        return verdicts

    @staticmethod
    def _compared(orders: Sequence[tuple[int, int]], values: Sequence[tuple[float | None, str]]) -> Verdict:
        why = next((said for value, said in values if value is None), "")
        return Verdict(orders={pair: value for pair, (value, _) in zip(orders, values, strict=True)}, why=why)

    def _values(self, prompts: Sequence[Shown]) -> list[tuple[float | None, str]]:
        if self.policy is not None and self.by == "chances":
            return self._by_chances(prompts)
        replies = self._served(prompts) if self.policy is None else self._written(prompts)
        return [self.marks.value(reply) for reply in replies]

    def _served(self, prompts: Sequence[Shown]) -> list[Reply | Failure]:
        client = client_of(self.model)
        likely = LIKELY if self.by == "chances" and client.gives_chances(LIKELY) else 0
        marks = self.marks.texts if self.by == "chances" else ()
        requests = [
            Request((("user", text),), self.max_new, 0.0, likely=likely, marks=marks, images=tuple(map(address_of, pictures)))
            for text, pictures in prompts
        ]
        return client.chat(requests)

    def cost(self) -> dict[str, float]:
        if self.policy is not None:
            return {}
        usage = client_of(self.model).usage
        return {name: float(getattr(usage, name)) for name in ("requests", "cached", "read", "written", "cost")}

    # ---- local models -----------------------------------------------------------------------------------------------

    def _read(self, prompts: Sequence[Shown]) -> list[Trajectory]:
        messages = [shown((Message("user", text, images=pictures),), self.policy) for text, pictures in prompts]
        return self.policy.read([Trajectory(Problem(m)) for m in messages], messages)

    def _written(self, prompts: Sequence[Shown]) -> list[Reply | Failure]:
        read = self._read(prompts)
        fits = [i for i, t in enumerate(read) if len(t) + self.max_new <= self.policy.context]
        done = self.policy.extend([read[i] for i in fits], Sampling(self.max_new, 0.0), np.random.default_rng(0)) if fits else []
        replies = {i: Reply(t.reply) for i, t in zip(fits, done, strict=True)}
        return [replies.get(i, Failure(f"it does not fit the context of {self.policy.context} tokens")) for i in range(len(read))]

    def _by_chances(self, prompts: Sequence[Shown]) -> list[tuple[float | None, str]]:
        """The expected value over the marks."""
        values = self._tokens[2]
        return [(None if p is None else float((p * values).sum() / p.sum()), why) for p, why in self._chances(prompts)]

    def _chances(self, prompts: Sequence[Shown]) -> list[tuple[np.ndarray | None, str]]:
        """The chance of each mark, over that of the likeliest, by the token in which they differ; or why there is none."""
        read, (start, ids, _) = self._read(prompts), self._tokens
        fits = [i for i, t in enumerate(read) if len(t) + len(start) <= self.policy.context]
        begun = [read[i].plus(Turn(self.policy.name, start)) for i in fits]
        logits = next_logits(self.policy, begun, ids) if begun else np.zeros((0, len(ids)))
        chances = np.exp(logits - logits.max(1, keepdims=True, initial=-np.inf))
        found = dict(zip(fits, chances, strict=True))
        why = f"longer than the context of {self.policy.context} tokens"
        return [(found.get(i), "" if i in found else why) for i in range(len(read))]

    @functools.cached_property
    def _tokens(self) -> tuple[np.ndarray, list[int], np.ndarray]:
        """The tokens that all marks begin with, the next one of each, and the value of each.

        A tie is not asked for: it is what equal chances say, and small models say it for any two replies if they may.
        """
        names = [name for name, value in self.marks.values.items() if not self.places or value != 0.5]
        texts = [f"[[{name.upper() if self.places else name}]]" for name in names]
        return self._parting(texts, np.array([self.marks.values[name] for name in names]))

    def _parting(self, texts: Sequence[str], values: np.ndarray) -> tuple[np.ndarray, list[int], np.ndarray]:
        """The tokens that all texts begin with, the next one of each, and the values of those that it tells apart."""
        ids = [self.policy.tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        same = next((k for k in range(min(map(len, ids))) if len({row[k] for row in ids}) > 1), None)
        if same is None:
            raise RewardlabError(f"{self.name}: the tokenizer of this model writes {' and '.join(texts)} alike: use by=text")
        # of marks that begin alike (1 and 10), the first stands for both
        first = {row[same]: k for k, row in reversed(list(enumerate(ids)))}
        places = sorted(first.values())
        return np.asarray(ids[0][:same], np.int64), [ids[k][same] for k in places], values[places]
