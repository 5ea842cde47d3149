"""Jobs in this process in place of `checks.workers.run_all`: to start a process and load torch takes longer than most jobs here."""

from __future__ import annotations

from rewardlab.checks.workers import Failed


def run_all(work, jobs, processes=None):
    """(position, result or Failed) of each job, in order."""
    for position, job in enumerate(jobs):
        try:
            yield position, work(job)
        except Exception as problem:
            yield position, Failed(f"{type(problem).__name__}: {problem}")
