"""Rewards of rewardlab and functions of a user's own, as raters: `words()`, `mine.py:score`, `words() + 2 * repetition()`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rewardlab.scoreboard.items import Item, Verdict
from rewardlab.scoreboard.raters.rater import Rater, verdicts

if TYPE_CHECKING:
    from rewardlab.scoreboard.benchmark import Benchmark


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
        scores: list[float | None] = []
        why: list[str] = []
        for item in items:
            prompt = [{"role": m.role, "content": m.text} for m in item.prompt]
            rows = [{"prompt": prompt, "response": r, "answer": item.answer, "meta": dict(item.meta)} for r in item.replies]
            for document in self.scorer(rows):
                scores.append(document["score"])
                why.append(document["why"] if document["score"] is None else "")
        return verdicts(items, scores, why)
