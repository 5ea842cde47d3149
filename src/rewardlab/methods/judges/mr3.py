r"""mR3: one judge for any rubric and kind of verdict in many languages; it reasons first, and learns right traces of hard rows.

    input    task, rubric, one reply or two      output   <think> trace </think> {"explanation": ..., "score": ...}
             score: a whole number, the better of two replies, or true or false, as the rubric asks
    kept = {(x, y): the verdict in y is the label, and the judge itself does not get x right in all of k attempts}
    L = -log p(y | x), over `kept` ordered by the attempts that fail, the fewest first

A larger model wrote the traces, some of which come to a wrong verdict; and most rows teach nothing, since any judge gets them
right. A trace is written in English or in the language of the row ("target"); there it begins with a sentence in that language, so
that the judge keeps to it (language forcing).

Anugraha et al. 2025, arXiv:2510.01146, by its abstract, and rubricreward/mr3 README.md at 0075581, dataset_info.json at 634e047
(100,000 rows as they come, easy to hard, hard to easy and English first; the larger models are trained on easy to hard) and
mr3_configs/hpm_search/easytohard/qwen3_4b_tgt_tgt_1e5.yaml at bfa1d61: 3 epochs at 1e-5, a cosine; judgements are sampled at .6.
Traces of gpt-oss-120b were kept where they are right, and easy rows discarded. (inferred): a row is easy where a smaller model,
here the policy before its training, is right in all of k attempts; hardness is the share that fails. A column `difficulty` says it
otherwise. Rows without a right trace are left out.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Loop, Problem, Recipe, Run, loop, measure, rollout, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.data.ordering import easy_first
from rewardlab.errors import RewardlabError
from rewardlab.evals.marked import marked, over, shares
from rewardlab.judges.asking import judgements_of
from rewardlab.judges.forms import Form, Kind, own_form
from rewardlab.judges.marks import Marks
from rewardlab.judges.rows import BACK, Question, is_right, questions_of
from rewardlab.methods.baselines.sft import sft
from rewardlab.rollouts.judgements import nothing_accepted
from rewardlab.rollouts.ranked import learnt
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt
from rewardlab.tasks.positions import epoch_of
from rewardlab.util.progress import in_batches
from rewardlab.worlds.polyglot import FORMS

Language = Literal["english", "target"]
Order = Literal["easy_to_hard", "hard_to_easy", "given"]
COLUMN: Mapping[str, str] = {"english": "judgement", "target": "judgement_target"}
RUBRIC = "A good reply is right, does what was asked, is clear, and harms nobody."
"""What is judged where a row brings no rubric of its own."""
_TOLD = "# Instruction\nJudge by the rubric and by nothing else. {does}\n\n# Rubric\n{{rubric}}\n\n# Response format\n"
_FORMAT = 'Think first. Then write {{"explanation": "a short reason", "score": {score}}} and nothing after it.'
_INPUT = "# Input\n{prompt}\n\n"
_SCORED = r'"score"\s{0,9}:\s{0,9}"?(?:Assistant\s{1,3})?(%s)\b'
_WRITTEN = '{"explanation": "", "score": %s}'


def _form(kind: Kind, does: str, score: str, shown: str, marks: Marks) -> Form:
    system = _TOLD.format(does=does) + _FORMAT.format(score=score)
    return Form(f"mr3_{kind}", kind, _INPUT + shown + "\n\n# Your response", marks, system=system, defaults={"rubric": RUBRIC})


PUBLISHED: Mapping[Kind, Form] = {
    "scale": _form(
        "scale", "Grade the response from 1 to 5.", "1 to 5", "# Response\n{reply}",
        Marks(low=1, high=5, pattern=_SCORED % "[1-5]", written=_WRITTEN % "{}"),
    ),
    "pairwise": _form(
        "pairwise", "Say which assistant's response is better.", '"Assistant A" or "Assistant B"',
        "# Assistant A\n{first}\n\n# Assistant B\n{second}",
        Marks({"A": 1.0, "B": 0.0}, pattern=_SCORED % "[AB]", written=_WRITTEN % '"Assistant {}"'),
    ),
    "verdict": _form(
        "verdict", "Say whether the response meets it.", '"true" or "false"', "# Response\n{reply}",
        Marks({"true": 1.0, "false": 0.0}, pattern=_SCORED % "true|false", written=_WRITTEN % '"{}"'),
    ),
}  # fmt: skip
"""The three kinds of verdict; the words are ours, the sections and the JSON those of the source."""


def _forms(texts: Mapping[str, str]) -> dict[Kind, Form]:
    return {kind: own_form(kind, texts[kind]) if texts.get(kind) else form for kind, form in PUBLISHED.items()}


# ---- which traces, and in which order ------------------------------------------------------------------------------------


class Traced(NamedTuple):
    """A question to the judge with a trace for it."""

    question: Question
    trace: str


def traces_of(problem: Problem, forms: Mapping[Kind, Form], language: Language, right: bool = True) -> list[Traced]:
    """The row's traces in this language, each with its question; right: only those whose verdict is the label."""
    found = [(q, problem.meta.get(f"{COLUMN[language]}{q.back}")) for q in questions_of(problem, forms)]
    known = [Traced(q, text) for q, text in found if isinstance(text, str)]
    return [t for t in known if not right or is_right(t.question, t.trace, forms[t.question.kind])]


def check_traces(problems: Sequence[Problem], language: Language, right: bool, texts: Any = None, **_: object) -> None:
    """Refuse a row that is not labelled, with its place, and rows of which none has a trace that may be learnt."""
    forms = _forms(texts or {})
    for problem in problems:
        try:
            questions_of(problem, forms)
        except RewardlabError as bad:
            raise RewardlabError(f"{problem.place}: {bad}" if problem.place else str(bad)) from None
    if not any(traces_of(problem, forms, language, right) for problem in problems):
        raise _no_trace(problems, language)


def _no_trace(problems: Sequence[Problem], language: Language) -> RewardlabError:
    names = [f"{COLUMN[language]}{back}" for back in ("", BACK)]
    written = sum(any(problem.meta.get(name) for name in names) for problem in problems)
    found = f"{written} have one whose verdict is not the label, or cannot be read" if written else "none has the column"
    other: Language = "target" if language == "english" else "english"
    return RewardlabError(
        f"mr3 learns traces with the right verdict, from the column {COLUMN[language]!r} ({names[1]!r} where the worse reply of a "
        f"pair stands first), and none of {len(problems)} rows has one: {found}. Write traces with another model (examples: "
        f"rewardlab show mr3 --rows), or give --language {other}, which reads {COLUMN[other]!r}"
    )


def ordered(failed: Sequence[float], order: Order, easy: bool, seed: int) -> list[int]:
    """Rows by the share of attempts that fail; without `easy`, those on which none fails are left out (all stay if none would)."""
    kept = [i for i, x in enumerate(failed) if easy or x > 0] or list(range(len(failed)))
    if order == "given":
        return kept
    sign = 1 if order == "easy_to_hard" else -1
    return [kept[i] for i in easy_first([sign * failed[i] for i in kept], seed)]


AT_ONCE = ENDLESS = 1024
"""Questions that are attempted together; rows of a curriculum where data have no end."""


def failures(run: Run, asked: Sequence[Question], forms: Mapping[Kind, Form], attempts: int) -> list[float]:
    """Of each question the share of so many judgements by the policy that miss the right mark."""
    groups: list[Group] = []
    for some in in_batches("attempting traced rows (once)", asked, AT_ONCE):
        groups += judgements_of(run, [q.asked for q in some], attempts)
    right = [[is_right(q, t.reply, forms[q.kind]) for t in group] for q, group in zip(asked, groups, strict=True)]
    return [1 - float(np.mean(row)) if row else 1.0 for row in right]


@loop(wraps="inner")
def curriculum(
    recipe: Recipe, run: Run, ops: Any, *, pool: NonNegativeInt, attempts: PositiveInt, order: Order, easy: bool, right: bool,
    language: Language, texts: dict[str, str] | None = None, inner: Loop | None = None,
) -> None:  # fmt: skip
    """Before the first step the policy attempts the traced rows among the next `pool`; training then takes these in order.  pool: 0
    is the whole epoch, or ENDLESS rows where data never end.

    run.memory keeps their places in the data, so that a resumed run goes on in the same order, which begins anew at its end.
    Logged at the first step: traced, the share of rows with a trace that may be learnt; easy, of those all attempts solve.
    """
    if "mr3.order" not in run.memory:
        epoch = epoch_of(ops.task.train) or pool or ENDLESS
        size = min(pool or epoch, epoch)
        forms, start = _forms(texts or {}), ops.position
        found = [(start + i, traces_of(ops.task.train[start + i], forms, language, right)) for i in range(size)]
        known = [(at, traced) for at, traced in found if traced]
        if not known:
            raise _no_trace([ops.task.train[start + i] for i in range(size)], language)
        stated = [ops.task.train[at].meta.get("difficulty") for at, _ in known]
        asked = [traced[0].question for _, traced in known]
        failed = [float(x) for x in stated] if None not in stated else ops.once(lambda: failures(run, asked, forms, attempts))
        run.memory["mr3.order"] = [known[i][0] for i in ordered(failed, order, easy, run.seed)]
        run.memory["mr3.taken"] = 0
        run.log("traced", len(known) / size)
        run.log("easy", float(np.mean([x == 0 for x in failed])))
    places, taken = run.memory["mr3.order"], run.memory["mr3.taken"]
    train, wanted = ops.task.train, recipe.update.problems
    # where there are fewer than a step takes, the order begins anew within it
    chosen = [train[places[(taken + i) % len(places)]] for i in range(wanted)]
    run.memory["mr3.taken"] = taken + wanted
    ops.task, position = replace(ops.task, train=chosen), ops.position
    ops.position = 0
    try:
        inner(recipe, run, ops) if inner else ops.standard_step(recipe)
    finally:
        ops.task, ops.position = replace(ops.task, train=train), position + wanted


@rollout(rows=lambda **_: 1, accepts=check_traces)
def traced_rows(
    problems: list[Problem], run: Run, *, right: bool = True, language: Literal["english", "target"] = "english", opening: str = "",
    texts: dict[str, str] | None = None,
) -> list[Group]:  # fmt: skip
    """A trace of each row, recorded as the policy's own; of a pair with a trace for either order, one by chance."""
    forms, written = _forms(texts or {}), []
    for problem in problems:
        if known := traces_of(problem, forms, language, right):
            found = random.Random(seed_of("mr3", run.seed, run.step, problem.key)).choice(known)
            said = str(problem.meta.get("opening") or opening) if language == "target" else ""
            written.append((found.question.asked, [f"{said} {found.trace}".lstrip()]))
    if not written:
        return nothing_accepted([questions_of(p, forms)[0].asked for p in problems], run)
    return learnt(written, run)


@measure
def verdicts_by_kind(
    problems: Sequence[Problem], run: Run, *, texts: dict[str, str] | None = None, temperature: NonNegativeFloat = 0.6
) -> dict[str, float]:  # fmt: skip
    """Right verdicts on held-out rows, pairs in both orders, as a mean over the kinds of verdict.

    judged: that mean.  judged_scale, judged_pairwise, judged_verdict: of a kind.  worst_language: of the language with the fewest.
    unread: judgements without a verdict.
    """
    forms = _forms(texts or {})
    found = marked(problems, run, forms, temperature)
    tongues = shares(found, lambda one: str(one.problem.meta.get("language", "")))
    kinds = shares(found, lambda one: f"judged_{one.question.kind}")
    return over(found, kinds, len(problems)) | {
        "worst_language": min(tongues.values()), "unread": float(np.mean([not one.read for one in found])),
    }  # fmt: skip


def mr3(
    base: Recipe | None = None, *, language: Language = "english", opening: str = "", sequence: Order = "easy_to_hard",
    easy: bool = False, right: bool = True, pool: int = 0, attempts: int = 4, scale: str = "", pairwise: str = "",
    verdict: str = "", problems: int = 16, lr: float | None = None,
) -> Recipe:  # fmt: skip
    """language: of the traces: English (`judgement`), or the row's own (`judgement_target`).  opening: the sentence in that
    language with which its traces begin; the row's column `opening` goes before it.  sequence, pool, attempts: of the curriculum,
    its order, its rows (0: all of an epoch), and how often the policy attempts each first.  easy: whether rows stay that it always
    gets right.  right: whether only traces count whose verdict is the label.  scale, pairwise, verdict: what the judge is asked, as
    texts; empty: the published sections.  problems: rows of a step."""
    base = base or sft(problems=problems, lr=lr)
    texts = {kind: text for kind, text in (("scale", scale), ("pairwise", pairwise), ("verdict", verdict)) if text}
    return base.but(
        rollout=traced_rows(right=right, language=language, opening=opening, texts=texts),
        measure=verdicts_by_kind(texts=texts), problems=problems, lr=lr,
        loop=curriculum(
            pool=pool, attempts=attempts, order=sequence, easy=easy, right=right, language=language, texts=texts, inner=base.loop
        ),
    )  # fmt: skip


fidelity = "core"
left_out = (
    "the 4 million rows and the traces of gpt-oss-120b, which are columns here; a sampled trace that is begun for the judge in the "
    "row's language, where ours learns to begin so; other epochs than as many as the steps take"
)
data = Data(
    judgement=Column("a trace and its verdict in English; of a pair with the better reply first", optional=True),
    judgement_reversed=Column("the same on the pair with the worse reply first", optional=True),
    judgement_target=Column("the same in the language of the row (and `judgement_target_reversed`)", optional=True),
    chosen=Column("the better reply, of a row that is a pair", optional=True),
    rejected=Column("the worse reply", optional=True),
    reply=Column("the reply, of any other row", optional=True),
    score=Column("its score, from 1 to 5", optional=True),
    label=Column("or whether it meets the rubric, true or false", optional=True),
    rubric=Column("by what it is judged; a general rubric where a row has none", optional=True),
    language=Column("by which held-out rows are told apart", optional=True),
    difficulty=Column("a number, the higher the harder, 0 for rows to be left out; found by attempts without it", optional=True),
    opening=Column("a sentence in the row's language with which its trace begins", optional=True),
    rows=[
        {
            "prompt": "Warum fallen im Herbst die Blätter?", "language": "German", "rubric": "Is the cause named?",
            "chosen": "Der Baum spart Wasser.", "rejected": "Wegen der Schwerkraft.",
            "judgement": '<think>Gravity acts all year; A names why in autumn.</think> {"explanation": "A names the cause.", '
            '"score": "Assistant A"}',
            "judgement_target": '<think>Die Schwerkraft wirkt immer; A nennt den Grund.</think> {"explanation": "A nennt den '
            'Grund.", "score": "Assistant A"}',
        },
        {
            "prompt": "Combien font 17 + 5 ?", "language": "French", "reply": "22", "label": True, "rubric": "Est-ce juste ?",
            "judgement": '<think>17 + 5 = 22.</think> {"explanation": "It is right.", "score": "true"}',
            "judgement_target": '<think>17 + 5 = 22.</think> {"explanation": "Le calcul est juste.", "score": "true"}',
        },
        {
            "prompt": "Write a line of thanks.", "language": "English", "reply": "ok thanks", "score": 2,
            "rubric": "Warmth: 1 none, 5 much.",
            "judgement": '<think>It thanks, and no more.</think> {"explanation": "Short and cool.", "score": 2}',
            "judgement_target": '<think>It thanks, and no more.</think> {"explanation": "Short and cool.", "score": 2}',
        },
    ],
)  # fmt: skip

OF_NOTES: dict[str, Any] = {"problems": 32, "lr": 1e-3, "pool": 1024, "attempts": 2} | dict(FORMS.items())
check = Check(
    says="taught only right traces of rows that it does not get right by itself, easy ones first, a judge of scores, pairs and "
    "labels in three languages is right more often than one taught as many traces as they come",
    versus="mr3", task="polyglot:kinds=all,least=2,most=4,translated=0,taught_named=0.8", measure="judged", direction="higher",
    margin=0.05, settings=OF_NOTES, versus_settings={**OF_NOTES, "sequence": "given", "easy": True, "right": False},
    problems=200, steps=60,
    tried="once, on two development seeds: .625 and .556 right so, .670 and .619 with traces as they come: worse here, and why "
    "was not found out",
    finding="60 steps of either take it from 49% right verdicts to 59% with right traces of hard rows, easy ones first, and to "
    "62% with traces as they come: with so few rows the order and the choice gain nothing, scores of a scale even "
    "lose, 34% and 43%",
)  # fmt: skip
baseline = "prometheus"
