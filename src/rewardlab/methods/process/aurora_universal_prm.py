"""AURORA: step labels by an ensemble of judge prompts, verified against the reference answer.

    label of a step: what most of the verdicts under the prompts A, B, C, .. say of it
    reverse verification: the prompts hold the reference answer; where the reply has another one, a verdict that finds no step
    wrong has no vote;     process reward model: cross-entropy to the labels; at test time it chooses among n replies

A judge errs in the way that its prompt suggests: one that checks step by step overlooks a step that leads nowhere, one that looks
for an error finds one where there is none. Verdicts under different prompts err on different steps. A judge who solves the problem
alone may make the mistake that the reply makes; the reference tells that there is one.

Tan et al. 2025, arXiv:2502.11520. No prompts and no training code were found: (inferred) are the four prompts, the vote step by
step, the rule of the reference, and that the model is trained by cross-entropy, here beside the policy, there once, from a file.

The judge is --judge PATH, a copy of the policy's start without it; in Python, step rewards of your own may vote (annotators=...).
Steps are lines.
"""

from __future__ import annotations

from typing import Any

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Learner, Recipe, Run, Score, Scores, Trajectory, Update, with_surprise
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.reranked import reranked
from rewardlab.evals.step_labels import label_quality
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.judged_steps import judged_steps
from rewardlab.rewards.model import model_score
from rewardlab.rewards.noise import FRESH, quantile, step_errors
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.steps import correct_steps
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import Share

# ---- Several annotators of steps, put to the vote --------------------------------------------------------------------


@reward(over="groups")
def voted_steps(groups: list[Group], run: Run, *, inner: tuple[Reward, ...], reference: bool = False, hard: bool = True) -> Scores:
    """1 at the end of each step that most annotators find right, 0 at those that most find wrong; no label where half do.

    inner: step rewards, each with a vote on the steps that it speaks of: right where it pays at least 1/2.  reference: an annotator
    has no vote on a wrong reply in which it finds no step wrong: the task's verifier, which knows the answer, says that one is.
    hard: False: the label is the share of votes for right.  No verdict where nobody votes.
    """
    if not inner:
        raise RewardlabError("voted_steps needs annotators: inner=(judged_steps(...), tool_steps(), ...)")
    tables = [part(groups, run) for part in inner]
    failed = [[s.value is not None and s.value < 1.0 for s in row] for row in run.verdicts(groups)] if reference else None
    return [
        [_voted([table[g][i] for table in tables], failed is not None and failed[g][i], hard) for i in range(len(group))]
        for g, group in enumerate(groups)
    ]


def _voted(said: list[Score], flawed: bool, hard: bool) -> Score:
    ballots = [{at: x >= 0.5 for at, x in s.steps} for s in said if not s.missing and s.steps]
    ballots = [ballot for ballot in ballots if not (flawed and all(ballot.values()))]
    votes: dict[int, list[bool]] = {}
    for ballot in ballots:
        for at, right in ballot.items():
            votes.setdefault(at, []).append(right)
    shares = {at: sum(row) / len(row) for at, row in sorted(votes.items())}
    labels = [(at, float(x > 0.5) if hard else x) for at, x in shares.items() if not hard or x != 0.5]
    return Score(steps=labels) if labels else Score(None, why="no annotator has a vote")


@reward(over="groups")
def noisy_steps(
    groups: list[Group], run: Run, *, inner: Reward, miss: Share = 0.2, alarm: Share = 0.1, annotator: str = "a",
    fresh: Share = FRESH,
) -> Scores:  # fmt: skip
    """An annotator of known error rates: wrong for a step that the step reward `inner` gives nothing, except for a share `miss`,
    and right for the others, except for a share `alarm`.

    The noise belongs to annotator, problem, reply and step: the same one errs alike whenever it is asked, others by themselves.
    fresh: share of its variance that is new at each step: one who overlooks a step is likely to overlook the next wrong one.
    """
    return [[_noisy(t, s, miss, alarm, annotator, fresh, run.seed) for t, s in zip(*rows, strict=True)]
            for rows in zip(groups, inner(groups, run), strict=True)]  # fmt: skip


def _noisy(t: Trajectory, truth: Score, miss: float, alarm: float, annotator: str, fresh: float, seed: int) -> Score:
    if truth.missing or not truth.steps:
        return Score(None, why=truth.why or "no steps were judged")
    ends = [at for at, _ in truth.steps]
    noise = {right: step_errors(("noisy_steps", seed, annotator, right), t, ends, fresh) for right in (True, False)}

    def errs(k: int, right: bool) -> bool:
        return quantile(noise[right][k]) < (alarm if right else miss)

    return Score(steps=[(at, float((paid > 0) != errs(k, paid > 0))) for k, (at, paid) in enumerate(truth.steps)])


# ---- the recipe ---------------------------------------------------------------------------------------------------------

ABOUT = (
    "Here are a problem, its answer, and a solution to it, cut into paragraphs that are numbered from 0.\n\n"
    "Problem:\n{question}\n\nReference answer: {answer}\n\nSolution:\n{steps}\n\n"
)
EACH = "End with one line for each paragraph: its number, a colon, and right or wrong, such as\n0: right"
PROMPTS = (
    "Check every paragraph by itself: its claims and its calculations. ",
    "Solve the problem yourself first, and compare your solution with this one, paragraph by paragraph. ",
    "Begin at the reference answer and go back: which paragraphs lead to it, and after which can it no longer be reached? ",
    "You are a strict examiner. For every paragraph look for a reason why it is wrong, and call it wrong if the reason holds. ",
)


def aurora_universal_prm(
    base: Recipe | None = None, *, annotators: tuple[Reward, ...] = (), judge: str = "copy:policy", votes: int = 1,
    longest: int = 1024, reference: bool = True, n: int = 4, choose: int = 8, init: str = "value-head",
    surprise: bool = False, lr: float | None = None, epochs: int = 1,
) -> Recipe:  # fmt: skip
    """annotators: step rewards that vote; (): the model `judge` under four prompts (`Learner.init`).  votes: its replies under
    each, sampled where there are several.  longest: their tokens.  reference: whether the outcome disqualifies verdicts.  n,
    choose: replies per problem, and to choose from when it is measured.  init, lr, epochs: of the model.  surprise: it also reads
    the surprise of the policy (`Learner.init`), which no paper
    has.
    """
    base = base or Recipe(name="aurora_universal_prm", update=Update(problems=8))
    own = () if annotators else (Learner("judge", judge, Recipe(), every=0),)
    # several replies at temperature 0 would be one
    how: dict[str, Any] = {"votes": votes, "temperature": float(votes > 1), "max_new": longest}
    asked = tuple(judged_steps(form="each", ask=ABOUT + prompt + EACH, **how) for prompt in PROMPTS)
    # labels are the model's own reward: the policy, which stays as it is, needs a verdict on every reply
    labels = voted_steps(inner=annotators or asked, reference=reference)
    prm = Recipe(reward=labels, objective=label_cross_entropy(), update=Update(lr=lr, epochs=epochs, loss_kind="scorer"))
    return base.but(
        rollout=independent(n=n, steps="newline"),
        reward=base.reward or correct(),
        measure=reranked(by=model_score(model="prm"), n=choose),
        also=(*base.also, *own, Learner("prm", with_surprise(init, surprise), prm)),
    )


JUDGES = tuple(
    noisy_steps(inner=correct_steps(), miss=miss, alarm=alarm, annotator=name)
    for name, miss, alarm in (("lenient", 0.5, 0.02), ("solver", 0.3, 0.1), ("backwards", 0.25, 0.15), ("strict", 0.1, 0.3))
)
fidelity = "reading"
left_out = (
    "the paper's prompts and its rule for the reference, which are not public; replies by many policies (a file of them can be "
    "labelled by prm label); and UniversalBench, of which no file was found"
)
data = Data(answer="the gold answer, which the judge reads")

check = Check(
    says="four judges of different bias that vote, and that know the answer, find more first errors than the best of them alone",
    versus=None, task="arithmetic:biased=0.75,error=0.1", measure="f1.voted", direction="higher", margin=0.091, against="f1.best",
    settings={"annotators": JUDGES},
    by=label_quality(
        truth=correct_steps(), rollout=independent(n=4, steps="newline"),
        annotators={"voted": voted_steps(inner=JUDGES, reference=True), "unaware": voted_steps(inner=JUDGES), "best": JUDGES[1]},
    ), problems=150, steps=1, fault=Within("f1.best", high=0.9, says="F1 of first errors by one judge"), learns=None, sanity=True,
    finding="first errors are found with F1 .91 by four judges who know the answer, .78 by four who do not, .72 by one: the "
    "vote gains .06, and knowing the answer .13. The judges are simulated, and err independently of each other, so that a vote "
    "must help; four prompts to one model may err alike",
)  # fmt: skip
baseline = None
