"""Reward models as raters: sequence classifiers of transformers (`models/reward_model.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rewardlab.models.formats import fingerprint
from rewardlab.models.reward_model import load_reward_model
from rewardlab.policies.energy import FILE
from rewardlab.scoreboard.items import Item, Verdict, flat
from rewardlab.scoreboard.raters.rater import Rater, verdicts

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark


NO_REFERENCE = "reads replies beside a reference, and there is none"


class Classifier(Rater):
    """Its scores are log-odds, if it was trained by a Bradley-Terry loss."""

    scale = True

    def __init__(self, name: str, device: str, dtype: str):
        super().__init__(name)
        self.model = load_reward_model(name, device, dtype)

    def fingerprint(self) -> str:
        m = self.model
        head = f" energy {fingerprint((m.found.folder / FILE).parent)}" if m.energy else ""
        asked = f" by {list(m.principles)}" if m.principles else ""
        beside = f" {m.beside!r}" if m.beside else ""
        rated = f" weights {m.weights}" if m.weights else ""
        writer = f" after {m.writer}" if m.writer else ""
        return f"classifier {m.found.base.weights} {m.layout}{beside} {m.label} {m.longest} {m.dtype}{head}{asked}{rated}{writer}"

    def judge(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
        if self.model.beside and any(item.answer is None for item in items):
            known = [item for item in items if item.answer is not None]
            told = iter(self.judge(known, benchmark))
            return [Verdict(why=NO_REFERENCE) if item.answer is None else next(told) for item in items]
        found = self.model.read([(item.prompt, item.replies[k], item.answer) for item, k in flat(items)])
        scores, cut, tokens = zip(*found, strict=True) if found else ((), (), ())
        return verdicts(items, scores, (), [int(x) for x in cut], tokens)
