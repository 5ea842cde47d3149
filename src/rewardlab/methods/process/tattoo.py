"""TaTToo: a judge of steps about tables asks a tool about each step, and is paid for right verdicts that rest on its answers.

    step k:  the judge calls the tool, reads the answer, and writes + or -
    r_k = 1[verdict = label] (1 + tool 1[a call about step k was answered before the verdict]),    GRPO on the rewards of steps

Judges of texts overlook what tables are about: a number that was read from another cell looks as good as the right one. Whoever
asks for the cell knows. Paid for labels alone, a judge also learns to guess where most steps are right, and forgets to look.

Zou et al. 2025, arXiv:2510.06217 (abstract and our row; no code was found). (inferred): that the bonus is paid for right verdicts
only, so that calls are no aim of their own; 1/2; what a call is about, by its words; rewards of steps in place of one for the
whole. Its first stage, imitation of tool-verified rationales, is `sft` on the column `solution` (replies and answers in turn);
its data come from a larger model, whose rationales are kept where the tool bears them out. There the tools run Python and SQL;
here env=... may.

Data: solutions to judge, as prompts with table and numbered steps, lists in the columns `steps` and `verdicts` (true: right), and
an environment that answers calls; that of the task `inspections` looks cells up in the column `table`.
"""

from rewardlab.core import Environment, Recipe
from rewardlab.core.domain import NonNegativeFloat
from rewardlab.evals.inspected import inspections_right
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.inspected import grounded_verdicts
from rewardlab.rollouts.interactive import interactive
from rewardlab.tasks.inspections.environment import table_tool


def tattoo(
    base: Recipe | None = None, *, env: Environment | None = None, tool: NonNegativeFloat = 0.5, n: int = 8, turns: int = 4,
    column: str = "verdicts",
) -> Recipe:  # fmt: skip
    """env, n, turns: what answers calls, how often each solution is judged, and for how long.  tool: the bonus; 0 pays for labels
    alone.  column: of the labels."""
    base = base or grpo(n=n)
    play = {"env": env or table_tool(), "turns": turns}
    return base.but(
        rollout=interactive(n=n, **play), reward=grounded_verdicts(tool=tool, verdicts=column),
        measure=inspections_right(rollout=interactive(n=1, **play), verdicts=column),
    )  # fmt: skip


claim = Claim(
    says="paid for verdicts that rest on the tool, a judge finds more first errors than paid for verdicts alone",
    versus="tattoo", task="inspections", measure="step_f1", direction="higher", margin=0.03, versus_settings={"tool": 0.0},
    problems=500, steps=30, fault=Within("before.grounded", high=0.8, says="verdicts that rest on the tool at first"),
    moved=Within("grounded", low=0.02), learns="step_f1", start=None,
    tried="2 seeds: both sides learn to find every step right, and step_f1 falls from .28 to .06; the gate refuses this world",
)  # fmt: skip
baseline = "grpo"
