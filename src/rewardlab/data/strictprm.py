"""StrictPRMBench's files: candidates of a problem, their answers, and the scores that process reward models gave their steps.

`candidates_SET` has a line a candidate (its steps; the first of a problem has the problem too), `answers_SET` beside it the answer,
whether it is right and its tokens, and `steps_PRM_SET` the scores of its steps. The lines of a problem stand together.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from rewardlab.data.files import Row, rows_of


def problems(path: Path) -> Iterator[tuple[str, Row]]:
    """Rows of problems: problem_id, problem, and candidates, each with steps, extracted_answer, is_correct and num_tokens. A file
    that has such rows already is read as it is."""
    answers = path.with_name(path.name.replace("candidates", "answers"))
    if answers == path or not answers.is_file():
        yield from rows_of(path)
        return
    known = {(row["problem_id"], row["candidate_index"]): row for _, row in rows_of(answers)}
    for name, lines in groupby(rows_of(path), lambda line: line[1]["problem_id"]):
        group = list(lines)
        candidates = [{**row, **known[name, row["candidate_index"]]} for _, row in group]
        yield group[0][0], {"problem_id": name, "problem": group[0][1]["problem"], "candidates": candidates}


def step_scores(path: Path) -> Iterator[tuple[str, list[list[float]]]]:
    """Of each problem, the scores of the steps of its candidates."""
    for name, lines in groupby(rows_of(path), lambda line: line[1]["problem_id"]):
        yield str(name), [row["step_scores"] for _, row in lines]
