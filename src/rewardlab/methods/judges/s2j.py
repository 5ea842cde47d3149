"""S2J: a judge solves the question itself before it judges, and one reward is paid for its own solution and for its verdict.

    y ~ pi(. | x, reply A, reply B) = own solution, then a verdict
    r(y) = 1[the verdict is right] + w 1[the own solution has the gold answer];     GRPO over n judgements of a pair
    gap  = P(the verdict is wrong | the judge solves the question)

Judges misjudge many replies to questions that they can solve (14 to 37% of them): what they know does not reach the verdict. Both
rewards fall on the same judgement, so that what is reinforced is a solution with the verdict that follows from it.

Sun, Yu, Wang, Yang, Gu & Yang 2025, arXiv:2509.22099, by its abstract and texts that quote it; no code was found. (inferred):
w = 1, verdicts paid 1 or 0, the marks of the solution, and that a question without a gold answer pays the verdict alone, unless
`by` scores its solution, as a reward model may (`model_score`); rows of which none has an answer are refused without it. The gap
counts as solved what the judge solves when it is asked the question alone (`alone`), or what it solves within its judgement.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Message, Problem, Recipe, Run, Sampling, Score, Scores, Trajectory, measure
from rewardlab.data.columns import Column, Data
from rewardlab.errors import RewardlabError
from rewardlab.evals.judgements import accuracy_of, judged
from rewardlab.judges.cases import TURNS
from rewardlab.judges.forms import TWO_REPLIES, Kind
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.trained_judge import trained_judge
from rewardlab.rewards.reward import Reward, reward
from rewardlab.settings.domain import PositiveInt
from rewardlab.verifiers.match import final_answer
from rewardlab.worlds.duels import FORM as SMALL_FORM

FORM = (
    """Two assistants reply to a question. Decide which reply is better.

Solve the question yourself first, step by step, and write your solution in <solution>...</solution>, its answer at the end. Then
hold both replies against it, and say what is right and what is wrong in each. Neither the order of the replies nor their length
counts. End with your verdict: [[A]] if reply A is better, [[B]] if reply B is.

"""
    + TWO_REPLIES
)
SOLUTION = r"(?s)<solution>(.*?)(?:</solution>|\Z)"
SMALL_SOLUTION = r"=(\d+) A [+-]"
"""How a judge of `worlds/duels.py` writes the result that it compares both replies with."""


def own_solution(judgement: str, pattern: str = SOLUTION) -> str | None:
    """The judge's own solution, the first group of the last match; None where it has none."""
    found = [match[1].strip() for match in re.finditer(pattern, judgement)]
    return found[-1] if found and found[-1] else None


def check_pattern(solution: str, **_: object) -> None:
    """Refuse a pattern that does not compile, or has no group."""
    try:
        groups = re.compile(solution).groups
    except re.error as problem:
        raise RewardlabError(f"the pattern of a solution, {solution!r}, is no regular expression: {problem}") from None
    if not groups:
        raise RewardlabError(f"the pattern of a solution, {solution!r}, has no group: put what is the solution in parentheses")


def verified(solution: str | None, answer: object) -> Score:
    """1 where a solution has the gold answer, else 0; 0 where there is no solution, or no gold answer."""
    if solution is None or answer is None:
        return Score(0.0, why="no solution in the judgement" if solution is None else "the question has no gold answer")
    verdict = final_answer().check(solution, answer)
    return Score(verdict.pays, why=verdict.why, extracted=verdict.extracted)


def check_answers(problems: Sequence[Problem], by: Reward | None = None, **_: object) -> None:
    """Refuse rows of which none has a gold answer, where nothing else pays a solution: the verdict alone would be paid."""
    if by is None and all(p.answer is None for p in problems):
        raise RewardlabError(
            f"s2j pays the judge's own solution by the gold answer of the question, and none of {len(problems)} rows has one: add "
            "a column 'answer' (--answer-column names another), name a reward that pays solutions (--by 'model:RUN'), or train "
            "trained_judge, which is paid for its verdicts alone (so is s2j with --weight 0)"
        )


@reward(over="groups", check=check_pattern, accepts=check_answers)
def own_solution_right(groups: list[Group], run: Run, *, solution: str = SOLUTION, by: Reward | None = None) -> Scores:
    """1 where a judgement's own solution of the question has the gold answer, else 0.

    solution: a regular expression whose first group it is.  by: what pays the solution of a question that has no gold answer, as a
    reply to it; without it, all judgements of such a question are paid 0 alike. Logged: solved.
    """
    rows = [t for group in groups for t in group]
    said = [own_solution(t.reply, solution) for t in rows]
    scores = [verified(text, t.problem.answer) for t, text in zip(rows, said, strict=True)]
    known = [s.value for t, s in zip(rows, scores, strict=True) if t.problem.answer is not None and s.value is not None]
    if known:
        run.log("solved", float(np.mean(known)))
    ungraded = [i for i, t in enumerate(rows) if t.problem.answer is None and said[i]]
    if by is not None and ungraded:
        asked = [question_of(rows[i].problem) for i in ungraded]
        begun = run.policy.read([Trajectory(p) for p in asked], [p.prompt for p in asked])
        written = run.policy.write(begun, [str(said[i]) for i in ungraded])
        for i, (score,) in zip(ungraded, by([[t] for t in written], run), strict=True):
            scores[i] = score
    found = iter(scores)
    return [[next(found) for _ in group] for group in groups]


def question_of(problem: Problem) -> Problem:
    """The question whose replies a problem asks to judge, with all turns of its conversation."""
    turns = problem.meta.get(TURNS) or [["user", str(problem.meta.get("question") or problem.question)]]
    return replace(problem, prompt=tuple(Message(role, text) for role, text in turns))


# ---- the gap between solving and judging -----------------------------------------------------------------------------


@measure
def solve_to_judge(
    problems: Sequence[Problem], run: Run, *, form: str = FORM, kind: Kind = "pairwise", k: PositiveInt = 1,
    solution: str = SOLUTION, alone: bool = True,
) -> dict[str, float]:  # fmt: skip
    """As `judgement_accuracy`, and of rows with a gold answer:

    solved: the share of judgements whose question the judge solves.  gap: of these, the share with a wrong verdict.
    solved_misjudged: solved and with a wrong verdict, as a share of all.  alone: solved means that the policy's own reply to the
    question has the gold answer; else that the solution within the judgement has it. Where no row has one, none of this is known,
    and it is left out.
    """
    found = judged(problems, run, form_of(form, kind), k)
    known = [i for i, p in enumerate(problems) if p.answer is not None]
    able = _solves([problems[i] for i in known], run) if alone else []
    by_row = dict(zip(known, able, strict=True)) if alone else {}
    misjudged, counted = [], 0
    for a, texts, right in zip(found.asked, found.texts, found.right, strict=True):
        if (answer := problems[a.row].answer) is None:
            continue
        counted += len(texts)
        solves = [by_row[a.row] if alone else verified(own_solution(x, solution), answer).value == 1 for x in texts]
        misjudged += [not ok for ok, solved in zip(right, solves, strict=True) if solved]
    if not counted:
        return accuracy_of(found)
    return accuracy_of(found) | {
        "solved": len(misjudged) / counted, "gap": float(np.mean(misjudged)) if misjudged else 0.0,
        "solved_misjudged": sum(misjudged) / counted,
    }  # fmt: skip


def _solves(problems: Sequence[Problem], run: Run) -> list[bool]:
    """Whether the policy's reply to each question has its gold answer."""
    begun = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    said = run.policy.extend(begun, Sampling(run.max_new), run.rng("eval")) if begun else []
    return [verified(t.reply, t.problem.answer).value == 1 for t in said]


def s2j(
    base: Recipe | None = None, *, form: str = FORM, kind: Kind = "pairwise", solution: str = SOLUTION, weight: float = 1.0,
    by: Reward | None = None, alone: bool = True, n: int = 8, problems: int = 16, lr: float | None = None,
) -> Recipe:  # fmt: skip
    """form, kind: what the judge is asked (`trained_judge`); it must ask for a solution first.  solution: a regular expression
    whose first group is the own solution.  weight: of its reward beside the verdict's; 0: the verdict alone is paid.  by: what pays
    solutions of questions without a gold answer.  alone: whether the gap counts what is solved when the question is asked alone."""
    base = base or grpo(n=n)
    base = trained_judge(base, form=form, kind=kind, n=n, problems=problems, wrong=0.0, lr=lr)
    paid = base.required("reward")
    return base.but(
        reward=paid + weight * own_solution_right(solution=solution, by=by) if weight else paid,
        measure=solve_to_judge(form=form, kind=kind, solution=solution, alone=alone),
    )


fidelity = "reading"
left_out = (
    "how the paper scores solutions of questions without a gold answer: `by` names a reward for them, and by default there is none"
)
data = Data(
    chosen="the better reply", rejected="the worse reply",
    answer=Column("the gold answer of the question, by which the judge's own solution is paid", optional=True),
    rows=[
        {
            "prompt": "Ann has 3 apples and buys 2 bags of 4. How many has she?", "answer": "11",
            "chosen": "2 bags are 8 apples, with 3 that is 11.", "rejected": "3 + 2 + 4 = 9.",
        },
        {"prompt": "What is half of 46?", "answer": "23", "chosen": "23.", "rejected": "Half of 46 is 28."},
    ],
)  # fmt: skip

OF_SUMS = {"form": SMALL_FORM, "solution": SMALL_SOLUTION, "alone": False}
check = Check(
    says="paid for its own solution too, a judge misjudges fewer of the sums that it solves within its judgement than one that is "
    "paid for its verdict alone",
    versus="s2j", task="duels:kinds=sums", measure="gap", direction="lower", margin=0.03, settings=OF_SUMS,
    versus_settings={**OF_SUMS, "weight": 0.0}, problems=300, steps=60,
    tried="two development seeds: gaps of .25 and .21, and of .21 and .20 paid for verdicts alone",
    finding="paid for its solution too, it works out 84% of the sums within its judgement, and 76% else (74% at the start), "
    "but its verdicts are right as often, 70% in both: what was left to gain is in comparing, not in calculating",
)  # fmt: skip
baseline = "trained_judge"
