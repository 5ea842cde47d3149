"""GUI navigation: screens with labelled boxes to be clicked in sequence; a reply names a box, and clicks. A reply names a box, and
clicks.

    Press save, then close.
    open 0 0 3 2
    save 5 1 8 3                  save 5 1 8 3
                                  click 6 2
    close 1 4 2 8                 close 1 4 2 8
    save 3 3 9 9                  click 1 5

A box is given by its corners: left, top, right, bottom. Of each screen there is a column of what it shows, `screens`, and of the
box that is meant, `targets`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from functools import partial
from typing import Any

from rewardlab.core import Message, Problem, Score, Task, Trajectory, Turn, ask, environment
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.settings.domain import PositiveInt, Share
from rewardlab.tasks.sources import test_set, training
from rewardlab.text.answers import after_thinking

# ---- Where a reply clicks, and which box it names, in the notations of GUI agents ------------------------------------
#
# click 6 2                    click(x=6, y=2)         pyautogui.click(6, 2)        click(start_box='(6,2)')
# {"action": "click", "coordinate": [6, 2]}            [{'action': 'click', 'point': [6, 2]}]
# {"name": "computer_use", "arguments": {"action": "left_click", "coordinate": [6, 2]}}

_NUMBER, _ = r"(\d{1,5})(?:\.\d{1,6})?", r"[^\S\n]*"
_CALLED = (
    rf"^{_}[`*>-]{{0,3}}{_}(?:action:?{_})?(?:pyautogui\.)?(?:left_)?click{_}[( ]{_}(?:[a-z_]{{1,12}}{_}={_})?"
    rf"['\"]?(?:<\|box_start\|>|<point>)?[(\[]?{_}{_NUMBER}{_}[, ]{_}(?:y{_}={_})?{_NUMBER}(?!\d|{_}[, ]{_}\d)"
)
_CLICK = r"['\"]action(?:_type)?['\"]\s{0,3}:\s{0,3}['\"](?:left_)?click['\"]"
_POINT = (
    rf"['\"](?:coordinates?|point|position)['\"]\s{{0,3}}:\s{{0,3}}\[\s{{0,9}}{_NUMBER}\s{{0,9}},\s{{0,9}}{_NUMBER}\s{{0,9}}\]"
    rf"|['\"]x['\"]\s{{0,3}}:\s{{0,3}}{_NUMBER}\s{{0,9}},\s{{0,9}}['\"]y['\"]\s{{0,3}}:\s{{0,3}}{_NUMBER}"
)
FORM = rf"(?im){_CALLED}|{_CLICK}[^{{}}]{{0,200}}?(?:{_POINT})|(?:{_POINT})[^{{}}]{{0,200}}?{_CLICK}"
"""A regular expression of a click in any of these notations."""
_FORM = re.compile(FORM)
_BOX = re.compile(r"(\d{1,5})\W{1,4}(\d{1,5})\W{1,4}(\d{1,5})\W{1,4}(\d{1,5})(?!\w)")


def last_click(reply: str) -> tuple[int, int, int] | None:
    """(x, y, position in the visible text) of the last click of a reply, behind its thinking; None without one."""
    found = list(_FORM.finditer(after_thinking(reply)))
    if not found:
        return None
    x, y = (int(number) for number in found[-1].groups() if number is not None)
    return x, y, found[-1].start()


def last_box(reply: str, labels: Iterable[str]) -> tuple[str, list[int]] | None:
    """(label, box) of the last line before the click of a reply that names a label and four numbers; None without one."""
    clicked = last_click(reply)
    text = after_thinking(reply)
    thought = reply[: len(reply) - len(text)]
    before = thought + (text[: clicked[2]] if clicked else text)
    names = "|".join(sorted(map(re.escape, labels), key=len, reverse=True))
    found = None
    for line in before.splitlines():
        named, box = re.findall(rf"(?<!\w)(?:{names})(?!\w)", line, re.IGNORECASE), _BOX.search(line)
        if named and box:
            found = named[-1].lower(), [int(x) for x in box.groups()]
    return found


# ---- the task ---------------------------------------------------------------------------------------------------------

LABELS = ("open", "save", "close", "print", "undo", "copy", "paste", "find")
CONFUSED = {"save": "copy", "undo": "close", "find": "print"}
"""Which label a biased teacher takes for which, where a screen has both."""
Box = list[int]


def screens(
    *, goals: PositiveInt = 2, boxes: PositiveInt = 3, biased: Share = 0.6, error: Share = 0.15, missed: Share = 0.25,
    test_size: PositiveInt = 1000, size: PositiveInt | None = None,
) -> Task:  # fmt: skip
    """`goals` labels to be clicked, each on a screen of its own with so many `boxes`.

    The teacher of `demonstrate`, in each turn: biased: takes another label for some; error: names any box; missed: clicks anywhere.
    size: so many training problems, in epochs; None: endless.
    """
    if not 1 <= goals <= 4 or not 2 <= boxes <= len(LABELS):
        raise RewardlabError(f"screens: goals must be from 1 to 4 and boxes from 2 to {len(LABELS)}, not {goals} and {boxes}")
    sample, key = partial(_sample, goals=goals, boxes=boxes), ("screens", goals, boxes)
    return Task(
        name="screens",
        train=training(sample, key, size),
        test=test_set(sample, key, test_size),
        verifier="all_clicked",
        max_new=32,
        about=f"screens of {boxes} labelled boxes, {goals} of which are to be clicked in turn",
        environment="clicks",
        turns=goals,
        demonstrate=partial(_demonstrate, biased=biased, error=error, missed=missed),
        columns=("prompt", "answer", "screens", "targets", "solution"),
    )


def shown(screen: dict[str, Box]) -> str:
    return "\n".join(f"{label} {' '.join(map(str, box))}" for label, box in screen.items())


def inside(x: int, y: int, box: Box) -> bool:
    left, top, right, bottom = box
    return left <= x <= right and top <= y <= bottom


def _sample(rng: random.Random, *, goals: int, boxes: int) -> Problem:
    targets = [rng.choice(LABELS) for _ in range(goals)]
    pages = []
    for target in targets:
        labels = [target, *rng.sample([x for x in LABELS if x != target], boxes - 1)]
        if (like := CONFUSED.get(target)) and like not in labels:
            labels[1] = like
        rng.shuffle(labels)
        pages.append({label: _box(rng) for label in labels})
    said = [f"{t} {' '.join(map(str, p[t]))}\nclick {p[t][0]} {p[t][1]}" for t, p in zip(targets, pages, strict=True)]
    talk = [text for i, reply in enumerate(said) for text in ([reply] if i == 0 else [shown(pages[i]), reply])]
    question = f"Press {', then '.join(targets)}.\n{shown(pages[0])}"
    return ask(question, targets[-1], screens=pages, targets=targets, solution=talk)


def _box(rng: random.Random) -> Box:
    left, top = rng.randint(0, 6), rng.randint(0, 6)
    return [left, top, rng.randint(left + 1, min(9, left + 4)), rng.randint(top + 1, min(9, top + 4))]


def _demonstrate(problem: Problem, rng: random.Random, *, biased: float, error: float, missed: float) -> list[str]:
    """Replies and the screens between them. Where a click misses, the episode ends."""
    talk: list[str] = []
    for i, (target, page) in enumerate(zip(problem.meta["targets"], problem.meta["screens"], strict=True)):
        label = CONFUSED[target] if CONFUSED.get(target) in page and rng.random() < biased else target
        label = rng.choice(sorted(page)) if rng.random() < error else label
        left, top, right, bottom = page[label]
        spread = (0, 9, 0, 9) if rng.random() < missed else (left, right, top, bottom)
        x, y = rng.randint(*spread[:2]), rng.randint(*spread[2:])
        said = f"{label} {left} {top} {right} {bottom}\nclick {x} {y}"
        talk += [shown(page), said] if i else [said]
        if not inside(x, y, page[target]):
            break
    return talk


# ---- Screens that are clicked on, and say what was reached -----------------------------------------------------------

State = dict[str, Any]


def _start(problem: Problem, seed: int, **_: Any) -> tuple[Message | None, State]:
    if not {"screens", "targets"} <= problem.meta.keys():
        raise RewardlabError(f"clicks needs the columns screens and targets: problem {problem.question[:60]!r} lacks them")
    pages, wanted = list(problem.meta["screens"]), list(problem.meta["targets"])
    lost = [t for i, t in enumerate(wanted) if i >= len(pages) or t not in pages[i]]
    if lost or not wanted:
        raise RewardlabError(
            f"clicks needs a target for every screen, by a label of that screen: problem {problem.question[:60]!r} has "
            + (f"no {lost[0]!r} there" if lost else "no targets")
        )
    return None, {"screens": pages, "targets": wanted, "at": 0}


@environment(start=_start)
def clicks(state: State, turn: Turn) -> tuple[Message | None, State]:
    """Answers the last click of a reply: 1 and the next screen if it is in the box that is meant, else 0, and the end.

    The first screen is in the prompt. The last message has no text, and carries the reward alone.
    """
    said, at = last_click(turn.text), state["at"]
    hit = said is not None and inside(said[0], said[1], state["screens"][at][state["targets"][at]])
    if not hit or at + 1 == len(state["targets"]):
        return Message("user", "", reward=float(hit), last=True), state
    return Message("user", shown(state["screens"][at + 1]), reward=1.0), {**state, "at": at + 1}


# ---- What was reached by clicking, and whether the reply had said where ----------------------------------------------


@reward
def all_clicked(trajectory: Trajectory) -> Score:
    """1 where every one of the problem's targets was hit."""
    targets = trajectory.problem.meta.get("targets")
    if not targets:
        return Score(None, why="the problem has no targets")
    hit = sum(x for _, x in trajectory.paid)
    return Score(float(hit == len(targets)), why=f"{hit:g} of {len(targets)} targets")


@reward(steps=True)
def named_first(trajectory: Trajectory) -> list[tuple[int, float]] | Score:
    """At the end of each reply, 1 where the last box that it names before its click is the one that is meant, else 0.

    Named: its label and its four numbers in one line, however these are written.
    """
    meta = trajectory.problem.meta
    if not meta.get("targets"):
        return Score(None, why="the problem has no targets")
    wanted = [(target, page, list(page[target])) for target, page in zip(meta["targets"], meta["screens"], strict=True)]
    pairs = zip(trajectory.ends, trajectory.replies, wanted, strict=False)
    return [(end, float(last_box(reply, page) == (target.lower(), box))) for end, reply, (target, page, box) in pairs]
