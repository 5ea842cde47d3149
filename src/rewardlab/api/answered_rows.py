"""How many rows of a file have answers, where its problems have none: whether they do, the first row decides."""

from __future__ import annotations

import contextlib

from rewardlab import registry
from rewardlab.core import Task
from rewardlab.errors import RewardlabError
from rewardlab.tasks.row_columns import Columns, has
from rewardlab.tasks.rows import HUB, splits


def some_answered(task: Task) -> str:
    """That some rows of the task's file have a column of answers and others have none; "" where all are alike.

    Read from the file again, since problems that are read without answers keep nothing of them.
    """
    source = task.source or {"name": "", "options": {}}
    path, options = str(source["name"]), source["options"]
    if not path or path.startswith(HUB) or path.partition(":")[0] in registry.tasks():
        return ""
    columns = Columns(options.get("prompt_column") or "prompt", options.get("answer_column") or "answer", None, None)
    count, lacking, named = 0, list[str](), ""
    # a file that has gone or changed since says nothing more
    with contextlib.suppress(RewardlabError, OSError):
        for place, row in (found for rows in splits(path).values() for found in rows):
            if isinstance(row, RewardlabError):
                continue
            count += 1
            name = columns.in_row(row).answer
            if has(row, name):
                named = named or name
            else:
                lacking.append(place)
    if not named or not lacking:
        return ""
    return f"{len(lacking):,} of {count:,} rows have no column {named!r}, first {lacking[0]}. Give them one, or leave them out"
