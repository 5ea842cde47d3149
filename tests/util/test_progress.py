"""Progress tells how much is left, also of work whose parts take minutes each."""

from __future__ import annotations

import io

from rich.console import Console

from rewardlab.util import progress
from rewardlab.util.progress import Bar


def told(monkeypatch, total, **options):
    """What a log file shows after two parts that took a minute each."""
    clock, text = [0.0], io.StringIO()
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(progress, "console", Console(file=text))
    with Bar("comparing", total, **options) as bar:
        for _ in range(2):
            clock[0] += 60.0
            bar.advance("grpo")
    return text.getvalue().splitlines()


def test_the_time_left_is_told_by_the_pace_of_this_process(monkeypatch):
    assert told(monkeypatch, 5) == ["comparing 1/5, 0:04:00 left  grpo", "comparing 2/5, 0:03:00 left  grpo"]
    # what had been done before took no time now
    assert told(monkeypatch, 6, done=3)[0] == "comparing 4/6, 0:02:00 left  grpo"


def test_of_processes_started_together_the_first_alone_shows_a_bar(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert told(monkeypatch, 5) == []
    monkeypatch.setenv("RANK", "0")
    assert len(told(monkeypatch, 5)) == 2


def test_a_total_that_is_unknown_is_not_told(monkeypatch):
    assert told(monkeypatch, None)[1] == "comparing 2  grpo"


def test_the_bar_of_a_terminal_tells_the_time_left_of_slow_parts(monkeypatch):
    """rich alone forgets parts that ended more than 30 s ago, and then shows no time."""
    clock = [0.0]
    monkeypatch.setattr(progress, "console", Console(file=io.StringIO(), force_terminal=True))
    bar = Bar("comparing", 5)
    bar.bar.get_time = lambda: clock[0]
    with bar:
        for _ in range(3):
            clock[0] += 60.0
            bar.advance()
        assert bar.bar.tasks[0].time_remaining == 120
