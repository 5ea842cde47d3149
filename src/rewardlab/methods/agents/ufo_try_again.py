"""UFO: any question with a verifier becomes a conversation of several tries, in which a wrong answer is only told "try again".

    R(episode) = gamma^k [right at try k = 0, 1, ..]  -  lambda (1 - E / T)  -  eta (tries without an answer)
    T: answers given in the episode;    E: different ones among them

Trained on single answers, a model gives the same answer again when it is told that it was wrong. Here all that it has said, and
that it was wrong, stays in its context, and it is paid for a right answer at any try: more for an early one, and less the more it
repeats itself. The feedback says the same of every mistake, so that static data are enough.

Liu et al. 2025, arXiv:2507.14295, by an article that quotes it, and lichengliu03/unary-feedback: configs/base.yaml (61c147f) has
8 prompts of 16 episodes of 5 tries, lam 1, clip ranges .2 and .28, a KL of .001, an entropy bonus of .001, and learns from the
quarter of the groups whose rewards differ most; eta = .1 is its format_penalty, "Incorrect. Please try again." its feedback, and
gamma = 1/2 its 1 / 2^step (ragen/env/metamathqa/env.py). lambda = 1 is that of one version of this file, which counts the different
answers before the present one; here, as in the paper, over the episode. Answers are compared as there, without spaces and in lower
case: what stands in <answer> tags, in a box, in a block of code or after "answer:"; a reply with none of these answers nothing.
(inferred): that the KL is taken off the reward, which that file leaves to verl.

The environment is `try_again`, for any other method by --env try_again.
"""

import re
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Environment, Group, Objective, Problem, Recipe, Rollout, Run, Trajectory, Turn, measure, rollout
from rewardlab.data.columns import Data
from rewardlab.envs.try_again import try_again
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.objectives.regularise import negative_entropy
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.interactive import in_place_of_replies, interactive
from rewardlab.settings.domain import PositiveFloat, PositiveInt, PositiveShare, Share
from rewardlab.text.blocks import last_block
from rewardlab.text.replies import marked

# ---- what an episode is paid -----------------------------------------------------------------------------------------


def answers_in(trajectory: Trajectory) -> list[str]:
    """What each reply answers, in marks or as code, without spaces and in lower case; "" where it answers nothing."""
    said = (marked(reply) or last_block(reply) or "" for reply in trajectory.replies)
    return [re.sub(r"\s+", "", answer).lower() for answer in said]


@reward
def earlier_is_better(trajectory: Trajectory, *, gamma: Share = 0.5) -> float:
    """gamma^k for an episode that ends at try k, counted from 0."""
    return gamma ** max(0, len(trajectory.ends) - 1)


@reward
def repeated_answers(trajectory: Trajectory) -> float:
    """1 - E / T: the share of the answers of an episode that had been given before; 0 where there is none."""
    answers = [answer for answer in answers_in(trajectory) if answer]
    return 1 - len(set(answers)) / len(answers) if answers else 0.0


@reward
def without_answer(trajectory: Trajectory) -> float:
    """How many replies of an episode answer nothing."""
    return float(sum(not answer for answer in answers_in(trajectory)))


# ---- which groups are learnt from ------------------------------------------------------------------------------------


# groups are compared with one another, so that processes cannot share them
@rollout(wraps="inner", across_problems=True)
def most_spread(problems: list[Problem], run: Run, *, inner: Rollout, by: Reward, share: PositiveShare = 0.25) -> list[Group]:
    """The share of the groups of `inner`, one at least, in which rewards `by` have the highest standard deviation, in their order.

    Of equal ones the earlier is kept; replies without a verdict do not count.
    """
    groups = inner(problems, run)
    paid = [[s.total for s in row if s.total is not None] for row in by(groups, run)]
    spread = [float(np.std(row)) if row else -1.0 for row in paid]
    order = sorted(range(len(groups)), key=lambda g: -spread[g])
    return [groups[g] for g in sorted(order[: max(1, int(share * len(groups)))])]


# ---- what it is measured by ------------------------------------------------------------------------------------------


@measure
def tries(problems: Sequence[Problem], run: Run, *, rollout: Rollout) -> dict[str, float]:
    """success: how often an episode of `rollout` is right in the end;  pass@1: how often its first reply is.

    repeated: the share of later answers that had been given before, NaN where there are none;  turns: replies of an episode. An
    episode without a verdict counts as wrong.
    """
    if run.verify is None:
        raise RewardlabError("tries needs the task's verifier, and this run has none: name a task")
    groups = rollout(list(problems), run)
    right = [[s.value is not None and s.value >= 1.0 for s in row] for row in run.verify(groups, run)]
    # only the last reply of an episode can be right
    rows = [(t, ok, len(t.ends)) for group, oks in zip(groups, right, strict=True) for t, ok in zip(group, oks, strict=True)]
    said = [answers_in(t) for t, _, _ in rows]
    again = [answer in answers[:i] for answers in said for i, answer in enumerate(answers) if i and answer]
    solved = [float(np.mean(row)) for row in right]
    low, high = mean_interval(solved)
    return {
        "success": float(np.mean(solved)), "ci95_low": low, "ci95_high": high, "n": float(len(solved)),
        "pass@1": float(np.mean([ok and n == 1 for _, ok, n in rows])),
        "repeated": float(np.mean(again)) if again else float("nan"), "turns": float(np.mean([n for _, _, n in rows])),
    }  # fmt: skip


# ---- what its reward teaches, where that can be computed ----------------------------------------------------------------

RIGHT = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
"""How often each of four answers is right; no question tells which."""
TRIES, COPIES = 5, 2.0
"""The tries of an episode; the weight of having given an answer before, at the start."""


def chances(weights: Tensor, said: tuple[int, ...]) -> Tensor:
    """(4,) chances of the next answer: weights (5,) are those of the answers, and of one that was given before."""
    before = torch.zeros(4, dtype=torch.float64)
    before[list(said)] = 1.0
    return (weights[:4] + weights[4] * before).log_softmax(0)


def exactly(weights: Tensor, right: int, said: tuple[int, ...] = ()) -> tuple[float, float, float]:
    """Chance to be right within the tries that are left; later answers to come, and those of them that repeat."""
    if len(said) == TRIES:
        return 0.0, 0.0, 0.0
    solved = later = again = 0.0
    for answer, p in enumerate(chances(weights, said).exp().tolist()):
        rest = (1.0, 0.0, 0.0) if answer == right else exactly(weights, right, (*said, answer))
        solved += p * rest[0]
        later += p * (rest[1] + bool(said))
        again += p * (rest[2] + (answer in said))
    return solved, later, again


def learnt(run: Run, paid: Reward, tries: int, episodes: int, updates: int, lr: float) -> Tensor:
    """(5,) the weights that policy gradients lead to: `paid`, less its mean, at every try of an episode."""
    weights = torch.tensor([0.0, 0.0, 0.0, 0.0, COPIES], dtype=torch.float64, requires_grad=True)
    optimizer, rng = torch.optim.Adam([weights], lr=lr), run.detached().rng("eval")
    for _ in range(updates):
        gold = torch.multinomial(RIGHT, episodes, True, generator=rng).tolist()
        rows, logprobs = [], []
        for right in gold:
            said: tuple[int, ...] = ()
            total = torch.zeros((), dtype=torch.float64)
            while len(said) < tries and right not in said:
                logp = chances(weights, said)
                said = (*said, int(torch.multinomial(logp.detach().exp(), 1, generator=rng)))
                total = total + logp[said[-1]]
            rows.append(_episode(right, said))
            logprobs.append(total)
        value = torch.tensor([score.total for (score,) in paid([[t] for t in rows], run)], dtype=torch.float64)
        optimizer.zero_grad()
        (-(value - value.mean()) * torch.stack(logprobs)).mean().backward()
        optimizer.step()
    return weights.detach()


def _episode(right: int, said: Sequence[int]) -> Trajectory:
    zero, told = np.zeros(1, np.int64), Turn(None, np.zeros(1, np.int64), text="Incorrect. Please try again.")
    turns = [turn for answer in said for turn in (told, Turn("policy", zero, text=f"Answer: {answer}"))]
    return Trajectory(Problem((), str(right)), tuple(turns), "end")


@reward
def same_answer(trajectory: Trajectory) -> float:
    """Whether the last reply answers the gold answer, as text."""
    return float(answers_in(trajectory)[-1:] == [trajectory.problem.answer])


@measure
def learnt_tries(
    problems: Sequence[Problem], run: Run, *, episodes: PositiveInt = 32, updates: PositiveInt = 150, lr: PositiveFloat = 0.05
) -> dict[str, float]:
    """A policy of five numbers guesses which of four answers is right, and learns by this method ("ufo"), from 5 tries that pay 1
    for a right one ("outcome"), or from one try ("single"). At first it likes to say again what it has said; no model is asked.

    success.X: how often one of 5 tries is right, exactly;  first.X: the first one;  repeated.X: the share of later answers that
    repeat;  first.kept: first.ufo less first.single.
    """
    ufo = same_answer() * earlier_is_better() - 1.0 * repeated_answers()
    found: dict[str, float] = {}
    for name, paid, most in (("ufo", ufo, TRIES), ("outcome", same_answer(), TRIES), ("single", same_answer(), 1)):
        weights = learnt(run, paid, most, episodes, updates, lr)
        each = torch.tensor([exactly(weights, right) for right in range(4)], dtype=torch.float64)
        solved, later, again = (RIGHT @ each).tolist()
        found |= {f"success.{name}": solved, f"repeated.{name}": again / max(later, 1e-9)}
        found[f"first.{name}"] = float(RIGHT @ chances(weights, ()).exp())
    return found | {"first.kept": found["first.ufo"] - found["first.single"], "n": float(episodes)}


# ---- the recipe ------------------------------------------------------------------------------------------------------


def ufo_try_again(
    base: Recipe | None = None, *, env: Environment | None = None, n: int | None = None, turns: int = 5, gamma: float = 0.5,
    repetition: float = 1.0, invalid: float = 0.1, share: float = 0.25, problems: int = 8, eps_high: float = 0.28,
    entropy: float = 0.001,
) -> Recipe:  # fmt: skip
    """env: without it `try_again`.  n, turns: episodes of a problem (None: the base's, or else 16), and tries of an episode.
    gamma: of a reward per further try.  repetition, invalid: weights of repeated answers, and of each try without one.  share: of
    the groups that is learnt from.  problems, eps_high, entropy: where no base says otherwise, prompts of a step, the upper clip
    range, the bonus.
    """
    own = _loss(eps_high, entropy)
    base = base or ppo(n=n or 16, lam=1.0, beta=0.001, epochs=1, minibatches=4).but(objective=own, problems=problems)
    episodes = in_place_of_replies(base.required("rollout"), env=env or try_again(), n=n, turns=turns)
    paid = (base.reward or correct()) * earlier_is_better(gamma=gamma)
    paid = paid - repetition * repeated_answers() if repetition else paid
    paid = paid - invalid * without_answer() if invalid else paid
    return base.but(
        rollout=most_spread(inner=episodes, by=paid, share=share) if share < 1 else episodes,
        reward=paid,
        measure=tries(rollout=interactive(env=env or try_again(), n=1, turns=turns)),
    )


def _loss(eps_high: float, entropy: float) -> Objective:
    loss = clipped_ratio(eps_high=eps_high)
    # without the bonus the entropy of every token need not be computed
    return loss + entropy * negative_entropy() if entropy else loss


fidelity = "core"
left_out = "prompts that say how many tries are left, held-out sampling at a temperature of .5, and feedback in other words"
data = Data(
    answer="the gold answer",
    rows=[
        {"prompt": "How many prime numbers are there between 10 and 30? Write the number between <answer> tags.", "answer": "6"},
        {"prompt": "What is the smallest positive integer that is divisible by 4, 6 and 10?", "answer": "60"},
        {"prompt": "A shirt costs \\$40 after a discount of 20%. What did it cost before, in dollars?", "answer": "50"},
    ],
)

# any three questions will do: the policy of the check reads none
check = Check(
    says="a policy of five numbers that learns from 5 tries solves more within 5 tries than one that learns from single tries",
    versus=None, task="arithmetic", measure="success.ufo", direction="higher", margin=0.1, against="success.single",
    by=learnt_tries(), problems=8, steps=1, guard=Within("first.kept", low=-0.05, says="first tries that are right, more or fewer"),
    fault=Within("repeated.single", low=0.5, says="share of later answers that repeat, after single tries"),
    tried="two development seeds: .98 within 5 tries against .41, where what was learnt from single tries repeats itself in 99% of "
    "later answers; but the first try is right 8 points less often, more than the guard allows",
    finding="within 5 tries 98% are right, after single tries 41%, as these repeat an answer in 98% of later tries and it in 9%; "
    "but first tries are right in 32% and not in 40%. The outcome at any try does as well (99%): it is the tries that teach this",
)  # fmt: skip
baseline = "ppo"
