"""RM-R1: a judge says what kind of task it reads, and then solves it or writes a rubric for it, before it compares the replies.

    y = (type, solution or rubric, evaluation, verdict) ~ pi(. | x, reply A, reply B)
    first: -log p(y*) of right judgements y* by stronger models;  then GRPO,  r(y) = 1 if the verdict in y is the label, else -1

Where a question can be solved, a judge had better solve it; where it cannot, say first what matters (a chain of rubrics). Imitation
teaches that order of thought, and reinforcement what it is for: imitation alone goes by patterns of its examples.

Chen et al. 2025, arXiv:2505.02387, and RM-R1-UIUC/RM-R1 at b56de97 (train_rm_r1_rlvr_qwen2.5_instruct_7b.sh, lm_as_judge.py,
reasoning_chain_generation/*.py): the prompt; only the last 80 characters are read, where the right verdict must stand and the
other must not; one judgement of each row is asked for, and of those that are wrong a second one, by a writer that is shown the
right verdict and the wrong judgement; the mean over tokens; an epoch of imitation and one of GRPO, at 5e-6 and 1e-6. (inferred): 7
judgements of a row, a KL of .001, and 20 steps of imitation. Claude and o3 wrote the examples: here these are the columns
`judgement` and `judgement_reversed`, and the policy itself writes where rows lack them, or where theirs are wrong.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Problem, Recipe, Run, Score, Trajectory, rollout, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.judges.asking import judgements_of
from rewardlab.judges.cases import WORTH, agrees
from rewardlab.judges.forms import Form
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import judgements_first, trained_judge
from rewardlab.objectives.weighting import token_mean
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rollouts.judgements import Judging, nothing_accepted, own_judgement
from rewardlab.rollouts.ranked import recorded_pairs
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.filled import filled
from rewardlab.worlds.duels import FORM

AGAIN = (
    "\n\nThe right verdict here is {verdict}. Write a thorough judgement, in the form above, that shows why.\n"
    "An earlier judgement came to the wrong verdict: {judgement}"
)
"""What a writer is told when it is asked again, after the question, with {verdict} and {judgement}."""


def verdict_at_end(text: str, form: Form, tail: int) -> tuple[float, ...] | None:
    """The values of both replies by the last `tail` characters of a judgement; None where these give no mark, or several."""
    end = text[-tail:]
    if form.marks is None or len({match[1].casefold() for match in form.marks.pattern.finditer(end)}) != 1:
        return None
    return form.read(end, 2).values


def _compares(form: str) -> Form:
    found = form_of(form)
    if found.kind != "pairwise" or found.marks is None:
        raise RewardlabError(
            f"rm_r1 compares two replies, and the judge's form {found.name} is of kind {found.kind!r}: give another"
        )
    return found


@reward(check=lambda form, **_: _compares(form))
def right_at_the_end(trajectory: Trajectory, *, form: str = "rm_r1", tail: PositiveInt = 80) -> Score:
    """1 where the last `tail` characters of a judgement give the right verdict and no other, else -1."""
    worth = trajectory.problem.meta.get(WORTH)
    if not worth:
        return Score(None, why=f"the problem is no question to a judge: it has no column {WORTH!r}")
    values = verdict_at_end(trajectory.reply, form_of(form), tail)
    return Score(1.0 if values is not None and agrees(values, worth) else -1.0, why=f"ends in {trajectory.reply[-tail:]!r}")


# ---- judgements to imitate -----------------------------------------------------------------------------------------------


def right_verdict(form: Form, worth: Sequence[float]) -> str:
    """The mark of the clearest verdict for the better of two replies."""
    assert form.marks is not None
    values = list(form.marks.values.values())
    return form.marks.texts[values.index(max(values) if worth[0] > worth[1] else min(values))]


def told_verdict(question: Problem, judgement: str, form: Form, again: str) -> Problem:
    """The question to a writer that is shown the right verdict, and a judgement that missed it."""
    verdict = right_verdict(form, question.meta[WORTH])
    return question.reworded(question.question + filled(again, verdict=verdict, judgement=judgement))


@rollout(rows=lambda **_: 1)
def distilled_judgements(
    problems: list[Problem], run: Run, *, by: Reward, form: str = "rm_r1", again: str = AGAIN, temperature: NonNegativeFloat = 1.0
) -> list[Group]:  # fmt: skip
    """A judgement of each row that `by` pays above 0, recorded as the policy's own reply to the plain question.

    It is the row's, or one that the policy writes; where that is wrong, another one by the policy, told `again` behind the
    question; where that is wrong too, none.  again: empty: nobody is asked again.  Logged: right_first, the share of first
    judgements that are right; right_again, of second ones. Where there is none at all, a question is returned without a judgement.
    """
    judging, of = Judging(form), form_of(form)
    rngs = [random.Random(seed_of("judgements", run.seed, run.step, p.key)) for p in problems]
    known = [own_judgement(p, judging, rng) for p, rng in zip(problems, rngs, strict=True)]
    asked = [own[0] if own else judging.questions(p, rng) for p, own, rng in zip(problems, known, rngs, strict=True)]
    written = iter(_said(run, [q for q, own in zip(asked, known, strict=True) if own is None], temperature))
    first = [own[1] if own else next(written) for own in known]
    kept, wrong = _parted(run, by, asked, first)
    run.log("right_first", len(kept) / len(asked))
    if wrong and again:
        second = _said(run, [told_verdict(q, text, of, again) for q, text in wrong], temperature)
        found, _ = _parted(run, by, [q for q, _ in wrong], second)
        run.log("right_again", len(found) / len(wrong))
        kept += found
    if not kept:
        return nothing_accepted(asked, run)
    return recorded_pairs([(q, [text]) for q, text in kept], run)


def _said(run: Run, asked: Sequence[Problem], temperature: float) -> list[str]:
    """What the policy replies to each question; nothing where a question leaves no room for a reply."""
    return [group[0].reply if group else "" for group in judgements_of(run, asked, temperature=temperature)]


Judged = list[tuple[Problem, str]]


def _parted(run: Run, by: Reward, asked: Sequence[Problem], texts: Sequence[str]) -> tuple[Judged, Judged]:
    """The questions with their judgements: those that are paid, and the others."""
    pairs = list(zip(asked, texts, strict=True))
    rows = recorded_pairs([(q, [text]) for q, text in pairs], run)
    right = [(score.value or 0.0) > 0 for (score,) in by(rows, run)]
    kept = [pair for pair, ok in zip(pairs, right, strict=True) if ok]
    return kept, [pair for pair, ok in zip(pairs, right, strict=True) if not ok]


def rm_r1(
    base: Recipe | None = None, *, form: str = "rm_r1", distil: int = 20, sft_lr_scale: float = 5.0, again: str = AGAIN,
    tail: int = 80, n: int = 7, beta: float = 1e-3, problems: int = 16, votes: int = 1, lr: float | None = None,
) -> Recipe:  # fmt: skip
    """form: what the judge is asked (`judges/named.py`).  distil, sft_lr_scale: first steps, which imitate right judgements,
    and their learning rate as a multiple of the recipe's.  again: told behind the question to a writer whose judgement was
    wrong, with {verdict} and {judgement}; empty: nobody is asked again.  tail: characters at the end in which the verdict must
    stand.  n: judgements of a row.  beta: of the KL to the start.  problems, votes: as in `trained_judge`."""
    base = base or grpo(n=n, beta=beta).but(weighting=token_mean())
    base = trained_judge(base, form=form, n=n, problems=problems, votes=votes, lr=lr)
    paid = right_at_the_end(form=form, tail=tail)
    kept = distilled_judgements(by=paid, form=form, again=again)
    first = judgements_first(first=distil, by=paid, form=form, kept=kept, sft_lr_scale=sft_lr_scale, inner=base.loop)
    return base.but(reward=paid, loop=first if distil else base.loop)


fidelity = "core"
left_out = (
    "writers stronger than the policy, whose judgements are columns here; the second, plainer prompt for models that reason "
    "already, which are not taught by imitation; several minibatches of a batch, unless `minibatches` asks for them"
)
data = Data(
    chosen="the better reply", rejected="the worse reply",
    judgement=Column("a judgement to imitate in the first steps, where the better reply stands first", optional=True),
    judgement_reversed=Column("the same where the worse reply stands first, as in half of the rows it should", optional=True),
    rows=[
        {
            "prompt": "Why do leaves fall?", "chosen": "Trees save water in winter.", "rejected": "Because of gravity alone.",
            "judgement": "<type>Chat</type> <rubric>It names the cause (1). <justify>The question asks why.</justify></rubric> "
            "<eval><summary_A>winter</summary_A> explains it; <quote_B>gravity</quote_B> acts all year.</eval> "
            "<answer>[[A]]</answer>",
        },
        {
            "prompt": "What is 17 + 5?", "chosen": "22", "rejected": "23",
            "judgement_reversed": "<type>Reasoning</type> <solution>17 + 5 = 22</solution> <eval>A says 23, and B 22.</eval> "
            "<answer>[[B]]</answer>",
        },
    ],
)  # fmt: skip

OF_DUELS = {"form": FORM, "again": ""}
"""A small judge has not learnt to read what it is told when it is asked again."""
check = Check(
    says="after 20 steps of imitation, 40 of reinforcement make a judge's verdicts right more often than 40 more of imitation",
    versus="rm_r1", task="taught_duels", measure="judged", direction="higher", margin=0.03,
    settings={**OF_DUELS, "distil": 20}, versus_settings={**OF_DUELS, "distil": 60}, problems=300, steps=60,
    tried="two development seeds: .66 and .72 right, by imitation alone .61 and .65",
    finding="from 62% right verdicts, 20 steps of imitation and 40 of reinforcement lead to 64%, and 60 of imitation to 60%: "
    "rewards teach what the imitated judgements, whose teacher errs, do not",
)  # fmt: skip
baseline = "trained_judge"
