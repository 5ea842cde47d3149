"""SPARK: each step's rollouts and their verdicts are used again, as tasks of judging and of reflection for the same policy.

    solve:    n replies y_i to x, with verdicts v_i
    judge:    a pair of a right and a wrong reply, with chance 0.7 where there are both, else one reply;     r = 1[verdict is right]
    reflect:  x with a wrong reply, to be solved again;     r = 1[right]
    one GRPO over all three; at most half as many tasks of judging, and half as many of reflection, as problems

RL from verified rewards throws rollouts and verdicts away after each update. They are labelled data for a judge, of just the
replies that this policy writes, so that policy and reward model grow together. At test it judges its own reply, and solves again
where it finds it wrong (`rounds`).

Liu et al. 2025, arXiv:2509.22624, and InternLM/Spark at aef6735 (new_data_gen.py, ppo_trainer.py, evaluation_tts.py, the script of
Qwen2.5-VL-7B): n = 8, the shares above, a KL of weight .001, the answer alone shown to the judge, reflection on the whole reply for
half of the problems and on the answer alone for the others, two rounds of greedy reflection at test. There, judging and reflection
are a second update in the same step, on rollouts of the policy after the first; here both are one. (inferred): the words.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check, Within
from rewardlab.core import Group, Problem, Recipe, Rollout, Run, Sampling, Score, Scores, Trajectory, measure, rollout, seed_of
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.passk import mean_interval
from rewardlab.judges.cases import WORTH, Case, agrees, to_judge
from rewardlab.judges.forms import Form
from rewardlab.judges.marks import PREFERENCES, Marks
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.reward import Reward, reward
from rewardlab.rewards.task import correct
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.text.answers import final_answer, states
from rewardlab.text.filled import filled

POINT = (
    "Judge an answer to a question. Reason about it first, and end with your verdict: [[yes]] if the answer is right, [[no]] if it "
    "is wrong.\n\n[Question]\n{prompt}\n\n[Answer]\n{reply}"
)
PAIR = (
    "Two answers to a question are below, one right and one wrong. Reason about both first, and end with your verdict: [[A]] if A "
    "is right, [[B]] if B is right.\n\n[Question]\n{prompt}\n\n[Answer A]\n{first}\n\n[Answer B]\n{second}"
)
REFLECT = (
    "{prompt}\n\nBelow is a wrong reply to this question. Do not follow it: find what is wrong in it, and solve the question anew."
    "\n\n[Wrong reply]\n{reply}"
)
VERDICT = r"(?i)(?:\[\[\s{0,3}|\bConclusion: \*{0,2})(yes|no|right|wrong)\b"
"""[[yes]], or as small models write it, "Conclusion: right"."""
KIND = "recycled"
"""Column of a task that was made from rollouts: judge or reflect."""


def point_form(text: str) -> Form:
    return Form("spark_point", "verdict", text, Marks({"yes": 1.0, "no": 0.0, "right": 1.0, "wrong": 0.0}, pattern=VERDICT))


def pair_form(text: str) -> Form:
    return Form("spark_pair", "pairwise", text, Marks(PREFERENCES))


def shown(reply: str, whole: bool = False) -> str:
    """What is shown of a reply: its answer, if it states one, or all of it."""
    return reply if whole else final_answer(reply) or reply


def states_one(t: Trajectory) -> bool:
    """Whether a reply has an answer to show: it was not cut off, or had marked one by then."""
    return t.stop != "length" or states(t.reply) or "</answer>" in t.reply


def reflection(problem: Problem, reply: str, text: str = REFLECT) -> Problem:
    """The problem of solving a problem anew, after a wrong reply to it; its answer stays."""
    return problem.reworded(filled(text, prompt=problem.question, reply=reply))


# ---- tasks made from rollouts ----------------------------------------------------------------------------------------


def judge_task(
    group: Group,
    right: Sequence[bool],
    rng: random.Random,
    point: str = POINT,
    pair: str = PAIR,
    pairs: float = 0.7,
    whole: bool = False,
) -> Problem:
    """A question to a judge about replies of one group, of which these are right: a pair, or one reply."""
    places: dict[bool, list[int]] = {side: [i for i, ok in enumerate(right) if ok == side] for side in (True, False)}
    problem, both = group[0].problem, bool(places[True] and places[False])
    if both and rng.random() < pairs:
        replies = tuple(shown(group[rng.choice(places[side])].reply, whole) for side in (True, False))
        case = Case(replies, (1.0, 0.0))
        asked = to_judge(problem, case.at(rng.sample((0, 1), 2)), pair_form(pair))
    else:
        # of a group with both, right and wrong ones are as likely, however many there are
        side = rng.random() < 0.5 if both else bool(places[True])
        case = Case((shown(group[rng.choice(places[side])].reply, whole),), (float(side),))
        asked = to_judge(problem, case, point_form(point))
    # its answer is that of the question, which is no answer here
    return replace(asked, answer=None, meta={**asked.meta, KIND: "judge"})


def recycled(
    groups: Sequence[Group], verdicts: Scores, rng: random.Random, point: str = POINT, pair: str = PAIR, reflect: str = REFLECT,
    pairs: float = 0.7, share: float = 0.5, whole: bool = False,
) -> list[Problem]:  # fmt: skip
    """Tasks of judging and reflection from groups and their verdicts, of each kind at most `share` as many as there are groups."""
    judge, again = [], []
    for i, (group, row) in enumerate(zip(groups, verdicts, strict=True)):
        known = [(t, s.value >= 1) for t, s in zip(group, row, strict=True) if s.value is not None and t.reply.strip()]
        if told := [(t, ok) for t, ok in known if whole or states_one(t)]:
            judge.append(judge_task([t for t, _ in told], [ok for _, ok in told], rng, point, pair, pairs, whole))
        entire = whole or 2 * i < len(groups)
        if wrong := [t for t, ok in known if not ok and (entire or states_one(t))]:
            t = rng.choice(wrong)
            asked = reflection(t.problem, shown(t.reply, entire), reflect)
            again.append(replace(asked, meta={**asked.meta, KIND: "reflect"}))
    most = max(1, round(share * len(groups))) if share else 0
    return [task for tasks in (judge, again) for task in (rng.sample(tasks, most) if len(tasks) > most else tasks)]


def check_texts(point: str, pair: str, reflect: str, **_: Any) -> None:
    """Refuse texts that do not show what is judged."""
    for name, text, places in (("point", point, ("reply",)), ("pair", pair, ("first", "second")), ("reflect", reflect, ("reply",))):
        if missing := [place for place in ("prompt", *places) if f"{{{place}}}" not in text]:
            raise RewardlabError(f"the text {name!r} has no {{{missing[0]}}} in it: put it where that is to be shown")


@rollout(wraps="inner", check=check_texts)
def recycling(
    problems: list[Problem], run: Run, *, inner: Rollout, point: str = POINT, pair: str = PAIR, reflect: str = REFLECT,
    pairs: Share = 0.7, share: Share = 0.5, whole: bool = False,
) -> list[Group]:  # fmt: skip
    """The groups of `inner`, and those that it samples for tasks made from them and the verdicts on them.

    point, pair: what a judge is asked about one answer, or about two.  reflect: what is asked about a wrong reply.  pairs: the
    chance of a pair where right and wrong replies are known.  share: tasks of judging, and of reflection, as a share of the
    problems.  whole: whether whole replies are shown, in place of their answers. Tasks that do not fit the context are left out.
    Logged: recycled, tasks for each problem.
    """
    groups = inner(problems, run)
    rng = random.Random(seed_of("spark", run.seed, run.step))
    tasks = recycled(groups, run.verdicts(groups), rng, point, pair, reflect, pairs, share, whole)
    read = run.policy.read([Trajectory(p) for p in tasks], [p.prompt for p in tasks]) if tasks else []
    tasks = [p for p, t in zip(tasks, read, strict=True) if len(t) + run.max_new <= run.policy.context]
    run.log("recycled", len(tasks) / len(groups))
    return groups + (inner(tasks, run) if tasks else [])


def judged_right(t: Trajectory) -> float | None:
    """Whether a judgement agrees with what the replies are worth: 1 or 0; None for what is no judgement."""
    worth = t.problem.meta.get(WORTH)
    if t.problem.meta.get(KIND) != "judge" or not worth:
        return None
    values = (pair_form if len(worth) == 2 else point_form)("").read(t.reply, len(worth)).values
    return float(values is not None and agrees(values, worth))


@reward(over="groups")
def solved_or_judged(groups: list[Group], run: Run, *, inner: Reward) -> Scores:
    """1 or 0 for judgements; what `inner` pays for all other replies, reflections among them. Logged: judged, reflected."""
    others = [i for i, group in enumerate(groups) if group[0].problem.meta.get(KIND) != "judge"]
    paid = dict(zip(others, inner([groups[i] for i in others], run) if others else [], strict=True))
    scores = [paid[i] if i in paid else [Score(judged_right(t)) for t in group] for i, group in enumerate(groups)]
    for name, kind in (("judged", "judge"), ("reflected", "reflect")):
        of = [s.total for g, row in zip(groups, scores, strict=True) if g[0].problem.meta.get(KIND) == kind for s in row]
        if known := [x for x in of if x is not None]:
            run.log(name, float(np.mean(known)))
    return [[Score(s.total, why=s.why, extracted=s.extracted) for s in row] for row in scores]


# ---- at test: judge the own reply, and solve again where it is found wrong -------------------------------------------


@measure
def self_reflection(
    problems: Sequence[Problem],
    run: Run,
    *,
    point: str = POINT,
    reflect: str = REFLECT,
    rounds: PositiveInt = 2,
    whole: bool = False,
) -> dict[str, float]:
    """pass@1 of greedy replies; `reflected`: of those after at most `rounds` of judging them and solving again what is found wrong.

    judged: the share of right verdicts on the first replies, the mean of those on right and of those on wrong ones: 1/2 is chance,
    and what cannot be read is wrong, and no consent.  asked_again: the share of replies that were solved again at least once.
    """
    now = _said(list(problems), run)
    first, wrong, held = _right(now, run), list(range(len(now))), []
    for _ in range(rounds):
        found = _held_right([problems[i] for i in wrong], [shown(now[i].reply, whole) for i in wrong], point, run)
        # a judgement that cannot be read is no consent
        wrong = [i for i, x in zip(wrong, found, strict=True) if not x]
        held.append(found)
        again = [
            problems[i].reworded(filled(reflect, prompt=problems[i].question, reply=shown(now[i].reply, whole))) for i in wrong
        ]
        for i, t in zip(wrong, _said(again, run), strict=True):
            # what does not fit the context leaves the reply as it is
            now[i] = replace(t, problem=problems[i]) if t.reply else now[i]
    low, high = mean_interval([float(x) for x in first])
    sides = [[x == ok for x, ok in zip(held[0], first, strict=True) if ok == side] for side in (True, False)]
    return {
        "pass@1": float(np.mean(first)), "ci95_low": low, "ci95_high": high, "n": float(len(first)),
        "reflected": float(np.mean(_right(now, run))), "asked_again": float(np.mean([not x for x in held[0]])),
        "judged": float(np.mean([np.mean(side) for side in sides if side])),
    }  # fmt: skip


def _held_right(problems: Sequence[Problem], replies: Sequence[str], point: str, run: Run) -> list[bool | None]:
    """Whether the policy holds each reply to be right; None where its judgement cannot be read."""
    form = point_form(point)
    asked = [to_judge(p, Case((text,), (1.0,)), form) for p, text in zip(problems, replies, strict=True)]
    values = [form.read(t.reply).values for t in _said(asked, run)]
    return [None if v is None else v[0] > 0.5 for v in values]


def _said(problems: Sequence[Problem], run: Run) -> list[Trajectory]:
    """Greedy replies; an empty one where the prompt leaves no room for it."""
    if not problems:
        return []
    begun = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    fits = [i for i, t in enumerate(begun) if len(t) + run.max_new <= run.policy.context]
    said = dict(zip(fits, run.policy.extend([begun[i] for i in fits], Sampling(run.max_new, 0.0), run.rng("eval")), strict=True))
    return [said.get(i, t) for i, t in enumerate(begun)]


def _right(replies: Sequence[Trajectory], run: Run) -> list[bool]:
    scores = run.verify([[t] for t in replies], run)
    return [score.value is not None and score.value >= 1 for (score,) in scores]


def spark(
    base: Recipe | None = None, *, n: int = 8, pairs: float = 0.7, share: float = 0.5, beta: float = 1e-3, rounds: int = 2,
    point: str = POINT, pair: str = PAIR, reflect: str = REFLECT, whole: bool = False,
) -> Recipe:  # fmt: skip
    """n: replies to a problem, or to a task made from replies.  pairs: the chance of a pair where a group has right and wrong
    replies.  share: tasks of judging, and of reflection, as a share of the problems; 0: none.  beta: weight of the KL to the start.
    rounds: of judging and solving again at test.  point, pair, reflect: what is asked.  whole: whether a judge reads whole replies,
    and not their answers alone."""
    base = base or grpo(n=n, beta=beta)
    tasks = {"point": point, "pair": pair, "reflect": reflect, "pairs": pairs, "share": share, "whole": whole}
    return base.but(
        rollout=recycling(inner=base.required("rollout"), **tasks), reward=solved_or_judged(inner=base.reward or correct()),
        measure=self_reflection(point=point, reflect=reflect, rounds=rounds, whole=whole),
    )  # fmt: skip


fidelity = "core"
left_out = (
    "the second update of a step, on tasks that the policy samples after the first: here both are one update; many wordings of "
    "each question; questions with pictures"
)
data = Data(answer="the gold answer, by which replies are verified")

SMALL = {
    "point": "Verify.\n{prompt}\n{reply}", "reflect": "Refine.\n{prompt}\n{reply}\n{reply}\nConclusion: wrong", "pairs": 0.0,
    "whole": True,
}  # fmt: skip
check = Check(
    says="on as many rollouts, a policy whose rollouts are used again to train its judgement tells its right replies from its "
    "wrong ones better than one that only learns to solve",
    versus="grpo", task="drafts", measure="judged", direction="higher", margin=0.05, settings={**SMALL, "problems": 8},
    versus_settings={"problems": 16, "beta": 1e-3}, by=self_reflection(point=SMALL["point"], reflect=SMALL["reflect"], whole=True),
    problems=300, steps=40, guard=Within("pass@1", low=-0.05),
    finding="at first it is right in 40% and tells that in 98%; after learning to solve (82%, GRPO 84%) it tells it in 64% "
    "with judging tasks and in 71% without: what errors stay are those that it cannot see, and tasks made of its "
    "replies do not teach it to",
)  # fmt: skip
baseline = "grpo"
