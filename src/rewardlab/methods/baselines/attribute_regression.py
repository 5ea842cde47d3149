"""Attribute regression: a reward model that rates a reply by several attributes at once, of which whoever uses it weighs each.

    (V_1 ... V_k) = W h,    h the state at the end of the reply;      L = mean over the attributes that are rated of (V_a - r_a)^2
    score = sum over a of w_a V_a

A preference says that one reply is better, and not why: a model of pairs may learn that the longer one is. Ratings of verbosity
beside ratings of helpfulness let the one be weighed against the other, also after training:
model:RUN?weights=helpfulness=1,verbosity=-0.5.

Wang et al. 2023, arXiv:2311.09528 (HelpSteer) and 2024, arXiv:2406.08673 (HelpSteer2); Nemotron-4-340B-Reward, Nvidia 2024,
arXiv:2406.11704, whose five attributes, rated from 0 to 4, and weights (its model card) are the defaults. (inferred): a rating that
is missing teaches nothing, and the others of its row do. Saved as a sequence classifier of transformers, one label an attribute.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check
from rewardlab.core import Batch, Learner, Outputs, Problem, Recipe, Run, Score, Term, Trajectory, Update, measure, objective
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import number_of
from rewardlab.errors import RewardlabError
from rewardlab.objectives.pairs import row_sum
from rewardlab.policies.attributes import mixed, read_attributes, written
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.recorded import recorded
from rewardlab.util.outputs import forward_batch

MODEL = "reward"
ROWS = 64  # of one pass
HELPSTEER = "helpfulness=0.3,correctness=0.74,coherence=0.46,complexity=0.47,verbosity=-0.33"


@reward
def rated(trajectory: Trajectory, *, attributes: tuple[str, ...]) -> Score:
    """The ratings of the row's reply, a column each, as terms; none of them is paid to anybody. No verdict on a reply without."""
    known = {name: number_of(trajectory.problem.meta.get(name)) for name in attributes}
    if all(rating is None for rating in known.values()):
        return Score(None, why=f"the row has no number in any of the columns {', '.join(known)}")
    return Score(terms={name: Term(rating, weight=None) for name, rating in known.items() if rating is not None})


@objective(unit="row", wants=("values",))
def attribute_error(out: Outputs, batch: Batch, run: Run, *, attributes: tuple[str, ...]) -> Tensor:
    """(B,) the mean over the attributes that are rated of (V_a - r_a)^2, V_a at the last position of the row."""
    said = out.values[torch.arange(len(batch)), batch.length - 1]  # (B, k)
    if said.shape[1] != len(attributes):
        raise RewardlabError(f"attribute_error needs a model with {len(attributes)} outputs, and this one has {said.shape[1]}")
    # what no reply of the batch is rated by is no term of it
    known = [batch.terms.get(name) for name in attributes]
    zeros = torch.zeros(len(batch), device=said.device)
    ratings = torch.stack([zeros if of is None else row_sum(of.reward, batch) for of in known], 1)
    given = torch.stack([zeros.bool() if of is None else of.rewarded.any(1) for of in known], 1)
    errors = torch.where(given, (said - ratings).square(), 0.0)
    return errors.sum(1) / given.sum(1).clamp(min=1)


@torch.no_grad()
def ratings_by(model, rows: Sequence[Trajectory]) -> np.ndarray:
    """(n, k) the outputs of a model at the ends of rows."""
    found = []
    for i in range(0, len(rows), ROWS):
        part = rows[i : i + ROWS]
        values = model.evaluate(forward_batch(part, model.device), ("values",)).values
        found.append(values[torch.arange(len(part)), torch.tensor([len(t) - 1 for t in part])].cpu())
    return torch.cat(found).numpy()


@measure
def ratings_told(problems: Sequence[Problem], run: Run, *, attributes: tuple[str, ...], model: str = MODEL) -> dict[str, float]:
    """How far the ratings of held-out replies are told.

    correlation: the mean over attributes of Pearson's between rating and output, and correlation.NAME of each.  score_correlation:
    of the weighted sums, over replies whose attributes are all rated.  error: the root of the mean squared error, in units of the
    ratings.  A correlation is 0 where either side never differs.
    """
    rows = [group[0] for group in recorded(fields=("reply",))(list(problems), run)]
    said = ratings_by(run.models[model], rows)
    true = np.array([[_or_nan(number_of(t.problem.meta.get(name))) for name in attributes] for t in rows])
    if np.isnan(true).all():
        raise RewardlabError(
            f"no held-out row has a number in any of the columns {', '.join(attributes)}: name them by --attributes"
        )
    by_name = {f"correlation.{name}": _correlation(true[:, k], said[:, k]) for k, name in enumerate(attributes)}
    scores = [mixed(torch.tensor(x, dtype=torch.float32), run.models[model].attributes).numpy() for x in (true, said)]
    return {
        "correlation": float(np.mean(list(by_name.values()))), **by_name, "score_correlation": _correlation(*scores),
        "error": float(np.sqrt(np.nanmean((said - true) ** 2))), "n": float(len(rows)),
    }  # fmt: skip


def _or_nan(rating: float | None) -> float:
    return np.nan if rating is None else rating


def _correlation(true: np.ndarray, said: np.ndarray) -> float:
    known = np.isfinite(true)
    a, b = true[known], said[known]
    return float(np.corrcoef(a, b)[0, 1]) if len(a) > 1 and a.std() > 0 and b.std() > 0 else 0.0


def attribute_regression(
    base: Recipe | None = None, *, attributes: str = HELPSTEER, reward_lr: float | None = None, problems: int = 32,
    init: str = "value-head",
) -> Recipe:  # fmt: skip
    """attributes: the columns of ratings, with the weight of each in the score.  problems: replies in a step.  reward_lr, init: of
    the reward model, as in `bradley_terry`."""
    weights = read_attributes(attributes)
    names = tuple(weights)
    base = base or Recipe(name="attribute_regression", update=Update(problems=problems))
    taught = Recipe(
        objective=attribute_error(attributes=names), reward=rated(attributes=names), update=Update(lr=reward_lr, loss_kind="scorer")
    )
    others = tuple(learner for learner in base.also if learner.name != MODEL)
    return base.but(
        rollout=recorded(fields=("reply",)),
        measure=ratings_told(attributes=names),
        also=(*others, Learner(MODEL, f"attributes:{written(weights)}:{init}", taught)),
    )


fidelity = "core"
left_out = "the attribute that asks for quality in prompts (SteerLM), and the selection of weights on RewardBench: they are given"
data = Data(
    reply="a reply that somebody rated",
    helpfulness=Column("a rating of the reply, a number; with --attributes any columns of ratings", optional=True),
    correctness=Column("the same of its correctness", optional=True),
    coherence=Column("the same of its coherence", optional=True),
    complexity=Column("the same of its complexity", optional=True),
    verbosity=Column("the same of its verbosity", optional=True),
    named_by="attributes",
    rows=[
        {
            "prompt": "Why do leaves fall?", "reply": "Trees save water in winter.", "helpfulness": 4, "correctness": 4,
            "coherence": 4, "complexity": 2, "verbosity": 1,
        },
        {
            "prompt": "How does one boil an egg?", "reply": "In a pan, as one does, and has always done, somehow.",
            "helpfulness": 1, "correctness": 2, "coherence": 3, "complexity": 0, "verbosity": 3,
        },
        {"prompt": "Name a planet.", "reply": "Mars.", "helpfulness": 3, "correctness": 4, "verbosity": 0},
    ],
)  # fmt: skip
OF_NOTES = {"attributes": "polite,timely,praise,padding=-1", "init": "value-head:surprise", "reward_lr": 1e-3}
# by construction: the rival is its own start, before anything was learnt
check = Check(
    says="ratings of held-out replies are told by a model that was taught noisy ones, half of them missing (it reads surprise)",
    versus=None, task="rated_notes:noise=0.5,missing=0.5", measure="correlation", direction="higher", margin=0.1,
    against="before.correlation", settings=OF_NOTES, problems=500, steps=100, sanity=True,
    finding="After 100 updates the four predicted ratings of held-out notes correlate with the true ones by .54 on average, from "
    "nothing before: .82 for padding, .81 for politeness, .49 for praise, and .04 for whether a note is timely, which only "
    "the prompt and the reply together tell",
)  # fmt: skip
baseline = None
kind = "reward-model"
