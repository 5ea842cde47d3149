"""The rewards of right and wrong answers: a reward's scale, the answer formats that it reads, and what it judges."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rewardlab.audit.built_in import KINDS, built_in
from rewardlab.audit.findings import EXAMPLES, Finding, Level, Trial, example
from rewardlab.audit.problems import Item
from rewardlab.audit.process import TargetProcess
from rewardlab.audit.replies import AnswerFormat, formats, mention, reply_of

FIRST = 3
"""Questions of a kind that show whether a reward can judge answers of that kind."""
EQUIVALENT = ("latex",)
"""Kinds whose answers are judged by meaning. A reward that compares characters tells them apart too, but does not judge them."""
MOST = 2 / 3
"""Share of the questions whose right answer must get more than the wrong one, for a format to count as read; chance gives half."""
WORTH = 0.5
"""An answer format is read if the right answer gains at least this share of what it gains in the best one."""


@dataclass
class Levels:
    """The measured scale of a reward.

    trials: the replies that were scored for it.  closely: the questions on which all probes are tried.  levels: by question and
    answer format.  formats: the answer formats that the reward reads, by kind of answer.  robust: those in which it reads the
    answer where the format puts it, whatever text follows.  fatal: other replies on which the target hung or crashed.
    complete: whether there was time for every question.
    """

    items: list[Item] = field(default_factory=list)
    closely: list[Item] = field(default_factory=list)
    trials: list[Trial] = field(default_factory=list)
    levels: dict[tuple[int, str], Level] = field(default_factory=dict)
    formats: dict[str, list[AnswerFormat]] = field(default_factory=dict)
    robust: dict[str, list[AnswerFormat]] = field(default_factory=dict)
    fatal: list[Trial] = field(default_factory=list)
    complete: bool = True

    @property
    def judges(self) -> bool:
        """Whether right answers get more than wrong ones, anywhere."""
        return bool(self.formats)

    def level(self, item: Item, fmt: AnswerFormat) -> Level | None:
        level = self.levels.get((id(item), fmt.name))
        return level if level and level.gap > 0 else None

    def read(self, item: Item) -> list[AnswerFormat]:
        """The answer formats that the reward reads and in which this question's right answer gets more than a wrong one."""
        readable = self.formats.get(item.kind, [])
        best = max((level.gap for fmt in readable if (level := self.level(item, fmt))), default=0.0)
        return [fmt for fmt in readable if (level := self.level(item, fmt)) and level.gap >= WORTH * best]

    def formats_to_try(self, item: Item) -> list[AnswerFormat]:
        """The answer formats in which tricks are tried on this question: those whose stated answer is unambiguous, if any."""
        read, robust = self.read(item), self.robust.get(item.kind, [])
        # a bare answer is ambiguous as soon as there is other text beside it
        framed = [fmt for fmt in read if fmt.name != "plain"] or read
        return [fmt for fmt in framed if fmt in robust] or framed


def of_items(process: TargetProcess, items: Sequence[Item], questions: int, until: float) -> Levels:
    """The levels of the user's questions, or of a given kind; those beyond the first `questions` in one answer format only."""
    ordered = by_turns(items)
    levels = Levels(ordered, ordered[:questions])
    _measure(process, levels, levels.closely, time.monotonic() + (until - time.monotonic()) / 2)
    _set_formats(levels)
    _set_robust(process, levels, until)
    _measure(process, levels, [item for item in ordered[questions:] if item.kind in levels.formats], until, best=True)
    return levels


def of_built_in(process: TargetProcess, until: float, kinds: Sequence[str] = KINDS) -> Levels:
    """The levels of the built-in questions, of the kinds whose first questions can all be judged."""
    measured, chosen = [], []
    for kind in kinds:
        items = built_in(kind)
        levels_of_kind = Levels(items[:FIRST])
        _measure(process, levels_of_kind, levels_of_kind.items, time.monotonic() + (until - time.monotonic()) / 3)
        _set_formats(levels_of_kind)
        measured.append(levels_of_kind)
        if all(levels_of_kind.read(item) for item in levels_of_kind.items) and (
            kind not in EQUIVALENT or _equivalent(process, levels_of_kind, until)
        ):
            chosen.append((levels_of_kind, items))
    fatal = [t for levels_of_kind in measured for t in levels_of_kind.trials if t.result and t.result.kind in ("hang", "crash")]
    if not chosen:
        measured[0].closely = measured[0].items
        measured[0].fatal = fatal
        measured[0].complete = all(t.result is not None for levels_of_kind in measured for t in levels_of_kind.trials)
        return measured[0]
    for levels_of_kind, items in chosen:
        _measure(process, levels_of_kind, items[FIRST:], until)
        levels_of_kind.items = levels_of_kind.closely = items
        _set_formats(levels_of_kind)
    levels = Levels(
        fatal=[t for t in fatal if not any(t is mine for levels_of_kind, _ in chosen for mine in levels_of_kind.trials)]
    )
    for levels_of_kind, _ in chosen:
        levels.items += levels_of_kind.items
        levels.closely += levels_of_kind.items
        levels.trials += levels_of_kind.trials
        levels.levels |= levels_of_kind.levels
        levels.formats |= levels_of_kind.formats
    _set_robust(process, levels, until)
    return levels


def by_turns(items: Sequence[Item]) -> list[Item]:
    """The questions, their kinds in turn."""
    kinds = dict.fromkeys(item.kind for item in items)
    columns = [[item for item in items if item.kind == kind] for kind in kinds]
    return [item for row in itertools.zip_longest(*columns) for item in row if item is not None]


def _equivalent(process: TargetProcess, levels: Levels, until: float) -> bool:
    """Whether another way to write a right answer is accepted too."""
    trials = [
        Trial("gold", item, fmt, reply_of("same", fmt.write(item, same)), levels.level(item, fmt))
        for item in levels.items for fmt in levels.read(item) for _, same in item.same
    ]  # fmt: skip
    for trial, result in zip(trials, process.ask([trial.row for trial in trials], until=until), strict=True):
        trial.result = result
    return any(trial.share is not None and trial.share >= WORTH for trial in trials)


def _measure(process: TargetProcess, levels: Levels, items: Iterable[Item], until: float, best: bool = False) -> None:
    """Measure the rewards of right and wrong answers, in every answer format, or in the `best` one only."""
    trials = [
        Trial("gold", item, fmt, reply_of(fmt.name, fmt.write(item, answer)))
        for item in items
        for fmt in (levels.robust.get(item.kind) or levels.formats[item.kind] if best else formats(item.kind))[
            : 1 if best else None
        ]
        for answer in (item.gold, item.far)
    ]
    for trial, result in zip(trials, process.ask([trial.row for trial in trials], until=until), strict=True):
        trial.result = result
    for right, wrong in zip(trials[::2], trials[1::2], strict=True):
        if right.result and wrong.result and wrong.result.value is not None:
            # no verdict on the right answer counts as no gain over the wrong one
            value = right.result.value if right.result.value is not None else wrong.result.value
            # by id, since two questions may be equal
            right.level = levels.levels[id(right.item), right.fmt.name] = Level(wrong.result.value, value)
    levels.trials += trials


def _set_formats(levels: Levels) -> None:
    """Set the answer formats that the reward reads: right answers get more on most questions, and much of what they get at best."""
    levels.formats = {}
    for kind in dict.fromkeys(item.kind for item in levels.items):
        items = [item for item in levels.closely or levels.items if item.kind == kind]
        gains = {}
        for fmt in formats(kind):
            known_gaps = [level.gap for item in items if (level := levels.levels.get((id(item), fmt.name)))]
            positive = [gap for gap in known_gaps if gap > 0]
            if positive and len(positive) >= MOST * len(known_gaps):
                gains[fmt.name] = statistics.median(positive)
        best = max(gains.values(), default=0.0)
        if readable := [fmt for fmt in formats(kind) if gains.get(fmt.name, 0.0) >= WORTH * best > 0]:
            levels.formats[kind] = readable


def _set_robust(process: TargetProcess, levels: Levels, until: float) -> None:
    """Find the answer formats in which a right answer is still read when another one is mentioned after it.

    A reward that knows answer tags reads their content; one that does not takes them for text, and may use the last number there.
    That is a convention, and no fault as long as there is an answer format that the reward does know.
    """
    for kind, readable in levels.formats.items():
        items = [item for item in levels.closely if item.kind == kind][:FIRST]
        trials = [
            Trial("robust", item, fmt, reply_of("robust", f"{fmt.write(item, item.gold)}\n{mention(item, item.far)}"),
                  levels.level(item, fmt))
            for item in items for fmt in readable if fmt in levels.read(item) and fmt.name != "plain"
        ]  # fmt: skip
        for trial, result in zip(trials, process.ask([trial.row for trial in trials], until=until), strict=True):
            trial.result = result
        accepted = {d: [t.share is not None and t.share >= WORTH for t in trials if t.fmt == d] for d in readable}
        levels.robust[kind] = [fmt for fmt, results in accepted.items() if results and all(results)]


def gold_findings(levels: Levels, must_judge: bool, users: bool) -> list[Finding]:
    """Whether the right answer is rewarded: anywhere, for every question, and in every answer format that is read.

    must_judge: the reward takes the gold answer.  users: the questions are the user's, so every one of them counts.
    """
    # where the time ends, a right answer may stand without its wrong one, which says nothing
    whole = [right for right, wrong in zip(levels.trials[::2], levels.trials[1::2], strict=False) if right.result and wrong.result]
    golds = [trial for trial in whole if any(trial.item is item for item in levels.items)]
    answered = [trial for trial in golds if trial.result and trial.result.kind in ("number", "none")]
    if not levels.judges:
        if not must_judge or not answered:
            return []
        says = "The right answer never gets more than a wrong one, in any answer format"
        return [Finding("gold", "anywhere", "fault", says, len(answered), len(answered), None, _shown(answered))]
    # in a format that is read, for a kind of which one is: no other could refuse it
    first = [[t for t in golds if t.item is item and t.fmt in levels.formats.get(item.kind, (t.fmt,))][:1] for item in levels.items]
    tried = [trial for own in first for trial in own]
    examples = [trial for trial in tried if not levels.read(trial.item)]
    severity = "ok" if not examples else "fault" if users else "warning"
    says = "The right answer gets no more than a wrong one, in any answer format"
    findings = [Finding("gold", "every question", severity, says, len(examples), len(tried), None, _shown(examples))]
    for fmt in dict.fromkeys(fmt for readable in levels.formats.values() for fmt in readable):
        tried_here = [t for t in golds if t.fmt == fmt and fmt in levels.formats.get(t.item.kind, ()) and levels.read(t.item)]
        refused_here = [t for t in tried_here if fmt not in levels.read(t.item)]
        says = f"The right answer gets no more than a wrong one in an answer format that is read elsewhere ({fmt.name})"
        severity_here = "warning" if refused_here else "ok"
        findings.append(
            Finding("gold", fmt.name, severity_here, says, len(refused_here), len(tried_here), None, _shown(refused_here))
        )
    return findings


def _shown(trials: Sequence[Trial]) -> list[dict]:
    return [example(trial) for trial in trials[:EXAMPLES]]
