"""Ways over a grid with traps, and pairs of next actions, of which one leaves a shorter path.

    Goal: 4 east 3 south. Traps: east.
    A: go east                         B: go south
    A near trap B near [[B]]

An action is near where it shortens the way, and far where it lengthens it; from a trap no way leads on. The question says on which
sides the goal lies: with two places in coordinates a small judge stays at chance, since it would have to compare numbers that
stand apart. A judge writes what it finds of each action, and a verdict. A biased one goes by the distance, and often does not look
for traps: its preferences are then wrong in the same way each time. As pairs, the rows have a question, `chosen` and `rejected`,
and the judgement of a teacher who is biased too; with `judged`, they are a judge's prompts, as the small policy is taught to answer
them.
"""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial

from rewardlab.core import Problem, Task, ask, seed_of
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.pairs import Annotator, Paired, Reply, all_paired
from rewardlab.tasks.sources import changed, test_set, training
from rewardlab.worlds.duels import FORM

MOVES = ("east", "west", "north", "south")
SIDE = 9
"""More than the steps that the goal lies away on a side."""
WORTH = {"near": 1.0, "far": 0.5, "trap": 0.0}
"""The order of actions by the shortest path that is left after them; from a trap there is none."""
TRAPPED = {"near": 0.6, "far": 0.15}
"""How often an action leads into a trap: the direct way does more often."""
COLUMNS = ("prompt", "goal", "traps", "chosen", "rejected", "qualities")


def crossings(
    *, looks: Share = 0.6, taught_looks: Share = 0.8, error: Share = 0.05, judged: bool = False, test_size: PositiveInt = 500,
    size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """Pairs of actions on grids, of which one is better.

    looks: the chance that the judge whom the small policy imitates sees that an action leads into a trap.  taught_looks: the same
    of the teacher whose judgements the rows have.  error: the chance that either mistakes near and far.  judged: the rows are a
    judge's prompts.  size: so many training problems, in epochs; None: endless.
    """
    key = ("crossings",)
    test = all_paired(test_set(_sample, key, test_size), partial(_pair, annotator=Annotator()))
    pairs = Paired(training(_sample, key, size), partial(_pair, annotator=Annotator()))
    judges = partial(_demonstrate, error=error)
    taught = Paired(pairs, partial(_judged, looks=taught_looks, error=error))
    return Task(
        name="crossings",
        train=Paired(pairs, _shown) if judged else taught,
        test=changed(test, _asked) if judged else test,
        verifier="judged_rightly",
        max_new=16,
        about="two actions on a grid with traps, of which one is better",
        demonstrate=partial(judges, looks=looks) if judged else None,
        columns=(*COLUMNS, *(("shown", "worth") if judged else ("judgement", "judgement_reversed"))),
        warmup_steps=800,
        # chance is 1/2
        window=(0.5, 0.8),
        warmed_as=None if judged else f"crossings:judged=true,looks={looks},error={error}",
    )


def _sample(rng: random.Random) -> Problem:
    goal: dict[str, int] = {}
    while not goal:
        sides = rng.choice(("east", "west")), rng.choice(("north", "south"))
        goal = {side: steps for side in sides if (steps := rng.randrange(SIDE))}
    place = ask("", None, goal=goal)
    traps = [move for move in MOVES if rng.random() < TRAPPED[_distance(place, move)]]
    if len(traps) == len(MOVES):
        # no action would be better than another
        traps.pop(rng.randrange(len(traps)))
    way = " ".join(f"{steps} {side}" for side, steps in goal.items())
    return ask(f"Goal: {way}. Traps: {' '.join(traps) or 'none'}.", None, goal=goal, traps=traps)


def kind_of(problem: Problem, action: str) -> str:
    """What an action is: near, far or trap."""
    move = action.removeprefix("go ")
    return "trap" if move in problem.meta["traps"] else _distance(problem, move)


def _distance(problem: Problem, move: str) -> str:
    return "near" if move in problem.meta["goal"] else "far"


def _pair(problem: Problem, rng: random.Random, *, annotator: Annotator) -> Problem:
    """Two actions of different worth."""
    actions = [Reply(f"go {move}", WORTH[kind_of(problem, move)]) for move in MOVES]
    a = rng.choice(actions)
    others = [action for action in actions if action.quality != a.quality]
    return annotator.label(problem, a, rng.choice(others), rng)


# ---- judgements --------------------------------------------------------------------------------------------------------


def _shown(problem: Problem, rng: random.Random) -> Problem:
    """The judge's prompt, with the better action first half of the time."""
    first = rng.random() < 0.5
    shown = [problem.meta["chosen"], problem.meta["rejected"]][:: 1 if first else -1]
    text = FORM.format(prompt=problem.question, first=shown[0], second=shown[1])
    return replace(problem.reworded(text), meta={**problem.meta, "shown": shown, "worth": [float(first), float(not first)]})


def _asked(problem: Problem) -> Problem:
    return _shown(problem, random.Random(seed_of("crossings", problem.key)))


def _judged(problem: Problem, _: random.Random, *, looks: float, error: float) -> Problem:
    # a stream of its own: that of the pair would tie the teacher's slips to the actions
    rng = random.Random(seed_of("crossings", "teacher", problem.key))
    pair = [problem.meta["chosen"], problem.meta["rejected"]]
    column, shown = rng.choice([("judgement", pair), ("judgement_reversed", pair[::-1])])
    asked = replace(problem, meta={**problem.meta, "shown": shown})
    return replace(problem, meta={**problem.meta, column: _demonstrate(asked, rng, looks=looks, error=error)})


def _demonstrate(problem: Problem, rng: random.Random, *, looks: float, error: float) -> str:
    """A biased judge's judgement. Of two actions that it finds alike it prefers either."""
    said, values = [], []
    for letter, action in zip("AB", problem.meta["shown"], strict=True):
        move = action.removeprefix("go ")
        found = _distance(problem, move)
        if rng.random() < error:
            found = "far" if found == "near" else "near"
        trap = move in problem.meta["traps"] and rng.random() < looks
        said.append(f"{letter} {found}{' trap' if trap else ''}")
        values.append(WORTH["trap" if trap else found])
    verdict = rng.choice("AB") if values[0] == values[1] else "AB"[values[1] > values[0]]
    return f"{' '.join(said)} [[{verdict}]]"
