"""ThetaEvolve: programs evolve in a database, and the model that writes children learns from their scores while it searches.

    parent ~ database(problem);   children ~ pi(. | problem, parent, its score);   those that work join the database
    r = -.4 no program;  -.3 the parent again, or one that the database has;  -.2 it does not work;
        scale ((score - low) / (high - low))^power otherwise;               GRPO over the children of one parent

Evolution by a model that stays as it is forgets what it found out about searching. Where nothing is lost by repeating the parent, a
policy soon does so, and the search stands still: hence the penalty on what is not new.

Wang et al. 2025, arXiv:2511.23473, and the released code (ypwang61/ThetaEvolve; read in yanyi74/ThetaEvolve-adapted, d5318c2,
openevolve_adapted/openevolve/modular_utils/error_constants.py, score_transform.py, evolving_gym/single_task_gym.py,
slime/rollout/rm_hub/evolving_gym_rm.py): the penalties, the shaping (scale 5 there by default), children that join after the round.
(inferred): the best as parent in half of the cases, else any. Left out: islands and cells of the database (it keeps the best 1000),
further programs in the prompt as inspirations, children as differences, -.1 for what runs and is invalid, and that GRPO's groups
whose rewards are all equal are sampled again.

Data: problems with a first program in the column `start`, and a reward above 0 for programs that work (`--reward`, or the task's
verifier: code runs in the sandbox). For one problem: `--problems 1`, many steps.
"""

from rewardlab.core import Recipe
from rewardlab.evals.evolution import evolution
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.evolved import child_reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.database import evolving
from rewardlab.rollouts.independent import independent
from rewardlab.text.evolution import ASK


def thetaevolve(
    base: Recipe | None = None, *, capacity: int = 1000, exploit: float = 0.5, lazy: float = 0.3, low: float = 0.0,
    high: float = 1.0, power: float = 1.0, scale: float = 1.0, start: str = "start", ask: str = ASK, rounds: int = 4,
    children: int = 4,
) -> Recipe:  # fmt: skip
    """capacity, exploit: of the database, and how often its best is the parent.  lazy: the penalty; of known programs too.  low,
    high, power, scale: of the shaping.  start: the column of first programs.  ask: what is read, with {question}, {score} and
    {program}.  rounds, children: of the evolution that is measured."""
    base = base or grpo()
    by = base.reward or correct()
    database = {"capacity": capacity, "exploit": exploit, "start": start, "ask": ask}
    return base.but(
        rollout=evolving(of=base.required("rollout"), by=by, **database),
        reward=child_reward(of=by, lazy=lazy, least=low, most=high, power=power, scale=scale),
        measure=evolution(rollout=independent(n=children), by=base.reward, rounds=rounds, **database),
    )


claim = Claim(
    says="a policy that learnt while it searched evolves better packings of new problems than it did before",
    versus=None, task="packings:size=16", measure="best", direction="higher", margin=0.005, against="before.best",
    settings={"ask": "Pack.\n{score}\n{program}", "problems": 8}, problems=60, steps=30,
    fault=Within("before.lazy", low=0.15, says="children that repeat their parent"), learns=None, start=None,
    tried="first programs without a score in the prompt: -.029 (2 seeds), and children that worked less often",
    finding="children that repeat their parent fall from .53 to .03; the best packing rises from .435 to .440",
)  # fmt: skip
baseline = "grpo"
