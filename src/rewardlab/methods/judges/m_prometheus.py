"""M-Prometheus: one judge that grades a reply or compares two, by the row's rubric, taught on rows native to many languages.

    input    an instruction, one reply or two, a rubric, and a reference where there is one;   any of them in any language
    output   feedback, "[RESULT]", a score from 1 to 5, or A or B
    L = -log p(output | input) over native rows of both kinds, shuffled together;   translations are judged by a rubric of their own
    decoding:   of n candidates, the one with the highest grade

Rows that were translated from English teach the language of translations, with the scores of what was there before: words that
came out wrong are taught to be right. So a row counts where it was written in its language (column `translated`). A judge of
translations, which needs both languages, is taught with the others, with the reference as the reply that deserves a 5.

Pombal et al. 2025, arXiv:2504.04953, by its abstract, the cards of Unbabel/M-Prometheus-3B and -7B (which have the prompt for
translations: accuracy, fluency and style in one rubric) and those of M-Feedback-Collection and M-Preference-Collection (230,000
and 250,000 rows): Qwen2.5-Instruct, prompted as Prometheus 2, one epoch. The published training is on native and English rows;
translated ones are its ablation. (inferred): rows a step; that of a pair with feedback on both orders either is shown, by chance;
three samples of a held-out grade, whose mean counts; a sample without a mark counts as the middle.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Problem, Recipe, Run, measure, rollout, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.data.values import is_missing
from rewardlab.errors import NothingKept, RewardlabError
from rewardlab.evals.marked import marked, over, shares
from rewardlab.judges.asking import judgements_of
from rewardlab.judges.cases import Case, label_of, to_judge
from rewardlab.judges.forms import Form, Kind
from rewardlab.judges.named import form_of
from rewardlab.judges.rows import Question, questions_of
from rewardlab.methods.baselines.sft import sft
from rewardlab.rollouts.ranked import learnt
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.worlds.polyglot import FORMS

Origin = Literal["native", "translated", "all"]
HOW = "`feedback` is about the reply, or about a pair whose better reply stands first; `feedback_reversed` where the worse one does"
TRANSLATION = (
    "[Accuracy, Fluency, Style]\n"
    "Score 1: Grave errors change the meaning; it can hardly be read, and keeps nothing of the style.\n"
    "Score 2: Several errors touch the meaning; it reads awkwardly, and seldom keeps the style.\n"
    "Score 3: Small errors leave the meaning as it is; in places it does not flow, or loses the style.\n"
    "Score 4: It is accurate, with slips at most, reads well, and keeps the style with few exceptions.\n"
    "Score 5: It is accurate throughout, reads as if written in its language, and keeps the style."
)
"""What a translation is judged by where its row brings no rubric; a row is one where it names a `source_language`."""


def with_rubric(problem: Problem) -> Problem:
    """The row with the rubric for translations, if it is one and has none of its own."""
    if problem.meta.get("rubric") or not problem.meta.get("source_language"):
        return problem
    return replace(problem, meta={**problem.meta, "rubric": TRANSLATION})


def is_from(problem: Problem, origin: Origin) -> bool:
    """Whether the row is of this origin; one that does not say that it was translated is native."""
    said = problem.meta.get("translated")
    # a table may write "false", which is no empty text
    translated = not is_missing(said) and label_of(said, problem) > 0.5
    return origin == "all" or translated == (origin == "translated")


def output(problem: Problem, question: Question) -> str:
    """What the judge is to write: feedback on what it is shown, in that order, and the mark."""
    said = problem.meta.get(f"feedback{question.back}")
    if not isinstance(said, str):
        problem.required("feedback", by="m_prometheus", how=HOW)
    return f"{said} {question.mark}"


def _forms(direct: str, pairwise: str) -> dict[Kind, Form]:
    found: dict[Kind, Form] = {"scale": form_of(direct, "scale"), "pairwise": form_of(pairwise)}
    for kind, form in found.items():
        if form.kind != kind or form.marks is None:
            raise RewardlabError(
                f"m_prometheus needs a form of kind {kind!r}, and {form.name} is of kind {form.kind!r}: give another"
            )
    return found


@rollout(rows=lambda **_: 1)
def native_rows(
    problems: list[Problem], run: Run, *, direct: str = "prometheus", pairwise: str = "prometheus_pairwise",
    origin: Literal["native", "translated", "all"] = "native",
) -> list[Group]:  # fmt: skip
    """Feedback and mark of each row of this origin, recorded as the policy's own; further rows stand in for those left out.

    They are asked for four times at most, so that data without such rows ends in an error and in no endless search. Logged:
    left_out, the share of rows that were of another origin.
    """
    forms, wanted = _forms(direct, pairwise), len(problems)
    kept, seen = [p for p in problems if is_from(p, origin)], wanted
    for _ in range(4):
        if len(kept) < wanted and run.more_problems is not None:
            more = run.more_problems(wanted - len(kept))
            kept, seen = kept + [p for p in more if is_from(p, origin)], seen + len(more)
    if not kept:
        raise NothingKept(f"none of {seen} rows is {origin}: the column `translated` says of each row whether it was")
    run.log("left_out", 1 - len(kept) / seen)
    written = []
    for problem in kept:
        asked = questions_of(with_rubric(problem), forms)
        known = [q for q in asked if isinstance(problem.meta.get(f"feedback{q.back}"), str)] or asked[:1]
        question = random.Random(seed_of("m_prometheus", run.seed, run.step, problem.key)).choice(known)
        written.append((question.asked, [output(problem, question)]))
    return learnt(written, run)


# ---- held out, by language -------------------------------------------------------------------------------------------------


@measure
def by_language(
    problems: Sequence[Problem], run: Run, *, direct: str = "prometheus", pairwise: str = "prometheus_pairwise",
    votes: PositiveInt = 3, temperature: NonNegativeFloat = 1.0,
) -> dict[str, float]:  # fmt: skip
    """How well held-out rows are judged, as a mean over languages (column `language`), so that none outweighs another.

    judged: right marks, of pairs in both orders.  judged_LANGUAGE: of one.  pairs, grades: of either kind.  decoded: of the rows
    with `replies` and `scores`, the share of the way from the mean score to the best one that the reply with the highest mean
    grade goes.  unread: judgements without a mark.
    """
    forms, rows = _forms(direct, pairwise), [with_rubric(p) for p in problems]
    found = marked(rows, run, forms, temperature)
    tongues = shares(found, lambda one: f"judged_{one.problem.meta.get('language', 'unnamed')}")
    kinds = shares(found, lambda one: "pairs" if one.question.kind == "pairwise" else "grades")
    decoded = _decoded(rows, run, forms["scale"], votes, temperature)
    return over(found, tongues, len(problems)) | kinds | decoded | {"unread": float(np.mean([not one.read for one in found]))}


def _decoded(rows: Sequence[Problem], run: Run, form: Form, votes: int, temperature: float) -> dict[str, float]:
    """What choosing the reply with the highest grade gains, where rows have several replies of known and unlike scores."""
    several = [p for p in rows if len(set(p.meta.get("scores") or ())) > 1]
    asked = [to_judge(p, Case((str(reply),), (0.0,)), form) for p in several for reply in p.meta["replies"]]
    if not asked:
        return {}
    values = [[form.read(t.reply).values for t in group] for group in judgements_of(run, asked, votes, temperature=temperature)]
    # a vote that cannot be read is none, and a reply without a vote is not chosen before one that has one
    known = [[v[0] for v in row if v is not None] for row in values]
    grades = iter([float(np.mean(row)) if row else -1.0 for row in known])
    return {"decoded": float(np.mean([gain([next(grades) for _ in p.meta["replies"]], p.meta["scores"]) for p in several]))}


def gain(grades: Sequence[float], scores: Sequence[float]) -> float:
    """The share of the way from the mean score to the best one; of equal grades the mean of what they would choose."""
    chosen = [s for g, s in zip(grades, scores, strict=True) if g == max(grades)]
    mean = float(np.mean(scores))
    return (float(np.mean(chosen)) - mean) / (max(scores) - mean)


def m_prometheus(
    base: Recipe | None = None, *, direct: str = "prometheus", pairwise: str = "prometheus_pairwise", origin: Origin = "native",
    votes: int = 3, temperature: float = 1.0, problems: int = 16, lr: float | None = None,
) -> Recipe:  # fmt: skip
    """direct, pairwise: what the judge is asked about one reply and about two: published forms, files, or texts.  origin: which
    rows are learnt from, by their column `translated`.  votes, temperature: samples of a grade when it chooses among replies, and
    of every held-out judgement.  problems: rows of a step."""
    base = base or sft(problems=problems, lr=lr)
    asked = {"direct": direct, "pairwise": pairwise}
    taught, held = native_rows(origin=origin, **asked), by_language(votes=votes, temperature=temperature, **asked)
    return base.but(rollout=taught, measure=held, problems=problems, lr=lr)


fidelity = "core"
left_out = "the two collections, which stronger models wrote in six languages, and how these were asked for: rows are the user's"
data = Data(
    feedback="why the reply has its score, or the better reply of a pair is better; of a pair with the better reply first",
    feedback_reversed=Column("the same on the pair with the worse reply first", optional=True),
    reply=Column("the reply to be graded, of a row that is no pair", optional=True),
    score=Column("its score, a whole number from 1 to 5", optional=True),
    chosen=Column("the better reply, of a row that is a pair", optional=True),
    rejected=Column("the worse reply", optional=True),
    rubric=Column("what is judged; a general rubric where a row has none", optional=True),
    answer=Column("the reference: a reply that deserves a 5", optional=True),
    language=Column("by which held-out rows are told apart", optional=True),
    translated=Column("true where the row was translated from another language; it is left out then", optional=True),
    source_language=Column("of a translation, which is judged as one where it has no rubric", optional=True),
    rows=[
        {
            "prompt": "Warum fallen im Herbst die Blätter?", "language": "German", "reply": "Wegen der Schwerkraft.", "score": 2,
            "answer": "Der Baum spart im Winter Wasser.", "feedback": "Die Schwerkraft wirkt das ganze Jahr; der Grund fehlt.",
        },
        {
            "prompt": "Comment cuire un œuf ?", "language": "French", "answer": "Dans l'eau bouillante, sept minutes.",
            "chosen": "Sept minutes dans l'eau bouillante.", "rejected": "Dans une casserole.",
            "feedback": "A dit combien de temps ; B ne le dit pas.",
            "feedback_reversed": "B dit combien de temps ; A ne le dit pas.",
        },
        {
            "prompt": "Translate from English to Spanish: The house is old.", "language": "Spanish", "source_language": "English",
            "reply": "La casa es vieja.", "answer": "La casa es vieja.", "score": 5,
            "feedback": "It says the same, in natural words.",
        },
    ],
)  # fmt: skip

OF_NOTES = {"direct": FORMS["scale"], "pairwise": FORMS["pairwise"], "problems": 32, "lr": 1e-3, "votes": 1}
check = Check(
    says="taught as many rows that were written in their language, a judge gives more right verdicts over three languages than one "
    "taught rows that were translated with errors",
    versus="m_prometheus", task="polyglot", measure="judged", direction="higher", margin=0.05, settings=OF_NOTES,
    versus_settings={**OF_NOTES, "origin": "translated"}, problems=200, steps=60,
    moved=Within("decoded", low=0.0, says="what choosing the best of four by grade gains"),
    tried="once, on two development seeds: .575 and .635 right on native rows, .608 and .606 on translated ones, from .42: none",
    finding="60 steps on either kind of row take it from 45% right verdicts to 53%; the rows that were translated with errors "
    "teach as much here, and choosing the best of four by grade gains less, from 25% to 41% and 46%",
)  # fmt: skip
baseline = "prometheus"
