"""The invisible leash: does training reach right answers that the start never gives, or does it lose more of them than it adds?

    pi_RL(y | x) is proportional to pi_start(y | x) exp(beta R(x, y)):    what the start never says is not said afterwards
    of the right answers among n replies of either:    preserved + shrunk + expanded = 1

pass@1 rises, and answers that were rare may get lost: where more shrinks than expands, the policy has become surer of what it could
do, and narrower. Tokens may stay as uncertain as they were while answers get fewer; both entropies are measured.

Wu et al. 2025, arXiv:2507.14843. The recipe is any method's (dapo+invisible_leash); a frozen copy of the policy is sampled beside
it at every evaluation, which also tells pass@k of both up to k = n (Yue et al. 2025, arXiv:2504.13837: where
the two curves cross). (inferred): an answer is within reach where one of n replies gives it; `least` asks for more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Sampling, Trajectory, measure
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import pass_at
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.answers import final_answer

START = "start"
"""The model of the run that holds the policy as it was before training."""


@dataclass(frozen=True)
class Said:
    """What one policy says to one problem, n times. answers: of each reply.  right: of each.  surprise: minus the log-prob of each
    sampled token, in nats, whose mean estimates the entropy of tokens."""

    answers: tuple[str, ...]
    right: tuple[bool, ...]
    surprise: np.ndarray

    def reached(self, least: int) -> set[str]:
        """The right answers that at least so many replies give."""
        counts = Counter(answer for answer, ok in zip(self.answers, self.right, strict=True) if ok)
        return {answer for answer, count in counts.items() if count >= least}


@measure
def support(
    problems: Sequence[Problem], run: Run, *, n: PositiveInt = 64, least: PositiveInt = 1, temperature: NonNegativeFloat = 1.0
) -> dict[str, float]:
    """pass@1 ... pass@n, and start.pass@k of the policy before training; preserved, shrunk, expanded: shares of the right answers
    that either gives at least `least` times among n replies; answer_entropy, token_entropy, and start. of both, in nats.

    The run needs a model `start`, which holds the policy before training (`also=` a Learner("start", "copy:policy")).
    """
    if START not in run.models:
        raise RewardlabError(f"support compares with the policy before training, and the run has no model {START!r}")
    # the same problems and random numbers for both
    before = _said(problems, replace(run, policy=run.models[START], _streams={}), n, temperature)
    now = _said(problems, replace(run, _streams={}), n, temperature)
    return {**_curves(now, n), **{f"start.{name}": x for name, x in _curves(before, n).items()}, **shares(before, now, least)}


def _said(problems: Sequence[Problem], run: Run, n: int, temperature: float) -> list[Said]:
    prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend([t for t in prompts for _ in range(n)], Sampling(run.max_new, temperature), run.rng("eval"))
    groups = [done[i : i + n] for i in range(0, len(done), n)]
    return [_of(group, [s.value for s in row]) for group, row in zip(groups, run.verify(groups, run), strict=True)]


def _of(group: Group, verdicts: Sequence[float | None]) -> Said:
    logprobs = [turn.logprobs for t in group for turn in t.turns if turn.author is not None and turn.logprobs is not None]
    surprise = -np.concatenate(logprobs) if logprobs else np.empty(0)
    answers = tuple(final_answer(t.reply) or "" for t in group)
    return Said(answers, tuple(v is not None and v >= 1.0 for v in verdicts), surprise)


def _curves(said: Sequence[Said], n: int) -> dict[str, float]:
    counts, ks = [sum(one.right) for one in said], [2**i for i in range(n.bit_length()) if 2**i <= n]
    found = {f"pass@{k}": float(np.mean([pass_at(k, n, count) for count in counts])) for k in ks}
    found["answer_entropy"] = float(np.mean([entropy(one.answers) for one in said]))
    if tokens := [one.surprise for one in said if len(one.surprise)]:
        found["token_entropy"] = float(np.mean(np.concatenate(tokens)))
    return found


def entropy(answers: Sequence[str]) -> float:
    """Of the distribution of answers, in nats."""
    shares = [count / len(answers) for count in Counter(answers).values()]
    return -sum(share * math.log(share) for share in shares)


def shares(before: Sequence[Said], now: Sequence[Said], least: int = 1) -> dict[str, float]:
    """preserved, shrunk and expanded, which add up to 1; nothing where neither gives a right answer."""
    kept = lost = new = 0
    for first, second in zip(before, now, strict=True):
        had, has = first.reached(least), second.reached(least)
        kept, lost, new = kept + len(had & has), lost + len(had - has), new + len(has - had)
    total = kept + lost + new
    return {"preserved": kept / total, "shrunk": lost / total, "expanded": new / total} if total else {}


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def invisible_leash(base: Recipe | None = None, *, samples: PositiveInt = 64, least: PositiveInt = 1) -> Recipe:
    """samples: replies to each held-out problem, of either policy.  least: replies that give an answer which is within reach."""
    base = base or grpo()
    start = Learner(START, "copy:policy", Recipe(), every=0)
    return base.but(measure=support(n=samples, least=least), also=(*base.also, start))


fidelity = "core"
left_out = "its models (ProRL against DeepSeek-R1-Distill among them) and benchmarks, and samples of thousands of replies"
data = Data(
    answer="the gold answer; where several answers are right, a verifier that accepts them all",
    rows=[
        {"prompt": "Name a divisor of 12 between 1 and 12. End with Answer: and the number.", "answer": "4"},
        {"prompt": "What is 17 * 6? End with Answer: and the number.", "answer": "102"},
        {"prompt": "Sum the digits of 2^10. End with Answer: and the number.", "answer": "7"},
    ],
)

check = Check(
    says="of the right answers within reach of 32 replies, GRPO loses more than it adds", versus=None,
    task="countdown:largest=30,habit=0.9", measure="shrunk", direction="higher", margin=0.05, against="expanded",
    settings={"problems": 8, "samples": 32}, problems=100, steps=40,
    finding="Of the right answers that either gives among 32 replies, 44% are kept, 53% are lost and 2.5% are new. One reply is "
    "right oftener (63%, 41% before), four solve fewer problems (78%, 81%) and 32 fewer still (87%, 98%): the curves "
    "cross below four replies. Entropy of answers falls from 1.9 to .6 nats, that of tokens from .13 to .08.",
)  # fmt: skip
