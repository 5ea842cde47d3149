"""How well small judges judge after a minute of training, on held-out solutions of the task `arithmetic`.

A row is a judge: `ours` its held-out figure, `peer` the bar that it has to reach, `unit` what is measured; settings hold the
processor seconds of its training (without loading, and without the policies and the judge trunk, which are made once and cached),
its steps, and what else was measured. Judges without a bar are there to compare with: they show what the input or the start of the
others is worth.

  rewardlab bench judges
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from _sides import Rows, in_own_process, main, tidy


@dataclass(frozen=True)
class Judge:
    """make: () -> the recipe, its task and the name of the policy.  figure: of what `measure` gives.  steps: of training."""

    make: Callable[[], tuple[Any, str, str]]
    measure: Callable[[], Any]
    figure: str
    bar: float | None
    steps: int


# ---- what is measured ------------------------------------------------------------------------------------------------


def pairs() -> Any:
    from rewardlab.evals.pairs import pair_accuracy

    return pair_accuracy()


def solutions(steps: str = "sound_steps", implicit: bool = False) -> Any:
    """AUC of replies that the policy samples, and of their steps, right by the reward `steps`."""
    from rewardlab import registry
    from rewardlab.evals.judges import judge_auc
    from rewardlab.rollouts.independent import independent

    rollout, right = independent(n=2, steps="newline"), registry.part("reward", steps)
    return judge_auc(rollout=rollout, steps=right, model="prm" if implicit else "reward", implicit=implicit)


def worth() -> Any:
    """As `solutions`, but a step after an error is wrong too: no right answer follows, which is what continuations show."""
    return solutions("correct_steps")


def located() -> Any:
    """The F1 of first errors in written judgements, and the share of right final verdicts."""
    from rewardlab.core import Sampling, Trajectory, measure
    from rewardlab.evals.judges import first_error_f1
    from rewardlab.worlds.verdicts import WORDS, read

    @measure
    def judged(problems: Any, run: Any) -> dict[str, float]:
        prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
        said = [read(t.reply) for t in run.policy.extend(prompts, Sampling(run.max_new, 0.0), run.rng("eval"))]
        right = [j.final is not None and WORDS[j.final] == p.answer for p, j in zip(problems, said, strict=True)]
        f1 = first_error_f1([p.meta["verdicts"] for p in problems], [j.steps for j in said])
        return {"first_error_f1": f1, "final_verdict": sum(right) / len(right), "n": float(len(problems))}

    return judged()


# ---- the judges ------------------------------------------------------------------------------------------------------


def bradley_terry(**settings: Any) -> Callable[[], tuple[Any, str, str]]:
    """The method, on pairs of a right and a wrong solution."""

    def make() -> tuple[Any, str, str]:
        from rewardlab import build

        return build("bradley_terry", settings), "preferences:base=arithmetic", "embedded:arithmetic"

    return make


def head(labels: str, init: str, lr: float, rows: int = 16, keep_language: float = 0.0) -> Callable[[], tuple[Any, str, str]]:
    """A value head on solutions that the policy samples. labels: the reward that it learns to foretell, where it falls."""

    def make() -> tuple[Any, str, str]:
        from rewardlab import registry
        from rewardlab.core import Learner, Recipe, Update
        from rewardlab.objectives.labels import label_cross_entropy, language_model
        from rewardlab.rollouts.independent import independent

        loss = label_cross_entropy() + keep_language * language_model() if keep_language else label_cross_entropy()
        learner = Learner("reward", init, Recipe(objective=loss, update=Update(lr=lr, lr_end=0.2)))
        sampled, reward = independent(n=1, steps="newline"), registry.part("reward", labels)
        return Recipe(rollout=sampled, reward=reward, also=(learner,)).but(problems=rows), "arithmetic", "embedded"

    return make


def implicit() -> tuple[Any, str, str]:
    """PRIME's process reward model, alone: the policy only samples."""
    from rewardlab import build
    from rewardlab.core import Recipe
    from rewardlab.rewards.task import correct
    from rewardlab.rollouts.independent import independent

    (prm,) = build("prime", {"beta": 0.5, "prm_lr": 3e-4}).also
    return (
        Recipe(rollout=independent(n=1, steps="newline"), reward=correct(), also=(prm,)).but(problems=64),
        "arithmetic",
        "embedded",
    )


def text(init: str, times: float, lr: float = 1e-3) -> Callable[[], tuple[Any, str, str]]:
    """A language model that writes its verdicts. times: weight of the verdicts' tokens."""

    def make() -> tuple[Any, str, str]:
        from rewardlab import build
        from rewardlab.objectives.weighting import step_ends
        from rewardlab.rollouts.recorded import recorded

        learnt = build("sft", {"lr": lr, "problems": 8}).but(weight_decay=0.0, beta2=0.99, lr_end=0.1, warmup=10)
        weighted = learnt.but(rollout=recorded(steps="newline"), weighting=step_ends(times=times), measure=None)
        return weighted, "verdicts:error=0.45", init

    return make


TRUNK, SURPRISE, PLAIN = "embedded:arithmetic:judge", "value-head:surprise", "value-head"
JUDGES = {
    "pairs-plain": Judge(bradley_terry(), pairs, "pair_accuracy", None, 30),
    "pairs-surprise": Judge(bradley_terry(init=SURPRISE), pairs, "pair_accuracy", 0.8, 20),
    "pairs-trunk": Judge(bradley_terry(init=TRUNK, reward_lr=3e-4), pairs, "pair_accuracy", 0.8, 30),
    "steps-plain": Judge(head("sound_steps", PLAIN, 1e-3), solutions, "step_auc", None, 60),
    "steps-surprise": Judge(head("sound_steps", SURPRISE, 1e-3), solutions, "step_auc", 0.9, 45),
    "steps-trunk": Judge(head("sound_steps", TRUNK, 3e-4), solutions, "step_auc", 0.9, 60),
    "steps-monte-carlo": Judge(head("monte_carlo_steps", TRUNK, 3e-4), worth, "step_auc", 0.8, 50),
    "outcome-plain": Judge(head("correct", PLAIN, 1e-3), solutions, "outcome_auc", None, 60),
    "outcome-surprise": Judge(head("correct", SURPRISE, 1e-3, rows=32), solutions, "outcome_auc", 0.8, 60),
    "outcome-trunk": Judge(head("correct", TRUNK, 3e-4, rows=32), solutions, "outcome_auc", 0.8, 60),
    "implicit": Judge(implicit, lambda: solutions(implicit=True), "outcome_auc", 0.8, 30),
    "text": Judge(text(TRUNK, 10.0, 2e-3), located, "first_error_f1", 0.7, 280),
}


def run(
    *, only: tuple[str, ...] = (), problems: int = 500, seed: int = 0, steps: int | None = None, model: str | None = None
) -> Rows:
    """only: names of judges, all by default.  problems: held out, to measure on.  steps: of training, if not each judge's own."""
    given = {"problems": problems, "seed": seed, "steps": steps, "model": model}
    return [as_row(name, in_own_process(__file__, "train", {"judge": name, **given})) for name in only or JUDGES]


def as_row(name: str, found: dict[str, Any]) -> dict[str, Any]:
    figure, bar = found["figures"][JUDGES[name].figure], JUDGES[name].bar
    print(f"judges: {name:<18} {JUDGES[name].figure} {figure:.3f} in {found['seconds']:.0f} s", file=sys.stderr, flush=True)
    ratio = None if bar is None else tidy(figure / bar)
    return {"name": name, "ratio": ratio, "ours": tidy(figure), "peer": bar, "unit": JUDGES[name].figure, "settings": found}


def train(*, judge: str, problems: int, seed: int, steps: int | None, model: str | None) -> dict[str, Any]:
    """Train one judge; what it cost, and its figures on held-out problems. model: the policy, if not the judge's own."""
    from rewardlab import registry
    from rewardlab.api.inputs import begin_run
    from rewardlab.engine.step import Ops, standard_loop
    from rewardlab.models.load import load_policy
    from rewardlab.runs.config import RunConfig

    made = JUDGES[judge]
    recipe, task_name, policy_name = made.make()
    task, settings = registry.task(task_name, test_size=problems), RunConfig(steps=steps or made.steps, seed=seed)
    run = begin_run(recipe, load_policy(model or policy_name, "cpu", task=task), task, settings)
    ops = Ops(recipe, run, task, settings)
    started = time.process_time()
    while run.step < run.steps:
        run.metrics = {}
        standard_loop(recipe, run, ops)
        run.step += 1
    seconds, loss = time.process_time() - started, {k: v for k, v in run.metrics.items() if k.endswith("loss")}
    figures = made.measure()(list(task.test), run.detached())
    tidied = {k: tidy(v) for k, v in figures.items()}
    return {"seconds": tidy(seconds), "steps": run.steps, "seed": seed, **loss, "figures": tidied, "recipe": str(recipe)}


if __name__ == "__main__":
    main(run, {"train": train})
