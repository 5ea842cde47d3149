"""What right and wrong answers are paid: by which a reward's scale is known, the dresses that it reads, and what it judges."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .built_in import KINDS, built_in
from .findings import EXAMPLES, Finding, Level, Tried, example
from .problems import Item
from .process import Served
from .replies import Dress, dresses, mention, plainly

FIRST = 3
"""Questions of a kind by which it is found out whether a reward can judge answers of that kind."""
EQUIVALENT = ("latex",)
"""Kinds that are judged by what they mean. A reward that compares letters can tell them apart too, but does not judge them."""
MOST = 2 / 3
"""Share of the questions that must be told apart in a dress; by chance it would be half of them."""
WORTH = 0.5
"""A dress is read if the right answer gains at least this share of what it gains in the best one."""


@dataclass
class Levels:
    """What was found out.

    tries: every reply that was paid for it.  close: the questions that are looked at closely.  levels: by question and dress.
    own: the dresses that the reward reads, by kind of answer.  firm: those in which it looks for the answer where the dress puts
    it, whatever follows.  deadly: replies that the target did not survive while it was found out what it can judge.
    whole: whether there was time to find that out.
    """

    items: list[Item] = field(default_factory=list)
    close: list[Item] = field(default_factory=list)
    tries: list[Tried] = field(default_factory=list)
    levels: dict[tuple[int, str], Level] = field(default_factory=dict)
    own: dict[str, list[Dress]] = field(default_factory=dict)
    firm: dict[str, list[Dress]] = field(default_factory=dict)
    deadly: list[Tried] = field(default_factory=list)
    whole: bool = True

    @property
    def judges(self) -> bool:
        """Whether right answers are paid more than wrong ones, anywhere."""
        return bool(self.own)

    def level(self, item: Item, dress: Dress) -> Level | None:
        found = self.levels.get((id(item), dress.name))
        return found if found and found.gap > 0 else None

    def read(self, item: Item) -> list[Dress]:
        """The reward's own dresses in which this question's right answer is told from a wrong one."""
        own = self.own.get(item.kind, [])
        best = max((level.gap for dress in own if (level := self.level(item, dress))), default=0.0)
        return [dress for dress in own if (level := self.level(item, dress)) and level.gap >= WORTH * best]

    def asked(self, item: Item) -> list[Dress]:
        """The dresses in which tricks are tried on this question: those that leave no doubt about what is stated, if any do."""
        read, firm = self.read(item), self.firm.get(item.kind, [])
        # what a bare answer means is open as soon as anything stands beside it
        framed = [dress for dress in read if dress.name != "plain"] or read
        return [dress for dress in framed if dress in firm] or framed


def of_items(served: Served, items: Sequence[Item], most: int, until: float) -> Levels:
    """The levels of the user's own questions, or of a kind that was asked for; those beyond `most` in one dress alone."""
    turns = by_turns(items)
    found = Levels(turns, turns[:most])
    _measure(served, found, found.close, time.monotonic() + (until - time.monotonic()) / 2)
    _own(found)
    _firm(served, found, until)
    _measure(served, found, [item for item in turns[most:] if item.kind in found.own], until, best=True)
    return found


def of_built_in(served: Served, until: float, kinds: Sequence[str] = KINDS) -> Levels:
    """The levels of our own questions, of those kinds of which the first ones can all be judged."""
    tried, chosen = [], []
    for kind in kinds:
        items = built_in(kind)
        one = Levels(items[:FIRST])
        _measure(served, one, one.items, time.monotonic() + (until - time.monotonic()) / 3)
        _own(one)
        tried.append(one)
        if all(one.read(item) for item in one.items) and (kind not in EQUIVALENT or _equivalent(served, one, until)):
            chosen.append((one, items))
    deadly = [t for one in tried for t in one.tries if t.paid and t.paid.kind in ("hang", "crash")]
    if not chosen:
        tried[0].close = tried[0].items
        tried[0].deadly = deadly
        tried[0].whole = all(t.paid is not None for one in tried for t in one.tries)
        return tried[0]
    for one, items in chosen:
        _measure(served, one, items[FIRST:], until)
        one.items = one.close = items
        _own(one)
    found = Levels(deadly=[t for t in deadly if not any(t is mine for one, _ in chosen for mine in one.tries)])
    for one, _ in chosen:
        found.items += one.items
        found.close += one.items
        found.tries += one.tries
        found.levels |= one.levels
        found.own |= one.own
    _firm(served, found, until)
    return found


def by_turns(items: Sequence[Item]) -> list[Item]:
    """The questions, their kinds by turns."""
    kinds = dict.fromkeys(item.kind for item in items)
    columns = [[item for item in items if item.kind == kind] for kind in kinds]
    return [item for row in itertools.zip_longest(*columns) for item in row if item is not None]


def _equivalent(served: Served, found: Levels, until: float) -> bool:
    """Whether another way to write a right answer is accepted, and not its letters alone."""
    tries = [
        Tried("gold", item, dress, plainly("same", dress.write(item, same)), found.level(item, dress))
        for item in found.items for dress in found.read(item) for _, same in item.same
    ]  # fmt: skip
    for tried, paid in zip(tries, served.ask([tried.row for tried in tries], until=until), strict=True):
        tried.paid = paid
    return any(tried.share is not None and tried.share >= WORTH for tried in tries)


def choose_shape(served: Served, items: Sequence[Item], until: float) -> list[Tried]:
    """Whether prompts and completions are handed over as texts or as messages: as that which tells right from wrong.

    Returns the replies that the target did not survive.
    """
    gaps: list[tuple[float, int]] = []
    tries: list[Tried] = []
    if not served.about["speaks"]:
        return tries
    for messages in (False, True):
        served.messages = messages
        one = Levels(list(items[:2]))
        _measure(served, one, one.items, until)
        tries += [tried for tried in one.tries if tried.paid and tried.paid.kind in ("hang", "crash")]
        failed = sum(tried.paid is not None and tried.paid.kind == "error" for tried in one.tries)
        gaps.append((max((level.gap for level in one.levels.values() if level.gap > 0), default=0.0), -failed))
        if gaps[-1][0] > 0:
            return tries
    served.messages = gaps[1] > gaps[0]
    return tries


def _measure(served: Served, found: Levels, items: Iterable[Item], until: float, best: bool = False) -> None:
    """Find out what right and wrong answers are paid, in every dress, or in the `best` one."""
    tries = [
        Tried("gold", item, dress, plainly(dress.name, dress.write(item, answer)))
        for item in items
        for dress in (found.firm.get(item.kind) or found.own[item.kind] if best else dresses(item.kind))[: 1 if best else None]
        for answer in (item.gold, item.far)
    ]
    for tried, paid in zip(tries, served.ask([tried.row for tried in tries], until=until), strict=True):
        tried.paid = paid
    for right, wrong in zip(tries[::2], tries[1::2], strict=True):
        if right.paid and wrong.paid and wrong.paid.value is not None:
            pays = right.paid.value if right.paid.value is not None else wrong.paid.value
            right.level = found.levels[id(right.item), right.dress.name] = Level(wrong.paid.value, pays)
    found.tries += tries


def _own(found: Levels) -> None:
    """The dresses in which most questions are told apart, by how much is gained in them."""
    found.own = {}
    for kind in dict.fromkeys(item.kind for item in found.items):
        items = [item for item in found.close or found.items if item.kind == kind]
        gains = {}
        for dress in dresses(kind):
            known = [level.gap for item in items if (level := found.levels.get((id(item), dress.name)))]
            apart = [gap for gap in known if gap > 0]
            if apart and len(apart) >= MOST * len(known):
                gains[dress.name] = statistics.median(apart)
        best = max(gains.values(), default=0.0)
        if own := [dress for dress in dresses(kind) if gains.get(dress.name, 0.0) >= WORTH * best > 0]:
            found.own[kind] = own


def _firm(served: Served, found: Levels, until: float) -> None:
    """Find the dresses in which a right answer is still read when another one is mentioned behind it.

    A reward that knows answer tags reads what stands in them; one that does not takes them for text, and may well go by the last
    number there. That is a convention, and no fault as long as there is a dress that it does know.
    """
    for kind, own in found.own.items():
        items = [item for item in found.close if item.kind == kind][:FIRST]
        tries = [
            Tried("firm", item, dress, plainly("firm", f"{dress.write(item, item.gold)}\n{mention(item, item.far)}"),
                  found.level(item, dress))
            for item in items for dress in own if dress in found.read(item) and dress.name != "plain"
        ]  # fmt: skip
        for tried, paid in zip(tries, served.ask([tried.row for tried in tries], until=until), strict=True):
            tried.paid = paid
        holds = {d: [t.share is not None and t.share >= WORTH for t in tries if t.dress == d] for d in own}
        found.firm[kind] = [dress for dress, held in holds.items() if held and all(held)]


def gold_findings(found: Levels, must_judge: bool, users: bool) -> list[Finding]:
    """Whether the right answer is paid: anywhere, for every question, and in every dress that is read.

    must_judge: the reward takes the gold answer.  users: the questions are the user's own, so every one of them counts.
    """
    golds = [tried for tried in found.tries[::2] if tried.paid is not None and any(tried.item is item for item in found.items)]
    answered = [tried for tried in golds if tried.paid and tried.paid.kind in ("number", "none")]
    if not found.judges:
        if not must_judge or not answered:
            return []
        says = "The right answer is never paid more than a wrong one, in any form"
        return [Finding("gold", "anywhere", "fault", says, len(answered), len(answered), None, _shown(answered))]
    asked = [item for item in found.items if any(tried.item is item for tried in golds)]
    refused = [item for item in asked if not found.read(item)]
    shown = [next(t for t in golds if t.item is item and t.dress in found.own.get(item.kind, (t.dress,))) for item in refused]
    severity = "ok" if not refused else "fault" if users else "warning"
    says = "The right answer is paid no more than a wrong one, however it is written"
    findings = [Finding("gold", "every question", severity, says, len(refused), len(asked), None, _shown(shown))]
    for dress in dict.fromkeys(dress for own in found.own.values() for dress in own):
        here = [t for t in golds if t.dress == dress and dress in found.own.get(t.item.kind, ()) and found.read(t.item)]
        lost = [t for t in here if dress not in found.read(t.item)]
        says = f"The right answer is paid no more than a wrong one in a form that is read elsewhere ({dress.name})"
        kind = "warning" if lost else "ok"
        findings.append(Finding("gold", dress.name, kind, says, len(lost), len(here), None, _shown(lost)))
    return findings


def _shown(tries: Sequence[Tried]) -> list[dict]:
    return [example(tried) for tried in tries[:EXAMPLES]]
