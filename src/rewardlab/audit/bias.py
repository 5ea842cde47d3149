"""Whether length, style and position earn something by themselves, the content being the same."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from .findings import EXAMPLES, Finding, Tried, example
from .rules import HALF

SHORT = 3
"""Characters of a reply that says nothing."""
SEEN = 0.05
"""A share of what there is to gain that is worth a word."""
SAYS = {
    "length": "A wrong answer is paid for being long",
    "style": "A wrong answer is paid for its style",
    "position": "A wrong answer is paid for where in the reply it stands",
}


def bias(wrong: Sequence[Tried], right: Sequence[Tried]) -> list[Finding]:
    """For a reward that tells right from wrong: by what share of that a wrong answer gains, or a right one loses."""
    found = [_gains(what, wrong) for what in SAYS]
    drops = [(tried, -gain) for tried, gain in _gained(right, "length") if gain < -SEEN]
    says = "A right answer loses when reasoning stands before it"
    of = len(_gained(right, "length"))
    finding = Finding("bias", "long and right", "warning" if drops else "ok", says, len(drops), of)
    finding.examples = [example(tried) for tried, _ in sorted(drops, key=lambda pair: -pair[1])[:EXAMPLES]]
    return [*found, finding]


def _gains(what: str, tries: Sequence[Tried]) -> Finding:
    gained = _gained(tries, what)
    more = sorted(((tried, gain) for tried, gain in gained if gain > SEEN), key=lambda pair: -pair[1])
    worst = more[0][1] if more else 0.0
    severity = "fault" if worst >= HALF else "warning" if more else "ok"
    says = SAYS[what] + (f" (up to {worst:.0%} of what the right one gains)" if more else "")
    return Finding("bias", what, severity, says, len(more), len(gained), None, [example(tried) for tried, _ in more[:EXAMPLES]])


def _gained(tries: Sequence[Tried], what: str) -> list[tuple[Tried, float]]:
    """Replies of this sort, and what each gained over the same answer without it, as a share of right minus wrong."""
    base = {id(t.item): t.share for t in tries if t.reply.name == "base"}
    pairs = [(t, t.share, base.get(id(t.item))) for t in tries if t.reply.name.startswith(what)]
    return [(t, share - plain) for t, share, plain in pairs if share is not None and plain is not None]


def of_form(tries: Sequence[Tried]) -> list[Finding]:
    """For a reward that does not judge answers: what earns all that it ever pays, and whether <think> may be in the template."""
    values = [t.paid.value for t in tries if t.paid and t.paid.value is not None]
    if not values or max(values) == min(values):
        return []
    most = [t for t in tries if t.probe == "trivial" and t.paid and t.paid.value == max(values)]
    most = [t for t in most if len(t.reply.text.strip()) < SHORT]
    says, asked = "A reply of nothing earns all that this reward ever pays", sum(t.probe == "trivial" for t in tries)
    shown = [example(tried) for tried in most[:EXAMPLES]]
    return [Finding("trivial", "full pay", "note" if most else "ok", says, len(most), asked, None, shown)]


def of_template(tries: Sequence[Tried]) -> list[Finding]:
    """For a reward of form that pays thinking: whether the opening tag may stand in the chat template."""
    if not tries:
        return []
    pairs = [
        (tried, whole.paid.value, tried.paid.value)
        for whole, tried in zip(tries[::2], tries[1::2], strict=True)
        if whole.paid and tried.paid and whole.paid.value is not None and tried.paid.value is not None
    ]
    # a little less may come of a few words less
    less = [tried for tried, full, rest in pairs if full - rest > HALF * abs(full)]
    says = "A reply earns less when the chat template has written the opening <think> already"
    severity = "warning" if less else "ok"
    return [
        Finding("invariances", tries[1].reply.name, severity, says, len(less), len(pairs), None, [example(t) for t in less[:1]])
    ]


def bias_of_form(tries: Sequence[Tried], spread: float) -> list[Finding]:
    """For a reward that does not judge answers: what length and style change, as a share of the spread of all its values."""
    found = []
    for what in ("length", "style"):
        base = {id(t.item): t.paid.value for t in tries if t.reply.name == "base" and t.paid and t.paid.value is not None}
        moved = [
            (t, (t.paid.value - base[id(t.item)]) / spread)
            for t in tries
            if t.reply.name.startswith(what) and id(t.item) in base and t.paid and t.paid.value is not None and spread > 0
        ]
        found.append(_of_form(what, moved))
    return found


def _of_form(what: str, moved: Sequence[tuple[Tried, float]]) -> Finding:
    longest = [gain for tried, gain in moved if what != "length" or tried.reply.name == "length 100"]
    mean = statistics.fmean(longest) if longest else 0.0
    most = max(moved, key=lambda pair: abs(pair[1]), default=None)
    if abs(mean) <= SEEN or most is None:
        thing = "Length" if what == "length" else "Style"
        return Finding("bias", what, "ok", f"{thing} alone moves the reward", 0, len(moved))
    falls = mean < 0
    severity = "note" if falls else "fault" if mean >= HALF else "warning"
    says = f"{'Length' if what == 'length' else 'Style'} alone {'lowers' if falls else 'raises'} the reward "
    says += f"({abs(mean):.0%} of all that it ever moves)"
    return Finding("bias", what, severity, says, len(moved), len(moved), None, [example(most[0])])
