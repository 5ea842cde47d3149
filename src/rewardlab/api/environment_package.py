"""Export of a task as a package that `verifiers` loads: its rows, its verifier as rubric, and its environment's turns."""

from __future__ import annotations

import importlib.util
import json
import keyword
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Sized
from itertools import islice
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.core import Environment, Problem, Task
from rewardlab.errors import RewardlabError
from rewardlab.registry.formula import environment_from
from rewardlab.registry.playing import TURNS, refuse_other
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
description = {quoted}
requires-python = ">=3.11"
dependencies = ["verifiers>=0.1.14", "rewardlab"]

[tool.setuptools]
packages = ["{name}"]

[tool.setuptools.package-data]
{name} = ["*.jsonl", "task.json"]
"""


def export_environment(
    task: Task | Path | str, out: Path | str, *, rows: int = 1000, test_rows: int = 200,
    env: Environment | Path | str | None = None, turns: int = TURNS,
) -> dict[str, Any]:  # fmt: skip
    """Write a Python package for `verifiers` into `out`.

    rows: training problems, at most; an endless task has so many.  test_rows: held-out ones, for its eval dataset.
    env, turns: what answers the replies (an environment, or its name as of --env), for at most so many of them; by default that of
    the task. Files that it names (tools, a corpus) stay where they are. Returns what was written. Raises RewardlabError for a task
    whose prompts are no text, and where `out` holds files.
    """
    for setting, number in (("rows", rows), ("test_rows", test_rows), ("turns", turns)):
        POSITIVE.check(setting, number)
    task = os.fspath(task) if isinstance(task, os.PathLike) else task
    written = task if isinstance(task, str) else task.name
    task = registry.task(task) if isinstance(task, str) else task
    env = None if env is None else environment_from(env)
    refuse_other(task, {"env": env})
    out = Path(PATH.check("out", out))
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise RewardlabError(f"{out} is there already: name a folder that is not, or an empty one")
    source = Shuffled(task.train) if isinstance(task.train, list | tuple) else task.train
    count = min(rows, len(source)) if isinstance(source, Sized) else rows
    splits = {"train": (source[i] for i in range(count)), "test": islice(iter(task.test), test_rows)}
    played = {"environment": env.to_json(), "turns": turns} if env else {"environment": task.environment, "turns": task.turns}
    about, name = {"task": task.name, "verifier": task.verifier, **played}, module_name(task.name)
    with new_folder(out) as new:
        (new / name).mkdir()
        said = {split: _write(new / name / f"{split}.jsonl", problems) for split, problems in splits.items()}
        (new / name / "task.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        for file, text in _code(name, task.about or task.name, written).items():
            (new / file).write_text(text, encoding="utf-8")
    shown = {"environment": str(env)} if env else {}
    return {"out": str(out), "name": name, **about, **shown, "rows": said["train"], "test_rows": said["test"]}


def module_name(task: str) -> str:
    """The name of a task's package, in letters that a package index knows. One that Python or a package installed here has already
    would take its place, or be taken for it: task_ goes before that."""
    plain = unicodedata.normalize("NFKD", task).encode("ascii", "ignore").decode()
    name = re.sub(r"\W+", "_", plain).strip("_").lower()
    if not name:
        return "task"
    return f"task_{name}" if name[0].isdigit() or keyword.iskeyword(name) or _taken(name) else name


def _taken(name: str) -> bool:
    if name in sys.stdlib_module_names:
        return True
    found = importlib.util.find_spec(name)
    # a folder without code has no origin, and one that was exported before may be replaced
    return bool(found and found.origin and not Path(found.origin).with_name("task.json").exists())


def _code(name: str, about: str, written: str) -> dict[str, str]:
    """The files of the package that say what it is.  written: the task, as it was named."""
    about, written = (" ".join(text.split()) for text in (about, written))
    within = {key: text.replace("\\", "\\\\").replace('"', "'") for key, text in (("about", about), ("written", written))}
    # a string of JSON is one of TOML
    project = PROJECT.format(project=name.replace("_", "-"), name=name, quoted=json.dumps(about, ensure_ascii=False))
    return {f"{name}/__init__.py": MODULE.format(name=name, **within), "pyproject.toml": project}


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
