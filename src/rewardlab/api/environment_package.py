"""Export of a task as a package that `verifiers` loads: its rows, its verifier as rubric, and its environment's turns."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sized
from itertools import islice
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.core import Problem, Task
from rewardlab.errors import RewardlabError
from rewardlab.settings.domain import PATH, POSITIVE
from rewardlab.tasks.sources import Shuffled
from rewardlab.util.files import new_folder

MODULE = '''"""{about}

Written by `rewardlab export-env {written}`. verifiers < 0.4: vf.load_environment("{name}"); from 0.4 on it is a taskset, {name}.
"""

from pathlib import Path

from rewardlab.api.exported_environment import interface

FOLDER = Path(__file__).parent

if interface() == "classic":
    from rewardlab.api.exported_environment import classic

    def load_environment(**options):
        """The environment.  options: of verifiers' own Environment, such as max_turns."""
        return classic(FOLDER, **options)

else:
    from rewardlab.api.exported_taskset import taskset

    Tasks, Play = taskset(FOLDER)
    __all__ = ["Play", "Tasks"]
'''
PROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "{project}"
version = "0.1.0"
description = "{about}"
requires-python = ">=3.11"
dependencies = ["verifiers>=0.1.14", "rewardlab"]

[tool.setuptools]
packages = ["{name}"]

[tool.setuptools.package-data]
{name} = ["*.jsonl", "task.json"]
"""


def export_environment(task: Task | str, out: Path | str, *, rows: int = 1000, test_rows: int = 200) -> dict[str, Any]:
    """Write a Python package for `verifiers` into `out`.

    rows: training problems, at most; an endless task has so many.  test_rows: held-out ones, for its eval dataset. Returns what was
    written. Raises RewardlabError for a task whose prompts are no text, and where `out` holds files.
    """
    POSITIVE.check("rows", rows)
    POSITIVE.check("test_rows", test_rows)
    written = task if isinstance(task, str) else task.name
    task = registry.task(task) if isinstance(task, str) else task
    out = Path(PATH.check("out", out))
    name = re.sub(r"\W+", "_", task.name).strip("_").lower()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RewardlabError(f"{out} is there already: name a folder that is not, or an empty one")
    source = Shuffled(task.train) if isinstance(task.train, list | tuple) else task.train
    count = min(rows, len(source)) if isinstance(source, Sized) else rows
    splits = {"train": (source[i] for i in range(count)), "test": islice(iter(task.test), test_rows)}
    about = {"task": task.name, "verifier": task.verifier, "environment": task.environment, "turns": task.turns}
    with new_folder(out) as new:
        (new / name).mkdir()
        said = {split: _write(new / name / f"{split}.jsonl", problems) for split, problems in splits.items()}
        (new / name / "task.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        line = " ".join((task.about or task.name).replace('"', "'").split())
        (new / name / "__init__.py").write_text(MODULE.format(about=line, written=written, name=name), encoding="utf-8")
        project = PROJECT.format(project=name.replace("_", "-"), name=name, about=line)
        (new / "pyproject.toml").write_text(project, encoding="utf-8")
    return {"out": str(out), "name": name, **about, "rows": said["train"], "test_rows": said["test"]}


def _write(path: Path, problems: Iterable[Problem]) -> int:
    lines = [_line(problem) for problem in problems]
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)


def _line(problem: Problem) -> str:
    if any(m.images or m.data is not None for m in problem.prompt):
        raise RewardlabError(f"problem {problem.question[:60]!r} is no text: only tasks of text are exported")
    prompt = [{"role": m.role, "content": m.text} for m in problem.prompt]
    try:
        return json.dumps({"prompt": prompt, "answer": problem.answer, "meta": dict(problem.meta)}) + "\n"
    except TypeError as e:
        raise RewardlabError(f"problem {problem.question[:60]!r} is no plain data: {e}") from e
