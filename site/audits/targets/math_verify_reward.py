"""Math-Verify as a reward in TRL's signature: as its README calls it, and as one calls it from a thread."""

from __future__ import annotations

from math_verify import parse, verify


def as_in_its_readme(completions, solution, **columns):
    """`verify(parse(gold), parse(reply))`."""
    return [float(verify(parse(gold), parse(said))) for said, gold in zip(completions, solution, strict=True)]


def without_time_limits(completions, solution, **columns):
    """The same with its time limits off, since they work by a signal, which only the main thread can set."""
    return [
        float(verify(parse(gold, parsing_timeout=None), parse(said, parsing_timeout=None), timeout_seconds=None))
        for said, gold in zip(completions, solution, strict=True)
    ]
