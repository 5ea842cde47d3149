"""RLPR: reward reasoning by the mean probability of the reference answer's tokens after it.

    r = clip(p - p_0, 0, 1),    p = mean over the tokens y*_t of the reference of pi(y*_t | x, reasoning, y*_<t)
    p_0: the same by the policy's start, without any reasoning;    with a form r is .9 of that + .1 [the reply has the form]
    a reply in which ten words in a row come ten times earns 1 less
    trained on are groups with std(r) >= beta * (moving average of std(r))

No verifier is needed, so that the answer may be any text. A product of probabilities is next to nothing as soon as one token of the
reference is not what the policy would have said; their mean loses no more than that token. Groups in which all replies earn nearly
the same are too easy or too hard.

Yu et al. 2025, arXiv:2506.18254, and the released script and reward as kept in sharkchill-xy/DPPR (76b76f3, reproduce_qwen.sh;
8354a79, prob.py, ray_trainer.py, repetition.py): n = 8, beta = .5, decay .99, no filter in the first 10 steps, groups that are
dropped are replaced, four updates per batch, clip-higher .27, weights .9 and .1, the reference between the tags <answer> where a
reply has them; p_0 is computed beforehand there, from the start, and the mean of deviations begins with the sixth step.
(inferred): a batch is refilled `attempts` times at most. The reward takes the place of a base's.

The verifier is read for reports alone.
"""

from collections import Counter

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Trajectory
from rewardlab.data.columns import Data
from rewardlab.evals.own_reward import own_reward
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.rewards.format import format_ok
from rewardlab.rewards.reference import Over, reference_probability
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.filtered import spread_above
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeInt, PositiveInt
from rewardlab.text.words import ngrams


@reward
def goes_round(trajectory: Trajectory, *, n: PositiveInt = 10, often: PositiveInt = 10) -> float:
    """-1 for a reply in which n words in a row come `often` times, else 0. Words end at spaces and underscores."""
    counts: Counter[tuple[str, ...]] = ngrams(trajectory.reply.replace("_", " ").split(), n)
    return -1.0 if max(counts.values(), default=0) >= often else 0.0


def rlpr(
    base: Recipe | None = None, *, over: Over = "mean", debias: bool = True, mark: str = "Answer:", form: str = "",
    beta: float = 0.5, decay: float = 0.99, start: int = 10, attempts: int = 10, n: int = 8, eps_high: float = 0.27,
    often: NonNegativeInt = 10,
) -> Recipe:  # fmt: skip
    """over: how the probabilities of the reference's tokens become one.  debias: subtract p_0.  mark: stands before an answer.
    form: a regular expression that replies should match.  beta, decay, start, attempts: of the filter (`spread_above`).
    n, eps_high: of grpo and its clipping.  often: of what is charged as repetition (`goes_round`); 0 charges nothing.
    """
    base = base or grpo(n=n).but(objective=clipped_ratio(eps_high=eps_high), minibatches=4)
    likely = reference_probability(over=over, debias=debias, mark=mark)
    paid = 0.9 * likely + 0.1 * format_ok(pattern=form) if form else likely
    paid = paid + goes_round(often=often) if often else paid
    sampled = base.required("rollout")
    filtered = spread_above(inner=sampled, by=paid, share=beta, decay=decay, start=start, attempts=attempts)
    return base.but(rollout=filtered, reward=paid, measure=own_reward(reward=paid, rollout=independent(n=1)))


fidelity = "core"
left_out = (
    "the reward for a form, unless `form` names one; nothing for a reply without the tags (here its answer is read as it is "
    "written), a mean of deviations that begins as the plain mean of five steps, keeping surplus prompts for later steps, and the "
    "loss's mean over tokens, where GRPO's is over replies"
)
data = Data(
    answer="the reference answer, a text of any words",
    rows=[
        {"prompt": "Why is the sky blue?", "answer": "Air scatters blue light more than red light."},
        {"prompt": "What does a thermometer measure?", "answer": "temperature"},
        {"prompt": "What is 11 times 6?", "answer": "66"},
    ],
)

check = Check(
    says="paid by its own probability of the reference after its reasoning, and by no verifier, a policy is right more often",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="pass@1", direction="higher", margin=0.1, against="before.pass@1",
    steps=40, learns=None,
    sanity=True,
    finding="36% right before and 74% after, paid by the probability of the reference alone: the reward teaches. That a mean of "
    "probabilities is better than a product is not tested: answers here are few tokens",
)  # fmt: skip
baseline = "grpo"
