"""Notes to people who each wish for something that the request does not say, and rubrics that someone made of a pair.

    We need corn. To: Bo.        better: we need corn please Ann        worse: today we need corn !
    rubric: polite signed        judgement: polite + - signed + - [[A]]

What each addressee wishes is the same in all rows, so that it can be learnt from rubrics. A careless critic who contrasts the two
replies names some of the words by which they differ; some of these speak for the worse one, or are wished by nobody. So rubrics of
one pair are noisy, and those by which the better reply loses are wrong. With `judged`, rows are prompts of a small model that
writes rubrics, knowing nothing of the addressees, and that judges by a rubric.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from rewardlab.core import Problem, Score, Task, Trajectory, ask, seed_of
from rewardlab.judges.forms import own_form
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Annotator, Paired, Reply, all_paired
from rewardlab.tasks.sources import changed, test_set, training
from rewardlab.text.filled import filled

from .duels import NEEDS, WISHES, fulfilled, quality

WRITE = "{prompt}\nRubric:"
JUDGE = "{prompt}\nA: {first}\nB: {second}\nRubric: {rubric}"
"""How the small model is asked for a rubric, and for a judgement by one."""
TO: Mapping[str, tuple[str, ...]] = {
    "Bo": ("polite", "signed", "exact"), "Cy": ("urgent", "loud", "exact"), "Di": ("warm", "grateful", "polite"),
    "Ed": ("curious", "urgent", "signed"), "Fay": ("loud", "warm", "curious"), "Gil": ("grateful", "exact", "urgent"),
}  # fmt: skip


def occasions(
    *, rubrics: PositiveInt = 4, misled: Share = 0.35, flip: Share = 0.0, judged: bool = False, test_size: PositiveInt = 500,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """rubrics: of each training pair, with a judgement by each.  misled: how often the critic names a word that speaks for the
    worse reply.  flip: share of training labels that are turned round.  judged: the rows are a small model's prompts.  size: so
    many training problems, in epochs; None: endless."""
    pair, key = partial(_pair, misled=misled, rubrics=rubrics), ("occasions",)
    train = Paired(training(_sample, key, size), partial(pair, annotator=Annotator(flip)))
    test = all_paired(test_set(_sample, key, test_size), partial(pair, annotator=Annotator()))
    return Task(
        name="occasions",
        train=Paired(train, _asked) if judged else train,
        test=changed(test, _held_out) if judged else test,
        verifier="by_rubric" if judged else "judged_rightly",
        max_new=40,
        about="pairs of notes whose addressees wish for what the request does not say",
        demonstrate=_demonstrate if judged else None,
        columns=("prompt", "chosen", "rejected", "qualities", "rubrics", *(("rubric", "shown", "worth") if judged else ())),
        warmup_steps=800,
        warmed_as=None if judged else "occasions:judged=true",
    )


def _sample(rng: random.Random) -> Problem:
    return ask(f"We need {rng.choice(NEEDS)} at {rng.randint(1, 30)}. To: {rng.choice(sorted(TO))}.", None)


def wished(problem: Problem) -> list[str]:
    """What the addressee wishes."""
    return list(TO[problem.question.partition("To: ")[2].partition(".")[0]])


def _note(problem: Problem, rng: random.Random) -> Reply:
    words = [WISHES[w] for w in sorted(WISHES) if rng.random() < 0.4]
    texts = [f"we need {problem.question.removeprefix('We need ').partition(' ')[0]}", *words]
    rng.shuffle(texts)
    text = " ".join(texts)
    return Reply(text, quality(text, wished(problem)))


def _pair(problem: Problem, rng: random.Random, *, annotator: Annotator, misled: float, rubrics: int) -> Problem:
    a = _note(problem, rng)
    while (b := _note(problem, rng)).quality == a.quality:
        pass
    found = annotator.label(problem, a, b, rng)
    better, worse = found.meta["chosen"], found.meta["rejected"]
    return replace(found, meta={**found.meta, "rubrics": [_rubric(better, worse, rng, misled) for _ in range(rubrics)]})


def _rubric(better: str, worse: str, rng: random.Random, misled: float) -> dict[str, object]:
    """Words by which two replies differ, as a careless critic names them, and a judgement by them."""
    differ = [w for w in sorted(WISHES) if fulfilled(better, w) != fulfilled(worse, w)]
    named = [w for w in differ if rng.random() < (0.6 if fulfilled(better, w) else misled)] or [rng.choice(sorted(WISHES))]
    rng.shuffle(named)
    swapped = rng.random() < 0.5
    first, second = (worse, better) if swapped else (better, worse)
    return {"rubric": " ".join(named), "judgement": judgement(named, first, second, rng), "swapped": swapped}


def judgement(rubric: list[str], first: str, second: str, rng: random.Random) -> str:
    """A sign for each reply by each word of a rubric, and a verdict; either of two that come out alike."""
    signs = [(w, fulfilled(first, w), fulfilled(second, w)) for w in rubric]
    a, b = sum(x for _, x, _ in signs), sum(y for *_, y in signs)
    mark = rng.choice("AB") if a == b else "A" if a > b else "B"
    return " ".join([*(f"{w} {'+' if x else '-'} {'+' if y else '-'}" for w, x, y in signs), f"[[{mark}]]"])


# ---- a small model that writes rubrics at random, and judges by those that it is given ------------------------------------


def _asked(problem: Problem, rng: random.Random) -> Problem:
    """One half asks for a rubric, the other for a judgement by a random one."""
    if rng.random() < 0.5:
        asked = filled(WRITE, prompt=problem.question)
        return replace(problem.reworded(asked), meta={**problem.meta, "rubric": "", "shown": [], "worth": []})
    swapped, rubric = rng.random() < 0.5, rng.sample(sorted(WISHES), rng.randint(1, 4))
    shown = [problem.meta[side] for side in (("rejected", "chosen") if swapped else ("chosen", "rejected"))]
    asked = filled(JUDGE, prompt=problem.question, first=shown[0], second=shown[1], rubric=" ".join(rubric))
    worth = [float(not swapped), float(swapped)]
    return replace(problem.reworded(asked), meta={**problem.meta, "rubric": " ".join(rubric), "shown": shown, "worth": worth})


def _held_out(problem: Problem) -> Problem:
    return _asked(problem, random.Random(seed_of("occasions", problem.key)))


def _demonstrate(problem: Problem, rng: random.Random) -> str:
    rubric = problem.meta["rubric"]
    if not rubric:
        return " ".join(rng.sample(sorted(WISHES), rng.randint(2, 4)))
    first, second = problem.meta["shown"]
    return judgement(rubric.split(), first, second, rng)


@reward
def by_rubric(trajectory: Trajectory) -> Score:
    """1 where a judgement prefers the reply that has more of its rubric's words, or either of two that have as many; and where a
    rubric consists of such words."""
    meta, said = trajectory.problem.meta, trajectory.reply
    if "rubric" not in meta:
        return Score(None, why="the problem has no column 'rubric'")
    if not meta["rubric"]:
        return Score(float(bool(said.split()) and set(said.split()) <= WISHES.keys()))
    a, b = (sum(fulfilled(text, wish) for wish in meta["rubric"].split()) for text in meta["shown"])
    values = own_form("pairwise").read(said, 2).values
    return Score(float(values is not None and (a == b or (values[0] > values[1]) == (a > b))))
