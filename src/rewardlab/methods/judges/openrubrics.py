"""OpenRubrics: rubrics are made by contrasting the better reply with the worse; those by which the better one wins are imitated.

    CRG:    R ~ q(. | x, y+, y-): hard rules that the request states, and principles that tell y+ from y-
    kept:   the first of n rubrics with  judge(x, y_A, y_B, R) = label, its judgement c with it
    learnt: -log pi(R | x) - log pi(c | x, y_A, y_B, R);      judging:  R' ~ pi(. | x),  then k verdicts  ~ pi(. | x, y_A, y_B, R')

A rubric that is written from the request alone lists what any reply should have. Seeing a pair whose label is known shows what made
the difference; but a writer who is told the outcome also finds reasons that are none, and the filter takes those out by which the
judge decides otherwise. The generator then writes rubrics without any reply in view.

Liu et al. 2025, arXiv:2510.07743, by the paper: the parts of its prompts, rubrics by the likeliest tokens (a temperature of 0) and
one of each pair, verdicts at .7, of which several vote; 8e-6 for the rubrics and 5e-6 for the verdicts. Models and data are at
huggingface.co/OpenRubrics; the code (wanghaoyu0408/OpenRubrics) could not be read. (inferred): the wording; that one model learns
both parts, where there two are tuned; the replies in a random order. `filtered=False` keeps any rubric.

Rows may bring `rubrics`, which someone wrote of the pair, with judgements or without; else `writer` writes them, and judges.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Sampling, Trajectory, measure, rollout, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import list_of
from rewardlab.evals.passk import mean_interval
from rewardlab.judges.cases import agrees, best_of, cases_of, to_judge
from rewardlab.judges.forms import Form, asking
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.critiques import answers
from rewardlab.rollouts.judgements import nothing_accepted
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
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
WRITE = "Write a rubric for judging replies to the request below.\n" + HOW + "\n\nHere is the request:\n{prompt}\n"
JUDGE = "rubric_rm"
"""The form of the judge, by its published name."""
WRITER = "writer"


class Judged(NamedTuple):
    """A rubric of a pair, the question to judge the pair by it, and a judgement; "" where there is none."""

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
    problems: list[Problem], run: Run, *, contrast: str = CONTRAST, write: str = WRITE, judge: str = JUDGE, n: PositiveInt = 1,
    writer: str = WRITER, filtered: bool = True, column: str = "rubrics", temperature: NonNegativeFloat = 0.0,
) -> list[Group]:  # fmt: skip
    """For each pair the first of its rubrics by which the judge finds the better reply, recorded as the policy's reply to `write`;
    and the judgement, as its reply to `judge`.

    Rubrics are those of the row's column, or n that the model `writer` writes of the pair; it judges by those that come without a
    judgement.  filtered: else the first rubric is taken, whatever is judged by it. Pairs without one are dropped. Logged: accepted,
    the share of all rubrics by which the label comes out. Where none is left the first question is returned without a reply, from
    which nothing is learnt, so that there is a batch.
    """
    form, sampling = form_of(judge), Sampling(run.max_new, temperature)
    groups = judged_rubrics(problems, run, contrast, form, n, writer, column, sampling)
    flat = [x.right(form) for row in groups for x in row]
    run.log("accepted", sum(flat) / max(1, len(flat)))
    kept = [x for row in groups for x in [x for x in row if x.right(form) or not filtered][:1]]
    taught = [(asking(x.problem, write), x.rubric) for x in kept]
    taught += [(x.question, x.judgement) for x in kept if x.judgement]
    begun = run.policy.read([Trajectory(p) for p, _ in taught], [p.prompt for p, _ in taught]) if taught else []
    if not taught:
        return nothing_accepted(problems, run)
    return [[t] for t in run.policy.write(begun, [text for _, text in taught])]


def judged_rubrics(
    problems: Sequence[Problem], run: Run, contrast: str, form: Form, n: int, writer: str, column: str, sampling: Sampling
) -> list[list[Judged]]:
    """The rubrics of each pair, each with a judgement of the pair by it."""
    own = [[_own(x) for x in _listed(p.meta.get(column))] for p in problems]
    lacking = [i for i, rubrics in enumerate(own) if not rubrics]
    asked = [_contrasted(problems[i], contrast) for i in lacking]
    for i, texts in zip(lacking, answers(run, writer, asked, n, sampling)[0], strict=True):
        own[i] = [(text, "", None) for text in dict.fromkeys(after_thinking(x).strip() for x in texts) if text]
    rows = [
        [_question(p, k, *rubric, form, run) for k, rubric in enumerate(rubrics)]
        for p, rubrics in zip(problems, own, strict=True)
    ]  # fmt: skip
    silent = [x.question for row in rows for x in row if not x.judgement]
    said = iter(answers(run, writer, silent, 1, sampling)[0])
    return [[x if x.judgement else x._replace(judgement="".join(next(said))) for x in row] for row in rows]


def _listed(said: Any) -> list[Any]:
    """The rubrics of a row, of which a text or an object alone is one."""
    found = list_of(said)
    return found if found is not None else [said] if isinstance(said, Mapping) or (isinstance(said, str) and said.strip()) else []


def _contrasted(problem: Problem, contrast: str) -> Problem:
    problem.required("chosen", "rejected", by="openrubrics")
    return asking(problem, contrast, chosen=str(problem.meta["chosen"]), rejected=str(problem.meta["rejected"]))


def _own(said: Any) -> tuple[str, str, bool | None]:
    """A row's rubric, its judgement, and whether that saw the worse reply first."""
    if isinstance(said, Mapping):
        text = said.get("rubric")
        lines = "\n".join(map(str, text)) if isinstance(text, list | tuple) else str(text or "")
        return lines, str(said.get("judgement") or ""), bool(said.get("swapped")) if said.get("judgement") else None
    return str(said), "", None


def _question(problem: Problem, k: int, rubric: str, judgement: str, swapped: bool | None, form: Form, run: Run) -> Judged:
    case = cases_of(problem, form)[0]
    if swapped is None:
        swapped = random.Random(seed_of("openrubrics", run.seed, run.step, problem.key, k)).random() < 0.5
    known = replace(problem, meta={**problem.meta, "rubric": rubric})
    return Judged(problem, rubric, to_judge(known, case.at((1, 0) if swapped else (0, 1)), form), judgement)


# ---- judging by rubrics of its own ---------------------------------------------------------------------------------------


@measure
def rubric_accuracy(
    problems: Sequence[Problem], run: Run, *, write: str = WRITE, judge: str = JUDGE, k: PositiveInt = 1,
    temperature: NonNegativeFloat = 0.7,
) -> dict[str, float]:  # fmt: skip
    """The policy writes the likeliest rubric for each held-out request, and judges its pair by it, k times in either order.

    judged: the share of judgements with a right verdict, an unread one being wrong.  pair_accuracy: of pairs that the mean over
    judgements ranks right, ties half.  unread: judgements without a verdict.  temperature: of judgements.
    """
    form = form_of(judge)
    rubrics, _ = answers(run, "policy", [asking(p, write) for p in problems], 1, Sampling(run.max_new, 0.0))
    asked = [
        _question(p, 0, after_thinking("".join(text)).strip() or "-", "", swapped, form, run)
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
    mean = sum(gaps) / len(gaps) if gaps else 0.0
    return 0.5 if mean == 0.0 else float(mean > 0)


# ---- the recipe ---------------------------------------------------------------------------------------------------------


def openrubrics(
    base: Recipe | None = None, *, writer: str = "copy:policy", contrast: str = CONTRAST, write: str = WRITE, judge: str = JUDGE,
    n: int = 1, temperature: NonNegativeFloat = 0.0, filtered: bool = True, k: int = 1, lr: float | None = None, problems: int = 16,
) -> Recipe:  # fmt: skip
    """writer: who writes rubrics of pairs and judges by them, openai:URL#NAME or a model (`Learner.init`).  contrast, write, judge:
    what is asked: for a rubric of a pair, for one without replies, for a judgement by {rubric}.  n: rubrics of a pair, which differ
    at a temperature above 0.  filtered: whether the label must come out.  k: judgements of a held-out pair in either order, by one
    rubric.  problems: pairs of a step."""
    base = base or sft()
    kept = consistent_rubrics(contrast=contrast, write=write, judge=judge, n=n, filtered=filtered, temperature=temperature)
    also = (*base.also, Learner(WRITER, writer, Recipe(), every=0))
    measured = rubric_accuracy(write=write, judge=judge, k=k)
    return base.but(rollout=kept, measure=measured, also=also, lr=lr, small_lr=3e-4, problems=problems)


fidelity = "core"
left_out = (
    "two models, one for rubrics and one for judgements; lists of more than two replies, of which a rubric is to order most pairs; "
    "the choice of pairs from many preference sets; and the DPO of a policy by "
    "the verdicts, for which the trained judge is a model like any other (`writing_zero_brpo` and `rlhf_workflow_online` take one)"
)
data = Data(
    chosen="the better reply", rejected="the worse reply",
    rubrics=Column(
        "rubrics that someone wrote of the pair: texts, or objects with `rubric`, `judgement`, and `swapped`, true where that saw "
        "the worse reply first", optional=True, setting="column",
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
        {"prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone."},
        {"prompt": "How does one boil an egg?", "chosen": "Seven minutes in boiling water.", "rejected": "In a pan, somehow."},
    ],
)  # fmt: skip

SMALL = {"write": SMALL_WRITE, "judge": SMALL_JUDGE, "n": 4, "temperature": 1.0, "lr": 3e-4}
check = Check(
    says="a model that learns from rubrics by which the label comes out judges held-out pairs right more often, by rubrics that it "
    "writes itself, than one that learns from any rubric of the pair",
    versus="openrubrics", task="occasions", measure="pair_accuracy", direction="higher", margin=0.03,
    settings=SMALL, versus_settings={**SMALL, "filtered": False}, problems=300, steps=60, learns=None,
)  # fmt: skip
baseline = "trained_judge"
