"""The target of an audit without a process of its own."""

from __future__ import annotations

import time
from dataclasses import astuple

from rewardlab.audit.loading import load
from rewardlab.audit.serve import serve
from rewardlab.audit.target import RewardResult


class Here:
    """A target that is called in this process: for those that come back."""

    def __init__(self, spec, budget=30.0):
        self.spec, self.target, self.until = spec, load(spec), time.monotonic() + budget
        self.given_up, self.spent, self.loading = False, {}, 0.0
        names = ("name", "reads_gold", "messages", "concurrent")
        self.about = {name: getattr(self.target, name) for name in names}

    def ask(self, rows, how="each", until=None):
        found = [None] * len(rows)

        def say(what):
            place = what.pop("i")
            found[place] = RewardResult(**what)

        serve(self.target, {"rows": [astuple(row) for row in rows], "how": how}, say)
        self.spent[0] = self.target.spent()
        return found
