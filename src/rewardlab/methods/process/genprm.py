r"""GenPRM: a generative judge writes code to check each step, reads its output and decides; it learns from rationales that agree
with relative progress.

    label of step k:  P_k = q_k / q_(k-1) >= eps,     q: share of right continuations, q_0: before the first step;  0 once q was 0
    kept: checks of a solution, a rationale (analysis, code, output, verdict) of each step, in which every verdict is the label
    judge: -mean log p(what it wrote itself)
    score of step k:  mean over N rationales of p(Yes) / (p(Yes) + p(No)) at the verdict

One right continuation is enough for a hard label (q_k > 0), which calls a wrong step right where some continuation makes up for it;
relative progress asks what a step cost. Running the code replaces a guess at its result, and several rationales may vote.

Zhao et al. 2025, arXiv:2504.00891. eps = 0.8, that all steps after q_k = 0 are wrong, and that a solution is dropped for one
verdict that is not its label are the paper's (from notes on it). The course of a rationale, the output as its first line of code
ends, the chance at the last Yes or No, and its mean are those of the released code (RyanLiu112/GenPRM, 590bc94,
src/prm_evaluation/infer_module/genprm_inference.py). There a rationale without a verdict scores 1/2, here it does not vote.
(inferred): the prompts, votes, and the least chance of a step as the score of a solution. A larger model, `writer`, writes the
rationales that are kept, there once, here beside the policy, which stays as it is. Left out: the judge as a critic for refinement.

Data: prompts with gold answers, for the labels; --judge PATH, a language model that can write Python, and
--writer PATH where it is to learn. Steps are lines.
"""

from dataclasses import replace

from rewardlab.core import Group, Learner, Part, Problem, Recipe, Run, Score, Scores, Trajectory, Update
from rewardlab.core.part import decorator
from rewardlab.evals.first_errors import first_errors_labelled
from rewardlab.evals.reranked import reranked
from rewardlab.methods.baselines.sft import sft
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.executed import Checking, executed_checks, rationales, steps_to_check
from rewardlab.rewards.monte_carlo import monte_carlo_steps, sampled_pass_rate
from rewardlab.rewards.operator import operator
from rewardlab.rewards.progress import relative_progress
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.steps import correct_steps
from rewardlab.rollouts.independent import independent

problems_from = decorator(Part)
JUDGE, WRITER = "judge", "writer"


@problems_from
def agreed(
    groups: list[Group], scores: Scores, run: Run, *, writer: str = WRITER, votes: int = 1, max_new: int = 512,
    temperature: float = 0.6,
) -> list[Problem]:  # fmt: skip
    """The problems of checking each labelled step, with a rationale whose verdict is the label in the column `solution`.

    The k-th rationales of a solution's steps are one check of it, kept whole if every verdict is the label, else dropped.
    Logged: agreed, the share of checks that are kept, of those with all verdicts.
    """
    solutions = [asked for row in zip(groups, scores, strict=True) for t, s in zip(*row, strict=True) if (asked := _asked(t, s))]
    how = Checking(votes=votes, max_new=max_new, temperature=temperature)
    found = iter(rationales(run, writer, [p for asked in solutions for p, _ in asked], how))
    # a step that no rationale fits to leaves its solution without a check
    checks = [(asked, check) for asked in solutions for check in zip(*[next(found) for _ in asked], strict=False)]
    told = [(asked, check) for asked, check in checks if all(r.right is not None for r in check)]
    kept = [pair for pair in told if all(r.right == label for (_, label), r in zip(*pair, strict=True))]
    if told:
        run.log("agreed", len(kept) / len(told))
    return [replace(p, meta={**p.meta, "solution": list(r.said)}) for pair in kept for (p, _), r in zip(*pair, strict=True)]


def _asked(t: Trajectory, score: Score) -> list[tuple[Problem, bool]]:
    labels = {} if score.missing else dict(score.steps)
    return [(p, labels[at] > 0) for p, at in zip(steps_to_check(t), t.steps, strict=False) if at in labels]


@operator(steps=True)
def any_right(share: float) -> float:
    """Hard estimation: 1 where one continuation is right."""
    return float(share > 0)


def genprm(
    base: Recipe | None = None, *, eps: float = 0.8, n: int = 4, continuations: int = 8, votes: int = 4, longest: int = 512,
    judge: str = "copy:policy", writer: str | None = None, lr: float | None = None, choose: int = 8,
) -> Recipe:  # fmt: skip
    """eps: share of the chance that a right step keeps.  n, continuations: replies per problem, and tries from each of their steps.
    votes, longest: rationales of a step, and their tokens.  judge, lr: where it begins (`Learner.init`), and its rate.  writer: of
    the rationales that it learns from, likewise; None: it has learnt before, and stays as it is.  choose: replies to choose from.
    """
    base = base or Recipe(name="genprm", update=Update(problems=8))
    kept = agreed(votes=votes, max_new=longest)
    learner = Learner(JUDGE, judge, sft(lr=lr).but(measure=None, small_lr=1e-5), kept, every=int(writer is not None))
    others = (Learner(WRITER, writer, Recipe(), every=0),) if writer else ()
    return base.but(
        # no objective of its own: the policy samples and continues
        rollout=independent(n=n, steps="newline"),
        reward=labels(continuations, eps),
        measure=reranked(by=aggregate(executed_checks(votes=votes, max_new=longest), by="min"), n=choose),
        also=(*base.also, learner, *others),
    )


def labels(n: int, eps: float) -> Reward:
    """Relative progress by n continuations of each step, and n replies to the problem."""
    return relative_progress(of=monte_carlo_steps(n=n), start=sampled_pass_rate(n=n), eps=eps)


ANNOTATORS = {"relative": labels(8, 0.5), "hard": any_right(monte_carlo_steps(n=8))}
claim = Claim(
    says="labels by relative progress locate first errors better than hard labels of as many continuations of a step do",
    versus=None, task="arithmetic", measure="f1.relative", direction="higher", margin=0.019, against="f1.hard",
    settings={"n": 1, "continuations": 1, "votes": 1, "problems": 1, "writer": "copy:policy"},
    by=first_errors_labelled(truth=correct_steps(), annotators=ANNOTATORS, rollout=independent(n=2, steps="newline")), problems=200,
    steps=1, fault=Within("located.hard", high=0.95, says="flawed solutions whose first error a hard label finds"),
    learns=None, start=None,
    tried="eps .2, .4, .6, .8 at 8 continuations, 240 solutions of one seed: F1 .95, .97, .95, .87, hard labels .93: at .8 noise "
    "looks like loss where continuations are few",
)  # fmt: skip
baseline = None
