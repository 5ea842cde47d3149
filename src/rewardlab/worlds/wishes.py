"""Notes with wishes to write, and a small judge of them, who is asked about one wish or about the whole note.

    We need corn. Wishes: polite, urgent, signed.      ->      we need corn please Ann

A careless writer fulfils each wish by chance. Rows have a checklist, an item a wish. With `judged`, they are the judge's prompts:
the request, a note and a question, "Is it polite?" or "Is it as wished?", answered by a score from 0 to 100; its teacher misreads
words, and adds up what it read to judge the whole.
"""

from __future__ import annotations

import random
from functools import partial

from rewardlab.core import Problem, Score, Task, Trajectory, ask
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.filled import filled

from .duels import WISHES, fulfilled, quality, request

ASK = "{prompt}\n{reply}\n{item}"
"""How the small judge is asked."""
WHOLE = "Is it as wished?"
BESIDES = 0.15
"""How often a careless writer says a word of each wish that nobody has."""


def wishes(
    *, wishes: PositiveInt = 3, care: Share = 0.7, error: Share = 0.1, judged: bool = False, test_size: PositiveInt = 500,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """wishes: of a note.  care: how often the writer fulfils one.  judged: the rows are a judge's prompts.  error: of its teacher,
    for each word that it looks for.  size: so many training problems, in epochs; None: endless."""
    count = min(wishes, len(WISHES))
    sample, key = partial(_judged if judged else _sample, count=count), ("wishes", count, judged)
    return Task(
        name="wishes",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="score_given" if judged else "all_fulfilled",
        max_new=4 if judged else 6 * count + 12,
        about="notes in which wishes are to be fulfilled",
        demonstrate=partial(_judge, error=error) if judged else partial(_demonstrate, care=care),
        columns=("prompt", "wishes", "checklist", "solution", *(("answer", "note", "item") if judged else ())),
        warmup_steps=1000 if judged else 600,
    )


def item_of(wish: str) -> str:
    return f"Is it {wish}?"


def _sample(rng: random.Random, *, count: int) -> Problem:
    return request(rng, count, lambda wish: {"item": item_of(wish), "weight": 100})


def _demonstrate(problem: Problem, rng: random.Random, *, care: float) -> str:
    wished = problem.meta["wishes"]
    words = [WISHES[w] for w in sorted(WISHES) if rng.random() < (care if w in wished else BESIDES)]
    texts = [problem.meta["solution"].partition(" " + WISHES[wished[0]])[0], *words]
    rng.shuffle(texts)
    return " ".join(texts)


def _judged(rng: random.Random, *, count: int) -> Problem:
    """A question about one wish, or about the note as a whole, as often."""
    problem = _sample(rng, count=count)
    note, wished = _demonstrate(problem, rng, care=0.5), problem.meta["wishes"]
    wish = rng.choice(wished) if rng.random() < 0.5 else ""
    item = item_of(wish) if wish else WHOLE
    gold = float(fulfilled(note, wish)) if wish else quality(note, wished)
    asked = filled(ASK, prompt=problem.question, reply=note, item=item)
    return ask(asked, _percent(gold), **{**problem.meta, "solution": _percent(gold)}, note=note, item=item)


def _judge(problem: Problem, rng: random.Random, *, error: float) -> str:
    note, wished = problem.meta["note"], problem.meta["wishes"]
    looked_at = wished if problem.meta["item"] == WHOLE else [w for w in wished if item_of(w) == problem.meta["item"]]
    seen = [fulfilled(note, wish) != (rng.random() < error) for wish in looked_at]
    return _percent(sum(seen) / len(seen))


def _percent(share: float) -> str:
    return str(round(100 * share))


@reward
def all_fulfilled(trajectory: Trajectory) -> Score:
    """1 where a note fulfils all wishes."""
    wished = trajectory.problem.meta.get("wishes")
    if not wished:
        return Score(None, why="the problem has no column 'wishes'")
    missed = [wish for wish in wished if not fulfilled(trajectory.reply, wish)]
    return Score(float(not missed), why=f"not {', '.join(missed)}" if missed else "all fulfilled")


@reward
def score_given(trajectory: Trajectory) -> float:
    """1 where a judge gives the score that is true."""
    return float(trajectory.reply.strip() == trajectory.problem.answer)
