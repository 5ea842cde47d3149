"""Mix-GRM: a judge learns two styles, many principles for matters of taste and solving first for matters of fact, and then RL.

    breadth:  of n judgements the units (principle: what is said of the replies) are merged, each principle once;  verdict of most
    depth:    one judgement that solves the question first, and judges by that under at most three principles;     verdict
    SFT on style tag + judgement, breadth where a question is subjective and depth where it is objective
    then GRPO with r = 1 if the verdict is right, else -1;     measured: P(style | kind of question), which RL is to polarise

Longer judgements are better ones on average, but not for one reason: matters of taste need more principles, matters of fact a
verification that is right, and the wrong one of the two does harm. The tag lets a judge choose before it writes.

Zhang et al. 2026, arXiv:2603.01571, by the paper and its appendices; the code (Don-Joey/Mix-GRM) could not be read. It keeps
judgements whose verdict is wrong, too, since leaving them out hardly helps (69.8 and 70.1); `filtered` does. It leaves out the
principles that the fewest judgements name. Its rates: 2e-5 for imitation and 1e-6 for RL, with a KL of .001 and 8 judgements of a
row, at a temperature of .8. (inferred): the words and tags; that each style is asked for by a prompt of its own; that what most
judgements say that name a principle counts; n = 4; and that questions with a gold answer are objective. The raw judgements are
those of the policy as it begins, unless `writer` names another model.
"""

import random
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import (
    Group,
    Learner,
    Problem,
    Recipe,
    Run,
    Trajectory,
    measure,
    rollout,
    seed_of,
)
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.judgements import accuracy_of, judged
from rewardlab.judges.asking import judgements_of
from rewardlab.judges.cases import WORTH, Case, agrees, cases_of, label_of, to_judge
from rewardlab.judges.forms import Form, Kind
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import imitated_first, trained_judge
from rewardlab.rollouts.judgements import nothing_accepted
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.verifiers.match import final_answer
from rewardlab.worlds.duels import FORM as SMALL_FORM

_PAIR = "\n\n[Question]\n{prompt}\n\n[Reply A]\n{first}\n\n[Reply B]\n{second}\n\n[End of the replies]"
_VERDICT = "End with your verdict: [[A]] if reply A is better, [[B]] if reply B is."
FORM = f"Two assistants reply to a question. Judge which reply is better. {_VERDICT}{_PAIR}"
BREADTH_FORM = (
    "Two assistants reply to a question. Judge which reply is better by as many principles as matter to whoever asked. Write a "
    f"line for each, 'PRINCIPLE: what each reply does for it, and which does better'. {_VERDICT}{_PAIR}"
)
DEPTH_FORM = (
    "Two assistants reply to a question. Solve it yourself first, step by step, and write your solution in "
    "<solution>...</solution>. Then verify both replies by it, under the one principle that decides here, or three at most: a line "
    f"for each, 'PRINCIPLE: what the solution says of each reply'. {_VERDICT}{_PAIR}"
)
UNIT = r"(?m)^[-*#\d.\s]{0,9}\**([^\s:*][^:\n*]{0,60}?)\**:[^\n]+$"
"""A principle and what is said of the replies under it, in a line; the principle is the first group."""
SOLUTION = r"(?s)<solution>(.*?)</solution>"
TAGS = ("Breadth:", "Depth:")
Style = Literal["breadth", "depth"]
Match = Literal["matched", "mismatched", "both"]


def objective(problem: Problem) -> bool:
    """Whether a question is one of fact: by its column `objective`, or else because it has a gold answer."""
    stated = problem.meta.get("objective")
    return problem.answer is not None if stated is None else label_of(stated, problem) > 0.5


def merged(judgements: Sequence[str], unit: str = UNIT, rare: bool = False) -> str:
    """The units of several judgements, each principle once, in the order in which they first come; empty without any.

    Of what is said under a principle, the most frequent counts, and of equally frequent ones the first.  rare: whether principles
    that fewer judgements name than any others stay, too.
    """
    said: dict[str, Counter[str]] = {}
    for text in judgements:
        for match in re.finditer(unit, text):
            said.setdefault(match[1].strip().casefold(), Counter())[match[0].strip()] += 1
    named = [sum(counts.values()) for counts in said.values()]
    fewest = 0 if rare or len(set(named)) < 2 else min(named)
    # Counter.most_common keeps the order of equal counts
    units = [counts.most_common(1)[0][0] for counts, times in zip(said.values(), named, strict=True) if times > fewest]
    return ("\n" if any("\n" in text.strip() for text in judgements) else " ").join(units)


def in_breadth(judgements: Sequence[str], form: Form, unit: str, rare: bool = False) -> str:
    """The merged units of judgements with the verdict that most of them give; the first that gives it as it is without units."""
    assert form.marks is not None
    ends = [list(form.marks.pattern.finditer(text))[-1] for text in judgements]
    most = Counter(end[1] for end in ends).most_common(1)[0][0]
    first = next(i for i, end in enumerate(ends) if end[1] == most)
    # what looks like a unit in the verdict's own words is none
    units = merged([text[: end.start()] for text, end in zip(judgements, ends, strict=True)], unit, rare)
    return f"{units}{chr(10) if chr(10) in units else ' '}{ends[first][0]}" if units else judgements[first]


def in_depth(judgements: Sequence[str], answer: object, solution: str) -> str | None:
    """The first of judgements that solves the question itself, and has the gold answer, unless that is None; None if none does."""
    solved = [(text, found[-1]) for text in judgements if (found := [m[1] for m in re.finditer(solution, text)])]
    return next((text for text, own in solved if answer is None or final_answer().check(own, answer).correct), None)


def check_mix(unit: str, solution: str, form: str, kind: str, **_: Any) -> None:
    """Refuse patterns without a group, and forms without marks."""
    for name, pattern in (("unit", unit), ("solution", solution)):
        try:
            groups = re.compile(pattern).groups
        except re.error as problem:
            raise RewardlabError(f"the pattern {name}={pattern!r} is no regular expression: {problem}") from None
        if not groups:
            raise RewardlabError(f"the pattern {name}={pattern!r} has no group: put the part that is meant in parentheses")
    if form_of(form, kind).marks is None:
        raise RewardlabError(f"judgements in two styles need a form with marks, and {form or kind} has scores of several replies")


@rollout(rows=lambda **_: 1, check=check_mix)
def mixed_judgements(
    problems: list[Problem], run: Run, *, form: str = FORM, kind: Kind = "pairwise", breadth_form: str = BREADTH_FORM,
    depth_form: str = DEPTH_FORM, n: PositiveInt = 4, unit: str = UNIT, solution: str = SOLUTION, tags: tuple[str, str] = TAGS,
    match: Match = "matched", merge: bool = True, filtered: bool = False, rare: bool = False, writer: str = "writer",
) -> list[Group]:  # fmt: skip
    """A judgement of each row in the style that suits its question, recorded as the policy's own reply to the plain form.

    form: what the judge is asked.  breadth_form, depth_form: what the writer is asked for n judgements in a style, of which those
    with a verdict count.  filtered: with the right one, and in depth with a right solution, where there is a gold answer.  match:
    "mismatched", the other style; "both", either style of each row.  merge: else the first judgement in breadth stands for all.
    rare: as in `merged`. Rows without such a judgement are dropped. Logged: accepted, the share of right judgements, and
    principles, the units of one in breadth. Where nothing is kept, a question is returned without a judgement, from which nothing
    is learnt.
    """
    plain, asks = form_of(form, kind), {"breadth": form_of(breadth_form, kind), "depth": form_of(depth_form, kind)}
    cases = [_case(p, plain, run) for p in problems]
    wanted = [(p, case, style) for p, case in zip(problems, cases, strict=True) for style in styles_of(p, match)]
    groups = judgements_of(run, [to_judge(p, case, asks[style]) for p, case, style in wanted], n, writer)
    judged = [[(t.reply, _agrees(asks[s], t)) for t in group] for group, (*_, s) in zip(groups, wanted, strict=True)]
    run.log("accepted", float(np.mean([sum(ok is True for _, ok in rows) / n for rows in judged])))
    kept, named = [], []
    for (problem, case, style), rows in zip(wanted, judged, strict=True):
        texts = [text for text, ok in rows if ok or (ok is False and not filtered)]
        if not texts:
            continue
        text = in_depth(texts, problem.answer if filtered else None, solution)
        if style == "breadth":
            text = in_breadth(texts if merge else texts[:1], asks[style], unit, rare)
            named.append(len(re.findall(unit, text)))
        if text is not None:
            kept.append((to_judge(problem, case, plain), f"{tags[style == 'depth']} {text}"))
    if named:
        run.log("principles", float(np.mean(named)))
    if not kept:
        return nothing_accepted([to_judge(p, case, plain) for p, case in zip(problems, cases, strict=True)], run)
    begun = run.policy.read([Trajectory(p) for p, _ in kept], [p.prompt for p, _ in kept])
    return [[t] for t in run.policy.write(begun, [text for _, text in kept])]


def styles_of(problem: Problem, match: Match) -> list[Style]:
    if match == "both":
        return ["breadth", "depth"]
    return ["depth"] if objective(problem) == (match == "matched") else ["breadth"]


def _case(problem: Problem, form: Form, run: Run) -> Case:
    """The row's replies, in a random order."""
    case, rng = cases_of(problem, form)[0], random.Random(seed_of("mix_grm", run.seed, run.step, problem.key))
    return case.at(rng.sample(range(len(case.replies)), len(case.replies)))


def _agrees(form: Form, t: Trajectory) -> bool | None:
    """Whether the verdict of a judgement is right; None without one."""
    values = form.read(t.reply, len(t.problem.meta[WORTH])).values
    return None if values is None else agrees(values, t.problem.meta[WORTH])


@measure
def styles(
    problems: Sequence[Problem], run: Run, *, form: str = FORM, kind: Kind = "pairwise", unit: str = UNIT,
    tags: tuple[str, str] = TAGS, k: PositiveInt = 1,
) -> dict[str, float]:  # fmt: skip
    """As `judgement_accuracy`, and by kind of question:

    judged_subjective, judged_objective: the share of right verdicts.  breadth_subjective, depth_objective: the share of judgements
    that begin with the tag of the style that suits the question.  principles: units of a judgement of a subjective question.
    """
    found = judged(problems, run, form_of(form, kind), k)
    rows = [
        (objective(problems[a.row]), text, ok)
        for a, texts, right in zip(found.asked, found.texts, found.right, strict=True)
        for text, ok in zip(texts, right, strict=True)
    ]  # fmt: skip
    said = {}
    for fact, name, tag, style in ((False, "subjective", tags[0], "breadth"), (True, "objective", tags[1], "depth")):
        if own := [(text, ok) for of, text, ok in rows if of == fact]:
            said[f"judged_{name}"] = float(np.mean([ok for _, ok in own]))
            said[f"{style}_{name}"] = float(np.mean([text.lstrip().startswith(tag) for text, _ in own]))
    named = [len({m[1].strip().casefold() for m in re.finditer(unit, text)}) for fact, text, _ in rows if not fact]
    return accuracy_of(found) | said | ({"principles": float(np.mean(named))} if named else {})


def mix_grm(
    base: Recipe | None = None, *, form: str = FORM, kind: Kind = "pairwise", breadth_form: str = BREADTH_FORM,
    depth_form: str = DEPTH_FORM, distil: int = 30, sft_lr_scale: float = 20.0, n: int = 4,
    unit: str = UNIT, solution: str = SOLUTION, tags: tuple[str, str] = TAGS, match: Match = "matched", merge: bool = True,
    filtered: bool = False, rare: bool = False, writer: str = "copy:policy", problems: int = 32, temperature: float = 0.8,
    beta: NonNegativeFloat = 1e-3, lr: float | None = None,
) -> Recipe:  # fmt: skip
    """form: what the judge is asked, which names no style.  breadth_form, depth_form: what the writer is asked; empty: as `form`.
    distil, sft_lr_scale: first steps, which imitate both styles, and their learning rate as a multiple of the recipe's.  n, writer:
    judgements of a row, and the model that writes them (`Learner.init`).  unit, solution: regular expressions, whose first group is
    a principle, or the own solution.  tags: how judgements in each style begin.  match: which style which question gets.  merge:
    whether principles of several judgements are merged.  filtered, rare: whether judgements with a wrong verdict are left out, and
    whether principles stay that the fewest name (`mixed_judgements`).  temperature: of judgements in RL.  beta: of the KL to what
    imitation made."""
    base = base or grpo(temperature=temperature, beta=beta)
    base = trained_judge(base, form=form, kind=kind, problems=problems, lr=lr)
    kept = mixed_judgements(
        form=form, kind=kind, breadth_form=breadth_form or form, depth_form=depth_form or form, n=n, unit=unit,
        solution=solution, tags=tags, match=match, merge=merge, filtered=filtered, rare=rare,
    )  # fmt: skip
    first = imitated_first(first=distil, kept=kept, sft_lr_scale=sft_lr_scale, inner=base.loop) if distil else base.loop
    also = (*base.also, Learner("writer", writer, Recipe(), every=0)) if distil else base.also
    return base.but(loop=first, measure=styles(form=form, kind=kind, unit=unit, tags=tags), also=also)


fidelity = "core"
left_out = (
    "taking apart the rationales of a larger model by another one, and writing them anew by its solution: here each style is asked "
    "for, and `writer` may be larger; rows of its own for either stage"
)
data = Data(
    chosen="the better reply", rejected="the worse reply",
    answer=Column("the gold answer, by which solutions in depth are verified", optional=True),
    objective=Column("true where the question is one of fact; without it, where it has a gold answer", optional=True),
    rows=[
        {"prompt": "What is half of 46?", "objective": True, "chosen": "23.", "rejected": "Half of 46 is 28."},
        {
            "prompt": "Write a line of thanks to Ann.", "objective": False,
            "chosen": "Dear Ann, thank you so much for the tea!", "rejected": "ok thanks",
        },
    ],
)  # fmt: skip

SMALL = {
    "form": SMALL_FORM, "breadth_form": "", "depth_form": "", "unit": r"([a-z]+) [+-] [+-]", "solution": r"=(\d+) A [+-]",
    "tags": ("+", "="), "filtered": True, "rare": True, "sft_lr_scale": 3.0, "temperature": 1.0,
}  # fmt: skip
check = Check(
    says="taught judgements whose principles are merged from several, a judge names more principles and gives more right verdicts "
    "where the question is one of taste, before and during RL, than one taught single judgements",
    versus="mix_grm", task="duels", measure="judged_subjective", direction="higher", margin=0.03, settings=SMALL,
    versus_settings={**SMALL, "merge": False}, problems=300, steps=90, moved=Within("principles", low=0.3),
    tried="four runs before: tags of several tokens, or that the prompt has too, which the small judge hardly learnt; 16 rows a "
    "step; other rates; a writer that is not frozen; 30 steps of RL after the 30 of imitation, on wishes alone: right verdicts 57% "
    "before, 56% after imitation, 58% at the end, while rewards rose from .04 to .41",
    finding="merged judgements teach it to name 1.4 principles and single ones 1.1 (1.7 before), but its verdicts on wishes "
    "are right as often, 67% in both, and on sums they fall from 64% to 52%: what 30 steps of imitation with tags "
    "cost, 60 of RL do not bring back",
)  # fmt: skip
baseline = "trained_judge"
