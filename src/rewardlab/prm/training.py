"""Train a process reward model on solutions with labelled steps, and save it as a checkpoint that others read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab import registry
from rewardlab.api.exporting import export
from rewardlab.api.inputs import in_template
from rewardlab.api.result import Result
from rewardlab.api.training import resume, train
from rewardlab.core import Problem, Recipe, Score, Task, Trajectory, Turn, Update
from rewardlab.data.solutions import Solution
from rewardlab.data.step_formats import name_of
from rewardlab.engine.rates import rate_of
from rewardlab.errors import RewardlabError
from rewardlab.models.checkpoint import NAMES, PACKAGED, absolute_name, parted
from rewardlab.models.load import Policy, load_policy
from rewardlab.prm.evaluation import evaluate_scorer
from rewardlab.prm.held_out import notes
from rewardlab.prm.load import FILE
from rewardlab.prm.recipe import KINDS, LEARNS, LOSSES, SEPARATOR, TAUGHT, scorer_recipe
from rewardlab.prm.rows import Lessons, lessons, read_labelled, rounded, solutions_task, splitter_of
from rewardlab.prm.saving import token_classifier
from rewardlab.report.model_card import card
from rewardlab.rewards.process import asked_of
from rewardlab.rewards.steps import step_texts
from rewardlab.runs.config import RunConfig
from rewardlab.runs.named import read_config
from rewardlab.settings.domain import POSITIVE_SHARE, one_of
from rewardlab.tasks.sources import Listed
from rewardlab.text.splitters import of_text
from rewardlab.util.files import new_folder
from rewardlab.util.progress import console

KIND, LOSS, WHAT = one_of(*KINDS), one_of(*LOSSES), one_of(*TAUGHT)
REFERENCE = "reference"
MEASURED = 500
"""Held-out solutions of which the model card tells."""


def train_scorer(
    data: Any, model: str, out: str | Path, *, kind: str = "head", loss: str = "bce",
    lr: float | None = None, problems: int = 16, beta: float = 0.05, zeta: float = 4.0, tau: float = 0.5, test_share: float = 0.1,
    format: str = "auto", alternatives: bool = True, threshold: float | None = None, taught: str = "steps", splitter: str = "",
    run: str | Path | None = None, **settings: Any,
) -> dict[str, Any]:  # fmt: skip
    """Train a scorer of steps, save it in the folder `out`, and measure what was saved on held-out problems.

    data: a file in any format of `data/step_formats.py`, rows as of one, or solutions. alternatives: also learn from others that
    rows hold, of PRM800K from each rated step that was not gone on with: most of its wrong ones. kind: head, a value head at the
    ends of steps; generative, the language model says Yes or No; implicit, its log-ratio to what it was. loss, zeta, tau:
    `objectives/step_labels.py`. beta: of implicit. lr: None is what suits the model. problems: solutions in a batch. test_share:
    of the prompts, all of whose solutions are held out. run: the folder of the run (default: OUT.run); called again, it resumes
    from there. settings: fields of RunConfig, such as steps, lora_rank, seed, device. Left out, and counted, are solutions that
    exceed the context, have an empty step, or no label. threshold: a label from it up is right, a lower one wrong (None: as the
    loss takes labels). taught: steps, by every label; first-error, by those up to the first wrong step; outcome, by whether the
    solution is right. splitter: what a step is, which is saved with the scorer ("": as `splitter_of` finds).

    Half of the held-out problems choose the step of training that is saved, and the others are measured, where there are enough
    (`prm/held_out.py`); `note` and `warning` tell what the figures are worth.

    `out` holds a checkpoint that `load_scorer` and transformers load (a head as a token classifier, wrong or right),
    step_scorer.json, which says how it reads solutions, and README.md, a model card. Returns the figures and where all is.
    """
    _check(kind, loss, threshold, taught, splitter, out := Path(out))
    solutions, passed_over = read_labelled(data, format, alternatives, threshold, taught)
    warn("" if threshold is not None else rounded(solutions, loss))
    # no reply is sampled: no room is needed for one
    config = RunConfig(**{**settings, "model": model, "max_new": 1})
    solutions_task(solutions, test_share, config.seed)
    policy = in_template(load_policy(model, config.device, config.dtype, config.lora_rank), config)
    learnt = lessons(solutions, passed_over, kind, policy, test_share, config.seed)
    # the rate as a number, by which a run that is resumed is known again
    shape, lr = dict[str, Any](zeta=zeta, tau=tau, beta=beta), rate_of(Update(lr=lr, **LEARNS[kind]), policy)
    recipe = scorer_recipe(kind, loss, taught=taught, lr=lr, problems=problems, **shape)
    done = _trained(recipe, policy, learnt.task, config, Path(run) if run else out.with_name(f"{out.name}.run"))
    about: dict[str, Any] = {"model": model, "data": name_of(data), "kind": kind, "loss": loss, "taught": taught}
    about |= ({} if threshold is None else {"threshold": threshold}) | {"splitter": splitter or splitter_of(data, solutions)}
    found = _write(out, done, learnt, config, about | learnt.counts, shape)
    return {"out": str(out), "run": str(done.out), **found}


def _check(kind: str, loss: str, threshold: float | None, taught: str, splitter: str, out: Path) -> None:
    KIND.check("kind", kind)
    LOSS.check("loss", loss)
    WHAT.check("taught", taught)
    if threshold is not None:
        POSITIVE_SHARE.check("threshold", threshold)
    if splitter:
        of_text(splitter)
    if out.exists() and any(out.iterdir()):
        raise RewardlabError(f"{out} exists and is not empty; choose a new folder")


def warn(told: str) -> None:
    """Print a warning, unless it is empty."""
    if told:
        console.print(f"warning: {told}", highlight=False, markup=False, soft_wrap=True)


def _write(
    out: Path, done: Result, learnt: Lessons, config: RunConfig, about: dict[str, Any], shape: dict[str, float]
) -> dict[str, Any]:
    """Write what was trained, measured on what was kept out, with a model card that says so."""
    chosen_by, measured_on = learnt.chosen_by, learnt.measured_on
    kind, model = about["kind"], about["model"]
    with new_folder(out) as new:
        exported = _save(done, kind, {"convention": kind, **_layout(about, shape["beta"]), "splitter": about["splitter"]}, new)
        _save_reference(kind, model, config.device, new)
        found = evaluate_scorer(str(new), measured_on, limit=MEASURED, device=config.device, dtype="float32")
        told = notes(exported, found, chosen_by, chosen_by == measured_on)
        (new / "README.md").write_text(card(out.name, about, shape, found | told), "utf-8")
    warn(told.get("warning", ""))
    counts = {"held_out": found["solutions"], "chosen_by": 0 if chosen_by == measured_on else len(chosen_by)}
    return {**about, **counts, **told, **{name: found[name] for name in ("first_error", "steps")}}


def _trained(recipe: Recipe, policy: Policy, task: Task, config: RunConfig, folder: Path) -> Result:
    if not (folder / "config.json").exists():
        return train(recipe, policy, task, config=config.but(out=folder))
    document = read_config(folder)
    began, now = RunConfig.from_json(document), json.loads(json.dumps(recipe.to_json()))
    differing = [name for name in ("seed", "lora_rank") if getattr(began, name) != getattr(config, name)]
    if differing or json.loads(json.dumps(registry.load_recipe(document["recipe"]).to_json())) != now:
        raise RewardlabError(
            f"{folder} holds a run with {' and '.join(differing) or 'another kind, loss or learning rate'} of its own: resume it "
            "with what it began with, remove it, or give another --run"
        )
    # open until the run begins: then it has as many as it began with
    more: dict[str, Any] = {} if config.steps is None else {"steps": config.steps}
    return resume(folder, task=task, model=policy, **more)


def _layout(about: dict[str, Any], beta: float) -> dict[str, Any]:
    if about["kind"] == "implicit":
        model, whole = about["model"], about["taught"] == "outcome"
        reference = REFERENCE if _made_here(model) else absolute_name(model)
        return {"reference": reference, "beta": beta, **({"sums": True} if whole else {})}
    return {"layout": "chat", "separator": SEPARATOR} if about["kind"] == "head" else {}


def _made_here(model: str) -> bool:
    """Whether a model is made by rewardlab, so that no checkpoint elsewhere is it."""
    kind, _, task = parted(model)[1].partition(":")
    # one that is taught a task here is another after the next change of that task
    return kind in NAMES and (kind not in PACKAGED or bool(task))


def _save(done: Result, kind: str, about: dict[str, Any], new: Path) -> dict[str, Any]:
    """Write the run's best model and how it reads solutions; what `export` says of it."""
    whole = new / ".whole"
    exported = export(done.out, whole, dtype="float32")
    if kind == "head":
        token_classifier(whole, new)
    for file in [] if kind == "head" else whole.iterdir():
        file.rename(new / file.name)
    _remove(whole)
    (new / FILE).write_text(json.dumps(about, indent=2) + "\n", "utf-8")
    return exported


def _save_reference(kind: str, model: str, device: str, new: Path) -> None:
    """Write what implicit rewards are measured against, where no checkpoint elsewhere holds it."""
    if kind == "implicit" and _made_here(model):
        (new / REFERENCE).mkdir()
        # made anew, since the one at hand has learnt
        load_policy(model, device, "float32").save(new / REFERENCE)


def _remove(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()
    folder.rmdir()


# ---- Solutions in steps as rows of tokens, and labelled rows as solutions --------------------------------------------


def written(solutions: Sequence[Solution], problems: Sequence[Problem], policy: Any) -> list[Trajectory]:
    """Solutions as replies of a policy in which each step is a turn of its own, and its end is marked.

    Each step is tokenised by itself, with the line break that follows it (an empty line, where a step holds line breaks itself): so
    the boundaries of steps are exact with any tokenizer, and what is gone on from begins a new line. policy: None stands for no
    model: a step is one token, for rewards that read its text alone.
    """
    texts = [_texts(solution) for solution in solutions]
    if policy is None:
        prompts = [Trajectory(problem, (Turn(None, np.zeros(1, np.int64), text=asked_of(problem)),)) for problem in problems]
        turns = iter(Turn("policy", np.zeros(1, np.int64), text=text) for of in texts for text in of)
    else:
        prompts = policy.read([Trajectory(problem) for problem in problems], [problem.prompt for problem in problems])
        flat = [(Trajectory(problem), text) for problem, of in zip(problems, texts, strict=True) for text in of]
        turns = iter(t.turns[-1] for t in policy.write([t for t, _ in flat], [text for _, text in flat]))
    return [_joined(prompt, [next(turns) for _ in of], policy is not None) for prompt, of in zip(prompts, texts, strict=True)]


def _texts(solution: Solution) -> list[str]:
    *steps, last = (step.strip() for step in solution.steps)
    gap = "\n\n" if any("\n" in step for step in (*steps, last)) else "\n"
    return [*(f"{step}{gap}" for step in steps), last]


def _joined(prompt: Trajectory, steps: list[Turn], ended: bool) -> Trajectory:
    """The prompt and the steps, of which the last one alone keeps the token that ends a reply."""
    steps = [*(step.cut(len(step.ids) - ended, step.text) for step in steps[:-1]), steps[-1]]
    ends = list(accumulate((len(step.ids) for step in steps), initial=len(prompt)))[1:]
    return Trajectory(prompt.problem, (*prompt.turns, *steps), "end", steps=tuple(end - 1 for end in ends))


def solution_of_steps(t: Trajectory, score: Score, right: bool | None, splitter: str, meta: Mapping[str, Any]) -> Solution:
    """A row whose steps were scored; steps at whose end the score pays nothing have no label."""
    paid = {} if score.missing else dict(score.steps)
    texts = step_texts(t, splitter)
    labels = [paid.get(at) for at in t.steps]
    if len(texts) != len(labels):
        # they cannot be told apart by their text; nothing is known of the whole as one step
        texts, labels = [t.reply.strip()], [None]
    # that of an earlier annotator, in a file that is labelled anew
    known = {name: value for name, value in meta.items() if name != "why"}
    if all(label is None for label in labels):
        known["why"] = score.why or "no step was judged"
    answer = None if t.problem.answer is None else str(t.problem.answer)
    return Solution(asked_of(t.problem), tuple(texts), tuple(labels), right, answer, known)


def problems_by_question(task: Task, n: int) -> dict[str, Problem]:
    """The problems of a task by their text, with what else their prompts say and without: all of a file's, of an endless source the
    first n; and those held out."""
    train = task.train.problems if isinstance(task.train, Listed) else [task.train[i] for i in range(n)]
    problems = [*task.test, *train]
    return {p.question.strip(): p for p in problems} | {asked_of(p).strip(): p for p in problems}
