"""RL Tango: a generator and a generative verifier of its steps, both trained by GRPO in alternation.

    generator: A = (1 - a) A_outcome + a A_step,   a = a_0 (a_min / a_0)^progress
               A_step from the verifier's verdicts, +-1/K per step, normalised over the steps of a group, summed to go
    verifier:  r = 1[final verdict is right] + 0.8 [every step judged];   A weighted by 1 / sqrt(count of its class)

The verifier is rewarded only for the final verdict, and learns to judge steps from that. It learns at every third step, from the
generator's present solutions. Zha et al. 2025, arXiv:2505.15034, and kaiwenzha/RL-Tango, 467abfa (run_rl_tango.sh,
rl_tango_trainer.py, verifier_worker.py): a_0 = 0.1 for GRPO, a_min = .001, class counts as moving averages of decay .8, weights by
their roots, five judgements of each solution, a verifier without SFT. A generator's steps earn nothing where the verifier does not
judge all of them. There n = 5, and one solution of each of 256 problems is judged per step of the verifier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import (
    Batch,
    Credit,
    Group,
    Learner,
    Part,
    Problem,
    Recipe,
    Rollout,
    Run,
    Sampling,
    Scores,
    Trajectory,
    credit,
    measure,
    rollout,
)
from rewardlab.core.part import decorator
from rewardlab.credit.group import center, scale_by_std
from rewardlab.credit.terms import credit_of
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Data
from rewardlab.evals.judges import first_error_f1
from rewardlab.evals.passk import accuracy, judged_samples, pass_at_1
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import learner_alone
from rewardlab.objectives.weighting import token_mean
from rewardlab.settings.domain import PositiveInt
from rewardlab.text.splitters import cut
from rewardlab.worlds.verdicts import (
    TOLD,
    WORDS,
    Judgement,
    begun,
    every_step_judged,
    final_verdict,
    over,
    read,
    step_verdicts,
    to_judge,
    verdicts,
)

# ---- judgements of a length of their own, which end when they are decided ----------------------------------------------------


@rollout(wraps="rollout")
def with_max_new(problems: list[Problem], run: Run, *, rollout: Rollout, max_new: PositiveInt) -> list[Group]:
    """The inner rollout with replies of at most `max_new` tokens, for a second model that writes longer replies than the policy."""
    return rollout(problems, replace(run, max_new=max_new))


@rollout
def until_decided(problems: list[Problem], run: Run, *, n: PositiveInt = 5) -> list[Group]:
    """n judgements of each solution, each of which ends where nothing further can matter (`over`)."""
    begun = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    sampling = Sampling(run.max_new, stop_when=over)
    done = run.policy.extend([replace(t, path=(i,)) for t in begun for i in range(n)], sampling, run.rng("rollout"))
    return [done[i : i + n] for i in range(0, len(done), n)]


# ---- the recipe ---------------------------------------------------------------------------------------------------------

problems_from = decorator(Part)
SMALL = {"init": "embedded:verdicts", "told": ""}
"""A small verifier that was taught to judge, and so is not told how to."""


@problems_from
def solutions(
    groups: list[Group], scores: Scores, run: Run, *, each: int = 2, told: str = TOLD, max_new: int = 96
) -> list[Problem]:
    """`each` of every problem's solutions, to be judged; those without a verdict, or too long for the verifier, are left out."""
    # the task's verdicts, whatever the generator's reward is
    judged = zip(groups, run.verdicts(groups), strict=True)
    asked = [pair for group, row in judged for pair in list(zip(group, row, strict=True))[:each]]
    known = [(t, verdict.value >= 1) for t, verdict in asked if verdict.value is not None]
    to_be_judged = [to_judge(t.problem.question, cut(t.reply, "newline"), right, told) for t, right in known]
    return [p for p, row in zip(to_be_judged, begun(run.model("verifier"), to_be_judged, max_new), strict=True) if row]


@credit
def fading_steps(
    a: Tensor, batch: Batch, run: Run, *, chain: Credit, start: float = 0.1, end: float = 1e-3, steps: str = "step_verdicts"
) -> Tensor:
    """(1 - a) A of all other terms + a A of the term `steps`, each through `chain`; a falls from start to end exponentially."""
    share = start * (end / start) ** run.progress
    others = [e.weight * credit_of(name, chain, batch, run) for name, e in batch.terms.items() if name != steps]
    run.log("step_share", share)
    return (1 - share) * torch.stack(others).sum(0) + share * credit_of(steps, chain, batch, run)


@credit
def balance_verdicts(a: Tensor, batch: Batch, run: Run, *, decay: float = 0.8) -> Tensor:
    """Scale the credit of solutions that are right, and of those that are wrong, by 1 / sqrt(how many there are); mean 1."""
    right = torch.tensor([t.problem.answer == WORDS[True] for t, _ in batch.rows], device=a.device)
    counts_now = [float(right.sum()), float((~right).sum())]
    before = run.memory.get("rl_tango.counts", counts_now)  # in the first step there is no average yet
    counts = run.memory["rl_tango.counts"] = [decay * b + (1 - decay) * n for b, n in zip(before, counts_now, strict=True)]
    # a class that was never seen has no row to weigh, and 0 ** -0.5 would fail
    weight = torch.where(right, counts[0] ** -0.5 if counts[0] else 0.0, counts[1] ** -0.5 if counts[1] else 0.0)  # (B,)
    return a * (weight * len(right) / weight.sum())[:, None]  # mean 1, so the scale of the update stays


@cache  # the same solutions at every evaluation
def _held_out_solutions(count: int) -> tuple[Problem, ...]:
    return tuple(verdicts(test_size=count).test)


def _judged(items: Sequence[Problem], run: Run, max_new: int) -> tuple[list[Judgement], float]:
    """The verifier's judgements, and the share of them with a right final verdict. What does not fit its context is not judged."""
    rows = begun(run.model("verifier"), items, max_new)
    sampling = Sampling(max_new, stop_when=over)
    said = iter(run.model("verifier").extend([t for t in rows if t], sampling, run.rng("eval")) if any(rows) else ())
    judgements = [read(next(said).reply) if t else Judgement([], None) for t in rows]
    right = [j.final is not None and WORDS[j.final] == p.answer for p, j in zip(items, judgements, strict=True)]
    return judgements, sum(right) / max(1, len(items))


@measure
def both(problems: list[Problem], run: Run, *, told: str = TOLD, max_new: int = 96) -> dict[str, float]:
    """pass@1 of the generator, and of the verifier `verdict`, the share of its final verdicts on those solutions that are right."""
    said = [row[0] for row in judged_samples(problems, run, 1, 1.0)]
    items = [
        to_judge(p.question, cut(reply, "newline"), s.value >= 1, told)
        for p, (reply, s) in zip(problems, said, strict=True) if s.value is not None
    ]  # fmt: skip
    solved = pass_at_1([s.value is not None and s.value >= 1 for _, s in said])
    return solved | {"verdict": _judged(items, run.for_evaluation(), max_new)[1]}


@measure
def first_errors(problems: list[Problem], run: Run, *, max_new: int = 96) -> dict[str, float]:
    """pass@1 of the generator. For the verifier, on as many held-out solutions of the world `verdicts`, the same at every
    evaluation: `verdict`, the share of right final verdicts, and `step_f1`, how well it finds the first wrong step."""
    items = _held_out_solutions(len(problems))
    judgements, final = _judged(items, run, max_new)
    f1 = first_error_f1([p.meta["verdicts"] for p in items], [j.steps for j in judgements])
    return accuracy()(problems, run) | {"verdict": final, "step_f1": f1}


def rl_tango(
    base: Recipe | None = None, *, start: float = 0.1, end: float = 1e-3, every: int = 3, each: int = 2, n_verdicts: int = 5,
    well_formed: float = 0.8, decay: float = 0.8, verifier_lr: float | None = None, n: int = 8, init: str = "copy:policy",
    told: str = TOLD, max_judgement: int = 96, alone: int = 0,
) -> Recipe:  # fmt: skip
    """start, end: share of step credit.  every: steps between the verifier's.  alone: steps at first in which only the verifier
    learns; 40 of 440 in the released script.  each, n_verdicts: solutions per problem that it learns from, and judgements of each.
    well_formed: reward for a judgement of every step.  init: of the verifier (`Learner.init`).  told: how to judge, before each
    solution.  max_judgement: tokens of a judgement.
    """
    base = base or grpo(n=n).but(weighting=token_mean())
    chain = center() >> scale_by_std() >> to_go()
    verifier_recipe = grpo().but(
        rollout=with_max_new(rollout=until_decided(n=n_verdicts), max_new=max_judgement),
        reward=final_verdict() + well_formed * every_step_judged(),
        credit=chain >> balance_verdicts(decay=decay),
        weighting=token_mean(),
        measure=None,
        lr=verifier_lr,
    )
    return base.but(
        rollout=base.required("rollout").but_innermost(steps="newline"),
        reward=base.required("reward") + step_verdicts(max_new=max_judgement, told=told),
        credit=fading_steps(chain=chain, start=start, end=end),
        measure=both(told=told, max_new=max_judgement),
        loop=learner_alone(steps=alone, name="verifier", inner=base.loop) if alone else base.loop,
        also=(
            *base.also,
            Learner("verifier", init, verifier_recipe, solutions(each=each, told=told, max_new=max_judgement), every),
        ),
    )


fidelity = "core"
left_out = (
    "the 40 steps that the verifier trains alone at first, unless `alone` asks for them; the KL and the entropy bonus of .001 "
    "each, of both models; reasoning on each step in its judgement, in tags and boxes: here a line with + or - for each, which "
    "small models can write; and the SFT by which the generator learns to number its steps: lines are steps"
)
data = Data(answer="the gold answer")

check = Check(
    says="a verifier rewarded for final verdicts alone gets better at finding the first wrong step", versus=None,
    task="arithmetic:biased=0.75,error=0.1", measure="step_f1", direction="higher", margin=0.05, against="before.step_f1",
    settings={"every": 1, **SMALL}, by=first_errors(), problems=500, steps=40,
    judge=Within("before.step_f1", 0.2, 0.85),
    finding="the verifier gets worse: F1 of the first wrong step .35 before and .29 after, right final verdicts 57% and 53%. "
    "Rewards for final verdicts do not teach this small one to judge, which is hardly above chance at first. The generator goes "
    "from 37% to 72%, as with GRPO alone",
    version=2,
    replaces="the verifier's judgements were at chance",
)  # fmt: skip
baseline = "grpo"
