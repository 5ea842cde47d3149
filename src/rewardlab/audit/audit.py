"""The audit of one target. Once the target is loaded, it ends within a budget of seconds, whatever the target does."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import Any

from rewardlab.audit import replies
from rewardlab.audit.bias import bias, bias_of_form, of_form, of_template
from rewardlab.audit.built_in import KINDS, OF, built_in
from rewardlab.audit.conduct import SLOW, conduct, health, speed
from rewardlab.audit.endings import chosen, ending_findings, endings
from rewardlab.audit.findings import Finding, Trial, in_order, judged
from rewardlab.audit.levels import Levels, by_turns, gold_findings, of_built_in, of_items
from rewardlab.audit.pairwise import PairAudit
from rewardlab.audit.problems import NO_ANSWER, Item
from rewardlab.audit.process import TargetProcess
from rewardlab.audit.replies import AnswerFormat, Reply
from rewardlab.audit.rules import PROBES
from rewardlab.audit.target import Spec
from rewardlab.errors import RewardlabError

BUDGET = 50.0
"""Seconds of an audit, so that it ends within a minute with all that is around it."""
LIMIT = 5.0
"""Seconds of one call."""
PROGRAMS = 15.0
"""Seconds of one call of a reward that runs programs."""
QUESTIONS = 24
"""Questions on which all probes are tried."""
SLOWEST = 8
"""Slow replies that are scored again."""
SPREAD = 3
"""Questions on which long replies are tried."""
TIME_SHARES = {
    "conduct": 2,
    "trivial": 3,
    "changes": 2,
    "invariances": 2,
    "endings": 2,
    "crowds": 2,
    "injection": 2,
    "bias": 2,
    "hostile": 5,
}
"""Probes in their order, and each one's share of the time."""

Makes = Callable[[Item, AnswerFormat], Iterator[Reply]]


class Audit:
    """The results so far. Probes are run one after the other; each may take its share of the time that is left."""

    def __init__(self, process: TargetProcess, levels: Levels, users: bool):
        self.process, self.levels, self.users = process, levels, users
        self.trials: list[Trial] = list(levels.trials)
        self.findings: list[Finding] = []
        self.counts: dict[str, tuple[int, int]] = {}

    def until(self, probe: str) -> float:
        """When a probe must end, by its share among those that are left."""
        names = list(TIME_SHARES)
        share = TIME_SHARES[probe] / sum(TIME_SHARES[name] for name in names[names.index(probe) :])
        return time.monotonic() + (self.process.until - time.monotonic()) * share

    @property
    def judges(self) -> bool:
        return self.levels.judges

    def run(self) -> None:
        must_judge = self.process.about["reads_gold"] is True
        self._count("gold", self.levels.trials)
        self.findings += gold_findings(self.levels, must_judge, self.users)
        self.findings += conduct(self.process, self.base(), self.until("conduct"))
        pairs = list(self.pairs())
        other_items = dict(zip(map(id, (item for item, _ in pairs)), self._others([item for item, _ in pairs]), strict=True))
        self.probe("trivial", pairs, lambda item, fmt: replies.trivial(item, fmt, other_items[id(item)]))
        if self.judges:
            self.probe("changes", pairs, replies.changed)
            self.probe("invariances", pairs, replies.unchanged)
            self.findings += ending_findings(self.probe("endings", chosen(pairs, SPREAD), endings, judge=False))
            self.probe("crowds", pairs[:SPREAD], replies.candidates)
        else:
            self.findings += of_form(self.trials)
            self.findings += of_template(self.probe("invariances", pairs[:SPREAD], replies.template, judge=False))
        if self.process.spec["kind"] == "judge" or self.process.spec.get("name") in ("judge", "judged_answer"):
            self.probe("injection", pairs[:SPREAD], replies.injections)
        self.bias(pairs)
        self.probe("hostile", pairs[:1], replies.hostile)
        self.confirm_slow()
        self.findings += health(self.trials)

    def confirm_slow(self) -> None:
        """Score slow replies again: the machine may have been busy with something else."""
        slow = [t for t in self.trials if t.result and t.result.kind == "number" and t.result.seconds > SLOW][:SLOWEST]
        results = self.process.ask([trial.row for trial in slow])
        for trial, result in zip(slow, results, strict=True):
            if result and trial.result and result.seconds < trial.result.seconds:
                trial.result = replace(trial.result, seconds=result.seconds)

    def pairs(self) -> Iterator[tuple[Item, AnswerFormat]]:
        """Every question with one of the answer formats in which it can be judged, in turn; the kinds of questions in turn."""
        if not self.judges:
            yield from ((item, self.best()) for item in self.levels.closely)
            return
        # in turn, since trying every format on every question would take too long
        turns = itertools.count()
        for item in by_turns(self.levels.closely):
            if formats := self.levels.formats_to_try(item):
                yield item, formats[next(turns) % len(formats)]

    def best(self) -> AnswerFormat:
        """The answer format with the highest reward, for a reward that does not judge answers."""
        sums: dict[str, list[float]] = {}
        for trial in self.levels.trials:
            if trial.result and trial.result.value is not None:
                sums.setdefault(trial.fmt.name, []).append(trial.result.value)
        means = {name: sum(values) / len(values) for name, values in sums.items()}
        return max(replies.FORMATS, key=lambda fmt: means.get(fmt.name, float("-inf")))

    def base(self) -> list[Trial]:
        """Replies that were scored already, right and wrong ones of every kind, to be scored again in other ways."""
        tried = {(id(item), fmt.name) for item, fmt in self.pairs()}
        scored = [trial for trial in self.levels.trials if (id(trial.item), trial.fmt.name) in tried]
        return scored[:32]

    def probe(self, name: str, pairs: Sequence[tuple[Item, AnswerFormat]], makes: Makes, judge: bool = True) -> list[Trial]:
        """Try the replies of a probe, question by question. A reply that the target has hung or crashed on is not tried again."""
        trials: list[Trial] = []
        # names of replies: what hangs on one question would hang on all, and use up the time
        until, fatal = self.until(name), set()
        for item, fmt in pairs:
            level = self.levels.level(item, fmt)
            new_trials = [Trial(name, item, fmt, reply, level) for reply in makes(item, fmt) if reply.name not in fatal]
            for trial, result in zip(new_trials, self.process.ask([trial.row for trial in new_trials], until=until), strict=True):
                trial.result = result
            fatal |= {trial.reply.name for trial in new_trials if trial.result and trial.result.kind in ("hang", "crash")}
            trials += new_trials
        self._count(name, trials)
        self.trials += trials
        if judge:
            self.findings += judged(trials)
        return trials

    def bias(self, pairs: Sequence[tuple[Item, AnswerFormat]]) -> None:
        first_pairs = pairs[:SPREAD]
        wrong = self.probe("bias", first_pairs, lambda item, fmt: replies.lengths(item, fmt, right=False), judge=False)
        if not self.judges:
            values = [t.result.value for t in self.trials if t.result and t.result.value is not None]
            self.findings += bias_of_form(wrong, max(values, default=0.0) - min(values, default=0.0))
            return
        framed = [(item, fmt) for item, fmt in first_pairs if fmt.name not in ("plain", "as it is")]
        right = self.probe("bias", framed, lambda item, fmt: replies.lengths(item, fmt, right=True), judge=False)
        self.findings += bias(wrong, right)

    def _others(self, items: Sequence[Item]) -> list[Item]:
        """For each question another one of its kind, with another answer where there is one."""
        others = []
        # the next one of the list, so that not all questions get the same other answer
        for i, item in enumerate(items):
            following = [*items[i + 1 :], *items[:i]]
            different = [other for other in following if other.kind == item.kind and other.gold != item.gold]
            # of the user's queries two may return the same rows
            others.append(different[0] if different and item.far != NO_ANSWER else item)
        return others

    def _count(self, name: str, trials: Iterable[Trial]) -> None:
        trials = list(trials)
        done, total = self.counts.get(name, (0, 0))
        self.counts[name] = done + sum(trial.result is not None for trial in trials), total + len(trials)


def audit(
    spec: Spec, *, items: Sequence[Item] = (), kind: str | None = None, about: Mapping[str, Any] | None = None,
    questions: int = QUESTIONS, budget: float = BUDGET, limit: float = LIMIT,
) -> dict[str, Any]:  # fmt: skip
    """Audit a target, and return the report as plain data.

    items: the user's own questions; without them, built-in ones, of one kind or of every kind that the target can judge.
    questions: how many are probed closely; of the others, only the right and a wrong answer are tried.
    budget, limit: seconds in all, from when the target is loaded, and of one call.  Raises RewardlabError if it cannot be loaded or
    reached.
    """
    with TargetProcess(spec, limit, budget) as process:
        started = time.monotonic()
        results = (compare if spec["kind"] == "pairwise" else examine)(process, items, kind, questions)
        return describe(results, dict(about or {}), time.monotonic() - started)


def examine(process: TargetProcess, items: Sequence[Item] = (), kind: str | None = None, questions: int = QUESTIONS) -> Audit:
    """Audit a target that is running. Half of the time may be used to find the answer formats that it reads, and its scale."""
    if not items and kind is None and process.spec["kind"] == "part":
        kind = OF.get(process.spec["name"])
    first = items or built_in(kind or KINDS[0])
    until = (time.monotonic() + process.until) / 2
    levels = of_items(process, first, questions, until) if items or kind else of_built_in(process, until)
    _reached(process, levels)
    if "code" in levels.formats:
        process.seconds = max(process.seconds, PROGRAMS)
    if not items:
        _suited(process, levels)
    results = Audit(process, levels, bool(items))
    results.trials += [trial for trial in levels.fatal if not any(trial is other for other in levels.trials)]
    results.run()
    return results


def compare(process: TargetProcess, items: Sequence[Item] = (), kind: str | None = None, questions: int = QUESTIONS) -> PairAudit:
    """Audit a running target that compares two replies."""
    results = PairAudit(process, items or (built_in(kind) if kind else ()), questions)
    results.run()
    return results


def _reached(process: TargetProcess, levels: Levels) -> None:
    """Raises if the target never answered, for no fault of its own: then it was not audited."""
    spec, results = process.spec, [trial.result for trial in levels.trials if trial.result]
    if not results and not process.given_up:
        raise RewardlabError(f"the time did not suffice for a single call of {process.about['name']}; give more --seconds")
    if (
        spec["kind"] == "judge"
        and results
        and all(result.kind == "error" and "the endpoint failed" in result.why for result in results)
    ):
        raise RewardlabError(f"the judge at {spec['url']} gives no answer: {results[0].why}")


def _suited(process: TargetProcess, levels: Levels) -> None:
    """Raises if there are no built-in questions for the target, or no time was left to find them: then it was not audited."""
    name, golds = process.about["name"], [trial.result for trial in levels.trials[::2]]
    if levels.judges or process.given_up or levels.fatal:
        return
    if not levels.complete:
        raise RewardlabError(f"the time did not suffice to determine what {name} judges; give --kind, or more --seconds")
    if process.spec["kind"] == "part" and all(result is not None and result.kind == "none" for result in golds):
        raise RewardlabError(f"{name} can judge none of the built-in questions; give some that it is made for, by --problems")


def describe(results: Audit | PairAudit, about: dict[str, Any], seconds: float) -> dict[str, Any]:
    """An audit as plain data."""
    findings = in_order(results.findings)
    counts = {severity: sum(f.severity == severity for f in findings) for severity in ("fault", "warning", "note")}
    items = results.levels.items
    unfinished = {name: [done, of] for name, (done, of) in results.counts.items() if done < of}
    complete = not results.process.given_up and all(done for done, _ in unfinished.values())
    return {
        "target": about.pop("target", results.process.about["name"]),
        "name": results.process.about["name"],
        **about,
        "judges": "answers" if results.judges else "form",
        "verdict": "faults" if counts["fault"] else "clean" if complete else "unfinished",
        "counts": counts,
        "problems": {kind: sum(item.kind == kind for item in items) for kind in dict.fromkeys(item.kind for item in items)},
        "reads": {kind: [fmt.name for fmt in own] for kind, own in results.levels.formats.items()},
        "handed_over_as": "messages" if results.process.about["messages"] else "text",
        "given_up": results.process.given_up,
        "unfinished": unfinished,
        "skipped": [] if results.judges else ["changes", "endings", "crowds"],
        **({"pairs": results.figures} if isinstance(results, PairAudit) else {}),
        **({"served": served} if (served := total(results.process.spent.values())) else {}),
        "speed": speed([trial for trial in results.trials if trial.probe != "hostile"]),
        "seconds": round(seconds, 2),
        "loading": round(results.process.loading, 2),
        "probes": PROBES,
        "findings": [finding.document() for finding in findings],
        "rewardlab": metadata.version("rewardlab"),
    }


def total(usages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What a served model was asked by all forks together; empty if none was."""
    known = [usage for usage in usages if usage.get("requests") or usage.get("cached")]
    if not known:
        return []
    return [{"model": known[0]["model"], **{name: sum(u[name] for u in known) for name in known[0] if name != "model"}}]
