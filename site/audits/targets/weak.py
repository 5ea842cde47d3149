"""Deliberately weak rewards: each has one flaw that is often met, and an audit must find it."""

from __future__ import annotations

import math
import re
import signal
import time


def substring(completion, answer):
    """Pays any reply that has the answer somewhere in it."""
    return float(str(answer) in completion)


def last_number(completion, answer):
    """Goes by the last number of the reply, whatever was stated before."""
    found = re.findall(r"-?\d+(?:[./]\d+)?", completion)
    return float(bool(found) and found[-1] == str(answer))


def always_one(completion, answer):
    """Pays everything."""
    return 1.0


def always_zero(completion, answer):
    """Pays nothing, as a verifier does whose parser is missing and whose exceptions are swallowed."""
    return 0.0


def hangs(completion, answer):
    """Never comes back from a reply that is long."""
    while len(completion) > 2_000:
        time.sleep(0.1)
    return _stated(completion, answer)


def always_hangs(completion, answer):
    """Never comes back."""
    while True:
        time.sleep(0.1)


def raises(completion, answer):
    """Takes for granted that every reply states an answer."""
    return _stated(completion, answer) * len(re.search(r"answer is", completion).group(0)) / len("answer is")


def by_alarm(completion, answer):
    """Limits its time by a signal, which works in the main thread alone; elsewhere the exception is swallowed."""
    try:
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.alarm(5)
        return _stated(completion, answer)
    except ValueError:
        return 0.0
    finally:
        signal.alarm(0)


def first_only(completions, answer):
    """Pays the first right reply of a batch alone: what a reply earns depends on those before it."""
    right = [_stated(c, a) for c, a in zip(completions, answer, strict=True)]
    return [float(r and not any(right[:i])) for i, r in enumerate(right)]


def by_length(completion, answer):
    """Pays length beside correctness."""
    return _stated(completion, answer) + min(len(completion) / 2_000, 1.0)


def length_alone(completions, **columns):
    """Pays nothing but length."""
    return [min(len(completion) / 2_000, 1.0) for completion in completions]


def not_a_number(completion, answer):
    """Divides by what may be nothing."""
    words = len(re.findall(r"[a-z]+", completion))
    return _stated(completion, answer) * (words / words if words else math.nan)


def exits(completion, answer):
    """Ends the whole process when a reply is empty."""
    if not completion:
        import os

        os._exit(3)
    return _stated(completion, answer)


def _stated(completion, answer):
    """The sound part: what follows the last "answer is" is compared with the answer."""
    found = re.findall(r"(?i)answer is ([^\r\n]{1,200})", completion)
    return float(bool(found) and found[-1].strip().rstrip(".").strip("* ") == str(answer))
