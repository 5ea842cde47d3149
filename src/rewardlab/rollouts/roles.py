"""Trees of a generator, a verifier and a refiner, and what each said that ended well or badly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import torch

from rewardlab.core import Group, Policy, Problem, Run, Sampling, Trajectory, rollout
from rewardlab.core.domain import NonNegativeFloat, PositiveInt
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.recorded import recorded
from rewardlab.text.roles import REFINE, VERIFY, to_improve, to_verify

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
    """What was said well and badly in each role, recorded as the policy's own replies to what the role read.

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
