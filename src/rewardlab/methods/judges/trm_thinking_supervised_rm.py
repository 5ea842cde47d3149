r"""TRM: a judge says of each sentence of an answer whether it is faithful to the documents, why, and whether it is correct.

    for each sentence k:   f_k (faithful to the documents?) -> reason -> c_k (correct?);      first SFT on such judgements, then
    judge   r = mean over k of (1[c_k right] + w 1[f_k right]) / (1 + w),   GRPO
    policy  r = share of its sentences with c_k = 1  +  useful(y),       GRPO, with the trained judge (`trm=`)

A reward for agreement with documents teaches to repeat them, also where they are wrong. One for correctness alone says nothing of
how to find it out. Both labels, with the reason between them, teach to compare what the documents say with what one knows: a
sentence may be faithful and false, or not in the documents and true.

Ma et al. 2025, arXiv:2509.25409, by its abstract and texts that sum it up; its code (Martin-qyma/TRM) was not at hand. (inferred):
the share of right labels as reward, w = 1; that the policy's rewards are added; the wording, and that a reply without a
readable label for each sentence earns the judge 0, as wrong labels do, and gives the policy no verdict. `line` without {faithful}
and {reason}, with a pattern to match, is a judge of correctness alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Learner, Problem, Recipe, Rollout, Run, Sampling, Score, Scores, Trajectory, measure, rollout
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.own_reward import own_reward
from rewardlab.judges.forms import Form
from rewardlab.judges.named import form_of
from rewardlab.judges.sentences import LABELS, Label, agreement, read, sentences_of, to_judge, written
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import judgements_first
from rewardlab.rewards.critiques import answers
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.text.answers import after_thinking
from rewardlab.text.words import f1, sentences
from rewardlab.worlds.documented import FORM as SMALL
from rewardlab.worlds.documented import LINE as SMALL_LINE
from rewardlab.worlds.documented import PATTERN as SMALL_PATTERN

FORM = """Judge each sentence of an answer. The documents may be wrong, and may not say all that is true.

For each sentence write one line with its number: first whether it is faithful to the documents (1) or not (0); then your reasoning,
by the documents and by what you know yourself; then whether the sentence is correct (1) or not (0):
1. Faithfulness: 0. Reasoning: ... Correctness: 1

[Question]
{prompt}

[Documents]
{documents}

[Sentences of the answer]
{reply}

[End of the sentences]"""
LINE = "{number}. Faithfulness: {faithful}. Reasoning: {reason} Correctness: {correct}"
PATTERN = r"(?is)\bfaithfulness[\s*:]{1,5}(?P<faithful>[01])\b.{0,4000}?\bcorrectness[\s*:]{1,5}(?P<correct>[01])\b"
TRM = "trm"


def check_pattern(pattern: str = PATTERN, **_: object) -> None:
    """Refuse a pattern that does not compile, or has no group `correct`."""
    try:
        groups = re.compile(pattern).groupindex
    except re.error as problem:
        raise RewardlabError(f"the pattern of labels, {pattern!r}, is no regular expression: {problem}") from None
    if "correct" not in groups:
        raise RewardlabError(f"the pattern of labels, {pattern!r}, has no group 'correct': write (?P<correct>[01])")


# ---- the judge ---------------------------------------------------------------------------------------------------------------


def _question(problem: Problem, form: Form) -> Problem:
    if problem.meta.get(LABELS):
        return problem
    found = sentences_of(problem)
    return to_judge(problem, [s.text for s in found], form, [(s.faithful, s.correct) for s in found])


def check_sentences(problems: Sequence[Problem], form: str = FORM, **_: object) -> None:
    """Refuse rows without labelled sentences, or without a column that the form shows, with the place of the first."""
    for problem in problems:
        try:
            _question(problem, form_of(form, "verdict"))
        except RewardlabError as bad:
            raise RewardlabError(f"{problem.place}: {bad}" if problem.place else str(bad)) from None


def _asks(problem: Problem, form: str = FORM, **_: object) -> list[Problem]:
    return [_question(problem, form_of(form, "verdict"))]


@rollout(wraps="inner", rewords=True, accepts=check_sentences, asks=_asks)
def sentence_judgements(problems: list[Problem], run: Run, *, inner: Rollout, form: str = FORM) -> list[Group]:
    """`inner` on the question of a judge about the sentences of each row."""
    return inner([_question(p, form_of(form, "verdict")) for p in problems], run)


@rollout(rows=lambda **_: 1)
def labelled_judgements(problems: list[Problem], run: Run, *, form: str = FORM, line: str = LINE) -> list[Group]:
    """The judgement that each row's labels and reasons make, recorded as the policy's own, to be imitated."""
    asked = [_question(p, form_of(form, "verdict")) for p in problems]
    begun = run.policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    return [[t] for t in run.policy.write(begun, [written(sentences_of(p), line) for p in problems])]


@reward(check=check_pattern)
def labels_right(trajectory: Trajectory, *, pattern: str = PATTERN, faithful: NonNegativeFloat = 1.0) -> Score:
    """The share of a judgement's labels that are right, faithfulness counted `faithful` times; 0 where it cannot be read."""
    labels = trajectory.problem.meta.get(LABELS)
    if not labels:
        return Score(None, why=f"the problem is no question to a judge of sentences: it has no column {LABELS!r}")
    found = read(trajectory.reply, pattern, len(labels))
    # without a group `faithful` nothing is said of it
    weight = faithful if "faithful" in re.compile(pattern).groupindex else 0.0
    return Score(agreement(found, labels, weight), why="" if found else f"not one label for each of {len(labels)} sentences")


@measure
def sentence_errors(problems: Sequence[Problem], run: Run, *, form: str = FORM, pattern: str = PATTERN) -> dict[str, float]:
    """A judgement of each held-out answer; of its sentences:

    error_f1: F1 of incorrect ones, found by the correctness labels; faithful_f1: by the same judge's faithfulness labels.
    correct_accuracy, faithful_accuracy: the share of right labels.  unread: answers without a label for each sentence, of which no
    sentence counts as found.
    """
    asked = [_question(p, form_of(form, "verdict")) for p in problems]
    begun = run.policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
    said = run.policy.extend(begun, Sampling(run.max_new), run.rng("eval"))
    found = [read(t.reply, pattern, len(t.problem.meta[LABELS])) for t in said]
    cells: list[tuple[Label | None, Label]] = [
        (None if labels is None else labels[k], tuple(gold))
        for t, labels in zip(said, found, strict=True) for k, gold in enumerate(t.problem.meta[LABELS])
    ]  # fmt: skip
    known = [(own[0], gold[0]) for own, gold in cells if own and own[0] is not None and gold[0] is not None]
    by_faithfulness = _error_f1([(own is not None and own[0] is False, not gold[1]) for own, gold in cells])
    return {
        "error_f1": _error_f1([(own is not None and not own[1], not gold[1]) for own, gold in cells]),
        **({"faithful_f1": by_faithfulness} if known else {}),
        "correct_accuracy": float(np.mean([own is not None and own[1] == gold[1] for own, gold in cells])),
        **({"faithful_accuracy": float(np.mean([own == gold for own, gold in known]))} if known else {}),
        "unread": float(np.mean([labels is None for labels in found])), "n": float(len(problems)),
    }  # fmt: skip


def _error_f1(flags: Sequence[tuple[bool, bool]]) -> float:
    """F1 of what is flagged over what is wrong, of (flagged, wrong)."""
    return f1(sum(a and b for a, b in flags), sum(a for a, _ in flags), sum(b for _, b in flags))


# ---- the policy that is paid by a trained judge --------------------------------------------------------------------------------


@reward(over="groups", check=check_pattern)
def correct_sentences(
    groups: list[Group], run: Run, *, model: str = TRM, form: str = FORM, pattern: str = PATTERN, max_new: PositiveInt = 1024,
    temperature: NonNegativeFloat = 0.0,
) -> Scores:  # fmt: skip
    """The share of a reply's sentences that the judge `model`, a model of the run, finds correct; 0 for an empty reply.

    No verdict where the judgement has not one label for each sentence, or the question does not fit the judge's context.
    """
    rows = [t for group in groups for t in group]
    split = [[s for part in after_thinking(t.reply).splitlines() for s in sentences(part)] for t in rows]
    at = [i for i, texts in enumerate(split) if texts]
    asked = [to_judge(rows[i].problem, split[i], form_of(form, "verdict")) for i in at]
    said, _ = answers(run, model, asked, 1, Sampling(max_new, temperature))
    scores = [Score(0.0, why="an empty reply") for _ in rows]
    for i, texts in zip(at, said, strict=True):
        labels = read(texts[0], pattern, len(split[i])) if texts else None
        share = None if labels is None else sum(c for _, c in labels) / len(labels)
        scores[i] = Score(share, why="" if labels else _unlabelled(len(split[i]), texts[0] if texts else None))
    found = iter(scores)
    return [[next(found) for _ in group] for group in groups]


def _unlabelled(count: int, said: str | None) -> str:
    if said is None:
        return "the question about the sentences, and a judgement of them, exceed the judge's context: lower --max-judgement"
    return f"the judge gave not one label for each of {count} sentences: {said[-200:]!r}"


# ---- the recipe ------------------------------------------------------------------------------------------------------------------


def trm_thinking_supervised_rm(
    base: Recipe | None = None, *, form: str = FORM, line: str = LINE, pattern: str = PATTERN, first: int = 20,
    sft_lr_scale: float = 5.0, faithful: float = 1.0, n: int = 8, problems: int = 16, lr: float | None = None, trm: str = "",
    useful: Reward | None = None, max_judgement: int | None = None,
) -> Recipe:  # fmt: skip
    """form: what the judge is asked, with {prompt}, {reply} and columns such as {documents}.  line: a sentence's part of the
    judgements to imitate.  pattern: a regular expression of it, with groups `faithful` and `correct`.  first, sft_lr_scale:
    steps of imitation, and their learning rate as a multiple of the recipe's.  faithful: weight of its labels, w.  n, problems,
    lr: of RL.

    trm: a trained judge, as a run (`Learner.init`): then the policy answers the questions, and is paid by it.  useful: the reward
    for usefulness that is added, such as 0.5 * model_score().  max_judgement: tokens of a judgement then; None: 1024."""
    base = base or grpo(n=n)
    if trm:
        paid: Reward = correct_sentences(form=form, pattern=pattern, max_new=max_judgement or 1024)
        whole = paid + useful if useful else paid
        judge = Learner(TRM, trm, Recipe(), every=0)
        measured = own_reward(reward=whole, rollout=independent(n=1))
        return base.but(reward=whole, measure=measured, problems=problems, lr=lr, also=(*base.also, judge))
    right = labels_right(pattern=pattern, faithful=faithful)
    kept = labelled_judgements(form=form, line=line)
    return base.but(
        rollout=sentence_judgements(inner=base.rollout or independent(n=n), form=form),
        reward=right,
        measure=sentence_errors(form=form, pattern=pattern),
        loop=judgements_first(first=first, by=right, kept=kept, sft_lr_scale=sft_lr_scale, inner=base.loop) if first else base.loop,
        problems=problems,
        lr=lr,
        small_lr=1e-4,
    )


fidelity = "reading"
left_out = (
    "its data, sentences of Chinese answers with labels and reasons; how it trains the reward model of usefulness: `useful` takes "
    "any reward"
)
data = Data(
    documents="a list of texts that support the answer, and may be wrong",
    sentences=Column(
        "a list of objects, one for each sentence of an answer: `text`; `correct`, yes or no; where they are known `faithful` to "
        "the documents, yes or no, and `reason`, why it is correct or not; a policy that a trained judge pays (trm) needs none",
        optional=True,
    ),
    rows=[
        {
            "prompt": "When did the tower open, and who built it?", "documents": ["The tower opened in 1899.", "Eiffel built it."],
            "sentences": [
                {"text": "It opened in 1899.", "faithful": "yes", "correct": "no", "reason": "The document is wrong: it was 1889."},
                {"text": "Eiffel's firm built it.", "faithful": "yes", "correct": "yes", "reason": "So says the document."},
            ],
        },
        {
            "prompt": "How many legs has a spider?", "documents": ["Insects have six legs."],
            "sentences": [
                {"text": "A spider has eight legs.", "faithful": "no", "correct": "yes", "reason": "Spiders are no insects."},
            ],
        },
    ],
)  # fmt: skip

OF_PEOPLE = {"form": SMALL, "line": SMALL_LINE, "pattern": SMALL_PATTERN}
check = Check(
    says="imitated and then paid sentence by sentence, a judge finds more of the incorrect sentences by its correctness labels "
    "than it did at its start",
    versus=None, task="documented", measure="error_f1", direction="higher", margin=0.05, against="before.error_f1",
    settings=OF_PEOPLE, problems=300, steps=60,
    tried="correctness labels against faithfulness labels of the same judge: .70 and .52 before any training, as its warm-up makes "
    "it; taught by one who trusts documents more (trusts=0.6, error=0.2) it had not learnt the facts, .50 and .52 after 60 steps",
    finding="20 steps of imitation and 40 of rewards take the F1 of incorrect sentences from .69 to .90; its faithfulness "
    "labels were right from the start",
)  # fmt: skip
baseline = "trained_judge"
