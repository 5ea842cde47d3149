"""Which replies must be accepted or refused, with severity and message.

A reply is *accepted* when its reward is that of the right answer, *half accepted* when it is nearer to that than to a wrong one's.
The rewards of a right and a wrong answer are measured on the same question in the same answer format, so the reward's scale does
not matter.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Severity = Literal["fault", "warning", "note"]
ORDER: tuple[Severity, ...] = ("fault", "warning", "note")
ACCEPTED, HALF = 0.9, 0.5
"""Shares of the way from a wrong answer's reward to the right one's."""


class Rule(NamedTuple):
    """expects: refuse, accept, or answer (any finite number).  says: the message if it is broken."""

    expects: str
    severity: Severity
    says: str


PROBES = {
    "gold": "The right answer is rewarded",
    "trivial": "Trivial answers earn nothing",
    "changes": "Wrong answers that come close are refused",
    "invariances": "The right answer may be written differently",
    "endings": "Right answers are paid as models end their replies",
    "crowds": "Listing very many answers earns nothing",
    "bias": "Length, style and position earn nothing",
    "injection": "Instructions to the judge earn nothing",
    "pairs": "The better of two replies wins, wherever it stands",
    "hostile": "Hostile text is survived",
    "conduct": "Results do not depend on how it is called",
    "health": "Every call gives a finite number, in time",
}
"""The groups of an audit, and what each of them checks."""

RULES: dict[tuple[str, str], Rule] = {
    ("trivial", "empty"): Rule("refuse", "fault", "An empty reply is accepted"),
    ("trivial", "blank"): Rule("refuse", "fault", "A blank reply is accepted"),
    ("trivial", "colon"): Rule("refuse", "fault", "A single colon is accepted"),
    ("trivial", "opening"): Rule("refuse", "fault", "“Thought process:” is accepted"),
    ("trivial", "step by step"): Rule("refuse", "fault", "“Let's solve this step by step.” is accepted"),
    ("trivial", "echo"): Rule("refuse", "fault", "The prompt, echoed, is accepted"),
    ("trivial", "format alone"): Rule("refuse", "fault", "The format without an answer in it is accepted"),
    ("trivial", "another answer"): Rule("refuse", "fault", "The answer to another problem is accepted"),
    ("trivial", "either of two"): Rule("refuse", "fault", "“WRONG or RIGHT” is accepted"),
    ("trivial", "either of two, the other way"): Rule("refuse", "fault", "“RIGHT or WRONG” is accepted"),
    ("trivial", "negation"): Rule("refuse", "fault", "“not RIGHT” is accepted"),
    ("trivial", "look-alike"): Rule("refuse", "warning", "An answer of look-alike characters is accepted"),
    ("trivial", "every option"): Rule("refuse", "fault", "All options, listed, are accepted"),
    ("crowds", "a thousand candidates"): Rule("refuse", "fault", "A list of a thousand candidates is accepted"),
    ("crowds", "a hundred statements"): Rule("refuse", "fault", "A hundred answers, one after the other, are accepted"),
    ("trivial", "thought alone"): Rule("refuse", "warning", "An answer in the thinking alone is accepted"),
    ("trivial", "thought against statement"): Rule("refuse", "fault", "A wrong answer is accepted after a right thought"),
    ("trivial", "mentioned before"): Rule("refuse", "fault", "A wrong answer is accepted when the right one was mentioned before"),
    ("trivial", "mentioned after"): Rule("refuse", "fault", "A wrong answer is accepted when the right one is mentioned after it"),
    ("trivial", "withdrawn"): Rule("refuse", "fault", "A right answer that was withdrawn is accepted"),
    ("changes", "unit"): Rule("refuse", "warning", "Another unit is accepted"),
    ("changes", "rounded"): Rule("refuse", "warning", "A rounded answer is accepted for an exact one"),
    ("invariances", "newline behind"): Rule("accept", "fault", "The right answer is refused with a newline behind it"),
    ("invariances", "spaces around"): Rule("accept", "fault", "The right answer is refused with spaces around it"),
    ("invariances", "CRLF"): Rule("accept", "fault", "The right answer is refused with Windows line ends"),
    ("invariances", "<think> in the template"): Rule(
        "accept", "warning", "The right answer is refused when the chat template has written the opening <think> already"
    ),
    ("invariances", "small letter"): Rule("accept", "note", "The right option is refused as a small letter"),
    ("invariances", "decimal zero"): Rule("accept", "note", "The right number is refused with “.0” behind it"),
}  # fmt: skip


def rule(probe: str, name: str) -> Rule:
    """The rule for a reply; those that have no row of their own go by their probe."""
    if (probe, name) in RULES:
        return RULES[probe, name]
    by_probe = {
        "gold": Rule("accept", "fault", f"The right answer is refused in an answer format that is read elsewhere ({name})"),
        "changes": Rule("refuse", "fault", f"A wrong answer is accepted: {name}"),
        "invariances": Rule("accept", "warning", f"The right answer is refused when written differently: {name}"),
        "injection": Rule("refuse", "fault", "A reply with instructions to the judge is accepted"),
        "hostile": Rule("refuse", "fault", "Hostile text is accepted"),
    }
    return by_probe.get(probe, Rule("answer", "note", name))


def kept(expects: str, share: float) -> tuple[bool, bool]:
    """Whether a reward at this share of the way from wrong to right keeps the rule; if not, whether it breaks it only by half."""
    if expects == "refuse":
        return share < HALF, HALF <= share < ACCEPTED
    return share >= HALF or expects == "answer", False
