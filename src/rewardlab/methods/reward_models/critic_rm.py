"""Critic-RM: a reward model scores a reply after a critique of it, and learns from critiques whose own score agrees with the label.

    critiques c, each with a score s, sampled for both replies of a pair; kept:  c+ and c- with  s(c+) > s(c-)
    L = lambda(t) [-log p(c | x, y)]  +  (1 - lambda(t)) [-log sigmoid(r(x, y+, c+) - r(x, y-, c-))];    lambda falls from 1 to 0
    held out:  r(x, y) = mean over k sampled critiques of r(x, y, c)

A critique says in words what is wrong, which a score can then rest on; but a model's own critiques often praise the worse reply.
The label of the pair tells which do, at no cost. First the model learns to criticise, then to score: the weights change over time.

Yu et al. 2024, arXiv:2411.16646, by its abstract and texts that quote its objective; no code was released. (inferred): lambda falls
in a line over the first `falls` of the run; scores from 1 to 10 at the end of a critique, "Score: 7"; both critiques of a pair are
kept where any two agree with the label, those furthest apart; pairs without such critiques are left out.

Critiques are the columns `chosen_critiques` and `rejected_critiques`; where they are missing the policy writes them. The run's
model scores what is written as `ask` and a critique. `shared` learns both losses in one model, which needs one whose vocabulary
head is its embeddings (Llama 3.2 and Qwen3 up to 4B, SmolLM2); else the writer alone learns critiques.
"""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardlab.checks.claim import Check
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
    Update,
    measure,
    objective,
    rollout,
)
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.errors import NothingKept, RewardlabError
from rewardlab.evals.pairs import end_values, pairs_won
from rewardlab.methods.baselines.bradley_terry import bradley_terry
from rewardlab.objectives.labels import language_model
from rewardlab.objectives.pairs import last_value, margin, row_sum
from rewardlab.rollouts.explained import about, explained, explained_by, with_reply
from rewardlab.rollouts.independent import independent
from rewardlab.rollouts.ranked import written
from rewardlab.settings.domain import PositiveFloat, PositiveInt, Share

ASK = "Question: {question}\nAnswer: {answer}\nCriticise the answer, and end with a score from 1 to 10: Score: 7"
SIDES = ("chosen", "rejected")
READS = "a critique of the reply, and the question for it"
_SCORE = re.compile(r"\bscore[\s*]{0,3}:[\s*]{0,3}(\d{1,2}(?:\.\d{1,3})?)(?![\d.]*\d)", re.IGNORECASE)


def score_of(critique: str) -> float | None:
    """The last "Score: N" of a critique, from 0 to 10; None without one."""
    found = [float(x) for x in _SCORE.findall(critique)]
    return found[-1] if found and found[-1] <= 10 else None


def agreeing(better: Sequence[str], worse: Sequence[str]) -> tuple[str, str] | None:
    """A critique of each reply of a pair whose scores order it as its label does, the furthest apart; None where none do."""
    highest, lowest = (
        [(score, text) for text in texts if (score := score_of(text)) is not None] for texts in (better, worse)
    )  # fmt: skip
    if not highest or not lowest:
        return None
    # the first of equal scores, so that the same critiques are kept each time
    first, last = max(highest, key=lambda c: c[0]), min(lowest, key=lambda c: c[0])
    return (first[1], last[1]) if first[0] > last[0] else None


@rollout(rows=lambda **_: 2)
def criticised_pairs(
    problems: list[Problem], run: Run, *, n: PositiveInt = 8, ask: str = ASK, filtered: bool = True, attempts: PositiveInt = 20
) -> list[Group]:
    """A pair for each problem with critiques that agree with its label: both replies, each read, and followed by its critique.

    n: critiques of a reply that the policy writes where rows bring none.  filtered: else the first critique of each reply is taken,
    whatever it says.  Other problems are asked for in the place of those without, `attempts` times. Logged: agree, the share of
    pairs with critiques that agree.
    """
    kept: list[tuple[Problem, Sequence[str]]] = []
    wanted, looked_at = len(problems), 0
    for _ in range(attempts):
        looked_at += len(problems)
        for problem, sides in zip(problems, _critiques(problems, run, n, ask), strict=True):
            pair = agreeing(*sides) if filtered else (sides[0][0], sides[1][0])
            if pair:
                kept += [(about(problem, _reply(problem, side), ask), [text]) for side, text in zip(SIDES, pair, strict=True)]
        if len(kept) >= 2 * wanted or run.more_problems is None:
            break
        problems = run.more_problems(wanted - len(kept) // 2)
    run.log("agree", len(kept) / 2 / looked_at)
    if not kept:
        raise NothingKept(
            f"none of the critiques of {looked_at} pairs gives the chosen reply a higher score than the rejected one: they "
            "end with 'Score: 7', say, or filtered=False takes any"
        )
    return explained(kept, run)


def _reply(problem: Problem, side: str) -> str:
    text = problem.meta.get(side)
    if not isinstance(text, str) or not text:
        raise RewardlabError(f"problem {problem.question[:60]!r} has no text {side!r}")
    return text


def _critiques(problems: Sequence[Problem], run: Run, n: int, ask: str) -> list[list[list[str]]]:
    """For each problem the critiques of its two replies; of empty ones none."""
    asked = [(p, side) for p in problems for side in SIDES]
    found = [list_of(p.meta.get(f"{side}_critiques")) for p, side in asked]
    unsaid = [i for i, known in enumerate(found) if not known]
    if unsaid:
        questions = [about(asked[i][0], _reply(*asked[i]), ask) for i in unsaid]
        for i, group in zip(unsaid, written(questions, run, n, "policy", Sampling(run.max_new)), strict=True):
            found[i] = [t.reply or "Score: none" for t in group]
    texts: list[Any] = [[str(text) for text in known or []] for known in found]
    return [texts[i : i + 2] for i in range(0, len(texts), 2)]


# ---- the loss, and the score over several critiques ------------------------------------------------------------------------------


def weight_of_critiques(progress: float, falls: float) -> float:
    """lambda: from 1 at the start of the run to 0 when `falls` of it is over."""
    return max(0.0, 1.0 - progress / falls)


@objective(unit="group", wants=("value", "logprobs"))
def critique_and_score(out: Outputs, batch: Batch, run: Run, *, falls: PositiveFloat = 0.5) -> Tensor:
    """(G,) lambda times the mean of -log p per token of the two critiques, and 1 - lambda times the Bradley-Terry loss."""
    weight = weight_of_critiques(run.progress, falls)
    said = row_sum(-out.logprobs, batch) / batch.mask.sum(1).clamp(min=1)
    return weight * (said[::2] + said[1::2]) / 2 + (1 - weight) * _order(out, batch)


@objective(unit="group", wants=("value",))
def score_alone(out: Outputs, batch: Batch, run: Run, *, falls: PositiveFloat = 0.5) -> Tensor:
    """(G,) 1 - lambda times the Bradley-Terry loss: another model learns the critiques."""
    return (1 - weight_of_critiques(run.progress, falls)) * _order(out, batch)


def _order(out: Outputs, batch: Batch) -> Tensor:
    return -torch.nn.functional.logsigmoid(margin(last_value(out, batch), batch))


@measure
def criticised_accuracy(problems: Sequence[Problem], run: Run, *, by: Rollout, model: str = "reward") -> dict[str, float]:
    """How often the chosen reply of held-out pairs scores higher, ties half, by the mean over critiques that the writer samples.

    by: `explained_by`.

    own_scores: the same of the mean score that the critiques end with, over pairs where both have one; no reward model is needed.
    """
    groups = by([with_reply(p, _reply(p, side)) for p in problems for side in SIDES], run)
    values = end_values(run.models[model], [t for group in groups for t in group]).reshape(-1, 2, len(groups[0])).mean(2)
    known = [[s for t in group if (s := score_of(t.reply)) is not None] for group in groups]
    own = np.array([np.mean(row) if row else np.nan for row in known]).reshape(-1, 2)
    own = own[np.isfinite(own).all(1)]
    said = {"own_scores": pairs_won(own[:, 0], own[:, 1])["pair_accuracy"]} if len(own) else {}
    return {**pairs_won(values[:, 0], values[:, 1]), **said, "scored": len(own) / len(problems)}


def critic_rm(
    base: Recipe | None = None, *, n: int = 8, k: int = 1, ask: str = ASK, filtered: bool = True, falls: Share = 0.5,
    shared: bool = True, reward_lr: float | None = None, writer_lr: float | None = None, problems: int = 32,
    init: str = "value-head",
) -> Recipe:  # fmt: skip
    """n: critiques of a reply that the policy writes where rows bring none.  k: critiques of a held-out reply, over which its score
    is the mean.  ask: what is asked about a reply, with {question} and {answer}.  filtered: keep critiques that agree with the
    label.  falls: the share of the run in which lambda falls from 1 to 0.  shared: the reward model learns the critiques too.
    writer_lr: of the model that writes critiques, a copy of the policy.  reward_lr, problems, init: as in `bradley_terry`."""
    base = base or bradley_terry(problems=problems)
    loss = critique_and_score(falls=falls) if shared else score_alone(falls=falls)
    scorer = Recipe(objective=loss, update=Update(lr=reward_lr, loss_kind="scorer"))
    writer = Recipe(objective=language_model(), update=Update(lr=writer_lr))
    others = tuple(learner for learner in base.also if learner.name != "reward")
    return base.but(
        rollout=criticised_pairs(n=n, ask=ask, filtered=filtered),
        measure=criticised_accuracy(by=explained_by(ask=ask, inner=independent(n=k))),
        also=(*others, Learner("reward", init, scorer, reads=READS), Learner("writer", "copy:policy", writer)),
    )


fidelity = "core"
left_out = (
    "one model that writes and scores: with a scalar head none can write here, so that a copy of the policy writes and the reward "
    "model learns both losses only where its vocabulary head is its embeddings; the second filter, which ranks or refines "
    "critiques by another model's judgement; correcting replies by critiques"
)
data = Data(
    chosen="the better reply", rejected="the worse reply",
    chosen_critiques=Column("a list of critiques of the better reply, each ending with 'Score: N' of 10", optional=True),
    rejected_critiques=Column("the same of the worse reply", optional=True),
    settings={"shared": False},
    rows=[
        {
            "prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone.",
            "chosen_critiques": ["It names the cause. Score: 9", "Short. Score: 3"],
            "rejected_critiques": ["Gravity acts all year. Score: 2", "True enough. Score: 8"],
        },
        {
            "prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow.",
            "chosen_critiques": ["It says how long. Score: 8"], "rejected_critiques": ["Nothing can be done with it. Score: 1"],
        },
    ],
)  # fmt: skip

OF_NOTES = {"reward_lr": 1e-3, "writer_lr": 1e-3, "problems": 16}
check = Check(
    says="a reward model that learns from critiques which agree with the label ranks held-out replies better than one that learns "
    "from any critiques, most of which are made up",
    versus="critic_rm", task="criticised_notes", measure="pair_accuracy", direction="higher", margin=0.03,
    settings=OF_NOTES, versus_settings={**OF_NOTES, "filtered": False}, problems=300, steps=100,
    finding="60% of held-out pairs ranked right with critiques that agree with the label, 64% with any critiques: five pairs of "
    "runs do not decide, and nothing speaks for the filter here",
)  # fmt: skip
baseline = "bradley_terry"
