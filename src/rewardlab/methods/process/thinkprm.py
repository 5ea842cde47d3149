"""ThinkPRM: a reasoning model judges a solution step by step in words, and is tuned on those chains of its own, or of a stronger
model, in which every verdict is the label of its step.

    kept: the first of n chains with v_k = label_k for all k, and the right final verdict;     loss = -mean log pi(chain)
    score of a solution:  mean over K chains of p(right) / (p(right) + p(wrong)) at the final verdict

A filter by the final verdict alone keeps chains that are right for a wrong reason: the solution is wrong, but another step was
blamed. A few labels go a long way, since they choose among chains that the model can write already; a head must learn from scratch.

Khalifa et al. 2025, arXiv:2504.16828. The filter by all step labels is that of the released chains (the dataset's card,
launch/thinkprm-1K-verification-cots, which also names the comparison with other filters); reading verdicts line by line that of the
released code (mukhal/ThinkPRM, 214cce9, utils/answer_utils.py). (inferred): n, and that one chain of each solution is kept. There a
larger model writes the chains once, here `writer`, by default a copy of the policy as it begins. Left out: the paper's cut at a
longest chain (the limit of tokens does that), and longer chains, forced to check again; `own_verdict(soft=True)` is the score as a
reward for best-of-n and for search.

Data: solutions to judge, as prompts that number their steps, with a list of labels in the column `verdicts` (true: right) and
"right" or "wrong" as the answer; a policy that writes a line for each step that ends in + or -, and "Final: +" or "Final: -".
"""

from collections.abc import Sequence

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Sampling, Score, Trajectory, measure, rollout
from rewardlab.data.columns import Data
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.judges import first_error_f1
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.own_verdict import chances
from rewardlab.rewards.reward import Reward, reward
from rewardlab.settings.domain import PositiveInt
from rewardlab.util.ranking import auc_of
from rewardlab.worlds.verdicts import SIGNS, WORDS, read

LABELS = (
    "Rows are solutions to judge: a prompt that numbers the steps, a list `verdicts` with true for each right step, and the answer "
    "right or wrong (as --task verdicts has them)"
)


@reward
def every_verdict_right(trajectory: Trajectory, *, steps: bool = True, column: str = "verdicts") -> Score:
    """1 where a judgement has the right final verdict and, with `steps`, says of each step what the column does."""
    labels, gold, said = list_of(trajectory.problem.meta.get(column)), trajectory.problem.answer, read(trajectory.reply)
    if labels is None or gold not in WORDS.values():
        return Score(None, why=f"the problem has no list {column!r} and an answer that is right or wrong")
    final = said.final is not None and WORDS[said.final] == gold
    return Score(float(final and (not steps or said.steps == [bool(x) for x in labels])))


@rollout(rows=lambda **_: 1)
def first_accepted(problems: list[Problem], run: Run, *, by: Reward, n: PositiveInt = 4, writer: str = "writer") -> list[Group]:
    """Of n replies of the model `writer` to each problem the first that `by` pays 1, recorded as the policy's; others are dropped.

    Logged: accepted, the share of all replies that are paid 1. Where none is, the first problem is returned alone,
    without a reply, so that there is a batch, from which nothing is learnt.
    """
    model = run.model(writer)
    prompts = model.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = model.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new), run.rng("chains"))
    groups = [done[i : i + n] for i in range(0, len(done), n)]
    scores = by(groups, run)
    if all(s.value is None for row in scores for s in row):
        raise RewardlabError(f"no chain can be judged: {scores[0][0].why}. {LABELS}")
    paid = [[s.value is not None and s.value >= 1 for s in row] for row in scores]
    run.log("accepted", float(np.mean(paid)))
    kept = [(g[0].problem, g[row.index(True)].reply) for g, row in zip(groups, paid, strict=True) if any(row)]
    if not kept:
        return [run.policy.read([Trajectory(problems[0])], [problems[0].prompt])]
    begun = run.policy.read([Trajectory(p) for p, _ in kept], [p.prompt for p, _ in kept])
    return [[t] for t in run.policy.write(begun, [text for _, text in kept])]


@measure
def judged(problems: Sequence[Problem], run: Run, *, chains: PositiveInt = 4) -> dict[str, float]:
    """Of `chains` judgements of each solution.  step_f1: of the first wrong steps that they name.  verdict: share of right final
    verdicts; lucky: of these the share that say of some step what its label does not.  auc: how often the score, the mean chance
    over all chains, is higher for a right solution than for a wrong one; auc_of_one: that of the first chain alone."""
    for problem in problems:
        problem.required("verdicts", by="thinkprm", how=LABELS)
    policy, right = run.policy, [p.answer == WORDS[True] for p in problems]
    rows = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    asked = [t for t in rows for _ in range(chains)]
    said = [t.reply for t in policy.extend(asked, Sampling(run.max_new), run.rng("eval"))]
    judgements, gold = [read(text) for text in said], [list(p.meta["verdicts"]) for p in problems for _ in range(chains)]
    final = [j.final is not None and j.final == right[i // chains] for i, j in enumerate(judgements)]
    lucky = [j.steps != steps for j, steps, ok in zip(judgements, gold, final, strict=True) if ok]
    found = chances(policy, asked, said, SIGNS[True], SIGNS[False])
    # a chain without a verdict says neither: a half
    chance = np.array([0.5 if x is None else x for x in found]).reshape(len(problems), chains)
    return {
        "step_f1": first_error_f1(gold, [j.steps for j in judgements]), "verdict": float(np.mean(final)),
        "lucky": float(np.mean(lucky)) if lucky else 0.0, "auc": auc_of(list(zip(chance.mean(1).tolist(), right, strict=True))),
        "auc_of_one": auc_of(list(zip(chance[:, 0].tolist(), right, strict=True))), "n": float(len(problems)),
    }  # fmt: skip


def thinkprm(
    base: Recipe | None = None, *, n: int = 4, every_step: bool = True, writer: str = "copy:policy", chains: int = 4,
    lr: float | None = None, problems: int = 16,
) -> Recipe:  # fmt: skip
    """n, writer: chains of each solution, and the model that writes them (`Learner.init`).  every_step: whether their verdicts on
    steps must be right too; False: the final one alone.  chains: of each solution, when it is measured.
    problems: solutions per training step.
    """
    base = base or sft()
    kept = first_accepted(by=every_verdict_right(steps=every_step), n=n)
    also = (*base.also, Learner("writer", writer, Recipe(), every=0))
    return base.but(rollout=kept, measure=judged(chains=chains), also=also, lr=lr, small_lr=3e-4, problems=problems)


data = Data(
    answer='"right" or "wrong": the verdict on the whole solution',
    verdicts="a label for each step: true where it is right",
    rows=[
        {
            "prompt": "Problem: 3 + 4 * 2\nStep 1: 4 * 2 = 8\nStep 2: 3 + 8 = 12\nJudge each step.",
            "answer": "wrong",
            "verdicts": [True, False],
        },
        {"prompt": "Problem: half of 46\nStep 1: 46 / 2 = 23\nJudge each step.", "answer": "right", "verdicts": [True]},
    ],
)

claim = Claim(
    says="tuned on chains with every verdict right, a verifier finds first errors better than on chains with the last one right",
    versus="thinkprm", task="verdicts", measure="step_f1", direction="higher", margin=0.036,
    versus_settings={"every_step": False}, problems=300, steps=40, guard=Within("verdict", low=-0.03),
    fault=Within("before.lucky", low=0.05, says="right final verdicts that blame a wrong step, or spare one"),
    learns=None, start=None,
)  # fmt: skip
baseline = "sft"
