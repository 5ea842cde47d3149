"""A judge that sees all replies of an item at once, marked A, B, C, ..., and chooses one: in several orders, by chance.

    judge:MODEL?kind=nway&orders=3      score of a reply: the mean over the orders of how far it is chosen, from 0 to 1

As the generative ranking of RewardBench 2 (Malik et al. 2025, arXiv:2506.01937), which asks once, in one shuffled order: orders=1.
The orders are those of a seed and the item, so that each is asked again as it was. An order that gets no verdict is left out.
"""

from __future__ import annotations

import functools
import hashlib
import random
import string
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from rewardlab.clients.messages import Failure, Reply
from rewardlab.core import Message, seed_of
from rewardlab.errors import RewardlabError
from rewardlab.judges.marks import Marks
from rewardlab.scoreboard.items import Item, Verdict
from rewardlab.scoreboard.raters.judge import Judge, Shown
from rewardlab.text.filled import filled

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark

LETTERS = string.ascii_uppercase
ANSWER_PART = "[Right answer]\n{answer}\n\n"
TEMPLATE = (
    "Choose the best of several replies to a question.\n\n[Question]\n{prompt}\n\n" + ANSWER_PART + "{replies}\n\n"
    "[End of the replies]\nWhich reply is best? The order in which they stand says nothing. Say only its letter, in the form [[A]]."
)
Chosen = tuple[np.ndarray | None, str]
"""How far the reply in each place is chosen, or None with the reason."""


class NWay(Judge):
    """orders: in which the replies of an item are shown.  template: a text with {prompt} and {replies}; without it ours."""

    def __init__(
        self, name: str, model: str, device: str, dtype: str, *, template: str = "", by: str = "", max_new: int = 512,
        orders: int = 3,
    ):  # fmt: skip
        super().__init__(name, model, device, dtype, by=by, max_new=max_new)
        if template and "{replies}" not in template:
            raise RewardlabError(f"{name}: the template of a choice among all replies needs the place {{replies}}")
        self.asking, self.orders, self.places = template or TEMPLATE, orders, False
        self.form = replace(self.form, marks=Marks(dict.fromkeys(LETTERS, 1.0)))

    def fingerprint(self) -> str:
        template = hashlib.sha256(self.asking.encode()).hexdigest()[:12]
        return f"{super().fingerprint()} nway {self.orders} {template}"

    def _judged(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
        shown = [self.shown(item) for item in items]
        prompts = [self._prompt(item, order) for item, orders in zip(items, shown, strict=True) for order in orders]
        sizes = [len(order) for orders in shown for order in orders]
        chosen = iter(self._chosen(prompts, sizes))
        return [self._verdict(item, orders, [next(chosen) for _ in orders]) for item, orders in zip(items, shown, strict=True)]

    def shown(self, item: Item) -> list[list[int]]:
        """The orders in which the replies are shown; none where there are more replies than letters."""
        n = len(item.replies)
        if n > len(LETTERS):
            return []
        key = item.key("replies")
        return [random.Random(seed_of("nway", key, k)).sample(range(n), n) for k in range(self.orders)]

    def _prompt(self, item: Item, order: Sequence[int]) -> Shown:
        replies = "\n\n".join(f"[Reply {letter}]\n{item.replies[i]}" for letter, i in zip(LETTERS, order, strict=False))
        template = self.asking if item.answer is not None else self.asking.replace(ANSWER_PART, "")
        text = filled(template, prompt=item.question, answer=item.answer or "", replies=replies)
        return (Message("user", text, images=item.pictures),)

    @staticmethod
    def _verdict(item: Item, orders: Sequence[Sequence[int]], chosen: Sequence[Chosen]) -> Verdict:
        known = [(order, found) for order, (found, _) in zip(orders, chosen, strict=True) if found is not None]
        if not known:
            many = f"it has more than {len(LETTERS)} replies"
            return Verdict((None,) * len(item.replies), why=next((why for _, why in chosen), many))
        scores = np.zeros(len(item.replies))
        for order, found in known:
            scores[list(order)] += found / len(known)
        return Verdict(tuple(map(float, scores)))

    def _chosen(self, prompts: Sequence[Shown], sizes: Sequence[int]) -> list[Chosen]:
        if self.policy is not None and self.by == "chances":
            return [
                (None if chances is None else chances[:n] / chances[:n].sum(), why)
                for (chances, why), n in zip(self._chances(prompts), sizes, strict=True)
            ]
        return [self._said(reply, n) for reply, n in zip(self._replies(prompts), sizes, strict=True)]

    @staticmethod
    def _said(reply: Reply | Failure, n: int) -> Chosen:
        """By the chances of the letters where the server gives them; else 1 for the reply that is named last."""
        found = [Marks({x: float(x == letter) for x in LETTERS[:n]}).value(reply) for letter in LETTERS[:n]]
        values = [value for value, _ in found if value is not None]
        return (np.array(values), "") if len(values) == n else (None, found[0][1])

    @functools.cached_property
    def _tokens(self) -> tuple[np.ndarray, list[int], np.ndarray]:
        """The tokens that all marks begin with, and the next one of each letter."""
        return self._parting([f"[[{letter}]]" for letter in LETTERS], np.arange(len(LETTERS), dtype=float))
