"""Judgements: rows of pairs, of single replies or of lists of replies become questions to a judge, which is the policy."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rewardlab.core import Group, Problem, Rollout, Run, Trajectory, rollout, seed_of
from rewardlab.judges.asking import judgements_of
from rewardlab.judges.cases import WORTH, cases_of, check_cases, questions_about, to_judge
from rewardlab.judges.forms import Form
from rewardlab.judges.named import form_of
from rewardlab.rewards.reward import Reward
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt


@dataclass(frozen=True)
class Judging:
    """How rows become questions, and what is right of the replies to them.

    form: a published form, a file, or a text with its places; empty: ours of this kind.
    """

    form: str = ""
    kind: str = "pairwise"

    @property
    def of(self) -> Form:
        return form_of(self.form, self.kind)

    def questions(self, problem: Problem, rng: random.Random) -> Problem:
        """One question about the row, its replies in a random order."""
        case = (found := cases_of(problem, self.of))[rng.randrange(len(found))]
        return to_judge(problem, case.at(rng.sample(range(len(case.replies)), len(case.replies))), self.of)


def _accepts(problems: Sequence[Problem], form: str = "", kind: str = "pairwise", **_: Any) -> None:
    check_cases(problems, form_of(form, kind))


def _asks(problem: Problem, form: str = "", kind: str = "pairwise", **_: Any) -> list[Problem]:
    return questions_about(problem, form_of(form, kind))


@rollout(wraps="inner", rewords=True, accepts=_accepts, asks=_asks)
def judgements(
    problems: list[Problem], run: Run, *, inner: Rollout, form: str = "",
    kind: Literal["scale", "verdict", "pairwise", "scores"] = "pairwise",
) -> list[Group]:  # fmt: skip
    """`inner` on the question of a judge about each row, whose replies stand in a random order, another one in each epoch.

    form: a published form by name, a file, or a text; empty: ours of this kind. A row that is a judge's prompt itself, with the
    columns `shown` and `worth`, is asked as it is.
    """
    judging = Judging(form, kind)
    asked = [
        p if WORTH in p.meta else judging.questions(p, random.Random(seed_of("judgements", run.seed, run.step, p.key)))
        for p in problems
    ]  # fmt: skip
    return inner(asked, run)


Keep = Literal["first", "longest", "shortest", "all"]


def own_judgement(problem: Problem, judging: Judging, rng: random.Random, column: str = "judgement") -> tuple[Problem, str] | None:
    """The question to which a row has a judgement, and that judgement; None for a row without one.

    column: of a judgement of the row's replies in their order, the chosen one first; with `_reversed` behind its name, of one in
    the reverse order, as half of all judgements should be: who imitates only the others learns to prefer what stands first. Of a
    row that has both, one by chance.
    """
    sides = (problem.meta.get(column), 1), (problem.meta.get(f"{column}_reversed"), -1)
    known = [(text, step) for text, step in sides if isinstance(text, str)]
    if not known:
        return None
    text, step = rng.choice(known)
    case = cases_of(problem, judging.of)[0]
    return to_judge(problem, case.at(range(len(case.replies))[::step]), judging.of), text


@rollout(rows=lambda n=4, keep="first", **_: n if keep == "all" else 1)
def accepted_judgements(
    problems: list[Problem], run: Run, *, by: Reward, form: str = "",
    kind: Literal["scale", "verdict", "pairwise", "scores"] = "pairwise", n: PositiveInt = 4, writer: str = "policy",
    keep: Literal["first", "longest", "shortest", "all"] = "first", easy: bool = True, column: str = "judgement",
    temperature: NonNegativeFloat = 1.0,
) -> list[Group]:  # fmt: skip
    """One judgement of each row that `by` pays above 0, recorded as the policy's own, to be imitated (rejection sampling).

    The row's own, if it has one that is paid (`own_judgement`, in `column`); else of n that `writer` writes, a model of the run,
    the first, the longest or the shortest that is, or all.  easy: keep rows of which all n are paid. Rows without one are dropped.
    Logged: accepted, the share of judgements that are paid. Where there is none, the shortest question is returned without
    a judgement, from which nothing is learnt, so that there is a batch. Raises RewardlabError where not even that one fits.
    """
    judging, kept, told = Judging(form, kind), [], []
    rngs = [random.Random(seed_of("judgements", run.seed, run.step, p.key)) for p in problems]
    found = [own_judgement(p, judging, rng, column) for p, rng in zip(problems, rngs, strict=True)]
    if own := [pair for pair in found if pair]:
        done = _written(run, *zip(*own, strict=True))
        told = [(score.value or 0.0) > 0 for (score,) in by([[t] for t in done], run)]
        kept += [t for t, ok in zip(done, told, strict=True) if ok]
    others = [(p, rng) for p, rng, pair in zip(problems, rngs, found, strict=True) if not pair]
    asked = [p if WORTH in p.meta else judging.questions(p, rng) for p, rng in others]
    if groups := [group for group in judgements_of(run, asked, n, writer, temperature) if group]:
        paid = [[(s.value or 0.0) > 0 for s in row] for row in by(groups, run)]
        told += [ok for row in paid for ok in row]
        taught = [(g, row) for g, row in zip(groups, paid, strict=True) if any(row) and (easy or not all(row))]
        chosen = [t for g, row in taught for t in _chosen(g, row, keep)]
        kept += _written(run, [t.problem for t in chosen], [t.reply for t in chosen])
    if told:
        run.log("accepted", float(np.mean(told)))
    if kept:
        return [[t] for t in kept]
    return nothing_accepted([p if WORTH in p.meta else judging.questions(p, random.Random(0)) for p in problems], run)


def nothing_accepted(questions: Sequence[Problem], run: Run) -> list[Group]:
    """The batch of a step in which nothing was accepted: the shortest question without a reply, from which nothing is learnt.

    Raises RewardlabError where not even that one fits the model's context, as the form of a judge may not.
    """
    shortest = min(run.policy.read([Trajectory(q) for q in questions], [q.prompt for q in questions]), key=len)
    run.policy.check_fits(shortest, 0)
    return [[shortest]]


def _chosen(group: Group, paid: Sequence[bool], keep: Keep) -> list[Trajectory]:
    right = [t for t, ok in zip(group, paid, strict=True) if ok]
    if keep == "all":
        return right
    length: Mapping[str, Any] = {"longest": lambda t: -t.mask.sum(), "shortest": lambda t: t.mask.sum()}
    return [right[0] if keep == "first" else min(right, key=length[keep])]


def _written(run: Run, asked: Sequence[Problem], texts: Sequence[str]) -> list[Trajectory]:
    if not asked:
        return []
    begun = run.policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    done = run.policy.write(begun, list(texts))
    for t in done:
        run.policy.check_fits(t, 0)
    return done
