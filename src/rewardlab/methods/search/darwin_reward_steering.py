"""DARWIN: replies are written to mutated instructions, and from time to time the worst go on from what the best have written.

    explore:    x_1 .. x_n = mutations of an instruction of the archive, with one beam each
    exploit:    every m tokens score r(x, y_i) on the instruction x as it was asked; beams below the best 3 become copies of these
    archive:    an instruction whose beam was among the best most often, and ends above its parent's reward, takes its place

A strong pull towards the reward makes all beams alike, and a weak one steers little. Here the two have separate places: words that
differ keep the beams apart, and copying alone follows the reward. The reply with the highest reward of all iterations is given.

Hung et al. 2024, arXiv:2406.15193, and the released code (declare-lab/darwin, 7c878ce, darwin.py, utils.py): 5 mutations, the best
3, m = 40, 3 iterations, temperature 0.7, and a reply to the instruction as it was asked beside them, whose reward is the archive's
first. There top-k is 40 and beams share texts, here the whole distribution and tokens; the prompt for mutations is in our words.
Left out: scoring some tokens ahead.

Data: prompts, and a reward that reads unfinished replies, such as a reward model (`score=model_score(...)`); for mutate="column"
other wordings of each prompt in a column, `rewrite`, and else a policy that can reword an instruction.
"""

from typing import Literal

from rewardlab.core import Recipe, Update
from rewardlab.evals.passk import accuracy
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.intrinsic import likelihood
from rewardlab.rewards.reward import Reward
from rewardlab.rollouts.evolved import MUTATE, evolved
from rewardlab.select.best import best


def darwin_reward_steering(
    base: Recipe | None = None, *, score: Reward | None = None, n: int = 5, iterations: int = 3, keep: int = 3, every: int = 40,
    mutate: Literal["policy", "column", "none"] = "policy", column: str = "rewrite", template: str = MUTATE,
    temperature: float = 0.7,
) -> Recipe:  # fmt: skip
    """score: what judges unfinished replies; None: the recipe's reward, the policy's own mean log-probability unless another is
    given.  n: beams, one to each mutation.  keep: of the best.  every: m, in tokens.  mutate: who mutates instructions; "column":
    the file's own wordings take turns; "none": replacement alone.  template: what the policy is asked, with {question} and {n}.
    """
    base = base or Recipe(name="darwin_reward_steering", reward=likelihood(), measure=accuracy(), update=Update())
    score = score or base.required("reward")
    sampled = evolved(
        score=score, n=n, iterations=iterations, keep=keep, every=every, mutate=mutate, column=column, template=template,
        temperature=temperature,
    )  # fmt: skip
    return base.but(rollout=sampled, reward=score, select=best())


STRICT = {"score": correct_so_far(), "n": 6, "keep": 2, "iterations": 1, "every": 8, "temperature": 1.0}
"""An exact judge of finished lines, about as often as there are lines."""

claim = Claim(
    says="beams of mutated instructions and of the one that was asked find right replies oftener than as many of the latter alone",
    versus="darwin_reward_steering", task="wordings", measure="accuracy", direction="higher", margin=0.11,
    settings=STRICT | {"mutate": "column"}, versus_settings=STRICT | {"mutate": "none"}, problems=300,
    fault=Within("accuracy", high=0.9, says="accuracy of replacement alone"), learns=None, start=None,
)  # fmt: skip
baseline = "best_of_n"
