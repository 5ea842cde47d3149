"""Step labels for solutions, sampled or from a file: by continuations, a judge, both, a tool or a reference (`labels.py`)."""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rewardlab import registry
from rewardlab.api.arguments import named_model
from rewardlab.api.inputs import as_in_run, task_of, told_template
from rewardlab.api.prompt_lengths import Fitter, text_reader
from rewardlab.api.row_rewards import require
from rewardlab.api.streaming import Kept, finished, kept_beside
from rewardlab.clients.endpoint import identity
from rewardlab.core import Problem, Task, ask
from rewardlab.data.files import TABLES, encoded
from rewardlab.data.solutions import Solution
from rewardlab.data.step_formats import AUTO, name_of, row_in, solutions_in
from rewardlab.data.work import key_of
from rewardlab.errors import RewardlabError
from rewardlab.models.load import Policy
from rewardlab.prm.labels import CONTINUED, JUDGED, VERIFIER, Labels, Solved, any_task, problem_in, solver_of
from rewardlab.prm.training import problems_by_question
from rewardlab.processes.cluster import check_named, spread
from rewardlab.rewards.monte_carlo import COMPLETIONS, PREFIX_TOKENS
from rewardlab.runs.config import RunConfig
from rewardlab.runs.named import refuse_missing
from rewardlab.tasks.sources import Listed
from rewardlab.util.progress import Bar


def label_file(
    out: Path | str, *, task: Task | str | None = None, model: str | Policy | None = None, solutions: Any = None,
    judge: str | Policy | None = None, labels: Labels | None = None, workers: str | None = None, **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """Label the steps of solutions, and write them to `out` as JSON lines, a batch at a time; returns what was found and the cost.

    The solutions are sampled by the model on the task's training problems, or read from a file in any known format, or from rows as
    of one; their problems are found in the task by their text, for the answer. judge: the model that judges (by="judge" or
    "consensus"); None: the model itself.
    workers: "ray" or "ray:N", to label over a Ray cluster, with the same labels.
    settings: fields of Labels and of RunConfig (seed, device, max_new, prompt_column ...). A model is not needed where a file is
    labelled by tool, reference or another judge.

    A call that was killed resumes where it stopped when it is made again, and ends with the same file as if it had not been: what
    was asked stands in OUT.work until then, and in OUT.request.json, with what was found, when all is done. Raises RewardlabError
    for other settings than those that `out` was begun with.
    """
    own = {name: settings.pop(name) for name in list(settings) if name in Labels.__dataclass_fields__}
    labels = replace(labels or Labels(), **own)
    _check_out(Path(out))
    if not isinstance(solutions, str | Path | None):
        solutions = solutions_in(solutions, splitter=labels.splitter)
    refuse_missing(model := named_model(model))
    refuse_missing(judge := named_model(judge))
    config, task = as_in_run(model, task, settings)
    request = _request(labels, config, task, model, judge, solutions)
    if (summary := finished(Path(out), request)) is None:
        given = _read(solutions, labels.splitter) if solutions is not None else None
        asked = task_of(task, config) if task else None
        labeller = Labeller.of(labels, config, asked, model, judge, given, workers)
        with kept_beside(Path(out), request) as kept:
            summary = kept.summary = labeller.all(kept)
    return {**summary, "out": str(out)}


def _request(
    labels: Labels, config: RunConfig, task: Task | str | None, model: str | Policy | None, judge: str | Policy | None,
    solutions: Any,
) -> dict[str, Any]:  # fmt: skip
    """All that the labels depend on, as plain data."""
    named = task.name if isinstance(task, Task) else task
    request = {"task": named, "model": _name(model or config.model), "judge": _name(judge), **vars(labels), **told_template(config)}
    if solutions is not None:
        request |= {"solutions": name_of(solutions), "digest": hashlib.blake2b(_bytes(solutions), digest_size=12).hexdigest()}
    fields = ("seed", "max_new", "dtype", "system", "overlong", "prompt_column", "answer_column")
    return request | {name: getattr(config, name) for name in fields}


def _bytes(solutions: Any) -> bytes:
    """What solutions are known again by: the file, or the solutions themselves."""
    if isinstance(solutions, str | Path):
        return Path(solutions).read_bytes()
    return "".join(encoded(row_in(s, "rewardlab")) for s in solutions).encode()


@dataclass
class Read:
    """The solutions of a file, and its lines that are none."""

    solutions: list[Solution]
    broken: list[str]


def _read(path: Any, splitter: str) -> Read:
    broken: list[str] = []
    found = solutions_in(path, AUTO, broken=broken, splitter=splitter)
    if not found:
        raise RewardlabError(f"{name_of(path)} holds no solution" + (f": {broken[0]}" if broken else ""))
    return Read(found, broken)


@dataclass
class Labeller:
    """Labels all batches.  items: problems to solve, or solutions with their problems (None: not known, and no answer to judge by).

    solved: what a batch's solver makes of (number, batch) pairs, in their order.
    """

    labels: Labels
    items: Sequence[Problem] | Sequence[tuple[Solution, Problem]]
    facts: dict[str, Any]
    solved: Callable[[list[tuple[int, Sequence[Any]]]], Iterator[Solved]]

    @classmethod
    def of(
        cls, labels: Labels, config: RunConfig, task: Task | None, model: str | Policy | None, judge: str | Policy | None,
        given: Read | None, workers: str | None = None,
    ) -> Labeller:  # fmt: skip
        """Raises RewardlabError where something that these labels need is not there."""
        _check_request(labels, task, model, judge, given)
        require(registry.verifier(task.verifier if task else VERIFIER))
        solved: Any
        about = (labels, config, task, model, judge, given is None)
        if workers is None:
            solver = solver_of(*about)
            reader, solved = solver.run.policy, functools.partial(itertools.starmap, solver)
        else:
            check_named(model, judge)
            reader = text_reader(model, config, task or any_task()) if given is None else None
            solved = functools.partial(_over, workers, about)
        facts: dict[str, Any] = {}
        if given is None:
            items: Any = _problems(task or any_task(), labels.problems, reader, config)
        else:
            items, facts = _matched(given, task, labels)
        if labels.by == "reference" and not any(problem_in(item).meta.get("steps") for item in items):
            name = (task or any_task()).name
            raise RewardlabError(f"labels by reference need problems with gold steps, and those of {name} have none")
        return cls(labels, items, facts, solved)

    def all(self, kept: Kept) -> dict[str, Any]:
        """Label what is not labelled yet; the summary."""
        size, counts = self.labels.batch, Counter[str]()
        batches = [self.items[i : i + size] for i in range(0, len(self.items), size)]
        keys = [key_of(i, [[problem_in(item).key, problem_in(item).answer] for item in batch]) for i, batch in enumerate(batches)]
        to_do = [(i, batch) for i, (batch, key) in enumerate(zip(batches, keys, strict=True)) if kept.done(key) is None]
        solved = self.solved(to_do)
        with Bar(f"labelling by {self.labels.by}", len(self.items)) as bar:
            for batch, key in zip(batches, keys, strict=True):
                if (before := kept.done(key)) is None:
                    rows, before = self._rows(*next(solved), first=counts["rows"])
                    kept.add(key, rows, before)
                counts.update(before)
                bar.advance(n=len(batch))
        agreed = {"kept": _share_kept(counts)} if self.labels.by == "consensus" else {}
        return {"by": self.labels.by, **_summary(counts), **agreed, **self.facts}

    def _rows(self, solutions: Sequence[Solution], cost: Counter[str], first: int) -> tuple[list[str], Counter[str]]:
        """The rows of a batch, and what is counted."""
        rows: list[str] = []
        counts = cost.copy()
        for solution in solutions:
            counts += _counted(solution)
            try:
                rows.append(encoded(row_in(solution, self.labels.format, self.labels.threshold, first + len(rows))))
            except RewardlabError:
                counts["unfit"] += 1
        counts["rows"] = len(rows)
        return rows, counts


def _over(workers: str, about: tuple[Any, ...], batches: list[tuple[int, Sequence[Any]]]) -> Iterator[Solved]:
    """The same over a cluster, whose processes load the models."""
    labels, config, task, *rest = about
    # its problems come with the batches
    task = task and replace(task, train=Listed([ask("?")]), test=())
    function, sizes = "rewardlab.prm.labels:solver_of", [len(batch) for _, batch in batches]
    said = f"labelling by {labels.by}"
    return spread(said, workers, function, (labels, config, task, *rest), batches, sizes, config.device, hidden=True)


def _check_request(
    labels: Labels, task: Task | None, model: str | Policy | None, judge: str | Policy | None, given: Read | None
) -> None:
    if task is None and given is None:
        raise RewardlabError("nothing to label: name a task, whose problems the model solves, or a file of solutions")
    if task is not None and task.environment is not None and given is None:
        raise RewardlabError(f"the task {task.name} is played in several turns; labels are for solutions of one reply")
    if given is None and labels.temperature == 0 and labels.samples > 1:
        raise RewardlabError("at temperature 0 all solutions of a problem are the same: give samples 1")
    if task is None and model is None and (labels.by in CONTINUED or (labels.by == "judge" and judge is None)):
        raise RewardlabError(f"labels by {labels.by} need a model: name one" + (", or a judge" if labels.by == "judge" else ""))
    if labels.by == "reference" and task is None:
        raise RewardlabError("labels by reference need the task whose problems have gold steps: name it")
    if judge is not None and labels.by not in JUDGED:
        raise RewardlabError(f"a judge has no effect on labels by {labels.by}")


def _problems(task: Task, n: int, policy: Policy, config: RunConfig) -> list[Problem]:
    """The first n training problems whose prompts fit."""
    n = min(n, len(task.train)) if isinstance(task.train, Sized) else n
    fitter = Fitter(policy, config.overlong, config.max_new or task.max_new)
    return fitter.fit([task.train[i] for i in range(n)], "task's")[0]


def _matched(given: Read, task: Task | None, labels: Labels) -> tuple[list[tuple[Solution, Problem]], dict[str, Any]]:
    """The solutions with their problems, and how many were left out for lack of an answer or could not be read."""
    known = problems_by_question(task, labels.problems) if task else {}
    pairs = [(one, known.get(one.prompt.strip()) or ask(one.prompt, one.answer)) for one in given.solutions]
    kept = [(one, problem) for one, problem in pairs if problem.answer is not None or labels.by not in CONTINUED]
    if not kept:
        why = f"the task {task.name} has none of their problems" if task else "name the task whose problems they solve"
        raise RewardlabError(f"labels by {labels.by} judge answers, and no solution has one: {why}, or give them a column `answer`")
    facts: dict[str, Any] = {"broken_lines": given.broken} if given.broken else {}
    return kept, facts | ({"no_answer": len(pairs) - len(kept)} if len(kept) < len(pairs) else {})


def _counted(solution: Solution) -> Counter[str]:
    known = [label for label in solution.labels if label is not None]
    counts = Counter(steps=len(solution.labels), labelled=len(known), right_steps=sum(label >= 0.5 for label in known))
    counts.update(judged=solution.right is not None, right=bool(solution.right), without_labels=not known)
    return counts


def _summary(counts: Counter[str]) -> dict[str, Any]:
    """In the order in which it is shown."""
    return {
        "rows": counts["rows"], "steps": counts["steps"], "labelled_steps": counts["labelled"],
        "right_steps": counts["right_steps"] / counts["labelled"] if counts["labelled"] else None,
        "right_answers": counts["right"] / counts["judged"] if counts["judged"] else None,
        "without_labels": counts["without_labels"], "unfit": counts["unfit"], "completions": counts[COMPLETIONS],
        "tokens_generated": counts["tokens_generated"], "prefix_tokens": counts[PREFIX_TOKENS],
    }  # fmt: skip


def _share_kept(counts: Counter[str]) -> float | None:
    """Of all solutions, those that have labels."""
    solutions = counts["rows"] + counts["unfit"]
    return 1 - counts["without_labels"] / solutions if solutions else None


def _check_out(out: Path) -> None:
    if str(out) == "-" or out.suffix.lower() in (*TABLES, ".json"):
        raise RewardlabError(f"--out {out}: labels are appended to a file of JSON lines; give the name of a .jsonl file")
    if not out.resolve().parent.is_dir():
        raise RewardlabError(f"there is no folder {out.resolve().parent} to write {out.name} into")


def _name(model: str | Policy | None) -> str | None:
    return identity(model) if model is None or isinstance(model, str) else model.name
