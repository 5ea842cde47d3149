r"""RM-NLHF: a judge is paid for a right verdict, and for how much its critique says what a person's critique of the pair says.

    r(y)  = 1[verdict right] (1 + w s(y));       s(y) = F1(core arguments of y, core arguments of the human critique h)
    rows without h:  s(y) = m(x, y), a MetaRM;   m learns on every step's judgements of rows with h:  min (m(x, y) - F1)^2

A verdict has two outcomes, so that half of the guesses are right: of the right verdicts of strong judges, 20 to 40% come with a
critique that people disagree with, and a reward for verdicts alone reinforces those too. Human critiques are few. A model with a
scalar head learns from them what a sound critique is, and goes on learning as the judge changes, whose later judgements a model
that was trained once would not know.

Wang et al. 2026, arXiv:2601.07349, by its abstract and texts that sum it up (core arguments, their F1, outcomes paid 0 or 1, a
MetaRM updated online); no code was released. (inferred): that s is added with weight w = 1 and pays right verdicts alone; squared
error; that rows without a critique count from the first step, when the MetaRM's values are near constant within a group. The paper
extracts and matches arguments by a language model: here they are the points of a list, or else sentences, and match where their
words have a ROUGE-L of `match`, each once; `by` takes any reward in its place, such as `judge` with a form that shows {critique}.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Score, Scores, Trajectory, Update, measure
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.judgements import accuracy_of, judged
from rewardlab.judges.cases import WORTH, agrees
from rewardlab.judges.forms import TWO_REPLIES, Kind
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import trained_judge
from rewardlab.objectives.labels import label_squared_error
from rewardlab.rewards.judgements import right_judgement
from rewardlab.rewards.model import reader
from rewardlab.rewards.reward import Reward, reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.text.words import LONGEST, f1, rouge_l, sentences
from rewardlab.util.outputs import last_values
from rewardlab.worlds.criticised_duels import ARGUMENT
from rewardlab.worlds.duels import FORM as SMALL

FORM = (
    """Two assistants reply to a question. Criticise both replies, and decide which is better.

End your critique with its core arguments: what decides between the two, one argument a line, each behind "- ". Neither the order of
the replies nor their length counts. Then give your verdict: [[A]] if reply A is better, [[B]] if reply B is.

"""
    + TWO_REPLIES
)
POINT = r"(?m)^[ \t]{0,8}[-*][ \t]+(\S.*)$"
"""An argument: a point of a list."""
META = "meta"
CRITIQUE = "critique"
_MARK = re.compile(r"\[\[[^\[\]]{0,80}\]\]")


# ---- how near a critique is to a person's --------------------------------------------------------------------------------


def core_arguments(text: str, argument: str = POINT) -> list[list[str]]:
    """The words of each argument of a critique: of what the pattern finds (its first group, if it has one), else of sentences."""
    text = _MARK.sub("", text)[:LONGEST]
    found = [match[1] if match.re.groups else match[0] for match in re.finditer(argument, text)]
    parts = found or [said for line in text.splitlines() for said in sentences(line)]
    split = [[word.strip(",.;:!?\"'()*") or word for word in part.lower().split()] for part in parts]
    return [words for words in split if words]


def argument_f1(said: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]], match: float = 0.5) -> float:
    """F1 of the arguments said over those wanted. Each counts once: a repeated argument lowers the precision."""
    left, shared = list(said), 0
    for argument in wanted:
        best = max(left, key=lambda own: rouge_l(own, argument), default=None)
        # rounded: 2 * 3 / 6 words must meet a bound of 1
        if best is not None and round(rouge_l(best, argument), 9) >= match:
            left.remove(best)
            shared += 1
    return f1(shared, len(said), len(wanted))


def critique_of(problem: Problem) -> str | None:
    """The human critique of the replies in the order in which a question to a judge shows them; None where the row has none."""
    worth = problem.meta.get(WORTH) or (1.0,)
    text = problem.meta.get(CRITIQUE if worth[0] >= worth[-1] else f"{CRITIQUE}_reversed")
    return text if isinstance(text, str) and text.strip() else None


def check_pattern(argument: str = POINT, **_: object) -> None:
    try:
        re.compile(argument)
    except re.error as problem:
        raise RewardlabError(f"the pattern of an argument, {argument!r}, is no regular expression: {problem}") from None


@reward(over="groups", check=check_pattern)
def critique_similarity(
    groups: list[Group], run: Run, *, argument: str = POINT, match: Share = 0.5, by: Reward | None = None
) -> Scores:
    """F1 over core arguments of a judgement and of the human critique of its replies, from 0 to 1; no verdict without one.

    argument: a regular expression.  match: the ROUGE-L from which two arguments are the same.  by: what says the similarity in its
    place; the column `critique` then holds the one of the order that is shown.
    """
    human = [critique_of(group[0].problem) for group in groups]
    scores: Scores = [[Score(None, why="the row has no critique of the replies in this order")] * len(group) for group in groups]
    known = [g for g, text in enumerate(human) if text]
    if by is not None and known:
        for g, row in zip(known, by([_with_critique(groups[g], str(human[g])) for g in known], run), strict=True):
            scores[g] = row
        return scores
    for g in known:
        wanted = core_arguments(str(human[g]), argument)
        scores[g] = [Score(argument_f1(core_arguments(t.reply, argument), wanted, match)) for t in groups[g]]
    return scores


def _with_critique(group: Group, text: str) -> Group:
    problem = replace(group[0].problem, meta={**group[0].problem.meta, CRITIQUE: text})
    return [replace(t, problem=problem) for t in group]


@reward(over="groups")
def sound_critique(
    groups: list[Group], run: Run, *, similarity: Reward, form: str = FORM, kind: Kind = "pairwise", model: str = META
) -> Scores:
    """The process reward of judgements whose verdict is right: their similarity to the human critique, and without one the
    MetaRM's prediction, cut to [0, 1]; 0 for other judgements.

    model: the MetaRM, a model of the run; empty: judgements without a critique are paid 0. Logged: critique, predicted (means of
    both, whatever the verdict).
    """
    found = similarity(groups, run)
    guessed = [g for g, row in enumerate(found) if model and all(s.total is None for s in row)]
    guesses = iter(predicted([t for g in guessed for t in groups[g]], run, model))
    process = [[next(guesses) if g in guessed else s.total for s in row] for g, row in enumerate(found)]
    for name, kept in ("critique", set(range(len(groups))) - set(guessed)), ("predicted", set(guessed)):
        if known := [x for g in sorted(kept) for x in process[g] if x is not None]:
            run.log(name, float(np.mean(known)))
    right = right_judgement(form=form, kind=kind, wrong=0.0)(groups, run)
    return [
        [Score(None, why=ok.why) if ok.value is None else Score(ok.value * (x or 0.0)) for ok, x in zip(*row, strict=True)]
        for row in zip(right, process, strict=True)
    ]


def predicted(rows: Sequence[Trajectory], run: Run, model: str) -> list[float]:
    """The MetaRM's process reward of judgements, each read with its question."""
    return [min(1.0, max(0.0, x)) for x in last_values(reader(run, model), rows)] if rows else []


# ---- held-out judgements -------------------------------------------------------------------------------------------------


@measure
def sound_judgements(
    problems: Sequence[Problem], run: Run, *, similarity: Reward, form: str = FORM, kind: Kind = "pairwise", k: PositiveInt = 1,
    model: str = META,
) -> dict[str, float]:  # fmt: skip
    """As `judgement_accuracy`, and of questions with a human critique:

    critique: the mean similarity of the judge's critique to it.  spurious: the share of right verdicts with a similarity below 1/2.
    meta_error: the mean distance of the MetaRM's prediction from the similarity.
    """
    found = judged(problems, run, form_of(form, kind), k)
    said = zip(found.asked, found.texts, strict=True)
    cells = [(a.question, texts) for a, texts in said if critique_of(a.question) and all(texts)]
    if not cells:
        return accuracy_of(found)
    begun = run.policy.read([Trajectory(q) for q, _ in cells], [q.prompt for q, _ in cells])
    groups = [run.policy.write([t] * len(texts), texts) for t, (_, texts) in zip(begun, cells, strict=True)]
    flat = [t for group in groups for t in group]
    scored = [(t, s.total) for t, s in zip(flat, (s for row in similarity(groups, run) for s in row), strict=True)]
    known = [(t, x) for t, x in scored if x is not None]
    of = form_of(form, kind)
    right = [x for t, x in known if (v := of.read(t.reply, len(t.problem.meta[WORTH])).values) and agrees(v, t.problem.meta[WORTH])]
    guesses = predicted([t for t, _ in known], run, model) if model else []
    return accuracy_of(found) | {
        **({"critique": float(np.mean([x for _, x in known]))} if known else {}),
        **({"spurious": float(np.mean([x < 0.5 for x in right]))} if right else {}),
        **({"meta_error": float(np.mean([abs(m - x) for m, (_, x) in zip(guesses, known, strict=True)]))} if guesses else {}),
    }


# ---- the recipe ------------------------------------------------------------------------------------------------------------


def rm_nlhf(
    base: Recipe | None = None, *, form: str = FORM, kind: Kind = "pairwise", weight: float = 1.0, argument: str = POINT,
    match: float = 0.5, by: Reward | None = None, meta: bool = True, init: str = "value-head", meta_lr: float | None = None,
    n: int = 8, problems: int = 16, votes: int = 1, lr: float | None = None,
) -> Recipe:  # fmt: skip
    """form, kind, n, problems, votes: as in `trained_judge`; the form must ask for a critique.  weight: of the process reward; 0:
    verdicts alone are paid.  argument, match, by: how critiques are compared (`critique_similarity`).  meta: whether a MetaRM pays
    rows without a human critique.  init, meta_lr: of the MetaRM (`Learner.init`)."""
    base = base or grpo(n=n)
    base = trained_judge(base, form=form, kind=kind, n=n, problems=problems, wrong=0.0, lr=lr)
    near = critique_similarity(argument=argument, match=match, by=by)
    name = META if meta else ""
    paid = base.required("reward")
    scorer = Recipe(reward=near, objective=label_squared_error(), update=Update(lr=meta_lr, loss_kind="scorer"))
    return base.but(
        reward=paid + weight * sound_critique(similarity=near, form=form, kind=kind, model=name) if weight else paid,
        measure=sound_judgements(similarity=near, form=form, kind=kind, k=votes, model=name),
        also=(*base.also, Learner(META, init, scorer)) if meta else base.also,
    )


fidelity = "reading"
left_out = (
    "arguments that a language model extracts and matches, in whose place are lists or sentences and their words (`by` takes a "
    "judge); a MetaRM that is trained on human critiques before the judge is: here it learns from the first step on, with the judge"
)
data = Data(
    chosen="the better reply", rejected="the worse reply",
    critique=Column(
        "a person's critique of the two, where the better reply stands first (A); without it the MetaRM scores judgements",
        optional=True,
    ),
    critique_reversed=Column("the same where the worse reply stands first", optional=True),
    rows=[
        {
            "prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone.",
            "critique": "A names the cause. B would hold in summer, too.",
            "critique_reversed": "B names the cause. A would hold in summer, too.",
        },
        {"prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow."},
    ],
)  # fmt: skip

OF_WISHES = {"form": SMALL, "argument": ARGUMENT, "match": 1.0}
check = Check(
    says="a judge that is paid for its critique too, half of the time by a MetaRM, gives more right verdicts than one that is paid "
    "for its verdicts alone",
    versus="rm_nlhf", task="criticised_duels:kinds=wishes", measure="judged", direction="higher", margin=0.03, settings=OF_WISHES,
    versus_settings={**OF_WISHES, "weight": 0.0, "meta": False}, problems=300, steps=60,
)  # fmt: skip
baseline = "trained_judge"
