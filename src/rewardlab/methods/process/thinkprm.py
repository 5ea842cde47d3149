"""ThinkPRM: a reasoning model verifies solutions in words, fine-tuned on chains whose verdicts all match the step labels.

    kept: the first of n chains with v_k = label_k for all k, and the right final verdict;     loss = -mean log pi(chain)
    score of a solution:  mean over K chains of p(right) / (p(right) + p(wrong)) at the final verdict

A filter by the final verdict alone keeps chains that are right for a wrong reason: the solution is wrong, but another step was
blamed. A few labels go a long way, since they choose among chains that the model can write already; a head must learn from scratch.

Khalifa et al. 2025, arXiv:2504.16828. The filter by all step labels is that of the released chains (the dataset's card,
launch/thinkprm-1K-verification-cots, which also names the comparison with other filters); verdicts line by line, in boxes, and the
question "Is the solution correct?" at the end those of the released code (mukhal/ThinkPRM, 214cce9, utils/answer_utils.py,
prm/thinkprm_api.py). (inferred): n, and that one chain of each solution is kept. The chains are written by `writer`, by default a
copy of the policy as it begins; `own_verdict(soft=True)` is the score as a reward for best-of-n and for search.

A chain has \\boxed{correct} or \\boxed{incorrect} in a line for each step and ends with "Is the solution correct? Yes" or No; or,
as small models write it, + or - at the end of a line for each step, and "Final: +" or "Final: -".
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Sampling, Score, Trajectory, measure, rollout
from rewardlab.data.columns import Data
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError
from rewardlab.evals.judges import first_error_f1
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.own_verdict import chance_of, chances
from rewardlab.rewards.reward import Reward, reward
from rewardlab.settings.domain import PositiveInt
from rewardlab.util.ranking import auc_of
from rewardlab.worlds.verdicts import SIGNS, WORDS, Judgement, read

LABELS = (
    "Rows are solutions to judge: a prompt that numbers the steps, a list `verdicts` with true for each right step, and the answer "
    "right or wrong (as --task verdicts has them)"
)

_BOXED = re.compile(r"\\boxed\{\s*(?:\\text\w{0,2}\{\s*)?(correct|incorrect)\b", re.IGNORECASE)
_FINAL = re.compile(r"solution correct\?[\s*:]{0,9}(yes|no)\b", re.IGNORECASE)
ASKED = "\nIs the solution correct? "
"""What is put to a chain that says no last word."""


def verdicts_of(chain: str) -> Judgement:
    """What a chain says of each step and of the solution, in boxes and an answer to "Is the solution correct?", or in signs.

    Of several boxes in a line the last counts. Without a last word a solution is right if all its steps are.
    """
    signs = read(chain)
    if signs.steps or signs.final is not None:
        return signs
    steps = [boxes[-1].lower() == "correct" for line in chain.splitlines() if (boxes := _BOXED.findall(line))]
    said = _FINAL.findall(chain)
    return Judgement(steps, said[-1].lower() == "yes" if said else all(steps) if steps else None)


def chances_right(judge: Any, asked: Sequence[Trajectory], chains: Sequence[str]) -> list[float | None]:
    """p(right) / (p(right) + p(wrong)) at the last word of each chain, after the row in its place; None where it has none."""
    found = chances(judge, asked, chains, SIGNS[True], SIGNS[False])
    worded = [i for i, x in enumerate(found) if x is None and verdicts_of(chains[i]).final is not None]
    ends = {i: list(_FINAL.finditer(chains[i])) for i in worded}
    stems = [chains[i][: ends[i][-1].start(1)] if ends[i] else chains[i].rstrip() + ASKED for i in worded]
    # a chain that ran to the limit may leave no room for the question
    longest = judge.write([asked[i] for i in worded], [f"{stem}Yes" for stem in stems]) if worded else []
    fits = [k for k, t in enumerate(longest) if len(t) <= judge.context]
    rows, begun = [asked[worded[k]] for k in fits], [stems[k] for k in fits]
    for k, x in zip(fits, chance_of(judge, rows, begun, "Yes", "No"), strict=True):
        found[worded[k]] = x
    return found


@reward
def every_verdict_right(trajectory: Trajectory, *, steps: bool = True, column: str = "verdicts") -> Score:
    """1 where a judgement has the right final verdict and, with `steps`, the column's label for each step."""
    labels, gold, said = list_of(trajectory.problem.meta.get(column)), trajectory.problem.answer, verdicts_of(trajectory.reply)
    if labels is None or gold not in WORDS.values():
        return Score(None, why=f"the problem has no list {column!r} and an answer that is right or wrong")
    final = said.final is not None and WORDS[said.final] == gold
    return Score(float(final and (not steps or said.steps == [bool(x) for x in labels])))


@rollout(rows=lambda **_: 1)
def first_accepted(problems: list[Problem], run: Run, *, by: Reward, n: PositiveInt = 4, writer: str = "writer") -> list[Group]:
    """The first of n replies of the model `writer` that `by` accepts (a reward of 1), recorded as the policy's; problems without
    one are dropped.

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
    labels = [[bool(x) for x in list_of(p.meta["verdicts"]) or []] for p in problems]
    judgements, gold = [verdicts_of(text) for text in said], [row for row in labels for _ in range(chains)]
    final = [j.final is not None and j.final == right[i // chains] for i, j in enumerate(judgements)]
    lucky = [j.steps != steps for j, steps, ok in zip(judgements, gold, final, strict=True) if ok]
    found = chances_right(policy, asked, said)
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


fidelity = "core"
left_out = (
    "chains of a larger reasoning model (`writer` may be one), dropping chains that are too long (the limit of tokens does that), "
    "and longer chains that are made to check again"
)
data = Data(
    answer='"right" or "wrong": the verdict on the whole solution',
    verdicts="a label for each step: true where it is right",
    rows=[
        {
            "prompt": "Problem: 3 + 4 * 2\nStep 1: 4 * 2 = 8\nStep 2: 3 + 8 = 12\n\nCheck each step and say \\boxed{correct} or "
            "\\boxed{incorrect} of it. End with 'Is the solution correct? Yes' or 'Is the solution correct? No'.",
            "answer": "wrong",
            "verdicts": [True, False],
        },
        {
            "prompt": "Problem: half of 46\nStep 1: 46 / 2 = 23\n\nCheck each step and say \\boxed{correct} or \\boxed{incorrect} "
            "of it. End with 'Is the solution correct? Yes' or 'Is the solution correct? No'.",
            "answer": "right",
            "verdicts": [True],
        },
    ],
)

claim = Claim(
    says="tuned on chains with every verdict right, a verifier finds first errors better than on chains with the last one right",
    versus="thinkprm", task="verdicts", measure="step_f1", direction="higher", margin=0.036,
    versus_settings={"every_step": False}, problems=300, steps=40, guard=Within("verdict", low=-0.03),
    fault=Within("before.lucky", low=0.05, says="right final verdicts that blame a wrong step, or spare one"),
    learns=None, start=None,
    finding="first errors are found with F1 .35 before, .46 after learning from chains that are right at every step, and .39 from "
    "chains with the right last word. Of right last words 58% rest on a wrong verdict before, then 31% and 50%",
)  # fmt: skip
baseline = "sft"
