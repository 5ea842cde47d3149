"""The texts of a report, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rewardlab.audit.findings import visible
from rewardlab.clients.budget import bill

CAME = {
    "none": "no verdict (None)", "nan": "NaN", "infinite": "an infinite number", "error": "an exception",
    "hang": "no answer: it hung", "crash": "no answer: its process died", "nothing": "no answer in time",
}  # fmt: skip
TOLD = 1.0
"""Seconds of loading that are told."""
PLACES = {1.0: "prefers the first", 0.5: "a tie", 0.0: "prefers the second"}


def verdict(document: Mapping[str, Any]) -> str:
    counts = document["counts"]
    problems = [counted(counts[kind], kind) for kind in ("fault", "warning", "note") if counts[kind]]
    no_fault = "no fault found" if document["verdict"] == "clean" else "no fault found so far, unfinished"
    return ", ".join(problems) if counts["fault"] else no_fault + (f"; {', '.join(problems)}" if problems else "")


def counted(n: int, thing: str) -> str:
    return f"{n} {thing}" + ("" if n == 1 else "s")


def facts(document: Mapping[str, Any]) -> list[str]:
    """What was audited and how, a line each."""
    counts = ", ".join(f"{n} {kind}" for kind, n in document["problems"].items())
    lines = [f"problems: {counts}" + (f" ({document['task']})" if "task" in document else "")]
    if document["judges"] == "form":
        lines.append("it gives right answers no more than wrong ones, so it was audited as a reward of form, not of answers")
    kinds_by_formats: dict[tuple[str, ...], list[str]] = {}
    for kind, formats in document["reads"].items():
        kinds_by_formats.setdefault(tuple(formats), []).append(kind)
    lines += [f"reads {', '.join(kinds)} as: {', '.join(formats)}" for formats, kinds in kinds_by_formats.items()]
    if pairs := document.get("pairs"):
        lines.append(
            f"{pairs['pairs']:.0f} pairs in both orders: the verdict changes with the order in {pairs['changed']:.0%}; what stands "
            f"first is preferred in {pairs['first']:.0%} (p = {pairs['first_p']:.2g} if the places do not matter)"
        )
        told = {"right": "the right reply over a wrong one", "longer": "the longer of two that say the same"}
        lines += [f"preference for {what}: {pairs[name]:.0%}" for name, what in told.items() if name in pairs]
    lines += [bill(usage) for usage in document.get("served", ())]
    if document.get("loading", 0.0) >= TOLD:
        lines.append(f"loaded in {document['loading']:.0f} s, and audited for {document['seconds']:.0f} s")
    if document["handed_over_as"] == "messages":
        lines.append("prompts and completions were passed as lists of messages")
    if document["given_up"]:
        lines.append("it hung or crashed so often that it was not called again")
    for name, (done, of) in document["unfinished"].items():
        lines.append(f"unfinished: {name}, {done} of {of} replies")
    return lines


def timing(speed: Mapping[str, float]) -> str:
    named = ", ".join(f"{name} {seconds(speed[name])}" for name in ("p50", "p95", "p99", "max"))
    return f"{speed['calls']:,} calls one by one: {speed['per_second']:,.0f} a second; {named}"


def seconds(value: float) -> str:
    amount, unit = (value, "s") if value >= 1 else (1e3 * value, "ms") if value >= 1e-3 else (1e6 * value, "µs")
    return f"{amount:.0f} {unit}" if amount >= 10 else f"{amount:.1f} {unit}"


def result_text(example: Mapping[str, Any]) -> str:
    """The result of a reply: `reward 1`, or its kind if it is not a number."""
    kind = example.get("came")
    if kind == "number" and "swapped" in example:
        return PLACES.get(example["reward"], f"prefers the first by {example['reward']:.2f}")
    if kind == "number":
        return f"reward {example['reward']:g}"
    why = example.get("why") or ""
    return CAME.get(str(kind), str(kind)) + (f": {why[:300]}" if why else "")


def comparison_text(example: Mapping[str, Any]) -> str:
    """What the result is to be compared with."""
    if swapped := example.get("swapped"):
        return f"in the other order: {result_text({**swapped, 'swapped': {}})}"
    then = example.get("then")
    if then:
        return f"called differently ({example['how']}): {result_text(then)}"
    right, wrong = example.get("right_pays"), example.get("wrong_pays")
    scale = f"; the right answer gets {right:g}, a wrong one {wrong:g}" if right is not None and wrong is not None else ""
    return f"gold answer {quoted(str(example['answer']), 60)}{scale}"


def quoted(text: str, length: int) -> str:
    """A text on one line, cut where it is long, with invisible characters escaped."""
    text = visible(text[: length + 1]).replace("\n", "\\n").replace("\t", "\\t")
    return f"“{text if len(text) <= length else text[:length] + '…'}”"
