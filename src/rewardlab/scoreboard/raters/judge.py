"""Judges that write: a verdict on two replies in both orders, or a score of each; of a local model, or of a served one.

    judge:MODEL                      pairs, by the benchmark's own prompt if it has one, else by ours
    judge:MODEL?kind=scale           a score from 1 to 10 of each reply
    judge:MODEL?kind=verdict         whether a reply is right, or a step, where a benchmark asks about steps
    judge:MODEL?form=rm_r1           by a published form, which says what is shown and how the judgement is read (judges/)
    judge:runs/X                     a judge that was trained here, in the form in which it was asked then
    judge:openai:URL#NAME?template=FILE&votes=4

The verdict of a local model is read from the chances of the marks that it might write ([[A]] or [[B]]), as is a served one's where
the server gives them; `by=text` has it write, and takes the last mark, as published forms and judges of runs do by themselves. With
`votes`, so many judgements are sampled, and their mean counts. Pictures of the item's prompt are shown before the text, to a local
vision-language model scaled to the size that it reads; a judge that reads text alone gives no verdict on such an item.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from rewardlab.clients.client import client_of
from rewardlab.clients.endpoint import is_served
from rewardlab.clients.messages import Failure, Reply, Request
from rewardlab.core import Message, Problem, Sampling, Trajectory, Turn
from rewardlab.data.pictures import addresses
from rewardlab.errors import RewardlabError, Unusable, unknown
from rewardlab.judges.forms import Form, own_form
from rewardlab.judges.marks import FAILED, LIKELY, Marks
from rewardlab.judges.named import form_of
from rewardlab.judges.published import FORMS
from rewardlab.models.layouts import judge_form_of_run
from rewardlab.scoreboard.items import Item, Verdict, flat
from rewardlab.scoreboard.raters.likelihood import weights
from rewardlab.scoreboard.raters.passes import next_logits, seeing
from rewardlab.scoreboard.raters.rater import Rater, verdicts

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark

KINDS = ("pairwise", "scale", "verdict", "scores")  # and nway, which chooses among all replies at once: nway.py
LOW, HIGH = 1, 10
STEP = (
    "Judge the last step of a solution.\n\n[Question]\n{prompt}\n\n[Steps before it]\n{before}\n\n[Last step]\n{reply}\n\n"
    "[End of the step]\nIs the last step right? Say only [[yes]] or [[no]]."
)
"""What is asked about a step; a template of one's own may have the place {before} too."""
Shown = tuple[Message, ...]
"""A judge's prompt, with the pictures that come before its text."""


def _mean(said: Sequence[tuple[float | None, str]]) -> tuple[float | None, str]:
    """The mean of the judgements that can be read, or why there is none."""
    known = [value for value, _ in said if value is not None]
    return (sum(known) / len(known), said[0][1]) if known else (None, said[0][1])


class Judge(Rater):
    """kind: pairwise, scale, verdict or scores.  template: a text or a file; without it the benchmark's, else ours.  form: the name
    of a published form instead, which has a kind of its own, or NAME:FILE.  by: "chances" or "text".  votes: judgements, whose mean
    counts.  max_new: the longest judgement in tokens."""

    places = True
    writes = True

    def __init__(
        self, name: str, model: str, device: str, dtype: str, *, kind: str = "pairwise", template: str = "", form: str = "",
        by: str = "", votes: int = 1, max_new: int = 512,
    ):  # fmt: skip
        super().__init__(name)
        if kind not in KINDS:
            raise unknown("kind of judge", kind, (*KINDS, "nway"))
        if form and form.partition(":")[0] not in FORMS:
            raise unknown("form of judge", form, tuple(FORMS))
        if not (form or template) and kind == "pairwise" and not is_served(model) and (own := judge_form_of_run(model)):
            form, kind = own
        self.form = form_of(form or template, kind, LOW, HIGH)
        self.template = form or template
        self.kind, self.model, self.max_new, self.votes = self.form.kind, model, max_new, votes
        writes = bool(form) or votes > 1 or self.kind == "scores"
        self.by, self.places = by or ("text" if writes else "chances"), self.kind in ("pairwise", "scores")
        if self.by == "chances" and (self.form.marks is None or votes > 1):
            raise RewardlabError(f"{name}: the chances of a mark are one judgement with one mark: use by=text")
        self.asks = ("replies", "steps") if self.kind == "verdict" else ("replies",)
        self.policy: Any = None
        if not is_served(model):
            from rewardlab.models.load import load_policy

            self.policy = load_policy(model, device, dtype)
        self.sees = self.policy is None or seeing(self.policy)

    @property
    def marks(self) -> Marks:
        assert self.form.marks is not None
        return self.form.marks

    def fingerprint(self) -> str:
        who = self.model if self.policy is None else f"{weights(self.model)} {self.policy.dtype}"
        asked = self.form.text + self.form.system if self.template else ""
        template = hashlib.sha256(asked.encode()).hexdigest()[:12] if asked else ""
        return f"judge {who} {self.kind} {template} {self.by} {self.max_new}" + (f" {self.votes}" if self.votes > 1 else "")

    def judge(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
        return self._answered(self._judged(items, benchmark))

    def _answered(self, found: Sequence[Verdict]) -> list[Verdict]:
        """The verdicts, with those marked as failures for which a served model gave no answer."""
        return [replace(v, failed=self.policy is None and v.why.startswith(FAILED)) for v in found]

    def _judged(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
        if benchmark.asks == "steps":
            return self._of_steps(items)
        form = self.form if self.template or self.kind != "pairwise" else form_of(benchmark.prompt, "pairwise")
        if self.kind == "scores":
            return self._of_all(items, form)
        if self.kind != "pairwise":
            values = self._values([self._shown(form, item, (item.replies[k],)) for item, k in flat(items)])
            why = ["" if v is not None else said for v, said in values]
            return verdicts(items, [v for v, _ in values], why)
        orders = [[pair for p in item.shown for pair in (p, p[::-1])] for item in items]
        prompts = [
            self._shown(form, item, (item.replies[i], item.replies[j]))
            for item, own in zip(items, orders, strict=True) for i, j in own
        ]  # fmt: skip
        found = iter(self._values(prompts))
        return [self._compared(own, [next(found) for _ in own]) for own in orders]

    @staticmethod
    def _shown(form: Form, item: Item, replies: Sequence[str]) -> Shown:
        asked = Message("user", form.prompt(item.question, item.answer, replies, item.meta), images=item.pictures)
        return (Message("system", form.system), asked) if form.system else (asked,)

    def _of_all(self, items: Sequence[Item], form: Form) -> list[Verdict]:
        """The score of each reply, the mean over the order in which they stand and its reverse, since judges look at it."""
        orders = [[range(n), range(n)[::-1]] for n in (len(item.replies) for item in items)]
        prompts = [
            self._shown(form, item, [item.replies[i] for i in order])
            for item, own in zip(items, orders, strict=True) for order in own
        ]  # fmt: skip
        sizes = [len(order) for own in orders for order in own]
        said = iter([form.read(reply, n) for reply, n in zip(self._replies(prompts), sizes, strict=True)])
        judged = []
        for item in items:
            forth, back = next(said), next(said)
            if forth.values is None or back.values is None:
                judged.append(Verdict((None,) * len(item.replies), why=back.said if back.values is None else forth.said))
            else:
                both = zip(forth.values, back.values[::-1], strict=True)
                judged.append(Verdict(tuple((a + b) / 2 for a, b in both)))
        return judged

    def _of_steps(self, items: Sequence[Item]) -> list[Verdict]:
        """The chance that each step is right, given those before it; none of a reply where one of its steps has none."""
        form = self.form if self.template else own_form("verdict", STEP)
        prompts = [
            self._shown(form, replace(i, meta={**i.meta, "before": "\n".join(steps[:n])}), (step,))
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
        said = [self.marks.value(reply) for reply in self._replies(list(prompts) * self.votes)]
        return [_mean(said[i :: len(prompts)]) for i in range(len(prompts))]

    def _replies(self, prompts: Sequence[Shown]) -> list[Reply | Failure]:
        return self._served(prompts) if self.policy is None else self._written(prompts)

    def _served(self, prompts: Sequence[Shown]) -> list[Reply | Failure]:
        client = client_of(self.model)
        likely = LIKELY if self.by == "chances" and client.gives_chances(LIKELY) else 0
        marks = self.marks.texts if self.by == "chances" else ()
        each = len(prompts) // self.votes
        requests = [
            Request(
                tuple((m.role, m.text) for m in said), self.max_new, self.temperature, likely=likely, marks=marks, sample=k // each,
                images=addresses(said),
            )
            for k, said in enumerate(prompts)
        ]  # fmt: skip
        found = client.chat(requests)
        if not client.usage.requests and found and all(isinstance(x, Failure) and x.timed_out for x in found):
            # else every item would be waited for as long
            first = next(x.why for x in found if isinstance(x, Failure))
            raise Unusable(
                f"{client.endpoint} has answered none of {len(found)} requests: {first}; is it up? Behind its "
                "name, timeout= and total= say how many seconds are waited"
            )
        return found

    @property
    def temperature(self) -> float:
        # several judgements that are all the likeliest one would be one
        return 1.0 if self.votes > 1 else 0.0

    def cost(self) -> dict[str, float]:
        if self.policy is not None:
            return {}
        usage = client_of(self.model).usage
        return {name: float(getattr(usage, name)) for name in ("requests", "cached", "read", "written", "cost")}

    # ---- local models -----------------------------------------------------------------------------------------------

    def _read(self, prompts: Sequence[Shown]) -> list[Trajectory]:
        messages = [tuple(said) for said in prompts]
        return self.policy.read([Trajectory(Problem(m)) for m in messages], messages)

    def _written(self, prompts: Sequence[Shown]) -> list[Reply | Failure]:
        read = self._read(prompts)
        fits = [i for i, t in enumerate(read) if len(t) + self.max_new <= self.policy.context]
        done = (
            self.policy.extend([read[i] for i in fits], Sampling(self.max_new, self.temperature), np.random.default_rng(0))
            if fits
            else []
        )
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
        shown = [
            (text, value)
            for text, value in zip(self.marks.texts, self.marks.values.values(), strict=True)
            if not self.places or value != 0.5
        ]
        return self._parting([text for text, _ in shown], np.array([value for _, value in shown]))

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
