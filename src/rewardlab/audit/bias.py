"""Bias of a reward towards length, style and position, with the content held fixed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rewardlab.audit.findings import EXAMPLES, Finding, Trial, example
from rewardlab.audit.rules import HALF

SHORT = 3
"""Characters up to which a reply counts as empty."""
SEEN = 0.05
"""Gains below this share of right minus wrong are not reported."""
MESSAGES = {
    "length": "A wrong answer is rewarded for being long",
    "style": "A wrong answer is rewarded for its style",
    "position": "A wrong answer is rewarded for where in the reply it stands",
}


def bias(wrong: Sequence[Trial], right: Sequence[Trial]) -> list[Finding]:
    """For a reward that judges answers: what a wrong answer gains and a right one loses, as a share of right minus wrong."""
    findings = [_gains(what, wrong) for what in MESSAGES]
    losses = [(trial, -gain) for trial, gain in _gained(right, "length") if gain < -SEEN]
    says = "A right answer loses when reasoning stands before it"
    tried = len(_gained(right, "length"))
    finding = Finding("bias", "long and right", "warning" if losses else "ok", says, len(losses), tried)
    finding.examples = [example(trial) for trial, _ in sorted(losses, key=lambda pair: -pair[1])[:EXAMPLES]]
    return [*findings, finding]


def _gains(what: str, trials: Sequence[Trial]) -> Finding:
    gained = _gained(trials, what)
    gaining = sorted(((trial, gain) for trial, gain in gained if gain > SEEN), key=lambda pair: -pair[1])
    worst = gaining[0][1] if gaining else 0.0
    severity = "fault" if worst >= HALF else "warning" if gaining else "ok"
    says = MESSAGES[what] + (f" (up to {worst:.0%} of what the right one gains)" if gaining else "")
    return Finding(
        "bias", what, severity, says, len(gaining), len(gained), None, [example(trial) for trial, _ in gaining[:EXAMPLES]]
    )


def _gained(trials: Sequence[Trial], what: str) -> list[tuple[Trial, float]]:
    """Replies of this sort, and what each gains over the same answer without it, as a share of right minus wrong."""
    base_shares = {id(t.item): t.share for t in trials if t.reply.name == "base"}
    shares = [(t, t.share, base_shares.get(id(t.item))) for t in trials if t.reply.name.startswith(what)]
    return [(t, share - plain) for t, share, plain in shares if share is not None and plain is not None]


def of_form(trials: Sequence[Trial]) -> list[Finding]:
    """For a reward that does not judge answers: whether a reply without content earns the highest reward."""
    values = [t.result.value for t in trials if t.result and t.result.value is not None]
    # a constant reward is reported by `health`
    if not values or max(values) == min(values):
        return []
    highest = [t for t in trials if t.probe == "trivial" and t.result and t.result.value == max(values)]
    highest = [t for t in highest if len(t.reply.text.strip()) < SHORT]
    says, number = "A reply without content earns the highest reward", sum(t.probe == "trivial" for t in trials)
    examples = [example(trial) for trial in highest[:EXAMPLES]]
    return [Finding("trivial", "full pay", "note" if highest else "ok", says, len(highest), number, None, examples)]


def of_template(trials: Sequence[Trial]) -> list[Finding]:
    """For a reward of form: whether the chat template may write the opening <think>."""
    if not trials:
        return []
    pairs = [
        (trial, base.result.value, trial.result.value)
        for base, trial in zip(trials[::2], trials[1::2], strict=True)
        if base.result and trial.result and base.result.value is not None and trial.result.value is not None
    ]
    # a little less may be due to the reply's being shorter
    losing = [trial for trial, full, without_tag in pairs if full - without_tag > HALF * abs(full)]
    says = "A reply earns less when the chat template has written the opening <think> already"
    severity = "warning" if losing else "ok"
    return [
        Finding(
            "invariances", trials[1].reply.name, severity, says, len(losing), len(pairs), None, [example(t) for t in losing[:1]]
        )
    ]


def bias_of_form(trials: Sequence[Trial], spread: float) -> list[Finding]:
    """For a reward that does not judge answers: what length and style change, as a share of the spread of all its values."""
    findings = []
    for what in ("length", "style"):
        base_values = {
            id(t.item): t.result.value for t in trials if t.reply.name == "base" and t.result and t.result.value is not None
        }
        changes = [
            (t, (t.result.value - base_values[id(t.item)]) / spread)
            for t in trials
            if t.reply.name.startswith(what)
            and id(t.item) in base_values
            and t.result
            and t.result.value is not None
            and spread > 0
        ]
        findings.append(_finding_of_form(what, changes))
    return findings


def _finding_of_form(what: str, changes: Sequence[tuple[Trial, float]]) -> Finding:
    # of the lengths only the greatest, which shows an effect of length best
    longest = [gain for trial, gain in changes if what != "length" or trial.reply.name == "length 100"]
    mean = statistics.fmean(longest) if longest else 0.0
    largest = max(changes, key=lambda pair: abs(pair[1]), default=None)
    if abs(mean) <= SEEN or largest is None:
        thing = "Length" if what == "length" else "Style"
        return Finding("bias", what, "ok", f"{thing} alone moves the reward", 0, len(changes))
    lowers = mean < 0
    severity = "note" if lowers else "fault" if mean >= HALF else "warning"
    says = f"{'Length' if what == 'length' else 'Style'} alone {'lowers' if lowers else 'raises'} the reward "
    says += f"({abs(mean):.0%} of the spread of its values)"
    return Finding("bias", what, severity, says, len(changes), len(changes), None, [example(largest[0])])
