"""ThetaEvolve: programs evolve in a database, and the model that writes children learns from their scores while it searches.

    parent ~ database(problem);   children ~ pi(. | problem, parent, its score);   those that work join the database
    r = -.4 no program;  -.3 the parent again, or, with `known`, an old program;  -.2 it does not work;
        scale ((score - low) / (high - low))^power otherwise;               GRPO over the children of one parent

Evolution by a model that stays as it is forgets what it found out about searching. Where nothing is lost by repeating the parent, a
policy soon does so, and the search stands still: hence the penalty on what is not new.

Wang et al. 2025, arXiv:2511.23473, and the released code (ypwang61/ThetaEvolve; read in yanyi74/ThetaEvolve-adapted, d5318c2,
openevolve_adapted/openevolve/database.py, modular_utils/error_constants.py, score_transform.py, evolving_gym/single_task_gym.py,
slime/rollout/rm_hub/evolving_gym_rm.py, scripts/run_thetaevolve_task.sh): 10,000 programs, of which the parent is any of the
archive, the best 1000, in .6 of the cases and else any of all, each as likely; the penalties, of which that for known programs is
off (level 1 there); the shaping (power 3 and scale 5 for its packings); children that join after the round; no further programs in
the prompt. Left out: islands and cells of the database, children as differences, -.1 for what runs and is invalid, restarts of the
database, and that GRPO's groups whose rewards are all equal are sampled again.

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
    base: Recipe | None = None, *, capacity: int = 10_000, archive: int = 1000, exploit: float = 0.6, lazy: float = 0.3,
    known: bool = False, low: float = 0.0, high: float = 1.0, power: float = 1.0, scale: float = 1.0, start: str = "start",
    ask: str = ASK, rounds: int = 4, children: int = 4,
) -> Recipe:  # fmt: skip
    """capacity: of the database.  archive, exploit: how often the parent is any of so many best programs, else any.  lazy: the
    penalty for the parent again; with `known` for every program of the database.  low, high, power, scale: of the shaping.  start:
    the column of first programs.  ask: what is read, with {question}, {score} and {program}.  rounds, children: of the evolution
    that is measured."""
    base = base or grpo()
    by = base.reward or correct()
    database = {"capacity": capacity, "exploit": exploit, "archive": archive, "start": start, "ask": ask}
    return base.but(
        rollout=evolving(of=base.required("rollout"), by=by, **database),
        reward=child_reward(of=by, known=known, lazy=lazy, least=low, most=high, power=power, scale=scale),
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
