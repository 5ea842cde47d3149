"""TaTToo: a judge of table-reasoning steps that calls tools, rewarded for right verdicts grounded in their results.

    step k:  the judge calls the tool, reads the answer, and writes + or -
    r_k = 1[verdict = label] + calibration log p(label) + tool support_k,    GRPO on the rewards of steps
    support: the verdict is right, and a call about step k was answered before it

Judges of texts overlook what tables are about: a number that was read from another cell looks as good as the right one. Whoever
asks for the cell knows. Paid for labels alone, a judge also learns to guess where most steps are right, and forgets to look.

Zou et al. 2025, arXiv:2510.06217 (no code was found; the reward as given in notes on the paper, zhaoyang97/Paper-Notes-en, and
from a summary of its ablation that weights of .8 to 1 of calibration and 1 to 1.3 of the tool do best). There support says
whether the rationale takes up what the tool said. (inferred): that it then is a right verdict; what a call is about, by its
values and the columns it reads; p of a verdict that was not sampled as what is left, .05 at least; missing verdicts as wrong
and sure. Its first stage, imitation of tool-verified rationales, is `sft` on the column `solution` (replies and answers in turn).
The environment is that of the task `inspections`, which looks cells up and adds, or another that answers calls (env=...).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Environment, Problem, Recipe, Rollout, Run, measure
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.evals.judges import first_error_f1
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.inspected import grounded_verdicts
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.settings.domain import NonNegativeFloat
from rewardlab.text.inspections import inspections_of, is_about
from rewardlab.worlds.inspections import table_tool

# ---- How well a judge with a tool finds what is wrong in solutions ---------------------------------------------------


@measure
def inspections_right(
    problems: Sequence[Problem], run: Run, *, rollout: Rollout, steps: str = "steps", verdicts: str = "verdicts"
) -> dict[str, float]:
    """step_f1: of the first wrong steps that episodes find.  right: share of steps with their label's verdict.  grounded: share of
    steps whose verdict came after the tool's answer about that step; blind: of the steps without, the share of right verdicts.

    steps, verdicts: the columns of the solution's steps, and of their labels. A step without a verdict is not found right.
    """
    rows = [t for group in rollout(list(problems), run) for t in group]
    gold, said, each = [], [], []
    for t in rows:
        t.problem.required(
            steps, verdicts, by="tattoo", how="They are lists: the steps of the solution to judge, and true for right ones"
        )
        labels = [bool(x) for x in list_of(t.problem.meta[verdicts]) or []]
        texts, found = list_of(t.problem.meta[steps]) or [], inspections_of(t)
        gold.append(labels)
        said.append([x.right for x in found[: len(labels)]])
        known = [(x.right == label, is_about(x.call, str(text))) for x, label, text in zip(found, labels, texts, strict=False)]
        each += known + [(False, False)] * (len(labels) - len(known))
    blind = [ok for ok, looked in each if not looked]
    return {
        "step_f1": first_error_f1(gold, said), "right": float(np.mean([ok for ok, _ in each])),
        "grounded": float(np.mean([looked for _, looked in each])), "blind": float(np.mean(blind)) if blind else 0.0,
        "n": float(len(rows)),
    }  # fmt: skip


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def tattoo(
    base: Recipe | None = None, *, env: Environment | None = None, tool: NonNegativeFloat = 1.0,
    calibration: NonNegativeFloat = 1.0, n: int | None = None, turns: int = 4, column: str = "verdicts",
) -> Recipe:  # fmt: skip
    """env, n, turns: what answers calls, how often each solution is judged (None: as the base does, or else 8), and for how long.
    tool, calibration: weights; tool=0 pays for labels alone.  column: of the labels."""
    base = base or grpo(n=n or 8)
    play: dict[str, Any] = {"env": env or table_tool(), "turns": turns}
    return base.but(
        rollout=in_place_of_replies(base.required("rollout"), n=n, **play),
        reward=grounded_verdicts(tool=tool, calibration=calibration, verdicts=column),
        measure=inspections_right(rollout=interactive(n=1, **play), verdicts=column),
    )  # fmt: skip


fidelity = "reading"
left_out = (
    "tools that run Python and SQL (env=... may), rationales of a larger model that the tool bears out, to imitate first, the part "
    "of the table that a step needs as a prefix, and a judge of whether the rationale takes up what the tool said"
)
data = Data(
    prompt="the table, the question, the numbered steps of a solution, and how to call the tool and give verdicts",
    steps="the steps of the solution: a list of texts",
    verdicts=Column("a label for each step, true where it is right: a list", setting="verdicts"),
    table=Column("the cells that the tool looks up: by row, of each column; not with `env`", optional=True),
    rows=[
        {
            "prompt": "city | population | area\nOslo | 709 | 454\nBergen | 291 | 465\n\nHow many more people has Oslo than "
            "Bergen (thousands)?\n1: Oslo population 709\n2: Bergen population 219\n\nCall the tool with 'look ROW COLUMN' before "
            "you judge a step, and write + or - for each.",
            "steps": ["Oslo population 709", "Bergen population 219"],
            "verdicts": [True, False],
            "table": {"Oslo": {"population": 709, "area": 454}, "Bergen": {"population": 291, "area": 465}},
        },
        {
            "prompt": "team | won | lost\nReds | 12 | 5\nBlues | 9 | 8\n\nHow many games did the Reds play?\n1: Reds won 12\n"
            "2: Reds lost 5\n3: 12+5=17\n\nCall the tool with 'look ROW COLUMN' or 'sum A B' before you judge a step, and write + "
            "or - for each.",
            "steps": ["Reds won 12", "Reds lost 5", "12+5=17"],
            "verdicts": [True, True, True],
            "table": {"Reds": {"won": 12, "lost": 5}, "Blues": {"won": 9, "lost": 8}},
        },
    ],
    verified_by="inspected",
)

claim = Claim(
    says="paid for verdicts that rest on the tool, a judge judges more steps rightly than paid for verdicts alone",
    versus="tattoo", task="inspections:flaw=0.5", measure="right", direction="higher", margin=0.023,
    versus_settings={"tool": 0.0}, problems=500, steps=30,
    fault=Within("before.grounded", high=0.8, says="verdicts that rest on the tool at first"), moved=Within("grounded", low=0.02),
    learns="right", start=None,
    tried="before calibration, by step_f1: flaw=.35, it falls, for + is right most often; flaw=.5, it rises by .16, within its "
    "noise, grounded +.11, effects -.02 and -.21; by right: flaw=.5,skips=.75, the small policy cannot read what the tool says "
    "(.50 right), grounded +.58, effects -.015 and -.009 (2 seeds each)",
    finding="paid for verdicts alone, a judge learns to ask as well: verdicts that rest on the tool rise from 52% to 96%, and to "
    "97% with the tool paid; steps judged rightly from 65% to 81% on both sides. Asking pays by itself: the bonus adds nothing. "
    "But the F1 of first wrong steps falls, from .51 to .24 paid for verdicts alone and to .21 with the tool paid: more steps are "
    "judged rightly, and fewer errors found. In that run all the verdicts that an episode left out were one reward",
)  # fmt: skip
baseline = "grpo"
