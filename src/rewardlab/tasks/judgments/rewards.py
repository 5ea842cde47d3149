"""Whether a judgement is right, and the judgement of a learnt verifier as a reward."""

from __future__ import annotations

from rewardlab.core import Group, Run, Sampling, Score, Scores, Term, Trajectory
from rewardlab.core.domain import PositiveInt
from rewardlab.rewards.reward import reward
from rewardlab.text.judgments import JUDGMENTS, read_judgment

from .language import Case, to_judge


@reward
def judgment_right(trajectory: Trajectory) -> Score:
    """1 where the judgement A, B or C is the gold one."""
    gold = trajectory.problem.answer
    if gold not in JUDGMENTS:
        return Score(None, why=f"the gold judgement {gold!r} is not A, B or C")
    said = read_judgment(trajectory.reply)
    return Score(float(said == gold), why=f"said {said or 'nothing'}, it is {gold}")


@reward(over="groups")
def judged_right(groups: list[Group], run: Run, *, model: str = "verifier", max_new: PositiveInt = 32) -> Scores:
    """1 where the model `model` judges a reply right (A) against the gold answer, 0 where it judges it wrong (B) or no answer (C).

    It says the likeliest. Whether a reply was no answer is logged beside it. Without a gold answer there is no verdict, nor where
    reply and question do not fit the model's context, or it gives no judgement.
    """
    rollouts = [t for group in groups for t in group]
    verifier = run.model(model)
    cases = [to_judge(Case(t.problem.question, str(t.problem.answer), t.reply)) for t in rollouts]
    rows = verifier.read([Trajectory(p) for p in cases], [p.prompt for p in cases])
    fits = [t.problem.answer is not None and len(row) + max_new <= verifier.context for t, row in zip(rollouts, rows, strict=True)]
    asked = [row for row, ok in zip(rows, fits, strict=True) if ok]
    said = iter(verifier.extend(asked, Sampling(max_new, temperature=0.0), run.rng("judgments")) if asked else [])
    scores = iter([_score(next(said).reply if ok else None) for ok in fits])
    return [[next(scores) for _ in group] for group in groups]


def _score(text: str | None) -> Score:
    judgment = None if text is None else read_judgment(text)
    if judgment is None:
        return Score(None, why="not judged: no gold answer, or too long" if text is None else f"no judgement in {text[:80]!r}")
    terms = {"judged_right": Term(float(judgment == "A")), "judged_right.invalid": Term(float(judgment == "C"), weight=None)}
    return Score(terms=terms, why=f"judged {judgment}")
