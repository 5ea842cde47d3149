"""OpenRubrics: rubrics are made by contrasting better replies with worse; those by which the better ones win are imitated.

    CRG:    R ~ q(. | x, y_1 > ... > y_M): hard rules that the request states, and principles that tell better replies from worse
    kept:   the first of n rubrics with  judge(x, y_a, y_b, R) = label  for tau of the pairs; judgements c with the label, too
    learnt: -log pi(R | x) - log pi(c | x, y_A, y_B, R);      judging:  R' ~ pi(. | x),  then k verdicts  ~ pi(. | x, y_A, y_B, R')

A rubric that is written from the request alone lists what any reply should have. Seeing a pair whose label is known shows what made
the difference; but a writer who is told the outcome also finds reasons that are none, and the filter takes those out by which the
judge decides otherwise. The generator then writes rubrics without any reply in view.

Liu et al. 2025, arXiv:2510.07743v3: tau = .5; the parts of its prompts, rubrics by the likeliest tokens (a temperature of 0), one
of each row, verdicts at .7, of which several vote; 8e-6 for the rubrics and 5e-6 for the verdicts. Models and data are at
huggingface.co/OpenRubrics; the code (wanghaoyu0408/OpenRubrics) could not be read. (inferred): the wording; that one model learns
both parts, where there two are tuned; that a list's rubric is learnt once, and not with each of its pairs (its 35,700 prompts have
85,600 pairs); the replies in a random order. `filtered=False` keeps any rubric.

Rows may bring `rubrics`, which someone wrote of their replies, with judgements or without; else `writer` writes them, and judges.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Sampling, Trajectory, measure, rollout, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.evals.passk import mean_interval
from rewardlab.judges.cases import UNREAD, Case, agrees, best_of, cases_of, to_judge
from rewardlab.judges.forms import Form, asking, own_form
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.critiques import answers
from rewardlab.rollouts.judgements import nothing_accepted
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.text.answers import after_thinking
from rewardlab.worlds.occasions import JUDGE as SMALL_JUDGE
from rewardlab.worlds.occasions import WRITE as SMALL_WRITE

HOW = (
    "Write it as a numbered list. Each item begins with 'The response', says one thing, and can be checked in any reply to this "
    "request: it names no topics, facts or replies, but the universal principle behind them. First the hard rules, which the "
    "request states explicitly, each ending with [Hard Rule]; then the principles of a good reply, each ending with [Principle]. "
    "Leave nothing out that matters, and say nothing twice. Write only the list."
)
CONTRAST = (
    "A request and two replies follow, of which the first was preferred. Write a rubric for judging any reply to this request: "
    "first take the commands and constraints of the request, then find what makes the preferred reply better, and turn each of "
    "these differences into the principle that it shows.\n" + HOW + "\n\n<request>\n{prompt}\n</request>\n\n"
    "<chosen>\n{chosen}\n</chosen>\n\n<rejected>\n{rejected}\n</rejected>\n"
)
CONTRAST_LIST = (
    "A request and several replies follow, the best one first, and each of them better than those after it. Write a rubric for "
    "judging any reply to this request: first take the commands and constraints of the request, then find what makes earlier "
    "replies better than later ones, of neighbours and of the first ones and the rest, and turn each of these differences into the "
    "principle that it shows.\n" + HOW + "\n\n<request>\n{prompt}\n</request>\n\n<responses>\n{replies}\n</responses>\n"
)
WRITE = "Write a rubric for judging replies to the request below.\n" + HOW + "\n\nHere is the request:\n{prompt}\n"
JUDGE = "rubric_rm"
"""The form of the judge, by its published name."""
WRITER = "writer"
Rubric = tuple[str, str, bool | None]
"""A rubric, a judgement by it ("": none), and whether that saw the worse reply first."""


class Judged(NamedTuple):
    """A rubric of a row, the question to judge two of its replies by it, and a judgement; "" where there is none."""

    problem: Problem
    rubric: str
    question: Problem
    judgement: str

    def right(self, form: Form) -> bool:
        values = form.read(self.judgement, len(self.question.meta["worth"])).values
        return values is not None and agrees(values, self.question.meta["worth"])


# ---- contrastive rubrics, and the filter by their judgements ----------------------------------------------------------------


@rollout(rows=lambda **_: 1)
def consistent_rubrics(
    problems: list[Problem], run: Run, *, contrast: str = CONTRAST, contrast_list: str = CONTRAST_LIST, write: str = WRITE,
    judge: str = JUDGE, n: PositiveInt = 1, writer: str = WRITER, filtered: bool = True, least: Share = 0.5,
    column: str = "rubrics", temperature: NonNegativeFloat = 0.0,
) -> list[Group]:  # fmt: skip
    """For each row the first of its rubrics by which the judge orders at least `least` of the row's pairs of replies rightly,
    recorded as the policy's reply to `write`; and each of the judgements of pairs that are right, as its reply to `judge`.

    Rubrics are those of the row's column, or n that the model `writer` writes of its replies; it judges by those that come without
    a judgement.  filtered: else the first rubric is taken, whatever is judged by it. Rows without one are dropped. Logged:
    accepted, the share of all rubrics that pass. Where none is left the first question is returned without a reply, from which
    nothing is learnt, so that there is a batch.
    """
    form, sampling = form_of(judge), Sampling(run.max_new, temperature)
    groups = judged_rubrics(problems, run, (contrast, contrast_list), form, n, writer, column, sampling)
    passed = [[np.mean([x.right(form) for x in pairs]) >= least for pairs in rubrics] for rubrics in groups]
    flat = [ok for row in passed for ok in row]
    run.log("accepted", sum(flat) / max(1, len(flat)))
    kept = [
        [pairs for pairs, ok in zip(*row, strict=True) if ok or not filtered][:1] for row in zip(groups, passed, strict=True)
    ]  # fmt: skip
    taught = [(asking(pairs[0].problem, write), pairs[0].rubric) for row in kept for pairs in row]
    judged = [x for row in kept for pairs in row for x in pairs if x.judgement and (x.right(form) or not filtered)]
    taught += [(x.question, x.judgement) for x in judged]
    begun = run.policy.read([Trajectory(p) for p, _ in taught], [p.prompt for p, _ in taught]) if taught else []
    if not taught:
        return nothing_accepted(problems, run)
    return [[t] for t in run.policy.write(begun, [text for _, text in taught])]


def judged_rubrics(
    problems: Sequence[Problem], run: Run, contrast: tuple[str, str], form: Form, n: int, writer: str, column: str,
    sampling: Sampling,
) -> list[list[list[Judged]]]:  # fmt: skip
    """The rubrics of each row, each with a judgement by it of each pair of the row's replies of different worth."""
    pairs = [ordered_pairs(p) for p in problems]
    own = [[_own(x) for x in _listed(p.meta.get(column))] if cases else [] for p, cases in zip(problems, pairs, strict=True)]
    lacking = [i for i, rubrics in enumerate(own) if pairs[i] and not rubrics]
    asked = [_contrasted(problems[i], *contrast) for i in lacking]
    for i, texts in zip(lacking, answers(run, writer, asked, n, sampling)[0], strict=True):
        own[i] = [(text, "", None) for text in dict.fromkeys(after_thinking(x).strip() for x in texts) if text]
    rows = [
        [[_question(p, (k, j), pair, rubric, form, run) for j, pair in enumerate(cases)] for k, rubric in enumerate(rubrics)]
        for p, cases, rubrics in zip(problems, pairs, map(_of_pairs, own, pairs), strict=True)
    ]  # fmt: skip
    silent = [x.question for row in rows for judged in row for x in judged if not x.judgement]
    said = iter(answers(run, writer, silent, 1, sampling)[0])
    return [
        [[x if x.judgement else x._replace(judgement="".join(next(said))) for x in judged] for judged in row] for row in rows
    ]  # fmt: skip


def ranked(problem: Problem) -> Case:
    """A row's replies, the best one first."""
    whole = cases_of(problem, own_form("scores"))[0]
    return whole.at(sorted(range(len(whole.worth)), key=lambda i: -whole.worth[i]))


def ordered_pairs(problem: Problem) -> list[Case]:
    """The pairs of a row's replies of which one is worth more, that one first."""
    whole = ranked(problem)
    pairs = [whole.at(pair) for pair in combinations(range(len(whole.worth)), 2)]
    return [pair for pair in pairs if pair.worth[0] > pair.worth[1]]


def _listed(said: Any) -> list[Any]:
    """The rubrics of a row, of which a text or an object alone is one."""
    found = list_of(said)
    return found if found is not None else [said] if isinstance(said, Mapping) or (isinstance(said, str) and said.strip()) else []


def _contrasted(problem: Problem, contrast: str, contrast_list: str) -> Problem:
    replies = ranked(problem).replies
    if len(replies) == 2:
        return asking(problem, contrast, chosen=replies[0], rejected=replies[1])
    return asking(problem, contrast_list, replies="\n\n".join(f"{i}. {text}" for i, text in enumerate(replies, 1)))


def _own(said: Any) -> Rubric:
    """A row's rubric, its judgement, and whether that saw the worse reply first."""
    if isinstance(said, Mapping):
        text = said.get("rubric")
        lines = "\n".join(map(str, text)) if isinstance(text, list | tuple) else str(text or "")
        return lines, str(said.get("judgement") or ""), bool(said.get("swapped")) if said.get("judgement") else None
    return str(said), "", None


def _of_pairs(rubrics: Sequence[Rubric], pairs: Sequence[Case]) -> list[Rubric]:
    """A row's own judgements are of its only pair; of several pairs it would be unclear which one is meant."""
    return [rubric if len(pairs) == 1 else (rubric[0], "", None) for rubric in rubrics]


def _question(problem: Problem, at: tuple[int, int], pair: Case, written: Rubric, form: Form, run: Run) -> Judged:
    """The question to judge a pair, whose better reply stands first in it, by a rubric.  at: the places of rubric and pair."""
    rubric, judgement, swapped = written
    if swapped is None:
        swapped = random.Random(seed_of("openrubrics", run.seed, run.step, problem.key, *at)).random() < 0.5
    known = replace(problem, meta={**problem.meta, "rubric": rubric})
    return Judged(problem, rubric, to_judge(known, pair.at((1, 0) if swapped else (0, 1)), form), judgement)


# ---- judging by rubrics of its own ---------------------------------------------------------------------------------------


@measure
def rubric_accuracy(
    problems: Sequence[Problem], run: Run, *, write: str = WRITE, judge: str = JUDGE, k: PositiveInt = 1,
    temperature: NonNegativeFloat = 0.7,
) -> dict[str, float]:  # fmt: skip
    """The policy writes the likeliest rubric for each held-out request, and judges its pair by it, k times in either order.

    judged: the share of judgements with a right verdict, an unread one being wrong.  pair_accuracy: of pairs that the mean over
    judgements ranks right, ties half, and not those of which none can be read.  unread: judgements without a verdict.
    temperature: of judgements.
    """
    form = form_of(judge)
    rubrics, _ = answers(run, "policy", [asking(p, write) for p in problems], 1, Sampling(run.max_new, 0.0))
    asked = [
        _question(p, (0, 0), cases_of(p, form)[0], (after_thinking("".join(text)).strip() or "-", "", swapped), form, run)
        for p, text in zip(problems, rubrics, strict=True) for swapped in (False, True)
    ]  # fmt: skip
    said, _ = answers(run, "policy", [x.question for x in asked], k, Sampling(run.max_new, temperature))
    # a question that the context cannot hold has no verdict
    every = [[x._replace(judgement=text) for text in texts or [""]] for x, texts in zip(asked, said, strict=True)]
    judged = [forth + back for forth, back in zip(every[::2], every[1::2], strict=True)]
    right = [float(x.right(form)) for row in judged for x in row]
    wins = [_won(row, form) for row in judged]
    low, high = mean_interval(wins)
    return {
        "pair_accuracy": float(np.mean(wins)), "ci95_low": low, "ci95_high": high, "n": float(len(problems)),
        "judged": float(np.mean(right)),
        "unread": float(np.mean([form.read(x.judgement, 2).values is None for row in judged for x in row])),
    }  # fmt: skip


def _won(row: Sequence[Judged], form: Form) -> float:
    gaps = []
    for x in row:
        if values := form.read(x.judgement, 2).values:
            better = best_of(x.question.meta["worth"]) or 0
            gaps.append(values[better] - values[1 - better])
    if not gaps:
        return UNREAD
    mean = sum(gaps) / len(gaps)
    return 0.5 if mean == 0.0 else float(mean > 0)


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def openrubrics(
    base: Recipe | None = None, *, writer: str = "copy:policy", contrast: str = CONTRAST, contrast_list: str = CONTRAST_LIST,
    write: str = WRITE, judge: str = JUDGE, n: int = 1, temperature: NonNegativeFloat = 0.0, filtered: bool = True,
    least: Share = 0.5, k: int = 1, lr: float | None = None, problems: int = 16,
) -> Recipe:  # fmt: skip
    """writer: who writes rubrics of replies and judges by them, openai:URL#NAME or a model (`Learner.init`).  contrast,
    contrast_list, write, judge: what is asked: for a rubric of a pair, of a list, or of the request alone, and for a judgement by
    {rubric}.  n: rubrics of a row, which differ at a temperature above 0.  filtered, least: whether labels must come out, and for
    which share of a row's pairs.  k: judgements of a held-out pair in either order, by one rubric.  problems: rows of a step."""
    base = base or sft()
    kept = consistent_rubrics(
        contrast=contrast, contrast_list=contrast_list, write=write, judge=judge, n=n, filtered=filtered, least=least,
        temperature=temperature,
    )  # fmt: skip
    also = (*base.also, Learner(WRITER, writer, Recipe(), every=0))
    measured = rubric_accuracy(write=write, judge=judge, k=k)
    return base.but(rollout=kept, measure=measured, also=also, lr=lr, small_lr=3e-4, problems=problems)


fidelity = "core"
left_out = (
    "two models, one for rubrics and one for judgements; the choice of pairs from many preference sets; and the DPO of a policy by "
    "the verdicts, for which the trained judge is a model like any other (`writing_zero_brpo` and `rlhf_workflow_online` take one)"
)
data = Data(
    chosen=Column("the better reply of a pair", optional=True), rejected=Column("the worse one", optional=True),
    replies=Column("or a list of replies", optional=True),
    scores=Column("what each of the replies is worth, of which the highest counts most", optional=True),
    rubrics=Column(
        "rubrics that someone wrote of the replies: texts, or objects with `rubric`, and for a pair `judgement`, and `swapped`, "
        "true where that saw the worse reply first", optional=True, setting="column",
    ),
    rows=[
        {
            "prompt": "Name a planet, in at most three words.", "chosen": "Mars.", "rejected": "There are many, and one is Mars.",
            "rubrics": [
                {
                    "rubric": ["1. The reply has at most three words. [Hard Rule]", "2. It names a planet. [Principle]"],
                    "judgement": "1: only A keeps it. 2: both. [[A]]",
                },
                "1. The reply mentions that there are several. [Principle]",
            ],
        },
        {
            "prompt": "Why do leaves fall?", "replies": ["Because of gravity.", "Trees save water in winter.", "They do not."],
            "scores": [1, 2, 0],
        },
        {"prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow."},
    ],
)  # fmt: skip

SMALL = {"write": SMALL_WRITE, "judge": SMALL_JUDGE, "n": 4, "temperature": 1.0, "lr": 1e-3}
check = Check(
    says="a model that learns from rubrics by which the label comes out judges held-out pairs right more often, by rubrics that it "
    "writes itself, than one that learns from any rubric of the pair",
    versus="openrubrics", task="occasions", measure="pair_accuracy", direction="higher", margin=0.03,
    settings=SMALL, versus_settings={**SMALL, "filtered": False}, problems=300, steps=400,
    judge=Within("pair_accuracy", low=0.55, says="right verdicts by rubrics of its own"), learns=None,
    finding="by rubrics of its own it judges 63% of pairs right, 60% after learning from any, 53% at first",
    version=2, replaces="after 60 steps, at three rates, both sides were at chance; 400 took one development seed to .62",
)  # fmt: skip
baseline = "trained_judge"
