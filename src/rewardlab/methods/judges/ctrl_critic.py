"""CTRL: a critic is rewarded where a frozen generator, shown the critique, revises its answer so that it passes.

    r(c) = 1[y' passes],   y' ~ pi(. | x, y, c);    -1 for a critique without its three parts;    GRPO over n critiques of a draft y
    before:  -log Q(c | x, y) of critiques that were written with a hint from the verifier, and whose revision passes
    test time:   y <- pi(. | x, y, Q(. | x, y)),  again and again

What a critique is worth is what comes of it: that says whether it judged right and whether the advice could be used, and needs no
labels of critiques. A model that reads its own code seldom sees what is wrong; told which test fails, it can say why, and the
critic learns to say so without being told. Good critics seldom make right answers wrong, so that revisions can be repeated.

Xie, Chen, Chen, Mao, Xu & Kong 2025, arXiv:2502.03492, and HKUNLP/critic-rl, aef3eb1: prompt.py (sections of the prompts, hints
from tests, the turn that asks for a revision), cleanup_sft.py (only critiques whose revision passes, without "the hint"),
critic_rm.py (the three parts, or -1), train_rl_new.sh (n = 5, KL .001) and run_gen.py (at test every answer is revised, also one
that is judged right; of several critiques one with the judgment of most is read). The prompts are in our words. (inferred): drafts
are sampled from the generator when their problem comes up, unless the row brings one; the hint of a wrong answer is what the
verifier says of it; one critique a draft and step, by the generator. `first` steps imitate; 0 leaves it out.

The verifier may be any: tests of code, a gold answer, a reward (`by`). The generator is the policy's start, or another model.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import (
    Group,
    Learner,
    Problem,
    Recipe,
    Rollout,
    Run,
    Sampling,
    Score,
    Scores,
    Trajectory,
    measure,
    rollout,
    select,
)
from rewardlab.data.columns import Column, Data
from rewardlab.evals.passk import mean_interval
from rewardlab.judges.critiques import ASK, DRAFT, HINTED, PARTS, REVISE, criticised, hint_of, judgment, original, to_revise
from rewardlab.methods.baselines.best_of_n import best_of_n
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import imitated_first
from rewardlab.rewards.critiques import answers
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.best import best
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, NonNegativeInt, PositiveInt
from rewardlab.text.roles import REFINE, VERIFY

GENERATOR, CRITIC, CRITIQUE = "generator", "critic", "critique"

# ---- drafts, critiques, revisions ----------------------------------------------------------------------------------------------


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


@rollout(wraps="inner", rewords=True)
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


# ---- rounds of critique and revision ---------------------------------------------------------------------------------------------


def revised_once(
    problems: Sequence[Problem], texts: Sequence[str], run: Run, critic: str, model: str, ask: str, revise: str,
    parts: tuple[str, ...], votes: int,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """A critique of each answer, the first of `votes` with the judgment of most, and what `model` makes of the answer by it."""
    asked = [criticised(p, text, ask) for p, text in zip(problems, texts, strict=True)]
    found, _ = answers(run, critic, asked, votes, Sampling(run.max_new))
    fine = [[judgment(c, parts) is True for c in row] for row in found]
    heard = [row[oks.index(2 * sum(oks) > len(oks))] if row else "" for row, oks in zip(found, fine, strict=True)]
    revisions = said([to_revise(q, c, revise) for q, c in zip(asked, heard, strict=True)], run, model)
    return heard, [old if new is None else new for old, new in zip(texts, revisions, strict=True)]


@measure
def critique_revision(
    problems: Sequence[Problem], run: Run, *, model: str = GENERATOR, ask: str = ASK, revise: str = REVISE,
    parts: tuple[str, ...] = PARTS, rounds: PositiveInt = 1, votes: PositiveInt = 1, by: Reward | None = None,
) -> dict[str, float]:  # fmt: skip
    """Held-out problems after `rounds` of a critique by the policy and a revision by `model`.

    drafted, revised: the shares of right drafts and of right last revisions.  mended, broken: of problems that went from wrong to
    right, and from right to wrong.  judged: of first critiques, the share whose judgment of the draft is right; one without its
    parts is wrong.  A revision that does not fit the context leaves the answer as it was.
    """
    texts = drafts_of(problems, run, model)
    judged: list[bool] = []
    right = before = _right(problems, texts, run, by)
    for _ in range(rounds):
        found, texts = revised_once(problems, texts, run, "policy", model, ask, revise, parts, votes)
        judged = judged or [judgment(c, parts) is ok for c, ok in zip(found, before.tolist(), strict=True)]
        right = _right(problems, texts, run, by)
    low, high = mean_interval(right.astype(float).tolist())
    return {
        "revised": float(right.mean()), "ci95_low": low, "ci95_high": high, "n": float(len(texts)),
        "drafted": float(before.mean()), "mended": float((right & ~before).mean()), "broken": float((before & ~right).mean()),
        "judged": float(np.mean(judged)),
    }  # fmt: skip


def _right(problems: Sequence[Problem], texts: Sequence[str], run: Run, by: Reward | None) -> np.ndarray:
    return np.array([(s.total or 0.0) >= 1 for s in paid(problems, texts, run, by)])


@reward(over="groups")
def judged_right(
    groups: list[Group], run: Run, *, model: str = CRITIC, ask: str = ASK, parts: tuple[str, ...] = PARTS, votes: PositiveInt = 1
) -> Scores:
    """The share of `votes` critiques of a reply that judge it right, of those with all parts; no verdict where none has them."""
    found, _ = answers(run, model, [criticised(t.problem, t.reply, ask) for g in groups for t in g], votes, Sampling(run.max_new))
    known = iter([[ok for c in row if (ok := judgment(c, parts)) is not None] for row in found])
    return [[Score(sum(x) / len(x)) if (x := next(known)) else Score(None, why="no critique is whole") for _ in g] for g in groups]


@select
def revised(
    group: Group, scores: list[Score], run: Run, *, model: str = CRITIC, ask: str = ASK, revise: str = REVISE,
    parts: tuple[str, ...] = PARTS, rounds: NonNegativeInt = 1, votes: PositiveInt = 1,
) -> Trajectory:  # fmt: skip
    """The reply with the best score, after `rounds` of a critique by `model` and a revision by the policy."""
    first = best()(group, scores, run)
    texts = [first.reply]
    for _ in range(rounds):
        _, texts = revised_once([first.problem], texts, run, model, "policy", ask, revise, parts, votes)
    return run.policy.write(run.policy.read([Trajectory(first.problem)], [first.problem.prompt]), texts)[0] if rounds else first


def ctrl_critic(
    base: Recipe | None = None, *, generator: str = "copy:policy", ask: str = ASK, hinted: str = HINTED, revise: str = REVISE,
    parts: tuple[str, ...] = PARTS, by: Reward | None = None, first: int = 20, sft_lr_scale: float = 5.0, n: int = 5,
    beta: float = 0.001, unformed: float = -1.0, rounds: int = 1, votes: int = 1, problems: int = 16, lr: float | None = None,
    revisions: NonNegativeInt = 0, candidates: PositiveInt = 1, critic: str = "copy:policy",
) -> Recipe:  # fmt: skip
    """generator: who drafts, revises and is told hints, openai:URL#NAME or a model.  ask, hinted, revise: what critic, who is
    told hints, and generator read, with {question}, {attempt}, {hint}, {critique}.  parts: headings of a critique.  by: a
    reward for the verifier; 1 passes.  first, sft_lr_scale: steps of imitation, and their learning rate as a multiple of the
    recipe's.  n: critiques of a draft.  beta: weight of the KL.  unformed: pay of a critique without its parts.  rounds: of
    critique and revision, held out.  votes: critiques of an answer, of which one with the judgment of most is read, held out or
    answering.  problems: of a step.  revisions, candidates: 0 and 1 train a critic; else nothing is trained, and `rewardlab
    answer` gives the policy's answers after so many rounds, from the one of `candidates` that most critiques judge
    right.  critic: who criticises these, such as a run of this method."""
    if revisions or candidates > 1:
        asked: dict[str, Any] = {"ask": ask, "parts": parts, "votes": votes}
        answering = best_of_n(base, n=candidates)
        return answering.but(
            reward=judged_right(**asked) if candidates > 1 else None, select=revised(revise=revise, rounds=revisions, **asked),
            also=(*answering.also, Learner(CRITIC, critic, Recipe(), every=0)),
        )  # fmt: skip
    base = base or grpo(n=n, beta=beta)
    revising: dict[str, Any] = {"revise": revise, "parts": parts, "by": by}
    kept = hinted_critiques(ask=ask, hinted=hinted, **revising)
    return base.but(
        rollout=critiques_of_drafts(inner=base.rollout or independent(n=n), ask=ask),
        reward=revision_passes(unformed=unformed, **revising),
        measure=critique_revision(ask=ask, rounds=rounds, votes=votes, **revising),
        loop=imitated_first(first=first, kept=kept, sft_lr_scale=sft_lr_scale, inner=base.loop) if first else base.loop,
        also=(*base.also, Learner(GENERATOR, generator, Recipe(), every=0)), problems=problems, lr=lr, small_lr=1e-4,
    )  # fmt: skip


fidelity = "core"
left_out = "balancing imitated critiques to the share of right drafts; several written critiques of a draft to imitate"
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

SMALL = {"ask": VERIFY, "hinted": VERIFY, "revise": REFINE, "parts": ("Conclusion:",), "n": 8, "sft_lr_scale": 3.0}
check = Check(
    says="a critic that is rewarded for revisions that pass makes more answers right than one that imitates its own critiques "
    "whose revisions passed, after as many steps",
    versus="ctrl_critic", task="drafts", measure="revised", direction="higher", margin=0.03, settings={**SMALL, "first": 10},
    versus_settings={**SMALL, "first": 40}, problems=200, steps=40, learns=None,
    finding="36% of drafts are right; revised by its critiques 49%, by those of imitation alone 42%, by the untrained critic's "
    "31%. It breaks fewer right drafts (8%, 13%, 21%) more than it mends wrong ones (21%, 19%, 17%)",
)  # fmt: skip
baseline = "grpo"
