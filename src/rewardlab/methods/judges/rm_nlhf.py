r"""RM-NLHF: a judge is paid for a right verdict, and for how much its critique says what a person's critique of the pair says.

    r(y)  = -1 out of form, 0 for a wrong verdict, else 1 + w s(y)
    s(y)  = 1[F1(core arguments of y, core arguments of the human critique h) >= 1/2]
    rows without h:  s(y) = max(0, m(x, y) - 1);   the MetaRM m learns on every step's judgements of rows with h:  min (m - r)^2

A verdict has two outcomes, so that half of the guesses are right: of the right verdicts of strong judges, 20 to 40% come with a
critique that people disagree with, and a reward for verdicts alone reinforces those too. Human critiques are few. A model with a
scalar head learns from them what a sound critique is, and goes on learning as the judge changes, whose later judgements a model
that was trained once would not know.

Wang et al. 2026, arXiv:2601.07349, and the authors' liudan193/Qwen-Character, Character-GenRM-NLHF: verl/ (reward_function.py,
reward_manager/rm_nlhf.py, run_full_exp_qwen_7b_rm_nlhf.sh) and metarm/, at 89d31da: w = .5; a MetaRM's s is at most w, too; out of
form is a judgement without critique or verdict, or with one of over 1500 characters; 8 judgements of a pair, at a temperature of
.7; a KL of .001; 1e-6, the MetaRM's rate five times that. Its cold start: before the judge learns, a MetaRM learns on judgements by
the untrained judge (there 4 of a row, 3 epochs, 1e-5). Who has learnt to judge pays a policy by `double_elimination`, as there.

A critique that says the same twice has an F1 of 0. There a language model finds and matches arguments: here they are the points of
a list, or else sentences, and match where their words have a ROUGE-L of `match` and they do not speak of different replies, each
once; `by` takes any reward in its place, such as `judge` with a form that shows {critique}. (inferred): the steps of a cold start.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Score, Scores, Trajectory, Update, measure
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.judgements import accuracy_of, judged
from rewardlab.judges.cases import WORTH, agrees
from rewardlab.judges.forms import TWO_REPLIES, Kind, Reading
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import learner_alone, trained_judge
from rewardlab.objectives.labels import label_squared_error
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.judgements import reading_of
from rewardlab.rewards.model import reader
from rewardlab.rewards.reward import Reward, reward
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt, Share
from rewardlab.text.answers import after_thinking
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
REPLIES = {"A", "B"}
META = "meta"
CRITIQUE = "critique"
_MARK = re.compile(r"\[\[[^\[\]]{0,80}\]\]")
Found = str | tuple[Reading, tuple[float, ...]]
"""What a judgement says of the replies, and what they are worth; or why that is not known."""


# ---- how near a critique is to a person's --------------------------------------------------------------------------------


def core_arguments(text: str, argument: str = POINT) -> list[list[str]]:
    """The words of each argument of a critique: of what the pattern finds (its first group, if it has one), else of sentences.

    They are in small letters, but for the names of the replies, A and B.
    """
    text = critique_in(text)[:LONGEST]
    found = [match[1] if match.re.groups else match[0] for match in re.finditer(argument, text)]
    parts = found or [said for line in text.splitlines() for said in sentences(line)]
    split = [[word.strip(",.;:!?\"'()*") or word for word in part.split()] for part in parts]
    return [[word if word in REPLIES else word.lower() for word in words] for words in split if words]


def critique_in(judgement: str) -> str:
    """What a judgement says after its thinking, without its marks."""
    return _MARK.sub("", after_thinking(judgement)).strip()


def argument_f1(said: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]], match: float = 0.5) -> float:
    """F1 of the arguments said over those wanted, each of which counts once; 0 where one is said twice."""
    if len({tuple(words) for words in said}) < len(said):
        return 0.0
    left, shared = list(said), 0
    for argument in wanted:
        best = max(left, key=lambda own: _alike(own, argument), default=None)
        # rounded: 2 * 3 / 6 words must meet a bound of 1
        if best is not None and round(_alike(best, argument), 9) >= match:
            left.remove(best)
            shared += 1
    return f1(shared, len(said), len(wanted))


def _alike(said: Sequence[str], wanted: Sequence[str]) -> float:
    """ROUGE-L of two arguments; 0 where one speaks of A alone and the other of B alone: praise of another reply is another one."""
    of, other = REPLIES & set(said), REPLIES & set(wanted)
    return 0.0 if of and other and not of & other else rouge_l(said, wanted)


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


@reward(over="groups", check=check_pattern)
def criticised_verdict(
    groups: list[Group], run: Run, *, similarity: Reward, form: str = FORM, kind: Kind = "pairwise", weight: NonNegativeFloat = 0.5,
    least: Share = 0.5, unformed: float = -1.0, argument: str = POINT, longest: PositiveInt = 1500, model: str = META,
) -> Scores:  # fmt: skip
    """1 + `weight` * s for a judgement with a right verdict, 0 for one with a wrong one, `unformed` for one out of form.

    s: of a row with a human critique 1 where the judgement's has a similarity to it of `least` or more, else 0 (least=0: the
    similarity itself); of another row the MetaRM's value less 1, cut to [0, 1].  argument: as in `critique_similarity`.  longest:
    characters of a critique.  model: the MetaRM, a model of the run; empty: s = 0 there.  Logged: critique, the mean similarity,
    and predicted, the mean of the MetaRM's s, whatever the verdict.
    """
    near = [[s.total for s in row] for row in similarity(groups, run)]
    unknown = [g for g, row in enumerate(near) if all(x is None for x in row)]
    found = predicted([t for g in unknown for t in groups[g]], run, model) if model else []
    guesses = [min(1.0, max(0.0, m - 1)) for m in found]
    for name, values in ("critique", [x for row in near for x in row if x is not None]), ("predicted", guesses):
        if values:
            run.log(name, float(np.mean(values)))
    left = iter(guesses)
    sound = [
        [next(left, 0.0) for _ in row] if g in unknown else [float((x or 0.0) >= least) if least else x or 0.0 for x in row]
        for g, row in enumerate(near)
    ]
    read = [[reading_of(t, form, kind) for t in group] for group in groups]
    formed = [[len(critique_in(t.reply)) <= longest and bool(core_arguments(t.reply, argument)) for t in g] for g in groups]
    return [
        [_paid(*cell, weight, unformed) for cell in zip(*rows, strict=True)] for rows in zip(read, formed, sound, strict=True)
    ]  # fmt: skip


def _paid(found: Found, formed: bool, sound: float, weight: float, unformed: float) -> Score:
    if isinstance(found, str):
        return Score(None, why=found)
    reading, worth = found
    if reading.values is None or not formed:
        return Score(unformed, why=reading.said if reading.values is None else "no critique, or one that is too long")
    return Score((1 + weight * sound) * agrees(reading.values, worth), why=f"said {reading.said}", extracted=reading.said)


@reward(over="groups")
def where_criticised(groups: list[Group], run: Run, *, inner: Reward) -> Scores:
    """What `inner` pays judgements of rows with a human critique of the order that is shown; no verdict on others."""
    known = [g for g, group in enumerate(groups) if critique_of(group[0].problem)]
    scores: Scores = [[Score(None, why="the row has no critique of the replies in this order")] * len(group) for group in groups]
    for g, row in zip(known, inner([groups[g] for g in known], run) if known else [], strict=True):
        scores[g] = row
    return scores


def predicted(rows: Sequence[Trajectory], run: Run, model: str) -> list[float]:
    """What the MetaRM takes judgements to be paid, each read with its question."""
    return list(last_values(reader(run, model), rows)) if rows else []


# ---- held-out judgements -------------------------------------------------------------------------------------------------


@measure
def sound_judgements(
    problems: Sequence[Problem], run: Run, *, similarity: Reward, paid: Reward, form: str = FORM, kind: Kind = "pairwise",
    k: PositiveInt = 1, model: str = META,
) -> dict[str, float]:  # fmt: skip
    """As `judgement_accuracy`, and of questions with a human critique:

    critique: the mean similarity of the judge's critique to it.  spurious: the share of right verdicts with a similarity below 1/2.
    meta_error: the mean distance of the MetaRM's value from what `paid` pays.
    """
    found = judged(problems, run, form_of(form, kind), k)
    said = zip(found.asked, found.texts, strict=True)
    cells = [(a.question, texts) for a, texts in said if critique_of(a.question) and all(texts)]
    if not cells:
        return accuracy_of(found)
    begun = run.policy.read([Trajectory(q) for q, _ in cells], [q.prompt for q, _ in cells])
    groups = [run.policy.write([t] * len(texts), texts) for t, (_, texts) in zip(begun, cells, strict=True)]
    near, earned = ([s.total for row in part(groups, run) for s in row] for part in (similarity, paid))
    known = [x for x in near if x is not None]
    right = [x for x, r in zip(near, earned, strict=True) if x is not None and r is not None and r >= 1]
    guesses = predicted([t for group in groups for t in group], run, model) if model else []
    gaps = [abs(m - r) for m, r in zip(guesses, earned, strict=False) if r is not None]
    return accuracy_of(found) | {
        **({"critique": float(np.mean(known))} if known else {}),
        **({"spurious": float(np.mean([x < 0.5 for x in right]))} if right else {}),
        **({"meta_error": float(np.mean(gaps))} if gaps else {}),
    }


# ---- the recipe ------------------------------------------------------------------------------------------------------------


def rm_nlhf(
    base: Recipe | None = None, *, form: str = FORM, kind: Kind = "pairwise", weight: float = 0.5, least: float = 0.5,
    argument: str = POINT, match: float = 0.5, by: Reward | None = None, longest: int = 1500, meta: bool = True,
    cold: NonNegativeInt = 20, init: str = "value-head", meta_lr: float | None = None, n: int = 8, problems: int = 16,
    temperature: float = 0.7, beta: NonNegativeFloat = 1e-3, votes: int = 1, lr: float | None = None,
) -> Recipe:  # fmt: skip
    """form, kind, n, problems, votes: as in `trained_judge`; the form must ask for a critique.  weight: of the process reward; 0:
    verdicts and form alone are paid.  least, longest: similarity from which a critique is sound, and its characters.  argument,
    match, by: how critiques are compared (`critique_similarity`).  meta: whether a MetaRM pays rows without a human critique.
    cold: steps at first in which only the MetaRM learns.  init, meta_lr: of the MetaRM (`Learner.init`).  temperature: of
    judgements in training.  beta: of the KL to the start."""
    base = base or grpo(n=n, temperature=temperature, beta=beta).but(weighting=token_mean())
    base = trained_judge(base, form=form, kind=kind, n=n, problems=problems, lr=lr)
    near = critique_similarity(argument=argument, match=match, by=by)
    name = META if meta else ""
    asked: dict[str, Any] = {"similarity": near, "form": form, "kind": kind}
    told: dict[str, Any] = {**asked, "weight": weight, "least": least, "argument": argument, "longest": longest}
    known = where_criticised(inner=criticised_verdict(model="", **told))
    scorer = Recipe(reward=known, objective=label_squared_error(), update=Update(lr=meta_lr, loss_kind="scorer"))
    return base.but(
        reward=criticised_verdict(model=name, **told),
        measure=sound_judgements(paid=known, k=votes, model=name, **asked),
        loop=learner_alone(steps=cold, name=META, inner=base.loop) if meta and cold else base.loop,
        also=(*base.also, Learner(META, init, scorer)) if meta else base.also,
    )


fidelity = "core"
left_out = (
    "arguments that a language model extracts and matches, in whose place are lists or sentences and their words (`by` takes a "
    "judge); epochs of the cold start over all rows with a human critique: it has steps, with as many rows as the others; the tags "
    "and four lines of its form"
)
data = Data(
    chosen="the better reply", rejected="the worse reply",
    critique=Column("a person's critique, where the better reply stands first (A); without it the MetaRM scores", optional=True),
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

OF_WISHES = {"form": SMALL, "argument": ARGUMENT, "match": 1.0, "cold": 10, "temperature": 1.0}
check = Check(
    says="a judge that is paid for its critique too, half of the time by a MetaRM, gives more right verdicts than one that is paid "
    "for its verdicts alone",
    versus="rm_nlhf", task="criticised_duels:kinds=wishes", measure="judged", direction="higher", margin=0.03, settings=OF_WISHES,
    versus_settings={**OF_WISHES, "weight": 0.0, "meta": False}, problems=300, steps=60,
    finding="paid for critiques too, it names more of what people named (.34; .31 without, .24 at first), and fewer of its "
    "right verdicts are spurious (.42, .46, .55); it becomes right as often, in 77% and 76% from 65%",
)  # fmt: skip
baseline = "trained_judge"
