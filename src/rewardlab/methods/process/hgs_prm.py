"""HGS-PRM: greedy search with backtracking, in which a process reward model accepts, keeps or rejects each step.

    step ~ pi(. | path):   positive (r >= accept): go on from it;   negative (r < refuse): sample another
    after `tries` without a positive one: go on from the best neutral one, or, without any, from the step before
    code: r learns from programs with one place of the syntax tree changed; the label of that line is whether tests still pass

A chain of thought builds on its first wrong step. Trees of steps find another one, but pay for all branches at every step; here
branches are paid for only where the model refuses a step.

Ma et al. 2023, arXiv:2310.10080 (abstract, our row, summaries in public repositories; the pseudocode and the code were not found).
(inferred): thresholds of the model's chance in place of its three classes (2/3 and 1/3), the numbers of tries and of steps in all,
that a neutral step is used once, that the reply is ended unguided when the steps are used up, and that lines after the changed one
are not judged. There the model has learnt before; with `column` it learns here, beside a policy that stays as it is.

The search needs a scorer of partial solutions: `rewardlab search hgs-prm --scorer prm:PATH`. To learn one from programs: tests that
the verifier runs (`code` for Python, in the sandbox) and a right program in the column `column`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Scores, Trajectory, Update, rollout
from rewardlab.core.part import Part, decorator
from rewardlab.data.columns import Column, Data
from rewardlab.data.mutants import mutant_of, syntax_mutants
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import accuracy
from rewardlab.evals.search import search_accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.algebra import threshold
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rewards.model import model_score
from rewardlab.rewards.mutated import line_labels, mutated_problems
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.best import best
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.recorded import recorded
from rewardlab.rollouts.separated import separated
from rewardlab.rollouts.stepwise import Scored, Stepping, grown, marked, started, to_the_end, worths
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt

# ---- Greedy search over steps that goes back: one path, whose next step is sampled until a reward accepts it ---------


@dataclass
class Place:
    """A row of a path, and what was tried after it.

    tries: steps sampled since it was reached.  seen: their texts.  neutral: the best child that was neither accepted nor refused.
    """

    row: Trajectory
    tries: int = 0
    seen: set[tuple[str, str | None]] = field(default_factory=set)
    neutral: Scored | None = None


Path = list[Place]


@rollout(rows=lambda **_: 1)
def backtracking(
    problems: list[Problem], run: Run, *, score: Reward, accept: float = 2 / 3, refuse: float = 1 / 3, tries: PositiveInt = 4,
    iterations: PositiveInt = 32, temperature: NonNegativeFloat = 1.0, step_tokens: PositiveInt | None = None,
    stop: tuple[str, ...] = ("\n",),
) -> list[Group]:  # fmt: skip
    """One reply to each problem, by greedy search with backtracking.

    A next step is sampled, and the row up to there scored. From `accept` up the step is positive: the search goes on from it.
    Below `refuse`, or without a verdict, it is negative: another one is sampled in its place. Between the two it is neutral: it is
    kept, and others are tried. After `tries` steps without a positive one the search goes on from the best neutral one, and where
    there is none it goes back to the row before, which has its own tries left. A step that was sampled before is not scored again,
    but counts as a try. At the prompt, from which nothing leads back, the tries begin anew. After `iterations` steps in all, the
    reply is sampled to its end from where the search stands, unguided.
    step_tokens: most tokens of a step (None: of a reply).  stop: the texts that end a step.

    Ma et al. 2023, arXiv:2310.10080 (heuristic greedy search)
    """
    if not refuse <= accept:
        raise RewardlabError(
            f"backtracking accepts steps from a score of {accept:g} up: refuse them below that, not below {refuse:g}"
        )
    how = Stepping(step_tokens, temperature, tuple(stop))
    paths = [[Place(t)] for t in started(problems, run)]
    for _ in range(iterations):
        live = [path for path in paths if path[-1].row.stop is None]
        for path, (value, child) in zip(live, _tried(live, how, score, run), strict=True):
            _move(path, value, child, (refuse, accept), tries)
    # a neutral step is better than none
    best = [path[-1].neutral[1] if path[-1].neutral else path[-1].row for path in paths]
    return [marked([t], run) for t in to_the_end(best, 0, temperature, run)]


def _tried(paths: Sequence[Path], how: Stepping, score: Reward, run: Run) -> list[tuple[float | None, Trajectory]]:
    """A next step after each path, with its score; None if it was sampled there before."""
    at = [path[-1] for path in paths]
    children = grown([p.row for p in at], [p.tries for p in at], how, run)
    new = [(t.turns[-1].text, t.stop) not in p.seen for t, p in zip(children, at, strict=True)]
    values = worths([[t] if fresh else [] for t, fresh in zip(children, new, strict=True)], score, run)
    return [(row[0] if row else None, t) for row, t in zip(values, children, strict=True)]


def _move(path: Path, value: float | None, child: Trajectory, bounds: tuple[float, float], tries: int) -> None:
    """Go on to a positive child; otherwise note it, and once the tries are used up, go on to a neutral one or back."""
    refuse, accept = bounds
    place = path[-1]
    place.tries += 1
    place.seen.add((child.turns[-1].text, child.stop))
    if value is not None and value >= accept:
        path.append(Place(child))
        return
    if value is not None and value >= refuse and (place.neutral is None or value > place.neutral[0]):
        place.neutral = (value, child)
    while path[-1].tries >= tries:
        place = path[-1]
        if place.neutral is not None:
            # only once: who comes back to this row has seen where it led
            path.append(Place(place.neutral[1]))
            place.neutral = None
        elif len(path) > 1:
            path.pop()
        else:
            place.tries = 0


# ---- the recipe ---------------------------------------------------------------------------------------------------------

problems_from = decorator(Part)


@problems_from
def syntax_changes(
    groups: list[Group], scores: Scores, run: Run, *, column: str = "solution", separator: str = "\n", each: int = 2
) -> list[Problem]:
    """`each` programs for every problem with one operator or constant of its right program changed; what is no Python, by rules."""

    def changed(program: str, rng: random.Random) -> tuple[str, int] | None:
        made = syntax_mutants(program) if separator == "\n" else []
        return rng.choice(made) if made else mutant_of(program, rng, separator)

    if made := mutated_problems(groups, run, column, each, changed):
        return made
    raise RewardlabError(f"HGS-PRM learns from right programs, and no problem of this step has one that can change in {column!r}")


def hgs_prm(
    base: Recipe | None = None, *, score: Reward | None = None, accept: float = 2 / 3, refuse: float = 1 / 3, tries: int = 4,
    iterations: int = 32, temperature: float = 1.0, step_tokens: int | None = None, column: str = "", separator: str = "\n",
    init: str = "value-head",
) -> Recipe:  # fmt: skip
    """score: what judges partial solutions, from 0 to 1; None: the recipe's reward, the policy's own probability unless another is
    given.  accept, refuse: its thresholds.  tries: at one step.  iterations: steps in all.  step_tokens: most tokens of a step.
    column, separator, init: instead of answering, learn the score from changes of the programs in this column, whose lines end in
    `separator` (`Learner.init`); the search by it is what is measured.
    """
    base = base or Recipe(name="hgs_prm", reward=own_probability(), measure=accuracy(), update=Update())
    how = {"accept": accept, "refuse": refuse, "tries": tries, "iterations": iterations, "temperature": temperature,
           "step_tokens": step_tokens, "stop": (separator,)}  # fmt: skip
    if not column:
        score = score or base.required("reward")
        return base.but(rollout=backtracking(score=score, **how), reward=score, select=best())
    prm = Recipe(
        rollout=separated(inner=recorded(fields=("mutant",)), at=separator), reward=line_labels(), objective=label_cross_entropy(),
        update=Update(epochs=2, loss_kind="scorer"),
    )  # fmt: skip
    learner = Learner("prm", init, prm, problems=syntax_changes(column=column, separator=separator))
    # the model's value is a log-odds; no objective of its own: the policy stays as it is
    search = backtracking(score=threshold(model_score(model="prm"), at=0.0, soft=1.0), **how)
    return base.but(
        rollout=independent(n=1), measure=search_accuracy(search=search, value="prm", temperature=temperature),
        also=(*base.also, learner),
    )  # fmt: skip


NOISY = imperfect(auc=0.95, inner=correct_so_far())
"""Right beginnings above wrong ones in 95 of 100 pairs."""

fidelity = "reading"
left_out = (
    "a model of three classes (positive, neutral, negative), learnt from labels of people for mathematics: thresholds of one "
    "chance take their place"
)
data = Data(
    answer="the gold answer, or tests of a program",
    solution=Column("a right program, from whose changes a scorer is learnt with --column solution", optional=True),
)

claim = Claim(
    says="steps that are refused and sampled anew make more answers right than whole chains of thought ranked by the same judge, "
    "at no more tokens",
    versus="best_of_n", task="arithmetic:biased=0.75,error=0.1", measure="accuracy", direction="higher", margin=0.038,
    settings={"score": NOISY}, versus_settings={"n": 5}, reward=NOISY, problems=300, guard=Within("tokens_per_answer", high=5.0),
    fault=Within("accuracy", high=0.8, says="right answers among chains of thought"), learns=None, start=None,
    finding="with a judge who ranks right beginnings above wrong ones in 95% of pairs, going back gets 71% of the answers right, "
    "the best of 5 whole chains by the same judge 64%, at 107 and 142 tokens an answer; one chain is right in 38%. The judge is "
    "simulated: it sees the truth through errors that stay along a chain",
    version=2,
    replaces="against the best of 2 it wrote 2.4 times as many tokens as its baseline",
)  # fmt: skip
baseline = "best_of_n"
