"""The audit of one target, within a budget of seconds, whatever the target does."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

from rewardlab.errors import RewardlabError

from . import replies
from .bias import bias, bias_of_form, of_form, of_template
from .built_in import KINDS, OF, built_in
from .conduct import SLOW, conduct, health, speed
from .findings import Finding, Tried, in_order, judged
from .levels import Levels, by_turns, choose_shape, gold_findings, of_built_in, of_items
from .problems import Item
from .process import Served
from .replies import Dress, Reply
from .rules import PROBES
from .target import Spec

BUDGET = 50.0
"""Seconds of an audit, so that it ends within a minute with all that is around it."""
LIMIT = 5.0
"""Seconds of one call."""
PROGRAMS = 15.0
"""The same for a reward that runs programs, which may take their time."""
CLOSELY = 24
"""Questions that are looked at closely."""
SLOWEST = 8
"""Slow replies that are asked again."""
SPREAD = 3
"""Questions on which long replies are tried."""
SHARES = {"conduct": 2, "trivial": 3, "changes": 2, "invariances": 2, "crowds": 2, "injection": 2, "bias": 2, "hostile": 5}
"""Probes in their order, and how the time is shared among them."""

Makes = Callable[[Item, Dress], Iterator[Reply]]


class Audit:
    """What is known so far. Probes are asked one after the other; each may take its share of the time that is left."""

    def __init__(self, served: Served, levels: Levels, users: bool):
        self.served, self.levels, self.users = served, levels, users
        self.tries: list[Tried] = list(levels.tries)
        self.findings: list[Finding] = []
        self.asked: dict[str, tuple[int, int]] = {}

    def until(self, probe: str) -> float:
        """When a probe ends: its share among those that are still to come."""
        names = list(SHARES)
        share = SHARES[probe] / sum(SHARES[name] for name in names[names.index(probe) :])
        return time.monotonic() + (self.served.until - time.monotonic()) * share

    @property
    def judges(self) -> bool:
        return self.levels.judges

    def run(self) -> None:
        must = self.served.about["reads_gold"] is True
        self._count("gold", self.levels.tries)
        self.findings += gold_findings(self.levels, must, self.users)
        self.findings += conduct(self.served, self.base(), self.until("conduct"))
        pairs = list(self.pairs())
        others = dict(zip(map(id, (item for item, _ in pairs)), self._others([item for item, _ in pairs]), strict=True))
        self.probe("trivial", pairs, lambda item, dress: replies.trivial(item, dress, others[id(item)]))
        if self.judges:
            self.probe("changes", pairs, replies.changed)
            self.probe("invariances", pairs, replies.unchanged)
            self.probe("crowds", pairs[:SPREAD], replies.candidates)
        else:
            self.findings += of_form(self.tries)
            self.findings += of_template(self.probe("invariances", pairs[:SPREAD], replies.template, judge=False))
        if self.served.spec["kind"] == "judge":
            self.probe("injection", pairs[:SPREAD], replies.injections)
        self.bias(pairs)
        self.probe("hostile", pairs[:1], replies.hostile)
        self.confirm_slow()
        self.findings += health(self.tries)

    def confirm_slow(self) -> None:
        """Ask slow replies again: a machine that was busy with something else is no matter of the reward."""
        slow = [t for t in self.tries if t.paid and t.paid.kind == "number" and t.paid.seconds > SLOW][:SLOWEST]
        again = self.served.ask([tried.row for tried in slow])
        for tried, paid in zip(slow, again, strict=True):
            if paid and tried.paid and paid.seconds < tried.paid.seconds:
                tried.paid = replace(tried.paid, seconds=paid.seconds)

    def pairs(self) -> Iterator[tuple[Item, Dress]]:
        """Every question with one of the dresses in which it can be judged, in turn; the kinds of questions by turns."""
        if not self.judges:
            yield from ((item, self.best()) for item in self.levels.close)
            return
        turns = itertools.count()
        for item in by_turns(self.levels.close):
            if asked := self.levels.asked(item):
                yield item, asked[next(turns) % len(asked)]

    def best(self) -> Dress:
        """The dress that pays best, for a reward that does not judge answers."""
        sums: dict[str, list[float]] = {}
        for tried in self.levels.tries:
            if tried.paid and tried.paid.value is not None:
                sums.setdefault(tried.dress.name, []).append(tried.paid.value)
        means = {name: sum(values) / len(values) for name, values in sums.items()}
        return max(replies.DRESSES, key=lambda dress: means.get(dress.name, float("-inf")))

    def base(self) -> list[Tried]:
        """Replies that were paid already, right and wrong ones of every kind, to be scored again in other ways."""
        read = {(id(item), dress.name) for item, dress in self.pairs()}
        known = [tried for tried in self.levels.tries if (id(tried.item), tried.dress.name) in read]
        return known[:32]

    def probe(self, name: str, pairs: Sequence[tuple[Item, Dress]], makes: Makes, judge: bool = True) -> list[Tried]:
        """Try the replies of a probe, question by question. What has brought the target down once is not tried again."""
        tries: list[Tried] = []
        until, deadly = self.until(name), set()
        for item, dress in pairs:
            level = self.levels.level(item, dress)
            some = [Tried(name, item, dress, reply, level) for reply in makes(item, dress) if reply.name not in deadly]
            for tried, paid in zip(some, self.served.ask([tried.row for tried in some], until=until), strict=True):
                tried.paid = paid
            deadly |= {tried.reply.name for tried in some if tried.paid and tried.paid.kind in ("hang", "crash")}
            tries += some
        self._count(name, tries)
        self.tries += tries
        if judge:
            self.findings += judged(tries)
        return tries

    def bias(self, pairs: Sequence[tuple[Item, Dress]]) -> None:
        some = pairs[:SPREAD]
        wrong = self.probe("bias", some, lambda item, dress: replies.lengths(item, dress, right=False), judge=False)
        if not self.judges:
            values = [t.paid.value for t in self.tries if t.paid and t.paid.value is not None]
            self.findings += bias_of_form(wrong, max(values, default=0.0) - min(values, default=0.0))
            return
        framed = [(item, dress) for item, dress in some if dress.name not in ("plain", "as it is")]
        right = self.probe("bias", framed, lambda item, dress: replies.lengths(item, dress, right=True), judge=False)
        self.findings += bias(wrong, right)

    def _others(self, items: Sequence[Item]) -> list[Item]:
        """For each question another one of its kind, with another answer where there is one."""
        found = []
        for i, item in enumerate(items):
            rest = [*items[i + 1 :], *items[:i]]
            apart = [other for other in rest if other.kind == item.kind and other.gold != item.gold]
            found.append(apart[0] if apart else item)
        return found

    def _count(self, name: str, tries: Iterable[Tried]) -> None:
        tries = list(tries)
        done, of = self.asked.get(name, (0, 0))
        self.asked[name] = done + sum(tried.paid is not None for tried in tries), of + len(tries)


def audit(
    spec: Spec, *, items: Sequence[Item] = (), kind: str | None = None, about: Mapping[str, Any] | None = None,
    most: int = CLOSELY, budget: float = BUDGET, limit: float = LIMIT,
) -> dict[str, Any]:  # fmt: skip
    """Audit a target and say what was found, as plain data.

    items: the user's own questions; without them, ours, of one kind or of every kind that the target can judge.
    most: questions that are looked at closely; of the others, the right answer is tried.
    budget, limit: seconds in all, and of one call.  Raises RewardlabError if the target cannot be loaded or reached.
    """
    begun = time.monotonic()
    with Served(spec, limit, begun + budget) as served:
        made = examine(served, items, kind, most)
        return describe(made, dict(about or {}), time.monotonic() - begun)


def examine(served: Served, items: Sequence[Item] = (), kind: str | None = None, most: int = CLOSELY) -> Audit:
    """Audit a target that is being served. Half of the time may go to finding out what it reads, and what it pays for that."""
    if not items and kind is None and served.spec["kind"] == "part":
        kind = OF.get(served.spec["name"])
    first = items or built_in(kind or KINDS[0])
    until = (time.monotonic() + served.until) / 2
    deadly = choose_shape(served, first, until)
    levels = of_items(served, first, most, until) if items or kind else of_built_in(served, until)
    _reached(served, levels)
    if "code" in levels.own:
        served.seconds = max(served.seconds, PROGRAMS)
    if not items:
        _suited(served, levels)
    made = Audit(served, levels, bool(items))
    made.tries += [tried for tried in (*deadly, *levels.deadly) if not any(tried is other for other in levels.tries)]
    made.run()
    return made


def _reached(served: Served, levels: Levels) -> None:
    """A target that never answered, without hanging or failing by a fault of its own, was not audited."""
    spec, paid = served.spec, [tried.paid for tried in levels.tries if tried.paid]
    if not paid and not served.given_up:
        raise RewardlabError(f"the time did not suffice for a single call of {served.about['name']}; give more --seconds")
    if spec["kind"] == "judge" and paid and all(one.kind == "error" and "the endpoint failed" in one.why for one in paid):
        raise RewardlabError(f"the judge at {spec['url']} gives no answer: {paid[0].why}")


def _suited(served: Served, levels: Levels) -> None:
    """A target for which we have no questions, or had no time to find them out, was not audited either."""
    name, golds = served.about["name"], [tried.paid for tried in levels.tries[::2]]
    if levels.judges or served.given_up or levels.deadly:
        return
    if not levels.whole:
        raise RewardlabError(f"the time did not suffice to find out what {name} judges; give --kind, or more --seconds")
    if served.spec["kind"] == "part" and all(paid is not None and paid.kind == "none" for paid in golds):
        raise RewardlabError(f"{name} can judge none of the built-in questions; give some that it is made for, by --problems")


def describe(made: Audit, about: dict[str, Any], seconds: float) -> dict[str, Any]:
    """An audit as plain data."""
    findings = in_order(made.findings)
    counts = {severity: sum(f.severity == severity for f in findings) for severity in ("fault", "warning", "note")}
    items = made.levels.items
    unfinished = {name: [done, of] for name, (done, of) in made.asked.items() if done < of}
    whole = not made.served.given_up and all(done for done, _ in unfinished.values())
    return {
        "target": about.pop("target", made.served.about["name"]),
        "name": made.served.about["name"],
        **about,
        "judges": "answers" if made.judges else "form",
        "verdict": "faults" if counts["fault"] else "clean" if whole else "unfinished",
        "counts": counts,
        "problems": {kind: sum(item.kind == kind for item in items) for kind in dict.fromkeys(item.kind for item in items)},
        "reads": {kind: [dress.name for dress in own] for kind, own in made.levels.own.items()},
        "handed_over_as": "messages" if made.served.messages else "text",
        "given_up": made.served.given_up,
        "unfinished": unfinished,
        "skipped": [] if made.judges else ["changes", "crowds"],
        "speed": speed([tried for tried in made.tries if tried.probe != "hostile"]),
        "seconds": round(seconds, 2),
        "probes": PROBES,
        "findings": [finding.document() for finding in findings],
        "rewardlab": metadata.version("rewardlab"),
    }
