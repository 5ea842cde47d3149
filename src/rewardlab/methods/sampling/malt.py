"""MALT: generator, verifier and refiner sample trees of n^3 chains, and each is credited by the outcomes below it.

    q -> g_i -> v_ij -> y_ijk,  i, j, k = 1 .. n;   V(y_ijk) = 1[right],  V(v_ij) = mean_k V(y_ijk),  V(g_i) = mean_j V(v_ij)
    positive: V > threshold.   All roles: SFT on positives;   verifier and refiner: then DPO on (positive, other) of the same input

A chain's outcome says neither who made it fail nor what a critique was good for. Several continuations of each output do, without
a teacher: a critique of a wrong attempt is positive where it gets the answer mended. At test, chains run side by side and vote.

Motwani et al. 2024, arXiv:2412.01928 (abstract; a summary in a public repository of v3 with its appendix; no code was released).
n = 3, threshold 0.5, beta = 0.2, temperature 0.3, 3 chains that vote, and no DPO of the generator, which it made worse, are the
paper's. (inferred): every positive is paired with every negative; equal texts for the same input are one, with all ends below
them; the prompts; how the steps are divided; a faster SFT. The policy as it was writes all trees, each when its problem comes up.

Departure: the paper trains a copy of the model for each role. Here one policy plays all three, each by its prompt, and a role
weighs as many rows as it has. `roles="refiner"` trains one role alone, on the same trees; three such runs are the paper's three
models, and `critic`, `refiner` name those that take part in the test.

The policy must be one that can be asked to verify and to refine; a reward that judges a reply may stand for answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Learner, Loop, Policy, Problem, Recipe, Run, Sampling, Trajectory, loop, measure, rollout
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from rewardlab.text.roles import REFINE, VERIFY, to_improve, to_verify
from rewardlab.text.votes import answer_of, majority_of

# ---- Trees of a generator, a verifier and a refiner, and what each said that ended well or badly ---------------------

ROLES = ("generator", "verifier", "refiner")
Level = list[Trajectory]


@dataclass(frozen=True)
class Said:
    """What was said in a role to one input: the problem as the role reads it, and by text the values of the chains' ends below.

    A text that was sampled twice is one, with the ends below both.
    """

    role: str
    problem: Problem
    ends: dict[str, list[float]] = field(default_factory=dict)

    def labelled(self, threshold: float) -> tuple[list[str], list[str]]:
        """The texts whose value, the mean of the ends below, is above the threshold, and the others; without ends, neither."""
        values = {text: sum(ends) / len(ends) for text, ends in self.ends.items() if ends}
        return [t for t, v in values.items() if v > threshold], [t for t, v in values.items() if v <= threshold]


def role_tree(
    problems: Sequence[Problem], models: Sequence[Policy], widths: tuple[int, int, int], sampling: Sampling,
    rng: torch.Generator, verify: str = VERIFY, refine: str = REFINE,
) -> list[Level]:  # fmt: skip
    """One level a role: `widths[0]` attempts at each problem, then of each row so many children; those of a row are adjacent.

    models: who plays the roles.  verify, refine: what the later two read. A row of the refiners has the problem's answer. Who has
    no room for a reply in the context says nothing: the row has no reply.
    """
    generators = _say(problems, models[0], widths[0], sampling, rng)
    asked = [to_verify(t.problem, t.reply, verify) for t in generators]
    verifiers = _say(asked, models[1], widths[1], sampling, rng)
    about = [(generators[i // widths[1]], t) for i, t in enumerate(verifiers)]
    asked = [to_improve(g.problem, g.reply, t.reply, refine) for g, t in about]
    return [generators, verifiers, _say(asked, models[2], widths[2], sampling, rng)]


def _say(problems: Sequence[Problem], model: Policy, n: int, sampling: Sampling, rng: torch.Generator) -> Level:
    read = model.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = [replace(t, path=(i,)) for t in read for i in range(n)]
    fits = [i for i, t in enumerate(rows) if len(t) + sampling.max_new <= model.context]
    said = dict(zip(fits, model.extend([rows[i] for i in fits], sampling, rng), strict=True)) if fits else {}
    return [said.get(i, t) for i, t in enumerate(rows)]


def credited(tree: list[Level], ends: Sequence[float | None]) -> list[Said]:
    """What was said in each role to each input. ends: of each row of the last level its value, None where it has none."""
    found: dict[tuple[str, str], Said] = {}
    for role, rows in zip(ROLES, tree, strict=True):
        below = len(ends) // len(rows)
        for i, t in enumerate(rows):
            # nothing can be learnt from an empty text
            if t.reply:
                said = found.setdefault((role, t.problem.key), Said(role, t.problem))
                known = [v for v in ends[i * below : (i + 1) * below] if v is not None]
                said.ends.setdefault(t.reply, []).extend(known)
    return list(found.values())


@rollout(rows=lambda learn, **_: 2 if learn == "pairs" else 1, across_problems=True)
def by_role(
    problems: list[Problem], run: Run, *, by: Reward, learn: Literal["positives", "pairs"] = "pairs", n: PositiveInt = 3,
    threshold: float = 0.5, roles: tuple[str, ...] = ROLES, model: str = "reference", temperature: NonNegativeFloat = 1.0,
    verify: str = VERIFY, refine: str = REFINE,
) -> list[Group]:  # fmt: skip
    """Good and bad outputs of each role, recorded as the policy's own replies to the role's input.

    Of each problem a tree is sampled: n attempts, n verdicts on each, n refined replies to each verdict. What was said is worth the
    mean reward `by` of the refined replies below it, and positive above the threshold, else negative.
    learn: "positives": a group of one row each; "pairs": of two, each positive with each negative of the same input, the positive
    first.  roles: which are learnt.  model: who says it all, the policy, the reference or a learner of the run.
    verify, refine: what is read: {question}, {attempt}, and the refiner's {critique}.
    Chains whose end has no verdict count for nothing. A step without any pair has rows without decisions, which teach nothing.
    Logged: ends_well, the mean reward; of each role ROLE/positives, the share of its different texts that are positive.
    """
    if unknown := [role for role in roles if role not in ROLES]:
        raise RewardlabError(f"roles are {', '.join(ROLES)}, and {unknown[0]!r} is none")
    writer = run.model(model)
    tree = role_tree(problems, [writer] * 3, (n, n, n), Sampling(run.max_new, temperature), run.rng("rollout"), verify, refine)
    said = credited(tree, _values(tree[-1], by, n**3, run))
    _log(said, threshold, run)
    rows = [row for each in said if each.role in roles for row in _to_record(each, learn, threshold)]
    fields = ("chosen", "rejected") if learn == "pairs" else ("chosen",)
    if not rows:
        # what two roles read, since a layout of rows that are one shared prompt and nothing else has no reply to lay out
        asked = [level[0].problem for level in tree[: len(fields)]]
        return [[replace(t, stop="end") for t in run.policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])]]
    return recorded(fields=fields)(rows, run)


def _values(ends: Level, by: Reward, each: int, run: Run) -> list[float | None]:
    """The rewards of the ends of the chains; None for those that were not reached."""
    groups = [kept for i in range(0, len(ends), each) if (kept := [t for t in ends[i : i + each] if t.replies])]
    scores = by(groups, run) if groups else []
    known = {id(t): s.total for g, row in zip(groups, scores, strict=True) for t, s in zip(g, row, strict=True)}
    if judged := [v for v in known.values() if v is not None]:
        run.log("ends_well", sum(judged) / len(judged))
    return [known.get(id(t)) for t in ends]


def _log(said: list[Said], threshold: float, run: Run) -> None:
    for role in ROLES:
        good, bad = (
            sum(len(each.labelled(threshold)[side]) for each in said if each.role == role) for side in (0, 1)
        )  # fmt: skip
        if good + bad:
            run.log(f"{role}/positives", good / (good + bad))


def _to_record(said: Said, learn: str, threshold: float) -> list[Problem]:
    good, bad = said.labelled(threshold)
    meta = {**said.problem.meta, "role": said.role}
    if learn == "positives":
        return [replace(said.problem, meta={**meta, "chosen": text}) for text in good]
    return [replace(said.problem, meta={**meta, "chosen": a, "rejected": b}) for a in good for b in bad]


# ---- the recipe ---------------------------------------------------------------------------------------------------------

WRITER = "writer"


@measure
def chains_accuracy(
    problems: list[Problem], run: Run, *, chains: PositiveInt = 3, temperature: NonNegativeFloat = 1.0, verify: str = VERIFY,
    refine: str = REFINE,
) -> dict[str, float]:  # fmt: skip
    """majority: right answers by a vote of the ends of `chains` chains. refined, drafted: shares of right ends, and of right first
    attempts of the same chains; mended, broken: shares of the chains that refinement turned right, and wrong.

    Learners named verifier and refiner play their roles, the policy those that no learner has. No verdict counts as wrong.
    """
    models = [run.models.get(role, run.policy) for role in ROLES]
    tree = role_tree(problems, models, (chains, 1, 1), Sampling(run.max_new, temperature), run.rng("eval"), verify, refine)
    starts, ends = ([level[i : i + chains] for i in range(0, len(level), chains)] for level in (tree[0], tree[-1]))
    right = [[[s.value is not None and s.value >= 1.0 for s in row] for row in run.verify(g, run)] for g in (starts, ends)]
    before, after = np.array(right[0]), np.array(right[1])
    voted = []
    for group, row in zip(ends, after, strict=True):
        answers = [answer_of(t.reply) for t in group]
        winner = majority_of(answers)
        # where no reply has an answer that can be read, the first reply stands
        voted.append(bool(row[answers.index(winner)]))
    return {
        "majority": float(np.mean(voted)), "refined": float(after.mean()), "drafted": float(before.mean()),
        "mended": float((after & ~before).mean()), "broken": float((before & ~after).mean()), "n": float(len(problems)),
    }  # fmt: skip


@loop(wraps="inner", first=("steps",))
def positives_first(
    recipe: Recipe, run: Run, ops: Any, *, steps: NonNegativeInt, compared: tuple[str, ...] = ROLES,
    sft_lr_scale: PositiveFloat = 3.0, inner: Loop | None = None,
) -> None:  # fmt: skip
    """`steps` of SFT on the positives of the recipe's trees, which its reward values. Then the policy so far becomes the reference,
    and pairs of the roles `compared` are learnt by the recipe, with a fresh optimiser.

    sft_lr_scale: the learning rate of SFT, as a multiple of the recipe's.  inner: how a step is taken.
    """
    if 0 < run.step == steps:
        ops.new_stage()
    trees = recipe.required("rollout").but_innermost(by=recipe.required("reward"))
    # the reward has valued the ends of chains; a critique that is learnt from is no answer that it could judge
    step = recipe.but(rollout=trees.but_innermost(roles=compared), reward=None)
    if run.step < steps:
        step = sft(lr=sft_lr_scale * recipe.update.rate, problems=recipe.update.problems)
        step = step.but(rollout=trees.but_innermost(learn="positives"))
    inner(step, run, ops) if inner else ops.standard_step(step)


def malt(
    base: Recipe | None = None, *, n: int = 3, threshold: float = 0.5, sft_steps: int = 10, sft_lr_scale: float = 3.0,
    roles: str = "generator,verifier,refiner", compared: str = "verifier,refiner", chains: int = 3, temperature: float = 0.3,
    verify: str = VERIFY, refine: str = REFINE, critic: str | None = None, refiner: str | None = None,
) -> Recipe:  # fmt: skip
    """n: what each role says to an input.  threshold: of values.  sft_steps: of SFT, before DPO.  sft_lr_scale: the learning rate
    of SFT, as a multiple of DPO's.  roles: that learn.  compared: those of them that DPO goes on with.  chains: that vote at test.
    verify, refine: what the later roles read, with {question}, {attempt}, {critique}.  critic, refiner: models of these at test.
    """
    base = base or dpo(problems=4, beta=0.2)
    learnt, both = (tuple(role.strip() for role in names.split(",")) for names in (roles, compared))
    # the rollout refuses a name that is no role
    both = tuple(role for role in both if role in learnt or role not in ROLES)
    reward = base.reward or correct()
    trees = by_role(
        by=reward, n=n, threshold=threshold, roles=learnt, model=WRITER, temperature=temperature, verify=verify, refine=refine
    )
    others = [Learner(role, init, Recipe(), every=0) for role, init in (("verifier", critic), ("refiner", refiner)) if init]
    return base.but(
        rollout=trees, reward=reward, loop=positives_first(steps=sft_steps, compared=both, sft_lr_scale=sft_lr_scale,
        inner=base.loop), also=(*base.also, Learner(WRITER, "copy:policy", Recipe(), every=0), *others),
        measure=chains_accuracy(chains=chains, temperature=temperature, verify=verify, refine=refine),
    )  # fmt: skip


fidelity = "core"
left_out = (
    "a model of its own for each role (here one policy plays all three; `roles` trains one of them), and no code was released"
)
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "A shelf has 4 rows of 9 books. How many books are there?", "answer": "36"},
        {"prompt": "What is 3/5 of 35?", "answer": "21"},
        {"prompt": "Jo was born in 1990. How old was Jo in 2024, after the birthday?", "answer": "34"},
    ],
)

claim = Claim(
    says="DPO of verifier and refiner after SFT of all roles makes more chains end right than SFT alone for as many updates",
    versus="malt", task="drafts", measure="refined", direction="higher", margin=0.06435, settings={"temperature": 1.0},
    versus_settings={"temperature": 1.0, "sft_steps": 30}, problems=500, steps=30,
    fault=Within("refined", high=0.85), learns="refined", start=Within("before.refined", 0.2, 0.7, "chains that end right"),
    finding="40% of the chains end right on both sides, 32% before. DPO of verifier and refiner breaks fewer drafts than SFT "
    "alone (11%, not 17%), and mends fewer (14%, not 18%)",
)  # fmt: skip
baseline = "dpo"
