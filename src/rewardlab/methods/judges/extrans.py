r"""ExTrans: a judge says whether a translation is worse than an exemplar by a stronger model, on a par with it, or better.

    y = <think> thought </think> t;      verdict of the judge on (x, t, exemplar of x)
    r(y) = 0 without this form;      r(y) = {1 worse, 2 par, 3 better} + alpha * quality of the thought;      GRPO

Literary translations have no right answer, and a judge that scores one alone hardly tells good ones apart. Two texts side by side
it compares well, and a text of known, high standard, the same for the whole group, makes the verdict mean the same for each reply.
Since `better` pays more than `par`, the exemplar is no ceiling, as it is where it is imitated.

Wang, Meng & Zhou 2025, arXiv:2505.12996, by its abstract and the page of krystalan/DRT, which has models and data and no training
code; that a wrong form is paid 0 whatever else is in it, and a thought's quality is added, is the rule of their DeepTrans,
arXiv:2504.10187. A summary of the paper tells of grades from 1 to 5, and of CometKiwi beside them, without which it is worse; add
it as a reward of yours (`+`). (inferred): the three grades; that the judge is asked in both orders, and two verdicts that disagree
are a par; the wording of its prompts; the scale of a thought, from 0 to 1. In place of a judge, `by` may be any reward, which
grades both texts; `alone` grades a translation without the exemplar, the rival of the idea.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from rewardlab.checks.claim import Check
from rewardlab.core import Group, Learner, Problem, Recipe, Run, Sampling, Score, Scores, Trajectory, measure
from rewardlab.data.columns import Column, Data
from rewardlab.evals.passk import mean_interval
from rewardlab.judges.forms import Reading
from rewardlab.judges.named import form_of
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.rewards.critiques import answers
from rewardlab.rewards.reward import Reward, reward
from rewardlab.settings.domain import NonNegativeFloat, PositiveInt
from rewardlab.worlds.tongues import right_words, rough_quality

JUDGE = "judge"
COMPARE = (
    "Compare two translations of the same text. Look at what is said, at its tone and figures of speech, and at how natural it "
    "reads in the target language. The order in which the translations stand says nothing.\n\n"
    "[Task]\n{prompt}\n\n[Translation A]\n{first}\n\n[Translation B]\n{second}\n\n[End of the translations]\n"
    "First name the differences that matter. Then end with [[A]] or [[B]] for the better one, or [[C]] if they are on a par."
)
THOUGHT = (
    "Judge the thought of a translator before translating.\n\n[Task]\n{prompt}\n\n[Thought]\n{reply}\n\n[End of the thought]\n"
    "How well does it analyse the text and weigh ways to render it, from 1 (not at all) to 5 (very well)? Say only its score, in "
    "the form [[score]]."
)
START, END = "<think>", "</think>"


def parts(reply: str, thinks: bool = True) -> tuple[str, str] | None:
    """Thought and translation of a reply; None for one without the form: one thought in tags, and then a translation.

    A chat template may have opened the thought in the prompt; then the reply begins within it.
    """
    if not thinks:
        return ("", reply.strip()) if reply.strip() else None
    text = reply.strip().removeprefix(START)
    if START in text or text.count(END) != 1:
        return None
    thought, _, translation = (part.strip() for part in text.partition(END))
    return (thought, translation) if thought and translation else None


# ---- comparisons with the exemplar -----------------------------------------------------------------------------------------


class Comparing(NamedTuple):
    """Who compares: a reward `by`, or a model of the run as a judge, asked `judgements` times about two texts."""

    by: Reward | None = None
    model: str = JUDGE
    form: str = COMPARE
    judgements: int = 2
    within: float = 0.0
    sampling: Sampling = Sampling(512)

    def verdicts(self, texts: Sequence[tuple[Problem, str]], exemplars: Sequence[str], run: Run) -> list[int | None]:
        """-1 for a text that is worse than its exemplar, 0 for one on a par with it, 1 for a better one; None: not known."""
        same = [text == exemplar for (_, text), exemplar in zip(texts, exemplars, strict=True)]
        asked = [(*pair, e) for pair, e, known in zip(texts, exemplars, same, strict=True) if not known]
        found = iter(self._by_reward(asked, run) if self.by is not None else self._by_judge(asked, run))
        gaps = [0.0 if known else next(found) for known in same]
        return [None if gap is None else 0 if abs(gap) <= self.within else 1 if gap > 0 else -1 for gap in gaps]

    def _by_reward(self, asked: Sequence[tuple[Problem, str, str]], run: Run) -> list[float | None]:
        assert self.by is not None
        begun = [row for p, *_ in asked for row in run.policy.read([Trajectory(p)] * 2, [p.prompt] * 2)]
        written = run.policy.write(begun, [text for _, *both in asked for text in both]) if begun else []
        scores = [[s.total for s in row] for row in self.by([written[i : i + 2] for i in range(0, len(written), 2)], run)]
        return [None if a is None or b is None else a - b for a, b in scores]

    def _by_judge(self, asked: Sequence[tuple[Problem, str, str]], run: Run) -> list[float | None]:
        """The mean over verdicts in alternate orders; where two orders contradict each other it is 0."""
        form = form_of(self.form)
        orders = [k % 2 == 0 for k in range(self.judgements)]
        questions = [form.asked(p, both if first else both[::-1]) for p, *both in asked for first in orders]
        said, _ = answers(run, self.model, questions, 1, self.sampling)
        gaps: list[float | None] = []
        for i in range(len(asked)):
            rows = zip(said[i * len(orders) : (i + 1) * len(orders)], orders, strict=True)
            read = [(form.read(text, 2).values, first) for texts, first in rows for text in texts]
            known = [(v[0] - v[1]) * (1 if first else -1) for v, first in read if v is not None]
            gaps.append(sum(known) / len(known) if known else None)
        return gaps


def _exemplar(problem: Problem) -> str:
    problem.required("exemplar", by="extrans")
    return str(problem.meta["exemplar"]).strip()


def _judged(rows: Sequence[Trajectory], thinks: bool, comparing: Comparing, run: Run) -> list[int | Literal["no form"] | None]:
    found = [parts(t.reply, thinks) for t in rows]
    known = [((t.problem, both[1]), _exemplar(t.problem)) for t, both in zip(rows, found, strict=True) if both]
    verdicts = iter(comparing.verdicts([pair for pair, _ in known], [e for _, e in known], run))
    return [next(verdicts) if both else "no form" for both in found]


@reward(over="groups")
def against_exemplar(
    groups: list[Group], run: Run, *, worse: NonNegativeFloat = 1.0, par: NonNegativeFloat = 2.0, better: NonNegativeFloat = 3.0,
    thinks: bool = True, by: Reward | None = None, model: str = JUDGE, form: str = COMPARE, judgements: PositiveInt = 2,
    within: NonNegativeFloat = 0.0, max_new: PositiveInt = 512,
) -> Scores:  # fmt: skip
    """`worse`, `par` or `better` by a comparison with the column `exemplar`; 0 for a reply without the form.

    thinks: whether the form has a thought in tags before the translation.  by: a reward that grades both texts; None: the judge
    `model`, a model of the run, asked `judgements` times in alternate orders.  form: how.  within: differences up to this are a
    par. The exemplar's own text is a par. No verdict where no judgement can be read.  Logged: better, the share of judged replies.
    """
    comparing = Comparing(by, model, form, judgements, within, Sampling(max_new))
    flat = _judged([t for group in groups for t in group], thinks, comparing, run)
    if known := [v for v in flat if isinstance(v, int)]:
        run.log("better", sum(v == 1 for v in known) / len(known))
    paid = {-1: Score(worse, why="worse"), 0: Score(par, why="on a par"), 1: Score(better, why="better")}
    other = {"no form": Score(0.0, why="not of the form"), None: Score(None, why="no judgement could be read")}
    scores = iter([paid[v] if isinstance(v, int) else other[v] for v in flat])
    return [[next(scores) for _ in group] for group in groups]


@reward(over="groups")
def thought_quality(
    groups: list[Group], run: Run, *, model: str = JUDGE, form: str = THOUGHT, max_new: PositiveInt = 512
) -> Scores:
    """The judge's score of the thought, from 0 to 1; 0 for a reply without the form, and no verdict where no score can be read."""
    scale, flat = form_of(form, "scale"), [t for group in groups for t in group]
    found = [parts(t.reply) for t in flat]
    asked = [scale.asked(t.problem, [both[0]]) for t, both in zip(flat, found, strict=True) if both]
    said = iter(answers(run, model, asked, 1, Sampling(max_new))[0])
    scores = iter([_scored(scale.read("".join(next(said)))) if both else Score(0.0, why="not of the form") for both in found])
    return [[next(scores) for _ in group] for group in groups]


def _scored(reading: Reading) -> Score:
    return Score(None if reading.values is None else reading.values[0], why=reading.said)


@measure
def beyond_exemplars(
    problems: Sequence[Problem], run: Run, *, thinks: bool = True, by: Reward | None = None, model: str = JUDGE,
    form: str = COMPARE, judgements: PositiveInt = 2, within: NonNegativeFloat = 0.0, max_new: PositiveInt = 512,
) -> dict[str, float]:  # fmt: skip
    """worse, par, better: shares of held-out translations with that verdict, all as in `against_exemplar`; formless: of those
    without the form.  lead: better less worse, with its 95% interval; without the form is worse.  judge_no_verdict: the share
    that the judge said nothing of that can be read, which is left out of all others."""
    begun = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    done = run.policy.extend(begun, Sampling(run.max_new), run.rng("eval"))
    every = _judged(done, thinks, Comparing(by, model, form, judgements, within, Sampling(max_new)), run)
    flat = [v for v in every if v is not None]
    values, count = [-1.0 if v == "no form" else float(v) for v in flat], max(1, len(flat))
    low, high = mean_interval(values) if values else (-1.0, 1.0)
    shares = {name: sum(v == value for v in flat) / count for name, value in (("worse", -1), ("par", 0), ("better", 1))}
    return {
        "lead": sum(values) / count, "ci95_low": low, "ci95_high": high, "n": float(len(flat)), **shares,
        "formless": sum(v == "no form" for v in flat) / count, "judge_no_verdict": 1 - len(flat) / len(every),
    }  # fmt: skip


# ---- the recipe ------------------------------------------------------------------------------------------------------------


def extrans(
    base: Recipe | None = None, *, judge: str = "copy:policy", by: Reward | None = None, form: str = COMPARE, judgements: int = 2,
    within: float = 0.0, worse: float = 1.0, par: float = 2.0, better: float = 3.0, thinks: bool = True, alpha: float = 0.0,
    alone: Reward | None = None, n: int = 8, max_judgement: int = 512,
) -> Recipe:  # fmt: skip
    """judge: who compares, openai:URL#NAME or a model (`Learner.init`).  by: a reward in its place.  form: what it is asked.
    judgements: of a comparison.  within: differences in `by` that are a par.  worse, par, better: what a verdict is paid.  thinks:
    whether a thought in tags is demanded.  alpha: weight of the judge's score of the thought.  alone: a reward of
    a translation without the exemplar, in place of comparisons.  n: replies to a prompt.  max_judgement: tokens of a judgement."""
    base = base or grpo(n=n)
    asked: dict[str, Any] = {
        "thinks": thinks, "by": by, "form": form, "judgements": judgements, "within": within, "max_new": max_judgement,
    }  # fmt: skip
    paid = alone or against_exemplar(worse=worse, par=par, better=better, **asked)
    if alpha:
        paid = paid + alpha * thought_quality(max_new=max_judgement)
    needed = by is None or alpha > 0
    return base.but(
        reward=paid,
        measure=beyond_exemplars(**asked),
        also=(*base.also, Learner(JUDGE, judge, Recipe(), every=0)) if needed else base.also,
    )


fidelity = "reading"
left_out = (
    "the start by imitation of a strong model's thoughts and translations; the score of CometKiwi, which is added; the second "
    "stage over 90 directions, with a lighter reward for form and language, without a judge; and the judge's check that a "
    "translation has no explanations in it: the form is checked by its tags"
)
data = Data(
    exemplar=Column("a translation by a strong model, to compare with"),
    rows=[
        {
            "prompt": "Translate into German, after a thought between <think> and </think>: The fog crept in on little cat feet.",
            "exemplar": "Der Nebel schlich auf kleinen Katzenpfoten heran.",
        },
        {
            "prompt": "Translate into French, after a thought between <think> and </think>: Hope is a thing with feathers.",
            "exemplar": "L'espoir est une chose avec des plumes.",
        },
    ],
)  # fmt: skip

check = Check(
    says="verdicts against exemplars that have errors teach a policy more than an equally rough judge's scores of each translation "
    "alone: it is more often better than the exemplar",
    versus="extrans", task="tongues", measure="lead", direction="higher", margin=0.05,
    settings={"by": rough_quality(), "thinks": False, "within": 0.1},
    versus_settings={"by": rough_quality(), "thinks": False, "within": 0.1, "alone": rough_quality()},
    by=beyond_exemplars(by=right_words(), thinks=False), problems=300, steps=40, learns=None,
    finding="verdicts beside exemplars with errors teach as much as a rough judge's scores alone: better than the exemplar in "
    "44% with both, worse in 17% (18% and 54% at first)",
)  # fmt: skip
baseline = "grpo"
