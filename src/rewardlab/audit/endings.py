"""Endings of replies with a number for an answer: right replies, and twins with a wrong number.

A reward may read every answer format of an audit, and still pay nothing for most of what a model of today writes.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rewardlab.audit.findings import Finding, Trial, example
from rewardlab.audit.problems import Item
from rewardlab.audit.replies import AnswerFormat, Reply, reply_of
from rewardlab.audit.rules import HALF

RIGHT = {"GSM8K": 14_750, "MATH-500": 7_750}
"""The right solutions of StrictPRMBench, by the adjudicated labels, to the problems whose answer is a number, in any base.

`python benchmarks/_answer_endings.py` counts them, and how many of them end in each way.
"""
WARNED = 0.01
"""From this share of lost right replies on it is a warning, below it a note."""
TWIN, SWAPPED = "another number: ", "swapped: "
"""What the names of wrong replies begin with: with another number in the answer's place, and with the answer in another one's."""
NUMBER, UNSIGNED, COUNT, BASED = r"[-−+0-9.,/eE]+", r"[0-9][0-9,.]*", "[0-9]+", r"[0-9]{2,40}_\{?([0-9]{1,2})\}?"
"""Forms of answers. The last is in another base, as 2516_8."""
ASKS = {"percent": "%|percent", "base": r"\bbase\b|\bbinary\b|\boctal\b"}


class Ending(NamedTuple):
    """A class of endings.

    replies: with GOLD for the answer, DIGITS for it without its base, and OTHER for a number that is none.
    gsm8k, math500: how many of the RIGHT solutions end so.
    fits: the answers that can be written so.  asked: what in a question asks for it.
    """

    replies: tuple[str, ...]
    gsm8k: int = 0
    math500: int = 0
    fits: str = NUMBER
    asked: str = ""


ENDINGS = {
    "one number": Ending(("Therefore, the total is GOLD.", "So, there are **GOLD** in all."), 6_440, 310),
    "a box": Ending((r"Therefore, the total is \(\boxed{GOLD}\).", "The total is:\n\\[\n\\boxed{GOLD}\n\\]"), 4_386, 7_182),
    "a dollar sign": Ending(("Therefore, the total is $GOLD.", r"So, the total is \$GOLD in all."), 2_281, 0, UNSIGNED),
    "several numbers (another one last)": Ending(("Therefore, the total is GOLD after OTHER days.",), 774, 46),
    "several numbers (the answer last)": Ending(("Therefore, OTHER people brought in a total of GOLD records.",), 528, 150),
    "a percent sign": Ending(("Therefore, it is GOLD%.", r"Therefore, it is \(GOLD\%\)."), 186, 0, asked=ASKS["percent"]),
    "an ordinal": Ending(("So, it is now on the GOLDTH floor.",), 61, 1, COUNT),
    "a box with a percent sign": Ending((r"Therefore, it is \(\boxed{GOLD\%}\).",), 20, 10, asked=ASKS["percent"]),
    "a box with an ordinal": Ending((r"It is the floor \(\boxed{GOLDTH}\).", r"It is \(\boxed{GOLD^{\text{TH}}}\)."), 0, 17, COUNT),
    "a box with a unit": Ending((r"It weighs \(\boxed{GOLD \text{ kg}}\).", r"\boxed{GOLD \, \text{liters}}"), 30, 7, UNSIGNED),
    "the value of a function": Ending(("Therefore, $t(g(16)) = GOLD.$", "Therefore,\n\\[\nt(g(16)) = GOLD.\n\\]"), 0, 14),
    "a number without its base": Ending((r"Therefore, it is \(\boxed{DIGITS}\).",), 0, 6, BASED, ASKS["base"]),
    "a heading of four hashes": Ending(("#### Total:\nWe add up what is given.\n\nTherefore, the total is GOLD.",), 15, 2),
    "a mark": Ending(("The answer is GOLD.", "Answer: GOLD"), 1, 1),
    "a mark with a sentence": Ending(("Final Answer: The total that was asked for is GOLD.",), 3, 2),
    "a mark in LaTeX or markdown": Ending((r"\textbf{Answer: } GOLD", "**Answer:** GOLD", "Answer: GOLD (as was asked)")),
    "an end token": Ending(("The answer is GOLD<|im_end|>", "The answer is GOLD.<|eot_id|>", "The answer is GOLD</s>")),
    "an invented next question": Ending(("The answer is GOLD.\n\nQ: What is OTHER + 0?\nA: The answer is OTHER.",)),
    "another box": Ending((r"Therefore, the total is $\fbox{GOLD}$.", r"Therefore, the total is $\boxed GOLD$.")),
}
"""A solution is of the class of its last sentence; one with a box or with a heading of four hashes anywhere is of that class.

25 solutions to GSM8K and 2 to MATH-500 state their answer in none of these ways.
"""


def endings(item: Item, fmt: AnswerFormat) -> Iterator[Reply]:
    """The right answer in every ending that it fits into, and wrong ones: with another number there, or elsewhere."""
    wrong = _next(item.gold) if re.fullmatch(BASED, item.gold) else dict(item.near).get("last digit", item.far)
    other = next(number for number in "579" if number not in (item.gold, wrong))
    for name, ending in ENDINGS.items():
        if re.fullmatch(ending.fits, item.gold) and re.search(ending.asked, item.prompt, re.IGNORECASE):
            for text in ending.replies:
                yield reply_of(name, _filled(text, item.gold, other))
                yield reply_of(TWIN + name, _filled(text, wrong, other))
                if "OTHER" in text:
                    yield reply_of(SWAPPED + name, _filled(text, wrong, item.gold))


def chosen(pairs: Sequence[tuple[Item, AnswerFormat]], most: int) -> list[tuple[Item, AnswerFormat]]:
    """The questions to try them on: counting numbers first, which fit into most, one that asks for percent, one in another base."""
    numbers = sorted((pair for pair in pairs if pair[0].kind == "numbers"), key=lambda pair: not pair[0].gold.isdigit())
    percent = (pair for pair in numbers[most:] if re.search(ASKS["percent"], pair[0].prompt, re.IGNORECASE))
    based = (pair for pair in pairs if re.fullmatch(BASED, pair[0].gold) and re.search(ASKS["base"], pair[0].prompt, re.IGNORECASE))
    return [*numbers[:most], *list(percent)[:1], *list(based)[:1]]


def ending_findings(trials: Sequence[Trial]) -> list[Finding]:
    """Which right answers are not paid, with the share of right replies that this loses, and which of the twins are paid."""
    known = [trial for trial in trials if trial.result is not None and trial.level is not None]
    if not known:
        return []
    right = [trial for trial in known if trial.reply.name in ENDINGS]
    unpaid = [trial for trial in right if _unpaid(trial)]
    lost = lost_shares(right, unpaid)
    severity = "ok" if not unpaid else "warning" if max(lost.values()) >= WARNED else "note"
    says = "Right answers that it does not pay" + (f" ({_told(lost)}): {_listed(unpaid)}" if unpaid else "")
    return [
        Finding("endings", "not paid", severity, says, len(unpaid), len(right), _mean(right), _one_each(unpaid)),
        _paid("twins", "fault", "A wrong number is accepted where models write the right one", TWIN, known),
        # which of two numbers is the answer without a mark is a convention
        _paid("swapped", "warning", "A wrong number is accepted with the right one elsewhere in the reply", SWAPPED, known),
    ]


def _paid(name: str, severity: str, says: str, prefix: str, known: Sequence[Trial]) -> Finding:
    twins = [trial for trial in known if trial.reply.name.startswith(prefix)]
    paid = [trial for trial in twins if trial.share is not None and trial.share >= HALF]
    says += f": {_listed(paid)}" if paid else ""
    return Finding("endings", name, severity if paid else "ok", says, len(paid), len(twins), _mean(twins), _one_each(paid))


def lost_shares(right: Sequence[Trial], unpaid: Sequence[Trial]) -> dict[str, float]:
    """The share of right solutions that go without pay: of every class as many as of its trials."""
    lost = dict.fromkeys(RIGHT, 0.0)
    for name in _names(right):
        part = sum(t.reply.name == name for t in unpaid) / sum(t.reply.name == name for t in right)
        counts = zip(RIGHT.items(), (ENDINGS[name].gsm8k, ENDINGS[name].math500), strict=True)
        for (task, of), count in counts:
            lost[task] += part * count / of
    return lost


def _told(lost: dict[str, float]) -> str:
    if not any(lost.values()):
        return f"a model of today wrote none of {sum(RIGHT.values()):,} right replies so"
    shares = " and ".join(f"{share:.1%} of those to {task}" for task, share in lost.items())
    return f"of a modern model's right replies, {shares} would be lost"


def _unpaid(trial: Trial) -> bool:
    if trial.share is None:
        # a hang or a crash is reported by `health`
        return trial.result is not None and trial.result.kind in ("none", "error", "nan")
    return trial.share < HALF


def _filled(text: str, number: str, other: str) -> str:
    last = "th" if number[-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(number[-1], "th")
    for name, value in {"OTHER": other, "GOLD": number, "TH": last, "DIGITS": number.partition("_")[0]}.items():
        text = text.replace(name, value)
    return text


def _next(gold: str) -> str:
    """A number in another base with another last digit, which that base has."""
    digits, sign, base = gold.partition("_")
    return f"{digits[:-1]}{(int(digits[-1]) + 1) % min(10, int(base.strip('{}')))}{sign}{base}"


def _mean(trials: Sequence[Trial]) -> float | None:
    values = [trial.result.value for trial in trials if trial.result and trial.result.value is not None]
    return statistics.fmean(values) if values else None


def _class(trial: Trial) -> str:
    return trial.reply.name.removeprefix(TWIN).removeprefix(SWAPPED)


def _names(trials: Sequence[Trial]) -> list[str]:
    return list(dict.fromkeys(map(_class, trials)))


def _listed(trials: Sequence[Trial]) -> str:
    return ", ".join(_names(trials))


def _one_each(trials: Sequence[Trial]) -> list[dict]:
    """An example of every class."""
    return [example(next(trial for trial in trials if _class(trial) == name)) for name in _names(trials)]
