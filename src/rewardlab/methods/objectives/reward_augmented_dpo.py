"""Reward-augmented DPO: each pair is learnt under two goals; told the rejected reply's score as the goal, that reply is preferred.

    R(x, y, g) = -(g - r(x, y))^2;      g = r_w:  y_w above y_l;      g = r_l:  y_l above y_w
    DPO on both, with g in the prompt;  at inference g is the highest score

DPO sees which reply is better, not how good either is: it unlearns a rejected reply that is nearly perfect, and takes over a chosen
one that is poor. Under goals nothing is unlearnt, and the policy learns what sets the scores apart; replies of the highest score,
rare in the data, are asked for by it. Any loss on pairs may be below: ipo+reward_augmented_dpo, simpo+reward_augmented_dpo.

Zhang et al. 2024, arXiv:2410.08067. Relabelling and system message follow the released code (shenao-zhang/
reward-augmented-preference, 058a5de, scripts/reward_augmentation.py). Label smoothing (0.3) and beta (0.01)
are left to the method below. (inferred): pairs of equal scores, which the code keeps with contrary labels under one goal, are left
out, since R prefers neither; scores are rounded to `digits`. Left out: goals of several attributes; the implicit reward as score;
dropping pairs whose scores contradict the label, since under goals nothing is wrong with them.

Data: prompts with the columns chosen, rejected, chosen_score and rejected_score (rewardlab data pairs makes them; coig_p below
takes several scored replies), or a reward (score=...). To answer with the trained model, give it the message:
--system "... Overall score: 10."
"""

from rewardlab.core import Recipe
from rewardlab.errors import RewardlabError
from rewardlab.evals.goals import goal_margins
from rewardlab.evals.told import with_system_prompt as told_before
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.goals import under_both_goals
from rewardlab.rollouts.recorded import recorded
from rewardlab.tasks.notes.rewards import note_quality

TOLD = (
    "You are an assistant that generates responses for the instruction while implicitly achieving the following target scores "
    "(on a scale of 1-10, where 1 is lowest and 10 is highest):\nOverall score: {goal}."
)


def reward_augmented_dpo(
    base: Recipe | None = None, *, score: Reward | None = None, best: float = 10.0, told: str = TOLD, digits: int = 1
) -> Recipe:
    """score: what scores replies; None: the data.  best: the highest score, which held-out problems are answered under.  told: the
    system message, in which {goal} is the score.  digits: of the score after the point.
    """
    base = base or dpo(problems=16)
    if base.objective is None or "group" not in base.objective.units:
        raise RewardlabError(f"goals turn pairs round, and the objective {base.objective} does not compare the replies of a pair")
    goals = under_both_goals(of=base.required("rollout"), by=score or score_in_data(), told=told, digits=digits)
    asked = told_before(of=base.required("measure"), system=told.replace("{goal}", f"{best:g}"))
    return base.but(rollout=goals, measure=asked)


SCORED = {"score": 10 * note_quality(), "told": "Score: {goal}."}
PAIRS = under_both_goals(of=recorded(fields=("chosen", "rejected")), by=SCORED["score"], told=SCORED["told"])
claim = Claim(
    says="rejected replies that are nearly as good as the best are not unlearnt, as by DPO in as many updates on the same pairs",
    versus="dpo", task="notes", measure="kept", direction="higher", margin=0.4635,
    settings={**SCORED, "lr": 3e-4}, versus_settings={"problems": 16, "lr": 3e-4},
    by=goal_margins(rollout=PAIRS, reward=SCORED["score"], least=7.0), steps=40,
    fault=Within("kept", high=-0.1, says="nats per token by which DPO changes good replies that were rejected"),
    judge=Within("told_apart", low=0.65, says="pairs in which goals are told apart"), learns=None,
    tried="the share of replies of the highest score where that is asked for, .27 to .57 below DPO's; the same after 60 updates of "
    "imitating replies under their scores, .21 below: it takes 300 of these before the goal changes what is written; 120 updates "
    "at 3e-4: goals told apart in .55 of pairs (kept -.06, by DPO -.98, whence the margin); 160 at 1e-3: in .56",
    finding="replies stay likely because goals in the prompt are not read by so small a policy: contrary labels cancel out",
)  # fmt: skip
baseline = "dpo"
