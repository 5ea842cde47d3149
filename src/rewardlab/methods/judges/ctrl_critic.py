"""CTRL: a critic is rewarded where a frozen generator, shown the critique, revises its answer so that it passes.

    r(c) = 1[y' passes],   y' ~ pi(. | x, y, c);    -1 for a critique without its three parts;    GRPO over n critiques of a draft y
    before:  -log Q(c | x, y) of critiques that were written with a hint from the verifier, and whose revision passes
    test time:   y <- pi(. | x, y, Q(. | x, y)),  again and again

What a critique is worth is what comes of it: that says whether it judged right and whether the advice could be used, and needs no
labels of critiques. A model that reads its own code seldom sees what is wrong; told which test fails, it can say why, and the
critic learns to say so without being told. Good critics seldom make right answers wrong, so that revisions can be repeated.

Xie, Chen, Chen, Mao, Xu & Kong 2025, arXiv:2502.03492, and HKUNLP/critic-rl, aef3eb1: prompt.py (sections of the prompts, hints
from tests, the turn that asks for a revision), cleanup_sft.py (only critiques whose revision passes, without "the hint"),
critic_rm.py (the three parts, or -1) and train_rl_new.sh (n = 5, KL .001). The words of the prompts are ours. (inferred): drafts
are sampled from the generator when their problem comes up, unless the row brings one; the hint of a wrong answer is what the
verifier says of it; one critique a draft and step, by the generator. `first` steps imitate; 0 leaves it out.

The verifier may be any: tests of code, a gold answer, a reward (`by`). The generator is the policy's start, or another model.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import (
    Group,
    Learner,
    Loop,
    Message,
    Problem,
    Recipe,
    Rollout,
    Run,
    Sampling,
    Score,
    Scores,
    Trajectory,
    loop,
    measure,
    rollout,
)
from rewardlab.data.columns import Column, Data
from rewardlab.evals.passk import mean_interval
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.sft import sft
from rewardlab.rewards.critiques import answers
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt
from rewardlab.text.filled import filled
from rewardlab.text.roles import REFINE, VERIFY

_SHOWN = "Problem:\n<problem>\n{question}\n</problem>\n\nAnswer:\n<answer>\n{attempt}\n</answer>\n\n"
_FORM = (
    "Write three parts, in this form:\n\nAnalysis:\n(what is right and what is wrong, and why)\n\n"
    "Improvement suggestions:\n(what to change)\n\nOverall judgment: Correct or Incorrect"
)
_TASK = "Analyse an answer to a problem, and give feedback by which it can be improved. Do not write a solution.\n\n"
ASK = _TASK + _SHOWN + _FORM
_WARNED = "A hint stands below. Let it guide your reasoning, but never mention it.\n\n"
HINTED = _TASK + _WARNED + _SHOWN + "Hint:\n<hint>\n{hint}\n</hint>\n\n" + _FORM
REVISE = "{critique}\n\nNow give your final answer, in the same form as before."
PARTS = ("Analysis:", "Improvement suggestions:", "Overall judgment:")
"""The headings of a critique, in their order; after the last stands the judgment."""
JUDGMENTS = {"correct": True, "right": True, "incorrect": False, "wrong": False}
FINE = "The answer is right. A short, positive response is best, without suggestions that are not needed."
AFRESH = "The answer is wrong throughout. It needs another approach, from the start."
GENERATOR, DRAFT, QUESTION, CRITIQUE = "generator", "draft", "question", "critique"


def judgment(critique: str, parts: tuple[str, ...] = PARTS) -> bool | None:
    """Whether a critique calls the draft right, by the word after its last heading; None where it lacks a part."""
    rest = critique
    for i, heading in enumerate(parts):
        before, found, rest = rest.partition(heading)
        # before a heading stands the previous part
        if not found or (i and not before.strip()):
            return None
    return JUDGMENTS.get(rest.strip().casefold())


def hint_of(verdict: Score) -> str:
    """What a verdict on a draft tells who criticises it."""
    if verdict.value is not None and verdict.value >= 1:
        return FINE
    # of several tests none was passed
    if len(verdict.tests) > 1 and not any(verdict.tests):
        return AFRESH
    return f"The answer is wrong. It was checked: {verdict.why or 'it does not pass'}"


# ---- drafts, critiques, revisions ----------------------------------------------------------------------------------------------


def criticised(problem: Problem, draft: str, ask: str = ASK, **further: str) -> Problem:
    """The problem as its critic reads it; the columns keep question and draft."""
    asked = problem.reworded(filled(ask, question=problem.question, attempt=draft, **further))
    return replace(asked, meta={**problem.meta, QUESTION: problem.question, DRAFT: draft})


def original(asked: Problem) -> Problem:
    """The problem of which a critic read a draft."""
    return asked.reworded(str(asked.meta[QUESTION]))


def to_revise(asked: Problem, critique: str, revise: str = REVISE) -> Problem:
    """The problem as the generator reads it after the critique. asked: as the critic read it.

    revise: the message that follows the draft, with {critique}; or, with {attempt} in it, the whole prompt.
    """
    first, draft = original(asked), str(asked.meta[DRAFT])
    text = filled(revise, question=first.question, attempt=draft, critique=critique.strip())
    if "{attempt}" in revise:
        return first.reworded(text)
    return replace(first, prompt=(*first.prompt, Message("assistant", draft), Message("user", text)))


def said(problems: Sequence[Problem], run: Run, model: str, temperature: float = 1.0) -> list[str | None]:
    """One reply of a model of the run to each problem; None where there is no room for it in the context."""
    found, _ = answers(run, model, problems, 1, Sampling(run.max_new, temperature))
    return [texts[0] if texts else None for texts in found]


def drafts_of(problems: Sequence[Problem], run: Run, model: str = GENERATOR) -> list[str]:
    """The draft of each problem: that of its row, in `draft`, or one that the generator writes."""
    own = [p.meta.get(DRAFT) for p in problems]
    new = iter(said([p for p, text in zip(problems, own, strict=True) if not isinstance(text, str)], run, model))
    return [text if isinstance(text, str) else next(new) or "" for text in own]


def paid(problems: Sequence[Problem], texts: Sequence[str | None], run: Run, by: Reward | None) -> list[Score]:
    """The verifier's verdict on each answer, or what the reward `by` pays it; no verdict where there is no answer."""
    begun = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems]) if problems else []
    groups = [[t] for t in run.policy.write(begun, [text or "" for text in texts])] if begun else []
    scores = (by or correct())(groups, run) if groups else []
    missing = Score(None, why="it does not fit the generator's context")
    return [missing if text is None else score for text, (score,) in zip(texts, scores, strict=True)]


@rollout(wraps="inner")
def critiques_of_drafts(problems: list[Problem], run: Run, *, inner: Rollout, ask: str, model: str = GENERATOR) -> list[Group]:
    """`inner` on the question of a critic about a draft of each problem: the row's `draft`, or one that `model` writes.

    ask: what the critic reads, with {question} and {attempt}.
    """
    drafts = drafts_of(problems, run, model)
    return inner([criticised(p, draft, ask) for p, draft in zip(problems, drafts, strict=True)], run)


@reward(over="groups")
def revision_passes(
    groups: list[Group], run: Run, *, model: str = GENERATOR, revise: str = REVISE, parts: tuple[str, ...] = PARTS,
    unformed: float = -1.0, by: Reward | None = None, temperature: NonNegativeFloat = 1.0,
) -> Scores:  # fmt: skip
    """What the verifier pays the revision that `model` writes with a critique in view; `unformed` for one without its parts.

    revise: what asks for it, as in `to_revise`.  parts: the headings of a critique.  by: a reward in place of the verifier. No
    verdict where the revision does not fit the context. Logged: formed, the share of critiques with all parts; passes, the share of
    their revisions that pass.
    """
    rows = [t for group in groups for t in group]
    formed = [i for i, t in enumerate(rows) if judgment(t.reply, parts) is not None]
    texts = said([to_revise(rows[i].problem, rows[i].reply, revise) for i in formed], run, model, temperature)
    found = dict(zip(formed, paid([original(rows[i].problem) for i in formed], texts, run, by), strict=True))
    run.log("formed", len(formed) / max(1, len(rows)))
    if known := [s.total for s in found.values() if s.total is not None]:
        run.log("passes", float(np.mean([x >= 1 for x in known])))
    missing = Score(unformed, why="the critique lacks a part")
    scores = iter(Score(found[i].total, why=found[i].why) if i in found else missing for i in range(len(rows)))
    return [[next(scores) for _ in group] for group in groups]


# ---- imitation of critiques that were written with a hint ------------------------------------------------------------------------


@rollout(rows=lambda **_: 1)
def hinted_critiques(
    problems: list[Problem], run: Run, *, ask: str = ASK, hinted: str = HINTED, writer: str = GENERATOR, model: str = GENERATOR,
    revise: str = REVISE, parts: tuple[str, ...] = PARTS, by: Reward | None = None,
) -> list[Group]:  # fmt: skip
    """A critique of a draft of each row, kept where its revision passes, recorded as the policy's reply to the plain question.

    The row's own `critique`, if it brings the draft, or one by `writer`, who reads `hinted` with the verifier's {hint}. One that
    speaks of the hint, or lacks a part, is dropped. Logged: accepted. Where there is none, the first question is returned without
    a critique, from which nothing is learnt, so that there is a batch.
    """
    drafts = drafts_of(problems, run, model)
    asked = [criticised(p, draft, ask) for p, draft in zip(problems, drafts, strict=True)]
    hints = map(hint_of, paid(problems, drafts, run, by))
    written = said([criticised(p, d, hinted, hint=h) for p, d, h in zip(problems, drafts, hints, strict=True)], run, writer)
    own = [p.meta.get(CRITIQUE) if p.meta.get(DRAFT) else None for p in problems]
    texts = [str(mine or text or "") for mine, text in zip(own, written, strict=True)]
    begun = run.policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    groups = [[t] for t in run.policy.write(begun, texts)]
    scores = revision_passes(model=model, revise=revise, parts=parts, by=by)(groups, run)
    kept = [g for g, (s,) in zip(groups, scores, strict=True) if (s.total or 0) >= 1 and "the hint" not in g[0].reply.casefold()]
    run.log("accepted", len(kept) / len(groups))
    return kept or [begun[:1]]


@loop(wraps="inner")
def hinted_first(recipe: Recipe, run: Run, ops: Any, *, first: NonNegativeInt, kept: Rollout, inner: Loop | None = None) -> None:
    """Imitate what `kept` keeps in the first `first` steps, and then train by the recipe.  inner: how it takes a step.

    A step in which nothing is accepted is taken by the recipe, too: it has nothing to imitate.
    """
    if run.step < first:
        ops.standard_step(sft(problems=recipe.update.problems).but(rollout=kept, lr=recipe.update.rate, measure=None))
    if run.step >= first or run.metrics.get("accepted") == 0.0:
        inner(recipe, run, ops) if inner else ops.standard_step(recipe)
    if run.step == first - 1:
        # what imitation left in the optimiser is of another loss
        ops.policy.reset_optimizer()


# ---- rounds of critique and revision, held out ----------------------------------------------------------------------------------


@measure
def critique_revision(
    problems: Sequence[Problem], run: Run, *, model: str = GENERATOR, ask: str = ASK, revise: str = REVISE,
    parts: tuple[str, ...] = PARTS, rounds: PositiveInt = 1, by: Reward | None = None,
) -> dict[str, float]:  # fmt: skip
    """Held-out problems after `rounds` of a critique by the policy and a revision by `model`.

    drafted, revised: the shares of right drafts and of right last revisions.  mended, broken: of problems that went from wrong to
    right, and from right to wrong.  judged: of first critiques, the share whose judgment of the draft is right; one without its
    parts is wrong.  A revision that does not fit the context leaves the answer as it was.
    """
    texts = drafts_of(problems, run, model)
    right = before = _right(problems, texts, run, by)
    judged: list[bool] = []
    for _ in range(rounds):
        asked = [criticised(p, text, ask) for p, text in zip(problems, texts, strict=True)]
        found = [text or "" for text in said(asked, run, "policy")]
        judged = judged or [judgment(c, parts) is ok for c, ok in zip(found, before.tolist(), strict=True)]
        revisions = said([to_revise(q, c, revise) for q, c in zip(asked, found, strict=True)], run, model)
        texts = [old if new is None else new for old, new in zip(texts, revisions, strict=True)]
        right = _right(problems, texts, run, by)
    low, high = mean_interval(right.astype(float).tolist())
    return {
        "revised": float(right.mean()), "ci95_low": low, "ci95_high": high, "n": float(len(texts)),
        "drafted": float(before.mean()), "mended": float((right & ~before).mean()), "broken": float((before & ~right).mean()),
        "judged": float(np.mean(judged)),
    }  # fmt: skip


def _right(problems: Sequence[Problem], texts: Sequence[str], run: Run, by: Reward | None) -> np.ndarray:
    return np.array([(s.total or 0.0) >= 1 for s in paid(problems, texts, run, by)])


def ctrl_critic(
    base: Recipe | None = None, *, generator: str = "copy:policy", ask: str = ASK, hinted: str = HINTED, revise: str = REVISE,
    parts: tuple[str, ...] = PARTS, by: Reward | None = None, first: int = 20, n: int = 5, beta: float = 0.001,
    unformed: float = -1.0, rounds: int = 1, problems: int = 16, lr: float | None = None,
) -> Recipe:  # fmt: skip
    """generator: who drafts, revises and is told hints, openai:URL#NAME or a model.  ask, hinted, revise: what critic, who is told
    hints, and generator read, with {question}, {attempt}, {hint}, {critique}.  parts: headings of a critique.  by: a reward for the
    verifier; 1 passes.  first: steps of imitation.  n: critiques of a draft.  beta: weight of the KL.  unformed: pay of a critique
    without its parts.  rounds: of critique and revision, held out.  problems: of a step."""
    base = base or grpo(n=n, beta=beta)
    revising: dict[str, Any] = {"revise": revise, "parts": parts, "by": by}
    kept = hinted_critiques(ask=ask, hinted=hinted, **revising)
    return base.but(
        rollout=critiques_of_drafts(inner=base.rollout or independent(n=n), ask=ask),
        reward=revision_passes(unformed=unformed, **revising),
        measure=critique_revision(ask=ask, rounds=rounds, **revising),
        loop=hinted_first(first=first, kept=kept, inner=base.loop) if first else base.loop,
        also=(*base.also, Learner(GENERATOR, generator, Recipe(), every=0)), problems=problems, lr=lr,
    )  # fmt: skip


fidelity = "core"
left_out = (
    "balancing imitated critiques to the share of right drafts; several written critiques of a draft; judgments as scores that "
    "choose among replies; answering by rounds of revision outside the measure"
)
data = Data(
    answer="the gold answer, or tests with --verifier code",
    draft=Column("an answer to criticise; without one the generator writes it", optional=True),
    critique=Column("a critique of the draft to imitate, if its revision passes", optional=True),
    rows=[
        {"prompt": "Ann has 3 apples and buys 2 bags of 4. How many has she?", "answer": "11"},
        {"prompt": "What is half of 46?", "answer": "23", "draft": "Half of 46 is 28."},
        {"prompt": "How many days are in 6 weeks?", "answer": "42"},
    ],
)  # fmt: skip

SMALL = {"ask": VERIFY, "hinted": VERIFY, "revise": REFINE, "parts": ("Conclusion:",), "n": 8, "lr": 3e-4}
check = Check(
    says="a critic that is rewarded for revisions that pass makes more answers right than one that imitates its own critiques "
    "whose revisions passed, after as many steps",
    versus="ctrl_critic", task="drafts", measure="revised", direction="higher", margin=0.03, settings={**SMALL, "first": 10},
    versus_settings={**SMALL, "first": 40}, problems=200, steps=40, learns=None,
)  # fmt: skip
baseline = "grpo"
