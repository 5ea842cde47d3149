"""Think-RM: a judge that thinks long, taught by the longest right judgements; its preferences pay a policy without any scores.

    judge:   -log p(y*),  y* the longest of several judgements that are right;    then GRPO with r(y) = 1 if the verdict is right
    policy:  d_ij = s(y_i, y_j) = -d_ji, what the judge says of two replies of a group of G
             A_i = (1/G) sum_j d_ij / sqrt(sum_ij d_ij^2 / (2 G (G - 1)) + eps)

With scores, d_ij = r_i - r_j makes this GRPO's advantage, so that preferences need not become scores first, and may go in circles.
Long judgements are kept since they try hypotheses and take verdicts back; GRPO then shortens what is only long.

Hong et al. 2025, arXiv:2505.16265, and IlgeeHong/Think-RM at 823375b (run_binary_max_sft.sh, run_binary_max_grpo.sh,
naive-reasoning-binary.py and -multiclass.py, core_algos.compute_grpo_difference_advantage, call_gen_prm_*.py): n = 8 judgements,
KL .0001, imitation at 1e-5 and RL at 2e-6, four updates of a batch, the mean over tokens, eps = 1e-6, G = 4; a preference with
strength is paid 1 where it is exact and 1/2 where its side is right. In the release each pair is judged in one order, 0 where it
cannot be read, and a verdict without strength counts 1 / length of the judgement in characters: what was long in the balance says
less. (inferred): a group of which nothing can be read has no verdict; the same text twice is a tie that nobody is asked about; 20
steps of imitation; a judgement is kept where its side is right. There QwQ-32B wrote the judgements: here the rows bring them, or
the policy writes them.

`think_rm` trains a judge; with `judge`, the policy that this one prefers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.clients.messages import Failure
from rewardlab.core import Group, Problem, Recipe, Run, Sampling, Score, Scores, Trajectory, measure
from rewardlab.credit.value import to_go
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import number_of
from rewardlab.judges.cases import UNREAD
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import judge_beside, judgements_first, trained_judge
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.judge import judgements_by
from rewardlab.rewards.judgements import reading_of
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.ranked import written
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from rewardlab.worlds.duels import FORM

TOKENS = 2048
"""Of a judgement by which a policy is paid."""
STRENGTHS = 3
"""The strongest preference: a value of 0 or 1 is one of -3 or 3."""

# ---- the judge -----------------------------------------------------------------------------------------------------------


def strength_of(values: Sequence[float]) -> float:
    """How far a judgement of two replies prefers the first: from -3 to 3."""
    return STRENGTHS * (values[0] - values[1])


@reward
def right_strength(trajectory: Trajectory, *, form: str = "think_rm", column: str = "strength") -> Score:
    """1 for a preference that is exact, 1/2 where the side alone is right, 0 otherwise, or without a verdict.

    column: how much better the chosen reply is, 1, 2 or 3; the side is all there is to a row without it.
    """
    found = reading_of(trajectory, form)
    if isinstance(found, str):
        return Score(None, why=found)
    reading, worth = found
    if reading.values is None:
        return Score(UNREAD, why=reading.said)
    said, sign = strength_of(reading.values), 1 if worth[0] > worth[1] else -1
    gold = number_of(trajectory.problem.meta.get(column))
    exact = gold is None or round(abs(said)) == round(gold)
    return Score(float(said * sign > 0) * (1.0 if exact else 0.5), why=f"said {reading.said}", extracted=reading.said)


# ---- the policy ----------------------------------------------------------------------------------------------------------

Pair = tuple[Problem, str, str]


def preferences(
    pairs: Sequence[Pair], run: Run, *, model: str, form: str, by_length: bool, temperature: float, max_new: int
) -> list[float | str]:  # fmt: skip
    """s(first, second) of each pair by one judgement: positive where the first is preferred, 0 for the same text; or why there is
    none."""
    of = form_of(form)
    differ = [i for i, (_, a, b) in enumerate(pairs) if a != b]
    asked = [of.asked(replace(pairs[i][0], answer=None), pairs[i][1:]) for i in differ]
    said = judgements_by(run, model, asked, max_new or run.max_new, temperature, False, of) if asked else []
    found: list[float | str] = [0.0] * len(pairs)
    for i, judgement in zip(differ, said, strict=True):
        values, why = of.read(judgement, 2)
        if values is None or isinstance(judgement, Failure):
            found[i] = why
        else:
            found[i] = (values[0] - values[1]) / len(judgement.text) if by_length else strength_of(values)
    if asked:
        run.log("judge_no_verdict", sum(isinstance(found[i], str) for i in differ) / len(differ))
    return found


def advantages(d: np.ndarray, eps: float) -> np.ndarray:
    """(G,) of preferences d (G, G), d_ij = -d_ji; a reply alone has 0."""
    count = len(d)
    return d.sum(1) / count / np.sqrt((d**2).sum() / max(1, 2 * count * (count - 1)) + eps)


@reward(over="groups", relative=True)
def preferred(
    groups: list[Group], run: Run, *, model: str = "judge", form: str = "think_rm", by_length: bool = True,
    temperature: NonNegativeFloat = 0.6, max_new: NonNegativeInt = TOKENS, eps: PositiveFloat = 1e-6,
) -> Scores:  # fmt: skip
    """The advantage of a reply by what a judge says of all pairs of its group; they sum to 0, and need no credit but `to_go`.

    model: of the run, or openai:URL#NAME.  by_length: a verdict counts 1 / characters of its judgement; else by its strength.
    max_new: tokens of a judgement; 0: those of the run. A judgement that cannot be read counts 0, as in the release; in a group
    where none can be, no reply has a verdict.  Logged: judge_no_verdict, the share of those.
    """
    places = [(g, a, b) for g, group in enumerate(groups) for a, b in combinations(range(len(group)), 2)]
    pairs = [(groups[g][a].problem, groups[g][a].reply, groups[g][b].reply) for g, a, b in places]
    said = preferences(pairs, run, model=model, form=form, by_length=by_length, temperature=temperature, max_new=max_new)
    tables = [np.zeros((len(group), len(group))) for group in groups]
    known: list[list[float | str]] = [[] for _ in groups]
    for (g, a, b), s in zip(places, said, strict=True):
        known[g].append(s)
        if not isinstance(s, str):
            tables[g][a, b], tables[g][b, a] = s, -s
    return [
        [Score(None, why=str(own[0]))] * len(d) if own and all(isinstance(s, str) for s in own)
        else [Score(float(x)) for x in advantages(d, eps)]
        for d, own in zip(tables, known, strict=True)
    ]  # fmt: skip


@measure
def won_against_start(
    problems: Sequence[Problem], run: Run, *, model: str = "judge", form: str = "think_rm", temperature: NonNegativeFloat = 0.6,
    max_new: NonNegativeInt = TOKENS,
) -> dict[str, float]:  # fmt: skip
    """won: how often the judge prefers a reply of the policy to one of its start, each pair in both orders, ties half; judgements
    that cannot be read are left out, and where none can be, a half says that nothing is known.  judge_no_verdict: their share."""
    sampling = Sampling(run.max_new)
    mine, start = ([g[0].reply for g in written(list(problems), run, 1, who, sampling)] for who in ("policy", "reference"))
    pairs = [(p, *pair) for p, a, b in zip(problems, mine, start, strict=True) for pair in ((a, b), (b, a))]
    said = preferences(pairs, run, model=model, form=form, by_length=False, temperature=temperature, max_new=max_new)
    # the second time, the reply of the start stands first
    won = [(1 + np.sign(s) * (-1) ** i) / 2 for i, s in enumerate(said) if not isinstance(s, str)]
    silent = 1 - len(won) / len(said)
    return {"won": float(np.mean(won)) if won else 0.5, "n": float(len(problems)), "judge_no_verdict": silent}


# ---- the recipes ---------------------------------------------------------------------------------------------------------


def think_rm(
    base: Recipe | None = None, *, form: str = "think_rm", distil: int = 20, sft_lr_scale: float = 5.0, written_each: int = 4,
    n: NonNegativeInt = 0, beta: float = 1e-4, problems: int = 16, votes: int = 1, lr: float | None = None, judge: str = "",
    by_length: bool = True, max_judgement: PositiveInt | None = None,
) -> Recipe:  # fmt: skip
    """form: what the judge is asked (`judges/named.py`).  distil, sft_lr_scale: first steps, which imitate the longest right
    judgements, of written_each that the policy writes where a row has none, and their learning rate as a multiple of the
    recipe's.  n: judgements of a row, or replies to a prompt (G); 0: 8 and 4.  beta: of the KL.  problems, votes: as in
    `trained_judge`.  judge: a trained judge, a model or openai:URL#NAME: it is then a policy that is trained.  by_length: as in
    `preferred`; False suits think_rm_graded.  max_judgement: tokens of its judgements, if not 2048."""
    n = n or (4 if judge else 8)
    base = base or grpo(n=n, beta=beta).but(minibatches=min(4, problems), weighting=token_mean())
    if judge:
        return _by_preferences(base, judge, form, by_length, max_judgement or TOKENS).but(problems=problems, lr=lr)
    base = trained_judge(base, form=form, n=n, problems=problems, votes=votes, lr=lr)
    paid = right_strength(form=form)
    first = judgements_first(
        first=distil, by=paid, form=form, n=written_each, keep="longest", sft_lr_scale=sft_lr_scale, inner=base.loop
    )
    return base.but(reward=paid, loop=first if distil else base.loop)


def _by_preferences(base: Recipe, judge: str, form: str, by_length: bool, max_new: int) -> Recipe:
    model, others = judge_beside(judge)
    return base.but(
        reward=preferred(model=model, form=form, by_length=by_length, max_new=max_new),
        credit=to_go(),
        measure=won_against_start(model=model, form=form, max_new=max_new),
        also=(*base.also, *others),
    )


fidelity = "core"
left_out = "QwQ-32B, which wrote the long judgements, and five epochs of imitating them"
data = Data(
    chosen=Column("the better reply, for a judge that is trained", optional=True, needed_with=("kind", "pairwise")),
    rejected=Column("the worse reply", optional=True, needed_with=("kind", "pairwise")),
    strength=Column("how much better it is: 1, 2 or 3", optional=True),
    judgement=Column("a judgement to imitate in the first steps, where the better reply stands first", optional=True),
    judgement_reversed=Column("the same where the worse reply stands first", optional=True),
    rows=[
        {"prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone.",
         "strength": 3, "judgement": "Gravity acts all year. Wait, do all trees shed? Most do. <answer>A</answer>"},
        {"prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow.",
         "strength": 2, "judgement_reversed": "The first says nothing of time. <answer>B</answer>"},
    ],
)  # fmt: skip

check = Check(
    says="a judge that imitated the longest of its right judgements for 10 steps is right more often after 50 of reinforcement "
    "than one that imitated the first",
    versus="trained_judge", task="duels", measure="judged", direction="higher", margin=0.03,
    settings={"form": FORM, "distil": 10}, versus_settings={"form": FORM, "distil": 10}, problems=300, steps=60,
    tried="40 steps of imitation alone on duels:kinds=wishes, one run: right 65% at the start, 50% with the longest, of which many "
    "ramble (27 tokens instead of 16), and 55% with the first",
    finding="65% right with the longest, 64% with the first, from 62%: the longest of its judgements are hardly longer (23 "
    "tokens, 21)",
    version=2, replaces="its rival imitated at twice its rate, which made verdicts worse",
)  # fmt: skip
baseline = "trained_judge"
