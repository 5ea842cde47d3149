"""Early rejection: beam search that scores candidate steps after a few tokens, and completes only the best.

    each of the N / M rows of a beam begins M next steps, tau tokens long;    the N / M best of the N by r(partial) are completed

A process reward model is a partial reward model, too: if r(partial) is r(whole) plus noise that shrinks with tau, the chance that
the best row is dropped falls exponentially in tau, while most tokens of steps that would be dropped anyhow are never written.

Cheshmi, Khan et al. 2025, arXiv:2508.01969, and the released code (scheshmi/accelerated-reasoning-ER-PRM, b50b781,
partial_beam_search.py; tau = 64, N = 16, M = 4, temperature 0.8 in main_partial_beam_search.py, 2a865a0). As there, what is
completed is not scored again before the next step. There the first step is begun M times, here N times; the answer is the row with
the best partial score, here complete replies are scored once more; and a complete reply is recognised by "boxed" and a phrase, here
by its end token.

The scorer must read unfinished steps, as a process reward model does (`rewardlab search --scorer`).
"""

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Recipe, Update
from rewardlab.data.columns import Data
from rewardlab.evals.passk import accuracy
from rewardlab.methods.baselines.weighted_vote import own_probability
from rewardlab.rewards.correct_so_far import correct_so_far
from rewardlab.rewards.imperfect import imperfect
from rewardlab.rollouts.beams import beams
from rewardlab.rollouts.best import best


def early_rejection(
    base: Recipe | None = None, *, width: int = 4, branch: int = 4, tokens: int = 64, temperature: float = 0.8,
    step_tokens: int | None = None, stop: tuple[str, ...] = ("\n",),
) -> Recipe:  # fmt: skip
    """width: rows kept, N / M.  branch: steps begun of each, M.  tokens: tau.  step_tokens: most tokens of a step.
    stop: the texts that end one."""
    base = base or Recipe(name="early_rejection", reward=own_probability(), measure=accuracy(), update=Update())
    search = beams(
        score=base.required("reward"), width=width, branch=branch, temperature=temperature, step_tokens=step_tokens, early=tokens,
        stop=stop,
    )  # fmt: skip
    return base.but(rollout=search, select=best())


fidelity = "core"
left_out = "larger batches while steps are partial, which save memory and change no reply; the limit of 20 steps"
data = Data(answer="the gold answer")

claim = Claim(
    says="scoring begun steps and completing only the best costs fewer tokens than beam search, and is as often right",
    versus="beam_search", task="arithmetic:biased=0.75,error=0.1", measure="tokens_per_answer", direction="lower", margin=50,
    settings={"tokens": 5, "temperature": 1.0}, reward=imperfect(auc=0.8, inner=correct_so_far(partial=True)), problems=300,
    guard=Within("accuracy", low=-0.03), fault=Within("tokens_per_answer", low=100.0, says="tokens for an answer"), learns=None,
    start=None,
    finding="scored after 5 tokens of a step, the search costs 353 tokens an answer and 53% are right; scored after whole steps, "
    "453 tokens and 65%: so early a score rejects too much",
)  # fmt: skip
baseline = "beam_search"
system = "early-rejection-partial-rm"
