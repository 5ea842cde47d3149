"""B-STaR: each round of self-training samples at the temperature, and imitates above the threshold, of the highest balance score.

    bs(x) = min(n'/n*, 1) * (n'/n)        n: different replies to x that are selected; n': those of them that are right
    T     = argmax over temperatures of max over tau of the mean of bs over problems, once per round
    tau   = the same maximum, over what is then sampled at T;        loss = -mean log pi over the tokens that are selected
    selected: of each problem the k best replies with a score of tau or more, k as small as gives `target` replies per problem
    score = right + (least process reward of a step) / 5

With a fixed temperature and threshold self-training stagnates: the policy repeats itself, so that there is less and less to find,
and a score that told well among the replies of one round does not among those of the next. The balance score asks for both, many
right replies (explore) and no others (exploit).

Zeng et al. 2024, arXiv:2412.17256; hkust-nlp/B-STaR, train_code: determine_hyper.py (05c0e3f: score, n* = 8, the growing k; where
no reply is right, the lowest threshold), metric_modiacc_auto.py (947debae: tau anew on all replies), train_bstar.sh (947debae: 64
replies, T of .5 to 1.2 by .05, 67,500 selected, the optimizer goes on from round to round). There temperatures are tried on 1,000
problems, and a round is 500 updates on all; here on the problems of the round's first step, and a round is `every` steps that each
sample anew. Left out: the written solution among the candidates, with a score of 1; without it a problem of which nothing is
selected counts as 0. Thresholds are the scores that occur, not a grid of -1 to 1; equal replies are dropped before the k best are
taken, not after. (inferred): n = 16, 4 temperatures, target = 6 (67,500 of MATH's 12,000 problems are 5.6 of 64).

Data: prompts with answers to verify by, enough per step that some are solved; if there is one, a reward of steps (process=...).
"""

from rewardlab.core import Recipe
from rewardlab.core.domain import PositiveFloat, PositiveInt
from rewardlab.evals.passk import coverage
from rewardlab.methods.baselines.rejection_sampling import rejection_sampling
from rewardlab.objectives.ratio import imitate
from rewardlab.objectives.weighting import tagged_mean
from rewardlab.proof.claim import Claim, Within
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.balanced import SELECTED, balanced


def b_star(
    base: Recipe | None = None, *, process: Reward | None = None, n: PositiveInt = 16, wanted: PositiveInt = 8,
    target: PositiveFloat = 6.0, lowest: PositiveFloat = 0.5, highest: PositiveFloat = 1.2, temperatures: PositiveInt = 4,
    threshold: float | None = None, every: PositiveInt = 10,
) -> Recipe:  # fmt: skip
    """process: a reward of steps, which joins the score; None: the verdict alone.  n: replies per problem.  wanted: n*.  target: of
    them selected.  lowest, highest, temperatures: the range of T, and how many are tried.  threshold: a fixed tau.  every: steps of
    a round.
    """
    base = base or rejection_sampling(n=n)
    of = base.required("rollout")
    if process is not None:
        of = of.but_innermost(steps="newline")
    score = correct() if process is None else correct() + 0.2 * aggregate(process, by="min")
    return base.but(
        rollout=balanced(
            of=of, by=score, wanted=wanted, target=target, lowest=lowest, highest=highest, temperatures=temperatures,
            threshold=threshold, every=every,
        ),
        objective=imitate(), weighting=tagged_mean(tag=SELECTED),
    )  # fmt: skip


claim = Claim(
    says="self-training at a temperature tuned each round is right oftener than at a fixed one, and eight replies find as much",
    versus="b_star", task="countdown:largest=30,habit=0.9", measure="pass@1", direction="higher", margin=0.02,
    settings={"problems": 8},
    versus_settings={"problems": 8, "lowest": 1.0, "highest": 1.0, "temperatures": 1, "threshold": 0.5},
    by=coverage(n=8, k=8), problems=500, steps=40, guard=Within("pass@8", low=-0.03),
    fault=Within("pass@8", high=0.91, says="what eight replies find, .94 at the start"),
    moved=Within("train.temperature", low=0.05, says="temperature, above the fixed one"), start=None,
    tried="one seed, 40 updates, before, fixed, tuned: here pass@1 .45, .54, .56, distinct 1.47, 1.37, 1.35; at "
    "arithmetic:biased=0.75,error=0.1, of one right way a problem, .38, .57, .45, where rejection sampling reaches .80",
    finding="imitating what is solved already gains .06 on the fixed side, less than seeds differ; greedily both fall, by .1",
)  # fmt: skip
baseline = "rejection_sampling"
