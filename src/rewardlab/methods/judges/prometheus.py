"""Prometheus: a judge that grades one reply by the row's own rubric, beside a reference: feedback in words, and then a score.

    input    an instruction, a reply, a reference that deserves a 5, and a rubric that says what each score from 1 to 5 means
    output   feedback, "[RESULT]", score
    L = -log p(output | input),   mean over its tokens
    held out, by rubrics that no training row has:   Pearson's r of the scores with those of the rows

A model that has seen a thousand rubrics applies one that it has not; of a single standard it learns that standard. The feedback is
written first, so that the score rests on it. Scores are absolute: two replies that are each graded by themselves are ranked, too.

Kim et al. 2023, arXiv:2310.08491, and prometheus-eval/prometheus (feedback_collection_dataset.py, configs/training.py at d9b5cce,
run_absolute_scoring.py at f165242): the loss is on the output alone; there 3 epochs of batches of 16, 1e-5, a cosine; three samples
of a held-out row at temperature 1 and top-p 0.9, asked again until a score can be read. Here a sample without a score counts as the
middle of the scale (inferred). The words of the input are the form's. The paper's ablations are settings: `reference`, `rubric`,
and `feedback`, which may come last or not at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Problem, Recipe, Run, Sampling, Trajectory, measure, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.evals.passk import mean_interval
from rewardlab.judges.forms import Form, Kind
from rewardlab.judges.named import form_of
from rewardlab.judges.rows import score_of
from rewardlab.methods.baselines.sft import sft
from rewardlab.scoreboard.correlation import kendall, pearson, spearman
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, PositiveShare
from rewardlab.worlds.graded import BY_RUBRIC

Feedback = Literal["first", "last", "none"]
HOW = "Rows to grade have a `reply` with its `score`, a `rubric`, an `answer` as the reference, and `feedback` in words"


def asked(problem: Problem, form: Form, reference: bool = True, rubric: bool = True) -> Problem:
    """The question to the judge about the row's reply, with or without its reference and its rubric."""
    problem.required("reply", by="a judge of single replies", how=HOW)
    shown = problem if reference else replace(problem, answer=None)
    if not rubric:
        shown = replace(shown, meta={**shown.meta, "rubric": form.defaults.get("rubric", "none")})
    return form.asked(shown, [str(problem.meta["reply"])])


def output(problem: Problem, form: Form, feedback: Feedback = "first") -> str:
    """What the judge is to write about the row's reply: feedback and score, in this order."""
    problem.required("score", by="a judge of single replies", how=HOW)
    score = score_of(problem, form)
    assert form.marks is not None
    mark = form.marks.texts[score - form.marks.low]
    if feedback == "none":
        return mark
    problem.required("feedback", by="a judge of single replies", how=HOW)
    said = str(problem.meta["feedback"])
    return f"{said} {mark}" if feedback == "first" else f"{mark} {said}"


@rollout(rows=lambda **_: 1)
def graded_rows(
    problems: list[Problem], run: Run, *, form: str = "", kind: Kind = "scale", feedback: Feedback = "first",
    reference: bool = True, rubric: bool = True,
) -> list[Group]:  # fmt: skip
    """The feedback and the score of each row, recorded as the policy's own answer to the question about its reply."""
    of = form_of(form, kind)
    questions = [asked(p, of, reference, rubric) for p in problems]
    begun = run.policy.read([Trajectory(q) for q in questions], [q.prompt for q in questions])
    done = run.policy.write(begun, [output(p, of, feedback) for p in problems])
    for t in done:
        run.policy.check_fits(t, 0)
    return [[t] for t in done]


@measure
def grades(
    problems: Sequence[Problem], run: Run, *, form: str = "", kind: Kind = "scale", reference: bool = True, rubric: bool = True,
    k: PositiveInt = 3, temperature: NonNegativeFloat = 1.0, top_p: PositiveShare = 0.9,
) -> dict[str, float]:  # fmt: skip
    """How well the mean of k sampled scores of held-out replies agrees with the rows' scores.

    pearson: 0 where all scores are alike.  spearman, kendall: left out there.  exact: the share of samples with the row's score.
    error: the mean distance of the mean score from it.  unread: samples without a score: these are not exact, and a correlation,
    which needs a number of every row, or the judge would choose its rows, takes them as the middle of the scale.
    """
    of = form_of(form, kind)
    gold = np.array([score_of(p, of) for p in problems], float)
    questions = [asked(p, of, reference, rubric) for p in problems]
    begun = run.policy.read([Trajectory(q) for q in questions], [q.prompt for q in questions])
    sampling = Sampling(run.max_new, temperature, top_p)
    said = run.policy.extend([t for t in begun for _ in range(k)], sampling, run.rng("judgements"))
    assert of.marks is not None
    span, found = of.marks.high - of.marks.low, [of.read(t.reply).values for t in said]
    scores = np.array([of.marks.low + span * (0.5 if v is None else v[0]) for v in found]).reshape(-1, k)
    readable = np.array([v is not None for v in found]).reshape(-1, k)
    mean, exact = scores.mean(1), [float(x) for x in (np.isclose(scores, gold[:, None]) & readable).mean(1)]
    low, high = mean_interval(exact)
    r = pearson(mean, gold)
    return {
        "pearson": 0.0 if math.isnan(r) else r, "spearman": spearman(mean, gold), "kendall": kendall(mean, gold),
        "exact": float(np.mean(exact)), "ci95_low": low, "ci95_high": high, "n": float(len(problems)),
        "error": float(np.abs(mean - gold).mean()), "unread": float(np.mean([v is None for v in found])),
    }  # fmt: skip


def prometheus(
    base: Recipe | None = None, *, form: str = "prometheus", kind: Kind = "scale", feedback: Feedback = "first",
    reference: bool = True, rubric: bool = True, votes: int = 3, temperature: float = 1.0, problems: int = 16,
    lr: float | None = None,
) -> Recipe:  # fmt: skip
    """form: what the judge is asked, a published form by name, a file, or a text with {prompt}, {reply}, {answer} and {rubric}.
    kind: of a text.  feedback: written before the score, after it, or not at all.  reference, rubric: whether the judge is shown
    the row's.  votes, temperature: samples of a held-out row, whose mean is its score.  problems: rows of a step."""
    base = base or sft(problems=problems, lr=lr)
    shown = {"form": form, "kind": kind, "reference": reference, "rubric": rubric}
    return base.but(
        rollout=graded_rows(feedback=feedback, **shown), measure=grades(k=votes, temperature=temperature, **shown), lr=lr
    )  # fmt: skip


fidelity = "core"
left_out = "the Feedback Collection, 100,000 rows that GPT-4 wrote, and how it was asked for them: rows are the user's"
data = Data(
    reply="the reply to be graded",
    score="its score, a whole number from 1 to 5",
    feedback="why it has this score, in words",
    rubric=Column("the criterion, and what each score means; a general one where a row has none", optional=True),
    answer=Column("the reference: a reply that deserves a 5", optional=True),
    rows=[
        {
            "prompt": "Why do leaves fall?", "reply": "Because of gravity alone.", "score": 2, "answer": "Trees save water so.",
            "rubric": "Does it name the cause? 1: no cause. 3: a part of it. 5: the cause.",
            "feedback": "Gravity acts all year, so that it is not why leaves fall in autumn.",
        },
        {
            "prompt": "How does one boil an egg?", "reply": "Seven minutes in boiling water.", "score": 5,
            "rubric": "Can one do it? 1: not at all. 3: with a cook's help. 5: at once.", "answer": "Boil it for seven minutes.",
            "feedback": "It says how long and in what, which is all that one needs.",
        },
    ],
)  # fmt: skip

OF_NOTES = {"form": BY_RUBRIC, "problems": 32, "lr": 1e-3}
check = Check(
    says="by rubrics that stand in no training row, the scores of a judge that writes feedback first agree with the exact ones "
    "more than those of one that learnt scores alone",
    versus="prometheus", task="graded:by=rubric,counted=4", measure="pearson", direction="higher", margin=0.05,
    settings=OF_NOTES, versus_settings={**OF_NOTES, "feedback": "none"}, problems=300, steps=60,
    tried="once, on a development seed: .63 with feedback and .65 without, from .50",
)  # fmt: skip
baseline = "sft"
