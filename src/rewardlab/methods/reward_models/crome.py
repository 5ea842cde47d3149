"""Crome: a reward model that also learns from replies changed in one cause of quality alone, and from ties under another prompt.

    causal    (upgraded, rejected) and (chosen, degraded): the first is better, by one attribute of quality
    neutral   two replies of a pair, put under a prompt that they do not answer: a tie
    L = sum over pairs and causal ones of -log sigmoid(d)  -  lambda sum over neutral ones of [log sigmoid(d) + log sigmoid(-d)] / 2

d is the difference of the two scores. In preference data length, format and tone go with quality, and nobody can list all such
cues. But what makes replies good can be listed, by the prompt: an oracle model names attributes, and rewrites a reply in one of
them. Under a prompt that neither reply answers, what made one better is gone, and what still tells them apart is a cue: the tie
teaches the model to ignore it, whatever it is.

Srivastava et al. 2025, arXiv:2506.16507, by a summary that quotes its equations; lambda = 1, an oracle of Gemini 2.0 Flash,
UltraFeedback. No released code was found. As in the paper, only augmented pairs stay that a model of the same data alone (`filter`,
model:RUN of bradley_terry) is not sure of or gets wrong. (inferred): the wording of the oracle's prompts, two attributes of a
prompt, one neutral pair a problem, the other prompt another one of the step; sure is a chance within `slack` of what is right.

Rows bring `upgraded` and `degraded`; --oracle openai:URL#NAME (or another model) writes whichever of the two a row lacks, or has
empty. Without either there are the pairs and the neutral ones.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from math import tanh
from typing import NamedTuple

import torch
from torch import Tensor

from rewardlab.checks.claim import Check, Within
from rewardlab.core import (
    Batch,
    Group,
    Learner,
    Outputs,
    Problem,
    Recipe,
    Rollout,
    Run,
    Sampling,
    Trajectory,
    Update,
    objective,
    rollout,
    seed_of,
)  # fmt: skip
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.bradley_terry import bradley_terry
from rewardlab.objectives.pairs import preference_loss, row_sum
from rewardlab.rewards.model import trained_model
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rollouts.recorded import recorded
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt, Share
from rewardlab.text.filled import filled

ORACLE, MEMORY = "oracle", "crome.rewritten"
RUBRIC = (
    "Question:\n{question}\n\nWhat makes a reply to it good? Write down what its quality depends on, such as being correct or to "
    "the point, each as a few words on a line of its own that begins with '- '. Leave out its length and its style."
)
REWRITE = (
    "Question:\n{question}\n\nReply:\n{reply}\n\nRewrite the reply so that it is {how} in this alone: {attribute}. Leave all else "
    "as it is. Say only the new reply."
)
WAYS = {"upgraded": ("rejected", "better"), "degraded": ("chosen", "worse")}
"""The column of rewritten replies: of which reply, and how they differ from it."""


class Pair(NamedTuple):
    """Two replies to a problem, the better one first; kind: "preference", "causal" or "neutral", of which the last is a tie."""

    problem: Problem
    chosen: str
    rejected: str
    kind: str

    def shown(self) -> Problem:
        """The problem with the pair, and the votes for each reply, in its columns."""
        votes = {"chosen_score": 1.0, "rejected_score": float(self.kind == "neutral")}
        return replace(self.problem, meta={**self.problem.meta, "chosen": self.chosen, "rejected": self.rejected, **votes})


@rollout(wraps="inner", across_problems=True)
def augmented(
    problems: list[Problem], run: Run, *, inner: Rollout, neutrals: NonNegativeInt = 1, attributes: PositiveInt = 2,
    filter: str = "", slack: Share = 0.25,
) -> list[Group]:  # fmt: skip
    """The groups of `inner` for the pair of each problem, its causal pairs, and `neutrals` ties.

    attributes: in which the run's oracle, if it has one, rewrites the replies of rows without rewritten ones.  filter: model:PATH,
    a reward model; augmented pairs stay whose chance by it is off the label, 1 or 1/2, by more than `slack`.  Logged: causal and
    neutral, how many such pairs there are to a problem; kept, the share that the filter leaves.
    """
    if ORACLE in run.models:
        problems = _rewritten(problems, run, attributes)
    pairs = [Pair(p, _text(p, "chosen"), _text(p, "rejected"), "preference") for p in problems]
    added = [pair for p in pairs for pair in causal_of(p)]
    added += neutral_of(pairs, added, neutrals, run)
    if filter and added:
        kept = _unsure(added, run, filter, slack)
        run.log("kept", len(kept) / len(added))
        added = kept
    for kind in ("causal", "neutral"):
        run.log(kind, sum(pair.kind == kind for pair in added) / len(problems))
    return inner([pair.shown() for pair in (*pairs, *added)], run)


def _text(problem: Problem, column: str) -> str:
    problem.required("chosen", "rejected", by="crome")
    return problem.meta[column]


def causal_of(pair: Pair) -> list[Pair]:
    """The rejected reply against its upgraded forms, and the chosen one against its degraded forms."""
    problem, found = pair.problem, []
    for column in WAYS:
        given = problem.meta.get(column)
        texts = (
            []
            if _lacks(problem, column)
            else [given]
            if isinstance(given, str) and not given.lstrip().startswith("[")
            else list_of(given)
        )
        if texts is None or not all(isinstance(text, str) for text in texts):
            raise RewardlabError(f"problem {problem.question[:60]!r}: its column {column!r} is neither a text nor a list of texts")
        sides = [(text, pair.rejected) if column == "upgraded" else (pair.chosen, text) for text in texts]
        found += [Pair(problem, better, worse, "causal") for better, worse in sides if better != worse]
    return found


def neutral_of(pairs: Sequence[Pair], causal: Sequence[Pair], n: int, run: Run) -> list[Pair]:
    """Replies of n pairs of each problem under the prompt of another one of the step; none where there is no other."""
    found = []
    for own in pairs:
        rng = random.Random(seed_of("crome", run.seed, run.step, own.problem.key))
        others = [p.problem for p in pairs if p.problem.key != own.problem.key]
        of_it = [own, *(p for p in causal if p.problem.key == own.problem.key)]
        for _ in range(n if others else 0):
            pair = rng.choice(of_it)
            found.append(pair._replace(problem=rng.choice(others), kind="neutral"))
    return found


def _unsure(pairs: Sequence[Pair], run: Run, model: str, slack: float) -> list[Pair]:
    """The pairs of which the model does not give what the label says, within `slack`."""
    rows = [(p.problem.prompt, text) for p in pairs for text in (p.chosen, p.rejected)]
    scores = trained_model(run, model).score(rows)
    # a tanh does not overflow, as 1 / (1 + exp(-z)) does
    chances = [(1 + tanh((a - b) / 2)) / 2 for a, b in zip(scores[::2], scores[1::2], strict=True)]
    labels = [0.5 if p.kind == "neutral" else 1.0 for p in pairs]
    return [p for p, chance, label in zip(pairs, chances, labels, strict=True) if abs(chance - label) > slack]


# ---- what the oracle writes --------------------------------------------------------------------------------------------------


def _rewritten(problems: Sequence[Problem], run: Run, attributes: int) -> list[Problem]:
    """The problems with rewritten replies, which the oracle is asked for once in each column that a row lacks."""
    memory = run.memory.setdefault(MEMORY, {})
    lacks = {p.key: [c for c in WAYS if _lacks(p, c) and c not in memory.get(p.key, {})] for p in problems}
    lacking = list({p.key: p for p in problems if lacks[p.key]}.values())
    named = [_listed(text)[:attributes] for text in _said(lacking, [filled(RUBRIC, question=p.question) for p in lacking], run)]
    asked = [(p, column, attribute) for p, of in zip(lacking, named, strict=True) for attribute in of for column in lacks[p.key]]
    prompts = [
        filled(REWRITE, question=p.question, reply=_text(p, WAYS[column][0]), how=WAYS[column][1], attribute=attribute)
        for p, column, attribute in asked
    ]
    for p in lacking:
        memory[p.key] = {**memory.get(p.key, {}), **{column: [] for column in lacks[p.key]}}
    for (p, column, _), text in zip(asked, _said([p for p, *_ in asked], prompts, run), strict=True):
        memory[p.key][column] += [text.strip()] if text.strip() else []
    made = [{c: texts for c, texts in memory.get(p.key, {}).items() if _lacks(p, c)} for p in problems]
    return [replace(p, meta={**p.meta, **of}) for p, of in zip(problems, made, strict=True)]


def _lacks(problem: Problem, column: str) -> bool:
    """Whether a row has no rewritten reply in a column: it is missing, null, or an empty text, as in a table with such a column."""
    given = problem.meta.get(column)
    return given is None or (isinstance(given, str) and not given.strip())


def _said(problems: Sequence[Problem], prompts: Sequence[str], run: Run) -> list[str]:
    """The oracle's replies to these prompts, greedily."""
    oracle = run.models[ORACLE]
    asked = [replace(p.reworded(prompt), meta={}) for p, prompt in zip(problems, prompts, strict=True)]
    if not asked:
        return []
    read = oracle.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    return [t.reply for t in oracle.extend(read, Sampling(run.max_new, 0.0), run.rng("oracle"))]


def _listed(text: str) -> list[str]:
    return [line.strip()[2:].strip() for line in text.splitlines() if line.strip().startswith("- ") and line.strip()[2:].strip()]


# ---- the recipe ---------------------------------------------------------------------------------------------------------------


@objective(unit="group", wants=("value",))
def with_ties(out: Outputs, batch: Batch, run: Run, *, neutral: NonNegativeFloat = 1.0) -> Tensor:
    """(G,) the preference loss by votes, of which ties count `neutral` times."""
    losses, votes = preference_loss(labels="votes")(out, batch, run), row_sum(batch.reward, batch)
    return torch.where(votes[::2] == votes[1::2], neutral * losses, losses)


def crome(
    base: Recipe | None = None, *, neutral: float = 1.0, neutrals: int = 1, oracle: str = "", attributes: int = 2,
    filter: str = "", slack: float = 0.25, reward_lr: float | None = None, problems: int = 32, init: str = "value-head",
) -> Recipe:  # fmt: skip
    """neutral: lambda.  neutrals: ties made for each problem.  oracle: openai:URL#NAME or another model that rewrites replies where
    rows bring no rewritten ones, in `attributes` attributes each.  filter, slack: model:RUN of a reward model of the pairs alone,
    and how far its chance must be off the label for an augmented pair to stay.  reward_lr, problems, init: as in `bradley_terry`.
    """
    base = base or bradley_terry(problems=problems)
    taught = Recipe(objective=with_ties(neutral=neutral), reward=score_in_data(), update=Update(lr=reward_lr, loss_kind="scorer"))
    others = tuple(learner for learner in base.also if learner.name not in ("reward", ORACLE))
    asked = (Learner(ORACLE, oracle, Recipe(), every=0),) if oracle else ()
    pairs = recorded(fields=("chosen", "rejected"))
    return base.but(
        rollout=augmented(inner=pairs, neutrals=neutrals, attributes=attributes, filter=filter, slack=slack),
        also=(*others, Learner("reward", init, taught), *asked),
    )


fidelity = "core"
left_out = "checks of what the oracle writes, reward models that read two replies at once, and DPO and best-of-n with the model"
data = Data(
    chosen="the better reply",
    rejected="the worse reply",
    upgraded=Column("the worse reply made better in one attribute of quality, or a list of such replies", optional=True),
    degraded=Column("the better reply made worse in one attribute of quality, or a list of such replies", optional=True),
    rows=[
        {
            "prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone.",
            "upgraded": "Because trees let them go before winter, and gravity does the rest.",
            "degraded": ["Trees save water in summer.", "Trees save paint in winter."],
        },
        {
            "prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow.",
        },
    ],
)  # fmt: skip

LEARNT = {"init": "value-head:surprise", "reward_lr": 1e-3, "problems": 16}
check = Check(
    says="ties under other prompts make a better judge of pairs whose annotator had a taste for praise (the model reads surprise)",
    versus="bradley_terry", task="notes:taste=0.3", measure="pair_accuracy", direction="higher", margin=0.02,
    settings=LEARNT, versus_settings=LEARNT, problems=1000, steps=100,
    fault=Within("pair_accuracy", high=0.9, says="true pairs ranked right"),
    finding="65.1% of true pairs ranked right against 64.2% (20 seeds): no effect; scores a little better calibrated. "
    "The world has no rewritten replies, so the neutral half alone was tested",
)  # fmt: skip
