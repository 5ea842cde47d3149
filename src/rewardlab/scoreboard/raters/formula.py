"""Rewards of rewardlab and functions of a user's own, as raters: `words()`, `mine.py:score`, `words() + 2 * repetition()`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rewardlab.errors import Unusable, reason_of
from rewardlab.scoreboard.items import Item, Verdict
from rewardlab.scoreboard.raters.rater import Rater, verdicts

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark
    from rewardlab.servers.scoring import Row

ROLLOUT = re.compile(r"rollout (\d+) of group 0")
"""How rewards call a reply."""


class Said(NamedTuple):
    """What a reward says of a reply: its score, or why there is none, and whether it failed."""

    score: float | None
    why: str = ""
    failed: bool = False


class Formula(Rater):
    """A reward as `--reward` takes it. The replies of an item are one group; tokens are characters. It reads text alone."""

    blind = True

    def __init__(self, name: str, formula: str = ""):
        # it imports torch and the whole of the rewards
        from rewardlab.servers.scoring import Scorer

        super().__init__(name)
        self.scorer = Scorer([formula or name])

    def fingerprint(self) -> str:
        file = Path(self.name.partition(".py")[0] + ".py").expanduser()
        code = file.read_bytes() if ".py" in self.name and file.is_file() else b""
        return f"formula {self.name} {hashlib.sha256(code).hexdigest()[:16]}{self._models()}"

    def _models(self) -> str:
        """The state of the models and runs that it names, as `model:runs/rm` does: names, sizes and times of their files."""
        words = {part for word in re.split(r"[\s'\"=(),?]+", self.name) for part in (word, word.partition(":")[2]) if part}
        folders = [folder for word in sorted(words) if (folder := Path(word).expanduser()).joinpath("config.json").is_file()]
        files = [p for folder in folders for p in sorted(folder.rglob("*")) if p.is_file()]
        if not files:
            return ""
        state = [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in files]
        return f" models {hashlib.sha256(repr(state).encode()).hexdigest()[:16]}"

    def judge(self, items: Sequence[Item], benchmark: Benchmark) -> list[Verdict]:
        said: list[Said] = []
        for item in items:
            prompt = [{"role": m.role, "content": m.text} for m in item.prompt]
            rows = [{"prompt": prompt, "response": r, "answer": item.answer, "meta": dict(item.meta)} for r in item.replies]
            said += self._scored(rows)
        return verdicts(items, [x.score for x in said], [x.why for x in said], failed=[x.failed for x in said])

    def _scored(self, rows: Sequence[Row], first: int = 1) -> list[Said]:
        """What is said of replies, the first of which is the item's reply of this number. Where the reward raises, or gives NaN,
        each is asked by itself, if it is scored by itself; that which fails has no score."""
        try:
            return [Said(x["score"], "" if x["score"] is not None else x["why"]) for x in self.scorer(rows)]
        except Unusable:
            raise
        except Exception as problem:
            if len(rows) < 2 or not self.scorer.about["alone"]:
                why = ROLLOUT.sub(lambda found: f"reply {first + int(found[1])}", reason_of(problem))
                return [Said(None, why, failed=True) for _ in rows]
        return [said for k, row in enumerate(rows, first) for said in self._scored([row], k)]
