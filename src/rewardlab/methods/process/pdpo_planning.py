"""pDPO: DPO pairs of right over wrong replies, and of right ones with high over low process rewards.

    r(y) = prod_t P(at least C of K continuations of y_<=t are right);   a model of the counts gives P
    pairs: (best right ones, wrong ones)  and  (a, b) both right with r(a) - r(b) > sigma;   loss: DPO on both

A right answer by luck teaches its unsound steps as if they were the reason. Continuing states of the policy's own replies tells
steps that lead there from steps that do not; a model of those counts then values whole replies, without search.

Jiao et al. 2024, arXiv:2402.00658, and the released code (SparkJiao/dpo-trajectory-reasoning, 3b5f04b,
scripts/best_of_filter_by_reward_v2.2.py; 25159c9, scripts/fixed_explore_from_infer/logiqav2/best_of_filter_full.sh; 74557d5,
conf/exp/dpo/logiqav2/llama2_7b_70bdistil_dpo_v1_0_th.yaml): K = 3, C = 1 (labels 1, 2 and 3 in the second; the first, older, has
C = 3), the product, sigma = 0.7, the wrong replies of highest r first, beta = 0.1. There 10 of 10 right replies are preferred to 10
wrong ones; here, for speed, 3 to 3. Departures: there a softmax over K + 1 counts, here their binomial likelihood in one chance,
the same on average but without a spread of its own; there the model learns first and from some states, here beside the policy from
all steps of the pairs, as often as they occur, so that pairs of two right replies begin once it tells them apart. Steps are lines.
`prm_init` may be a checkpoint, which `prm_every=0` keeps as it is.
"""

from __future__ import annotations

from dataclasses import replace

from rewardlab.checks.claim import Claim, Within
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Sampling, Update, rollout, with_surprise
from rewardlab.data.columns import Data
from rewardlab.evals.rewards import reward_of_right
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.objectives.labels import label_cross_entropy
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.counts import counted_steps
from rewardlab.rewards.monte_carlo import monte_carlo_steps
from rewardlab.rewards.reward import Reward
from rewardlab.rewards.steps import correct_steps
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.ranked import recorded_pairs, written
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.splitters import mark

# ---- Pairs by outcome, and, where both replies are right, by how they got there --------------------------------------

Judged = tuple[str, bool, float]
"""A text, whether it is right, and what the process reward says of it."""


@rollout(rows=lambda **_: 2)
def process_pairs(
    problems: list[Problem], run: Run, *, by: Reward, n: PositiveInt = 8, best: PositiveInt = 3, wrong: PositiveInt = 3,
    margin: NonNegativeFloat = 0.7, model: str = "reference", temperature: NonNegativeFloat = 1.0,
    splitter: str = "newline",
) -> list[Group]:  # fmt: skip
    """Of n replies to each problem: the `best` right ones under `by`, each preferred to the `wrong` highest-scored wrong ones, and
    to every right one that `by` scores lower by more than `margin`.

    So there are several pairs to a problem, the better reply first, and none where no reply is right. Equal texts count once;
    replies without a verdict or without a score by `by` are left out. If there is no pair at all, replies are paired with
    themselves, which teaches nothing, so that a step always has a batch. Steps are marked.  model: who writes, as in `ranked`.
    Logged: pairs, per problem, and right_pairs, the share of them that are both right.

    Jiao et al. 2024, arXiv:2402.00658
    """
    groups = _marked(written(problems, run, n, model, Sampling(run.max_new, temperature)), splitter, run)
    chosen: list[tuple[Problem, list[str]]] = []
    both_right = 0
    for group, verdicts, scores in zip(groups, run.verdicts(groups), by(groups, run), strict=True):
        judged: dict[str, Judged] = {}
        for t, v, s in zip(group, verdicts, scores, strict=True):
            if v.value is not None and s.total is not None:
                judged.setdefault(t.reply, (t.reply, v.value >= 1.0, s.total))
        outcome, process = paired_by_process(list(judged.values()), best, wrong, margin)
        both_right += len(process)
        chosen += [(group[0].problem, list(pair)) for pair in (*outcome, *process)]
    run.log("pairs", len(chosen) / len(problems))
    run.log("right_pairs", both_right / max(1, len(chosen)))
    chosen = chosen or [(group[0].problem, [group[0].reply] * 2) for group in groups]
    return _marked(recorded_pairs(chosen, run), splitter, run)


def paired_by_process(
    judged: list[Judged], best: int, wrong: int, margin: float
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:  # fmt: skip
    """(better, worse) texts: pairs of a right and a wrong one, and pairs of two right ones."""
    # sorted keeps the order of equals
    ordered = sorted(judged, key=lambda row: -row[2])
    right, others = [row for row in ordered if row[1]], [row for row in ordered if not row[1]]
    outcome = [(a, b) for a, _, _ in right[:best] for b, _, _ in others[:wrong]]
    process = [(a, b) for a, _, x in right[:best] for b, _, y in right if x - y > margin]
    return outcome, process


def _marked(groups: list[Group], splitter: str, run: Run) -> list[Group]:
    """Steps of recorded and of sampled replies alike: those of the author who wrote the last turn."""
    return [
        [mark(replace(t, steps=()), splitter, run.policy.pieces, t.turns[-1].author or run.policy.name) for t in g] for g in groups
    ]


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def pdpo_planning(
    base: Recipe | None = None, *, beta: float = 0.1, n: int = 8, best: int = 3, wrong: int = 3, margin: float = 0.7,
    continuations: int = 3, least: int = 1, temperature: float = 1.0, prm_init: str = "value-head",
    surprise: bool = False, prm_lr: float | None = None, prm_epochs: int = 1, prm_every: int = 1,
) -> Recipe:  # fmt: skip
    """n: replies to each problem.  best, wrong: how many of them are preferred, and to how many wrong ones.  margin: sigma; from 1
    up there are pairs by outcome alone.  continuations, least: K and C.  prm_init, prm_lr, prm_epochs, prm_every: of the process
    reward model (`Learner`).  surprise: it also reads the surprise of the policy (`Learner.init`), which no paper has.
    """
    base = base or dpo(beta=beta, problems=8)
    by = counted_steps(model="prm", k=continuations, least=least)
    prm = Recipe(objective=label_cross_entropy(), update=Update(lr=prm_lr, epochs=prm_epochs, loss_kind="scorer"))
    return base.but(
        rollout=process_pairs(by=by, n=n, best=best, wrong=wrong, margin=margin, temperature=temperature),
        # the labels that the model learns from; DPO reads no reward
        reward=monte_carlo_steps(n=continuations),
        also=(*base.also, Learner("prm", with_surprise(prm_init, surprise), prm, every=prm_every)),
    )


TAUGHT = {"prm_init": "embedded:arithmetic:judge", "prm_lr": 3e-4, "prm_epochs": 4, "lr": 1e-4}

fidelity = "core"
left_out = (
    "fine-tuning on solutions of a larger model first, a process reward model that has learnt before the pairs are made, with a "
    "probability for each count, and a second round"
)
data = Data(answer="the gold answer")

claim = Claim(
    says="pairs of two right replies, by their steps, leave fewer wrong steps in right replies than pairs by outcome alone",
    versus="pdpo_planning", task="arithmetic:biased=0.9,error=0.1,corrected=0.5", measure="right_reward", direction="higher",
    margin=0.02, settings={**TAUGHT, "margin": 0.3}, versus_settings={**TAUGHT, "margin": 1.0},
    by=reward_of_right(reward=aggregate(correct_steps(), by="mean"), rollout=independent(n=1, steps="newline")), steps=40,
    guard=Within("pass@1", low=-0.03), fault=Within("right_reward", high=0.95, says="share of right steps in right replies"),
    moved=Within("train.right_pairs", low=0.02, says="share of pairs that are both right"), start=None,
    tried="no two right replies lay .3 apart in redundant=0.4, where right answers have right steps, nor in choices, whose "
    "rationales the model of counts did not learn to value: its loss stayed at .68, .69 being chance",
    finding="no two right replies ever differed enough by the model to make a pair, so both sides were plain DPO by outcome: right "
    "in 39% before and 37% after, and right steps in right replies fell from 90% to 84%. Nothing of the method was tested",
)  # fmt: skip
baseline = "dpo"
