"""VSRM: reward each step by the gain in accuracy of answers forced before and after it.

    A_k: accuracy of N answers forced after step k;     d_k = A_k - A_(k-1)
    r_k = d_k if |d_k| >= eps, else gamma^q d_(k+q), for the least q of 1 .. 4 with |d_(k+q)| >= eps, else 0
    reward: outcome + r_k at the end of step k;     the loss is PPO's

Outcomes pay a reply that goes on reflecting after it had the answer as they pay one that stops there. Here a step that changes
nothing earns little, and one that overturns what was right is charged. What changes nothing shares in what comes of it.

Yue et al. 2025, arXiv:2508.10293. Words, gaps (1,000 and 400 characters, about 250 and 100 tokens), N = 5 of up to 768 tokens at
temperature 0.6 and top_p 0.95, eps = 1e-5, gamma = 0.7, four steps ahead, and that what comes before the first cut is not paid, are
those of the released code (1benwu1/VSRM-Efficient-LRMs, 6bb5252, verl/workers/rollout_postprocess.py). It pays a step at its
first token; here at its last, as the paper writes. Sentences that begin a reflection divide a reply; at="" takes every line or
sentence for a step.
"""

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Recipe, Run, Scores, Term
from rewardlab.data.columns import Data
from rewardlab.evals.length import length_of_right
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.rewards.forced_answer import forced_accuracy
from rewardlab.rewards.progress import step_gain
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.scores import derive
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, Share

REFLECTION = (
    r"(?i:\b(?:wait|but|alternatively|however|hmm|let me double-check|hold on|looking back|seems solid|similarly"
    r"|that seems right)\b)|\bSo\b"
)


@reward(over="groups")
def propagated(
    groups: list[Group], run: Run, *, inner: Reward, eps: NonNegativeFloat = 1e-5, gamma: Share = 0.7, ahead: NonNegativeInt = 4
) -> Scores:
    """The step rewards of `inner`; a step with less than eps gets a share of the next larger one within `ahead` steps: gamma for
    each step between them, and 0 if there is none.
    """
    return [
        [derive("propagated", None if s.missing else Term(None, _spread(s.steps, eps, gamma, ahead)), [s]) for s in row]
        for row in inner(groups, run)
    ]


def _spread(steps: tuple[tuple[int, float], ...], eps: float, gamma: float, ahead: int) -> tuple[tuple[int, float], ...]:
    paid = []
    for k, (at, gain) in enumerate(steps):
        # q = 0 is the step itself
        near = [(gamma**q, d) for q, (_, d) in enumerate(steps[k : k + 1 + ahead]) if abs(d) >= max(eps, 1e-12)]
        share, found = near[0] if near else (0.0, gain)
        paid.append((at, share * found))
    return tuple(paid)


def vsrm_stepwise(
    base: Recipe | None = None, *, n: int = 5, tokens: int = 768, mark: str = "Answer:", splitter: str = "sentence",
    at: str = REFLECTION, after: int = 250, apart: int = 100, eps: float = 1e-5, gamma: float = 0.7, ahead: int = 4,
    weight: float = 1.0, thinks: bool = False,
) -> Recipe:  # fmt: skip
    """n, tokens, mark: answers per cut, their length, and what forces them where replies do not think between tags.  splitter, at,
    after, apart: where replies are cut: before the sentences (or lines) that match `at`, after so many tokens, so far apart.
    eps, gamma, ahead: what a step earns that changes the accuracy by less than eps.  weight: of the steps beside the outcome.
    thinks: the chat template opens the thinking, and the prompt does not end with <think>.
    """
    base = base or ppo()
    forced = forced_accuracy(n=n, tokens=tokens, mark=mark, at=at, after=after, apart=apart, thinks=thinks)
    steps = propagated(inner=step_gain(inner=forced), eps=eps, gamma=gamma, ahead=ahead)
    return base.but(
        rollout=base.required("rollout").but_innermost(steps=splitter), reward=(base.reward or correct()) + weight * steps
    )


fidelity = "core"
left_out = "-10 for a reply without tags or a box: a reward for the form, which users may add"
data = Data(answer="the gold answer")

claim = Claim(
    says="right replies become shorter than PPO's on outcomes alone after equal updates, at the same accuracy",
    versus="ppo", task="arithmetic:biased=0.75,error=0.1,redundant=0.4", measure="log_right_length", direction="lower", margin=0.05,
    settings={"problems": 64, "n": 4, "splitter": "newline", "at": "", "after": 0, "apart": 0, "tokens": 8},
    versus_settings={"problems": 64}, by=length_of_right(rollout=independent(n=1)), steps=40, guard=Within("pass@1", low=-0.03),
    fault=Within("right_length", low=29.0, says="tokens of right replies"),
    tried="32 replies a step, 3 seeds: PPO learns .05, its right replies have 30.5 tokens, and this is right less often by .09",
    finding="29% right before, in 37 tokens; after 40 updates 72% in 28 tokens by the outcome alone, 54% in 34 tokens paid by "
    "steps too. Plain PPO shortens replies by itself here: nothing is left to mend, and rewards of steps slow the learning",
)  # fmt: skip
