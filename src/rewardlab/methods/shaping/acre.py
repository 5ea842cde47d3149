"""ACRE: the options are shuffled, and the policy answers again from its own reasoning; what is right both times is paid most.

    y = (reasoning c, answer a1) ~ pi(. | q, options);      a2 ~ pi(. | q, shuffled options, c)
    r(y) = 1 if a1 and a2 are right,    first if a1 alone is,    second if a2 alone is,    0 if neither;      then GRPO

Paid for a1 alone, a policy may reason towards one option and answer another, or take an option for its place. An answer that
follows from the reasoning finds its option again wherever it stands; a guessed letter, or one that is named without its reasons,
does not. The second answer is asked for and judged, but nothing is learnt on it.

Huang et al. 2025, arXiv:2510.10104, by its abstract and by texts that quote it (four cases of consistency); no code was found.
(inferred): that right both times pays 1 and one right answer 0.5, whichever it is; that a2 is the policy's likeliest answer; that
each option gets another letter, the same for all replies to a problem in a step; that a reply without an answer is not asked
again; and that "none of the above" keeps its place. Where there is nothing to shuffle (open questions, options that name each
other, as "A and C"), a1 alone is paid.

The reward is added to the base's as what a2 changes: tier(a1, a2) - [a1 is right], so that with `correct()` the sum is the tier.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Problem, Recipe, Run, Sampling, Score, Scores, Trajectory, seed_of
from rewardlab.data.columns import Column, Data
from rewardlab.evals.groups import told_apart
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.forced_answer import begin
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt, Share
from rewardlab.text.prefixes import thinks_in_tags
from rewardlab.text.reasoned import ANSWER, with_gold
from rewardlab.verifiers.choice.options import Options, choose, read
from rewardlab.verifiers.choice.rationale import rationale_agrees
from rewardlab.verifiers.choice.texts import key
from rewardlab.verifiers.choice.verifier import options_in, options_of

# ---- A question with its options in another order ------------------------------------------------------------------------

COLUMNS = ("options", "choices")
KEEPS_PLACE = re.compile(r"\b(?:above|below|all of these|none of these|neither|both)\b", re.IGNORECASE)
NAMES_OTHERS = re.compile(r"(?<!\w)\(?([A-Z])\)?,? (?:and|or|nor|&) \(?([A-Z])(?!\w)")
"""An option such as "A and C", which another order makes wrong."""


BESIDE = (r"(?<!\w)[(\[]?{0}(?:[)\].:]{{1,2}}\s{{0,3}}|\s{{1,3}})({1})(?!\w)", r"(?<!\w)({1})[ \t]{{1,3}}[(\[]?{0}(?!\w)")
"""An option's text behind its letter, or before it."""


class Reordered(NamedTuple):
    """A problem with other letters for its options.  options, texts: the text of each letter before and after.  to: the letter
    that each old one became."""

    problem: Problem
    options: Options
    texts: Options
    to: Mapping[str, str]


def options_asked(problem: Problem) -> dict[str, str]:
    """The letters and texts of a problem's options: those of its column, else those that its question ends in; {} without any."""
    found = [problem.meta.get(name) for name in COLUMNS]
    if isinstance(problem.answer, Mapping):
        found = [problem.answer.get("options"), *found]
    try:
        options = options_of(next((x for x in found if x is not None), options_in(problem.question)))
    except (ValueError, TypeError, AttributeError):
        return {}
    return options if all(options.values()) else {}


def places(question: str, options: Options) -> dict[str, tuple[int, int]]:
    """Where the text of each option stands beside its letter in a question; {} unless each has a place of its own."""
    for pattern in BESIDE:
        found = {x: [*re.finditer(pattern.format(x, re.escape(text.strip())), question)] for x, text in options.items()}
        # the last: a question may say "A dog" before its options
        spans = {letter: matches[-1].span(1) for letter, matches in found.items() if matches}
        apart = all(a[1] <= b[0] for a, b in pairwise(sorted(spans.values())))
        if spans and len(spans) == len(options) and apart:
            return spans
    return {}


def reordered(problem: Problem, rng: random.Random | None) -> Reordered | None:
    """The problem with another letter for each option that may have one; None where there are no two of these.

    The texts change places in the question, the column of options and the gold answer with them; all else stays, pictures too.
    rng: None leaves all letters as they are.
    """
    options = options_asked(problem)
    named = [match.groups() for text in options.values() for match in NAMES_OTHERS.finditer(text)]
    free = [letter for letter, text in options.items() if not KEEPS_PLACE.search(text)]
    where = places(problem.question, options) if len(free) > 1 else {}
    if not where or any({*pair} <= {*options} for pair in named):
        return None
    to = {letter: letter for letter in options} | (_cycle(free, rng) if rng else {})
    texts = dict(sorted((to[letter], text) for letter, text in options.items()))
    answer = moved(problem.answer, options, texts, to)
    if answer is None:
        return None
    question = problem.question
    for letter, (start, end) in sorted(where.items(), key=lambda item: -item[1][0]):
        question = question[:start] + texts[letter].strip() + question[end:]
    last = max(i for i, m in enumerate(problem.prompt) if m.role == "user")
    prompt = (*problem.prompt[:last], replace(problem.prompt[last], text=question), *problem.prompt[last + 1 :])
    meta = {**problem.meta, **{name: texts for name in COLUMNS if problem.meta.get(name) is not None}}
    return Reordered(replace(problem, prompt=prompt, answer=answer, meta=meta), options, texts, to)


def _cycle(letters: Sequence[str], rng: random.Random) -> dict[str, str]:
    """Another letter for each, none its own: a random cycle through all (Sattolo 1986)."""
    to = list(letters)
    for i in range(len(to) - 1, 0, -1):
        j = rng.randrange(i)
        to[i], to[j] = to[j], to[i]
    return dict(zip(letters, to, strict=True))


def moved(answer: Any, options: Options, texts: Options, to: Mapping[str, str]) -> Any:
    """The gold answer of the reordered problem: letters and indices change, the text of an option stays; None if it is neither."""
    if isinstance(answer, Mapping):
        own = moved(answer.get("answer"), options, texts, to)
        return None if own is None else {**answer, "answer": own, **({"options": texts} if answer.get("options") else {})}
    if isinstance(answer, list | tuple):
        several = [moved(x, options, texts, to) for x in answer]
        return None if None in several else several
    if isinstance(answer, int) and not isinstance(answer, bool):
        letters = list(options)
        return letters.index(to[letters[answer]]) if 0 <= answer < len(letters) else None
    if not isinstance(answer, str):
        return None
    if key(answer) in {key(text) for text in options.values()}:
        return answer
    return "".join(sorted(to[letter] for letter in read(answer, options))) or None


# ---- The second answer, and what it changes ------------------------------------------------------------------------------


class Again(NamedTuple):
    """Of one reply: its problem in another order, and the second answer; None where it was not asked, and why."""

    of: Reordered | None
    said: Trajectory | None
    why: str = ""


def asked_again(
    rows: Sequence[Trajectory], right: Sequence[bool], run: Run, *, mark: str, tokens: int, temperature: float, shuffle: bool
) -> list[Again]:  # fmt: skip
    """The second answer to each row's problem in another order, after the row's own reasoning, which ends in the mark."""
    problems = {t.problem.key: t.problem for t in rows}
    rngs = {k: random.Random(seed_of("acre", run.seed, run.moment, k)) if shuffle else None for k in problems}
    orders = {k: reordered(p, rngs[k]) for k, p in problems.items()}
    found = [_may_be_asked(t, ok, orders[t.problem.key]) for t, ok in zip(rows, right, strict=True)]
    stems = [_reasoning(t, run, mark) if a.of and not a.why else "" for t, a in zip(rows, found, strict=True)]
    # equal reasonings about one problem are asked once
    unlike = list(dict.fromkeys((t.problem.key, stem) for t, stem in zip(rows, stems, strict=True) if stem))
    begun = begin(run.policy, [orders[k].problem for k, _ in unlike], [stem for _, stem in unlike])  # type: ignore[union-attr]
    room = min(tokens, run.max_new)
    fit = [i for i, t in enumerate(begun) if len(t) + room <= run.policy.context]
    done = run.policy.extend([begun[i] for i in fit], Sampling(room, temperature), run.rng("acre")) if fit else []
    said = {unlike[i]: _answer(begun[i], t, unlike[i][1]) for i, t in zip(fit, done, strict=True)}
    full = Again(None, None, "the context is too short")
    keys = [(t.problem.key, stem) for t, stem in zip(rows, stems, strict=True)]
    return [a if not at[1] else Again(a.of, said[at]) if at in said else full for a, at in zip(found, keys, strict=True)]


def _may_be_asked(t: Trajectory, right: bool, of: Reordered | None) -> Again:
    if of is None:
        return Again(None, None, "there are no options to shuffle")
    if len(t.replies) != 1:
        return Again(None, None, "it is not one reply")
    answers = right or choose(t.reply, of.options, t.problem.question).letters
    return Again(of, None) if answers else Again(None, None, "it gives no answer that a second one could be compared with")


def _reasoning(t: Trajectory, run: Run, mark: str) -> str:
    """A reply up to its answer, with what makes the policy answer at once."""
    text = with_gold(t.reply, "", mark, thinks_in_tags(t.reply, t, run.policy.decode))[1].rstrip(" ")
    return text if text.endswith((ANSWER, mark)) else f"{text}{mark}"


def _answer(begun: Trajectory, done: Trajectory, stem: str) -> Trajectory:
    """What was said after the reasoning, alone: a letter in the reasoning is one of the first order."""
    mark = ANSWER if stem.endswith(ANSWER) else stem.rpartition("\n")[2]
    text = mark + done.reply[len(begun.reply) :]
    return replace(done, turns=(replace(done.turns[-1], text=text),), steps=())


@reward(over="groups")
def answered_again(
    groups: list[Group], run: Run, *, first: Share = 0.5, second: Share = 0.5, mark: str = "Answer:", tokens: PositiveInt = 32,
    temperature: NonNegativeFloat = 0.0, shuffle: bool = True,
) -> Scores:  # fmt: skip
    """What the answer to the shuffled options changes of a reward of 1 for the first: first - 1 where that one alone is right,
    `second` where the second alone is, else 0; 0 too where nothing is asked again.

    mark: what stands before an answer, where the reply has no <answer>.  tokens, temperature: of the second answer.  shuffle: false
    asks again in the same order. No verdict where the verifier has none. Logged: asked_again, the share of replies; right_again and
    same_option, of these.
    """
    rows = [t for group in groups for t in group]
    verdicts = [s for row in correct()(groups, run) for s in row]
    right = [s.value is not None and s.value >= 1.0 for s in verdicts]
    found = asked_again(rows, right, run, mark=mark, tokens=tokens, temperature=temperature, shuffle=shuffle)
    again = _verdicts(found, run)
    known = [i for i, s in enumerate(again) if s is not None and s.value is not None]
    run.log("asked_again", len(known) / max(1, len(rows)))
    if known:
        run.log("right_again", float(np.mean([again[i].value >= 1.0 for i in known])))  # type: ignore[union-attr, operator]
        run.log("same_option", float(np.mean([same_option(rows[i], found[i]) for i in known])))
    scores = iter([_change(*x, first, second) for x in zip(verdicts, again, found, strict=True)])
    return [[next(scores) for _ in group] for group in groups]


def _verdicts(found: Sequence[Again], run: Run) -> list[Score | None]:
    """The verifier's verdict on each second answer, None where nothing was said."""
    said = [replace(a.said, problem=a.of.problem) for a in found if a.said is not None and a.of is not None]
    judged = iter([row[0] for row in run.verify([[t] for t in said], run)] if said else [])
    return [None if a.said is None else next(judged) for a in found]


def _change(verdict: Score, again: Score | None, found: Again, first: float, second: float) -> Score:
    if verdict.value is None:
        return Score(None, why=verdict.why)
    if again is None:
        return Score(0.0, why=f"not asked again: {found.why}")
    if again.value is None:
        return Score(None, why=f"the second answer: {again.why}")
    right, right_again = verdict.value >= 1.0, again.value >= 1.0
    why = f"{'right' if right else 'wrong'}, and with shuffled options {'right' if right_again else 'wrong'}"
    tier = 1.0 if right and right_again else first if right else second if right_again else 0.0
    return Score(tier - float(right), why=why)


def same_option(t: Trajectory, again: Again) -> bool:
    """Whether both answers choose the same options, by their texts; not where one of them chooses none."""
    if again.of is None or again.said is None:
        return False
    before = choose(t.reply, again.of.options, t.problem.question).letters
    after = choose(again.said.reply, again.of.texts, again.of.problem.question).letters
    return bool(before) and "".join(sorted(again.of.to[letter] for letter in before)) == after


def acre(
    base: Recipe | None = None, *, first: Share = 0.5, second: Share = 0.5, mark: str = "Answer:", tokens: int = 32,
    temperature: float = 0.0,
) -> Recipe:  # fmt: skip
    """first, second: what a reply is paid whose first, or second, answer alone is right.  mark: what stands before an answer, where
    replies have no <answer>.  tokens, temperature: of the second answer."""
    base = base or grpo()
    again = answered_again(first=first, second=second, mark=mark, tokens=tokens, temperature=temperature)
    paid: Any = base.reward or correct()
    return base.but(reward=paid + again)


fidelity = "reading"
left_out = "the paper's own amounts for the four cases, and its prompt for the second answer, which no text at hand gives"
data = Data(
    prompt="the question with its options, each beside its letter; pictures stay where options are shuffled",
    answer="the letter of the right option, its index from 0, or its text",
    options=Column("the texts of the options, a list or by letter; else those at the end of the question", optional=True),
    verified_by="choice",
    rows=[
        {
            "prompt": "Which planet is the largest?\nA. Mars\nB. Jupiter\nC. Venus\nThink first, then write: Answer: letter",
            "answer": "B", "options": ["Mars", "Jupiter", "Venus"],
        },
        {
            "prompt": "A shop sells 15 loaves, and twice as many rolls. How many rolls? (A) 25 (B) 30 (C) 45\n"
            "Think in <think> </think>, then answer in <answer> </answer>.",
            "answer": "B",
        },
        {"prompt": "What freezes at 0 degrees?\nA) iron\nB) water", "answer": "water", "options": {"A": "iron", "B": "water"}},
    ],
)  # fmt: skip

BOTH_WAYS = answered_again(tokens=8).named("shuffled") + answered_again(tokens=8, shuffle=False).named("in_order")
check = Check(
    says="of right replies, those that say what they go by are paid above hunches more often if the second answer is to shuffled "
    "options than if they keep their order",
    versus=None, task="hunches", measure="agreement.shuffled", direction="higher", margin=0.08, against="agreement.in_order",
    by=told_apart(reward=BOTH_WAYS, truth=rationale_agrees(), rollout=independent(n=16), among=correct()), problems=60, steps=1,
    fault=Within("agreement.in_order", high=0.9, says="known answers above hunches, asked again in the same order"),
    tried="quiz, one run: its small policy finds the letter of a result as rarely as by chance (24%), so that it says nothing; "
    "hunches, two development seeds: .68 and .75, in the same order .55 and .56",
    finding="of two right replies, the one that says what it goes by is paid more than a hunch in 72% of pairs where options are "
    "shuffled, in 57% where they keep their order (ties count half). The policy is frozen: what it would learn is not tested",
)  # fmt: skip
