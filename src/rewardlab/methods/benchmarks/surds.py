"""SURDS: spatial questions about street scenes: orientation, place in pixels, depth, distance, left or right, front or behind.

    score of a category = pairs of questions with both answers right / pairs
    of depth, questions answered right / questions;   of pixels, the mean centerness of the chosen point in the object's box
    overall = the mean of the six categories
    centerness = sqrt(min(l, r) / max(l, r) * min(t, b) / max(t, b)),   l, r, t, b the distances to the edges; 0 outside

A pair asks the same twice, turned round: which object is further left, and which further right? Who does not read which of both is
asked is right in one of two questions, and in no pair.

Guo et al. 2024, arXiv:2411.13112, and the released code (XiandaGuo/Drive-MLLM, evaluation/eval_from_json.py and
hfdata_to_eval_vqa.py, which makes the files 00_yaw_vqas.json to 05_fb_vqas.json from nuScenes): lists with image_path (from the
folder above the file's), image_pixel ("1600x900"), prompt, answer, and obj_bbox where there is one object; rows 2k and 2k + 1 are a
pair. It evaluates models that write; here a rater chooses among the options of the prompt, and must prefer the right one to each
other one. The place in pixels has no options there: those here are the middle of the object and its mirror images, so that this
figure, and overall, are not to be compared with published ones.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, seed_of, study
from rewardlab.data.files import rows_of
from rewardlab.data.pictures import base64_of, pictures_in
from rewardlab.scoreboard.benchmark import Benchmark, Published
from rewardlab.scoreboard.choices import points
from rewardlab.scoreboard.drawn import COLOURS, SIDE, cells_in, draw
from rewardlab.scoreboard.figures import Marks, mean_of_known
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.scoreboard.planted import figures_of, told_apart

kind = "benchmark"
CATEGORIES = {
    "yaw": "orientation", "xy2d": "pixels", "depth": "depth", "dis": "distance", "lr": "left or right", "fb": "front or behind",
}  # fmt: skip
"""As the files are called, and as the figures are."""
ALONE = ("pixels", "depth")
"""Categories whose questions are not asked twice."""
OPTIONS = re.compile(r"Options:.*?\n(.*?)(?=\n\n|\Z)", re.DOTALL)
ARTICLE = re.compile(r"\b(a|an|the)\b")


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    category = _category(row, file)
    number = int(row["vqa_idx"])
    prompt = users(str(row["prompt"]), pictures_in(row["image_path"]))
    if category == "pixels":
        replies, worth = _places(row)
    else:
        replies = _options(str(row["prompt"]))
        worth = tuple(float(plain(reply) == plain(str(row["answer"]))) for reply in replies)
    if max(worth) <= 0.0 or min(worth) >= 1.0:
        raise ValueError(f"the answer {row['answer']!r} is none of the options {', '.join(replies)}")
    yield Item(f"{category}/{number}", prompt, replies, worth, category, meta={"pair": number // 2, "second": number % 2})


def _category(row: Mapping[str, Any], file: str) -> str:
    told = str(row.get("category") or file)
    found = next((name for key, name in CATEGORIES.items() if name == told or f"{key}_vqa" in told), None)
    if found is None:
        raise ValueError(f"{told!r} names none of the categories {', '.join(CATEGORIES)}, as in 00_yaw_vqas.json")
    return found


def load(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a file with their numbers, by which two questions belong together."""
    for number, (place, row) in enumerate(rows_of(path)):
        yield place, {"vqa_idx": number, **row}


def _options(prompt: str) -> tuple[str, ...]:
    found = OPTIONS.search(prompt)
    options = tuple(x.strip() for x in re.findall(r"-\s*(.*)", found[1])) if found else ()
    if len(options) < 2:
        raise ValueError("the prompt lists no options, each behind a dash, after a line 'Options:'")
    return options


def _places(row: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """The middle of the object's box and its mirror images that lie elsewhere, each with its centerness."""
    width, height = (int(x) for x in str(row["image_pixel"]).split("x"))
    box = [float(x) for x in row["obj_bbox"]]
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    places = dict.fromkeys([(x, y), (width - x, y), (x, height - y), (width - x, height - y)])
    return tuple(f"[{a:.0f}, {b:.0f}]" for a, b in places), tuple(centerness(a, b, box) for a, b in places)


def centerness(x: float, y: float, box: Sequence[float]) -> float:
    """1 in the middle of a box (left, top, right, bottom), 0 at its edges and outside."""
    left, top, right, bottom = x - box[0], y - box[1], box[2] - x, box[3] - y
    if min(left, top, right, bottom) < 0:
        return 0.0
    across, down = (min(a, b) / max(a, b) if max(a, b) > 0 else 1.0 for a, b in ((left, right), (top, bottom)))
    return math.sqrt(across * down)


def plain(text: str) -> str:
    """A text without punctuation, articles and capitals, as the released code compares answers."""
    letters = text.strip().lower().translate(str.maketrans("", "", string.punctuation))
    return " ".join(ARTICLE.sub("", letters).split())


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """right: the worth of the reply that is preferred to all others; 0 where there is none.  pair: which questions go together.
    second: 1 of the second of both."""
    found = points(item, verdict)
    best = np.flatnonzero(found == found.max())
    known = len(best) == 1 and not np.isneginf(found.max())
    return {"right": item.worth[best[0]] if known else 0.0, **{name: float(item.meta[name]) for name in ("pair", "second")}}


def figures(marks: Marks) -> dict[str, float]:
    """overall, each category, and single answers: the share of right answers in the categories that ask twice. A category without a
    whole pair, as among a few questions chosen by chance, has no figure."""
    each = {name: _score(marks.only(name), name) for name in CATEGORIES.values() if name in marks.subsets()}
    twice = marks.only(*(name for name in CATEGORIES.values() if name not in ALONE))
    return {"overall": mean_of_known(each.values()), **each, "single answers": twice.mean("right")}


def _score(marks: Marks, category: str) -> float:
    if category in ALONE:
        return marks.mean("right")
    _, place, size = np.unique(marks["pair"], return_inverse=True, return_counts=True)
    right, second = np.bincount(place, marks["right"]), np.bincount(place, marks["second"])
    # a pair that was resampled twice counts twice; a question without its partner is no pair, though it were resampled twice
    whole = (second > 0) & (second < size)
    return float(size[whole & (right == size)].sum() / size[whole].sum()) if whole.any() else math.nan


def _row(category: str, number: int, image: Any, question: str, options: Sequence[str], answer: str) -> dict[str, Any]:
    listed = "\n".join(f"- {option}" for option in options)
    prompt = f"Question:\n{question}\n\nOptions:\n{listed}\n\nSay which."
    return {"category": category, "vqa_idx": number, "image_path": image, "prompt": prompt, "answer": answer}


_HALVES = np.zeros((8, 8, 3), np.uint8)
_HALVES[:, :4], _HALVES[:, 4:] = COLOURS["red"], COLOURS["blue"]
_SIDES = ("The red half", "The blue half", "Almost the same")
_ABSTRACT = "abstract of arXiv:2411.13112"

benchmark = Benchmark(
    title="SURDS", read=read, marks=marks, figures=figures, load=load, pictures=("image_path",),
    picture_folder="..",
    chance={"orientation": 1 / 16, "depth": 1 / 3, "distance": 1 / 9, "left or right": 1 / 9, "front or behind": 1 / 9},
    published=tuple(
        Published(who, {"overall": x}, _ABSTRACT) for who, x in
        (("its GRPO variant, written answers", 0.4080), ("GPT-4o, written answers", 0.1330),
         ("Gemini-2.0-flash, written answers", 0.3571))
    ),
    example=(
        _row("left or right", 0, base64_of(_HALVES), "Which is further left?", _SIDES, "the red half"),
        _row("left or right", 1, base64_of(_HALVES), "Which is further right?", _SIDES, "the blue half"),
        _row("depth", 0, base64_of(_HALVES), "How far is it?", ("1 to 2 meters", "5 to 9 meters"), "1 to 2 meters"),
        {
            **_row("pixels", 0, base64_of(_HALVES), "Where is the red half?", (), "[2, 3]"), "image_pixel": "8x8",
            "obj_bbox": [0, 0, 4, 6],
        },
    ),
)  # fmt: skip


# ---- its check: who does not read which way round a question is ---------------------------------------------------------


def rows(rng: np.random.Generator, n: int = 30) -> list[dict[str, Any]]:
    """Pairs of questions about two squares in different columns, and in different rows (as behind: further up)."""
    found = []
    for category, first, second in (("left or right", "left", "right"), ("front or behind", "down", "up")):
        for i in range(n):
            names = [str(x) for x in rng.permutation(list(COLOURS))[:2]]
            places, cells = np.stack([rng.permutation(SIDE)[:2] for _ in range(2)], 1), np.full((SIDE, SIDE), -1)
            for name, place in zip(names, places, strict=True):
                cells[tuple(place)] = list(COLOURS).index(name)
            axis = 1 if category == "left or right" else 0
            low, high = (names[k] for k in np.argsort(places[:, axis]))
            answers = (low, high) if axis == 1 else (high, low)
            for k, (way, answer) in enumerate(zip((first, second), answers, strict=True)):
                options = [*(f"The {name} square" for name in names), "Almost the same"]
                question = f"Which is further {way}?"
                found.append(_row(category, 2 * i + k, draw(cells), question, options, f"The {answer} square"))
    return found


def _seen(item: Item, way: str) -> str:
    """The colour of the square that lies further that way, read from the pixels."""
    cells = cells_in(item.pictures[0])
    axis, sign = {"left": (1, -1), "right": (1, 1), "up": (0, -1), "down": (0, 1)}[way]
    place = max(np.argwhere(cells >= 0).tolist(), key=lambda p: sign * p[axis])
    return list(COLOURS)[cells[tuple(place)]]


def _asked(item: Item) -> str:
    return next(way for way in ("left", "right", "up", "down") if f"further {way}" in item.question)


def _verdict(item: Item, colour: str) -> Verdict:
    return Verdict(tuple(float(f" {colour} " in reply) for reply in item.replies))


def mistakes_squares(item: Item, rng: np.random.Generator) -> Verdict:
    """It takes one square for the other in over half of the pictures, in both questions; else it is right in both."""
    turned = seed_of("taken", item.pictures[0].tobytes()) % 100 >= 45
    there = _seen(item, _asked(item))
    named = [name for name in COLOURS if any(f" {name} " in reply for reply in item.replies)]
    return _verdict(item, next(name for name in named if name != there) if turned else there)


def always_one_way(item: Item, rng: np.random.Generator) -> Verdict:
    """It looks, and answers every question as if left, or down, were asked."""
    return _verdict(item, _seen(item, "left" if _asked(item) in ("left", "right") else "down"))


def blind(item: Item, rng: np.random.Generator) -> Verdict:
    """It does not look, and never says that they are the same."""
    return Verdict((*rng.random(2).tolist(), -1.0))


@study
def ways_read(run: Run) -> dict[str, float]:
    """met: in what share of 40 samples the pairs of left and right put a rater that mistakes one square for the other in over half
    of the pictures above one that looks well, and does not read which way round the question is; control: in what share single
    answers do; pairs, single: of the second one; blind: pairs of a rater that does not look, of two options a coin's choice.
    """
    rng = np.random.default_rng(seed_of("study", run.seed))
    told = told_apart(benchmark, rows, mistakes_squares, always_one_way, rng)
    items = [item for row in rows(rng, 200) for item in read(row, "")]
    deaf, guesses = (figures_of(benchmark, items, rates, rng) for rates in (always_one_way, blind))
    return {
        "met": told["left or right"], "control": told["single answers"], "pairs": deaf["left or right"],
        "single": deaf["single answers"], "blind": guesses["left or right"],
    }  # fmt: skip


def surds(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on surds --data eval_vqas`."""
    base = base or Recipe(name="surds")
    return base.but(study=ways_read())


fidelity = "core"
left_out = (
    "training by GRPO with rewards for location, logic (whether the answer follows from the reasoning), answer and form: no small "
    "world of pictures here asks for relations; and models that write their answers, of which the published figures are"
)

check = Check(
    says="pairs of questions tell a rater that mistakes one square for another from one that does not read which way round is "
    "asked, whose single answers are right more often", versus=None, task="arithmetic", measure="met", direction="higher",
    margin=0.5, against="control",
    finding="pairs put the rater that sometimes mistakes a square ahead in every sample, single answers in 18%: the other one is "
    "right in 50% of single answers and in no pair; who does not look, and chooses one of two, in 24% of pairs",
)  # fmt: skip
