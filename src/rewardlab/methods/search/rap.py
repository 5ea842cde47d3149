"""RAP: the model plans, proposing actions as an agent and foreseeing their outcomes as a world model, in a Monte-Carlo tree search.

    r = r1^alpha r2^(1 - alpha),    r1: how likely the agent is to act so,    r2: share of foreseen states that agree
    next node = argmax of M + w sqrt(ln N / n),    M: highest mean r of a path from there;    answer = path with the highest mean r

A chain of thought acts and believes its first guess of what comes of it. Several guesses of each state show where it is unsure, and
the one that most agree on is where it goes on from: a vote at every step, where self-consistency votes on the last.

Hao et al. 2023, arXiv:2305.14992, and the released code (Ber666/RAP, 53bcada, run_gsm8k.py, gsm8k_mcts.py, mcts.py): 10 iterations,
4 actions, 8 states, alpha = 0.5, w = 1, temperature 0.8, M of the best path. There actions of sums are judged by P("Yes") after a
question to the model, and those of plans by their likelihood, as here; `--scorer` puts another judge in its place. There means
are over one more than the steps, and more states are sampled until two agree; here neither. Left out: the heuristics of goals in
plans, and the vote over the paths' answers.

Data: prompts whose steps are an action and its outcome, with a text between them (`action_end`: "7+5=" leads to "12"), as a model
was taught to write them, or shows in its context.
"""

import math

import numpy as np

from rewardlab.core import Recipe, Score, Trajectory, Update
from rewardlab.evals.passk import accuracy
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.planned import world_model_mcts
from rewardlab.select.first import first


@reward
def action_probability(trajectory: Trajectory) -> Score:
    """The geometric mean of the probabilities of the last step's tokens, from 0 to 1."""
    logprobs = trajectory.turns[-1].logprobs if trajectory.turns else None
    if logprobs is None or not len(logprobs):
        return Score(None, why="no step was sampled")
    return Score(math.exp(float(np.mean(logprobs, dtype=np.float64))))


def rap(
    base: Recipe | None = None, *, iterations: int = 10, branch: int = 4, states: int = 8, alpha: float = 0.5,
    explore: float = 1.0, action_end: str = "=", temperature: float = 0.8, step_tokens: int | None = None,
    stop: tuple[str, ...] = ("\n",),
) -> Recipe:  # fmt: skip
    """iterations: paths that are walked.  branch: actions proposed.  states: foreseen for each.  alpha: weight of the action.
    explore: w.  action_end: text between an action and its outcome.  step_tokens: most tokens of an action, and of a state.
    stop: the texts that end a step."""
    base = base or Recipe(name="rap", reward=action_probability(), measure=accuracy(), update=Update())
    search = world_model_mcts(
        score=base.required("reward"), iterations=iterations, branch=branch, states=states, alpha=alpha, explore=explore,
        action_end=action_end, temperature=temperature, step_tokens=step_tokens, stop=stop,
    )  # fmt: skip
    return base.but(rollout=search, select=first())


claim = Claim(
    says="planning with foreseen states is right more often than a majority vote over chains of thought, at no more tokens",
    versus="majority_vote", task="arithmetic:error=0.4,difficulty=[5,7]", measure="accuracy", direction="higher", margin=0.22,
    settings={"iterations": 4, "branch": 2, "states": 5}, versus_settings={"n": 24}, problems=300,
    guard=Within("tokens_per_answer", high=0.0), fault=Within("accuracy", high=0.85, says="right answers by the majority"),
    learns=None, start=None,
)  # fmt: skip
baseline = "majority_vote"
