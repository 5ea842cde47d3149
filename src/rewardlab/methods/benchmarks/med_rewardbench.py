"""Med-RewardBench: which of two answers about a medical picture do doctors prefer, in each of six dimensions?

    accuracy of a dimension = cases whose winner is the doctors' / cases;   all dimensions = the mean of the six
    (accuracy, relevance, comprehensiveness, creativity, responsiveness, overall);   of an organ, the mean of its dimensions

The doctors' overall preference is one of the six, and no mean of the others: a judge that gives one verdict for everything can be
right about it and at chance elsewhere.

Ding et al. 2025, arXiv:2508.21430, and the released code (meidandz/Med-RewardBench, vlm/00_benchmark_full_pipeline.py): files by
organ, ORGAN.jsonl and parquet/ORGAN.parquet, with question_id, question, image, answer1_text, answer2_text, and human_answer, of
each dimension "A" (the first answer) or "B"; what one of the two files lacks is taken from the other one. A case without a legible
judgement is wrong in every dimension, and nobody may call a tie. The released judge is asked for all six in one JSON; here each
dimension is asked by itself, named after the question, in both orders, and the mean of the orders counts. (inferred): the mean over
dimensions and over organs, which the code does not take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rewardlab.checks.claim import Check
from rewardlab.core import Recipe, Run, seed_of, study
from rewardlab.data.files import rows_of
from rewardlab.data.pictures import base64_of, pictures_in
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.drawn import counted, holds
from rewardlab.scoreboard.figures import Marks, means
from rewardlab.scoreboard.items import Item, Verdict, users
from rewardlab.scoreboard.planted import Rates, figures_of, told_apart

kind = "benchmark"
DIMENSIONS = {
    "accuracy": "medical correctness", "relevance": "how far it keeps to the question",
    "comprehensiveness": "how much of what matters it covers", "creativity": "insight beyond the obvious",
    "responsiveness": "how well it meets the needs of who asks", "overall": "all in all",
}  # fmt: skip
"""Each dimension, and what it means."""


def read(row: Mapping[str, Any], file: str) -> Iterator[Item]:
    name, told, pictures = str(row["question_id"]), row["human_answer"], pictures_in(row["image"])
    replies = (str(row["answer1_text"]), str(row["answer2_text"]))
    for dimension, meaning in DIMENSIONS.items():
        winner = str(told[dimension]).strip().upper()
        if winner not in ("A", "B"):
            raise ValueError(f"the winner in {dimension} is A or B, and not {told[dimension]!r}")
        prompt = users(f"{row['question']}\n\nCriterion: {dimension} ({meaning}).", pictures)
        worth = (1.0, 0.0) if winner == "A" else (0.0, 1.0)
        yield Item(f"{file}/{name}/{dimension}", prompt, replies, worth, f"{dimension}/{file}")


def load(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a file, with what the other file of the same organ adds."""
    pair = (path.parent / "parquet" / f"{path.stem}.parquet", path.parent.parent / f"{path.stem}.jsonl")
    beside = pair[1] if path.suffix == ".parquet" else pair[0]
    more = {row.get("question_id"): row for _, row in rows_of(beside)} if beside.is_file() else {}
    for place, row in rows_of(path):
        added = more.get(row.get("question_id"), {})
        yield place, row | {name: value for name, value in added.items() if row.get(name) is None}


def marks(item: Item, verdict: Verdict) -> dict[str, float]:
    """right: whether the doctors' winner is named; of both orders the mean. What is undecided is wrong."""
    ((i, j),) = item.pairs
    if not verdict.orders:
        return {"right": float(verdict.prefers(i, j) == 1.0)}
    first, second = verdict.order(i, j), verdict.order(j, i)
    return {"right": (float(first is not None and first > 0.5) + float(second is not None and second < 0.5)) / 2}


def figures(marks: Marks) -> dict[str, float]:
    """all dimensions, each dimension, and each organ."""
    known = means(_by(marks, 0), "right")
    each = {name: known[name] for name in DIMENSIONS if name in known}
    return {"all dimensions": float(np.mean(list(each.values()))) if each else float("nan"), **each} | means(_by(marks, 1), "right")


def _by(marks: Marks, part: int) -> Marks:
    """The marks by dimension (0) or by organ (1)."""
    return Marks(marks.columns, np.array([name.split("/", 1)[part] for name in marks.subset], object))


def _case(name: str, question: str, image: Any, first: str, second: str, winners: str) -> dict[str, Any]:
    """winners: of each dimension in their order."""
    return {
        "question_id": name, "question": question, "image": image, "answer1_text": first, "answer2_text": second,
        "human_answer": dict(zip(DIMENSIONS, winners, strict=True)),
    }  # fmt: skip


_BRIGHT, _DARK = (base64_of(np.full((8, 8, 3), grey, np.uint8)) for grey in (220, 30))
PROMPT = (
    "Two assistants answered a question about the medical picture. Judge as a physician would which answer is better by the "
    "criterion that is named, and by nothing else; a tie is not allowed.\n\n{prompt}\n\n[Answer of assistant A]\n{first}\n\n"
    "[Answer of assistant B]\n{second}\n\nSay only [[A]] or [[B]]."
)

benchmark = Benchmark(
    title="Med-RewardBench", hub="Nandzy/Med-RewardBench", read=read, marks=marks, figures=figures, load=load, pictures=("image",),
    prompt=PROMPT, chance=dict.fromkeys(("all dimensions", *DIMENSIONS), 0.5),
    example=(
        _case("1", "Is there an opacity?", _BRIGHT, "Yes, one that fills the field.", "No.", "AAAAAA"),
        _case("2", "Is there an opacity?", _DARK, "Yes, and it should be treated soon, with rest.", "No.", "BBAABB"),
    ),
)  # fmt: skip


# ---- its check: who never looks, and who gives one verdict for everything -----------------------------------------------

LOOKED = ("accuracy", "overall")
"""The dimensions of the study that the picture decides; the others are decided by the length or the manners of the answers."""
KIND = "I am glad to help. "


def rows(rng: np.random.Generator, n: int = 40) -> list[dict[str, Any]]:
    """Cases in which a coin decides who is right, another who is longer, and another who is kind."""
    found = []
    for i in range(n):
        pair = counted(rng)
        right, longer, kind_ = (int(x) for x in rng.integers(0, 2, 3))
        first, second = (
            KIND * (k == kind_) + claim + " I looked at it twice, all of it." * (k == longer)
            for k, claim in enumerate((pair.better, pair.worse) if right == 0 else (pair.worse, pair.better))
        )
        won = {"accuracy": right, "relevance": kind_, "comprehensiveness": longer, "creativity": longer, "responsiveness": kind_}
        winners = "".join("AB"[won.get(name, right)] for name in DIMENSIONS)
        found.append(_case(str(i), pair.question, pair.frames[0], first, second, winners))
    return found


def aware(noise: float, looks: bool = True, only: str = "") -> Rates:
    """A judge of each dimension that is wrong with the chance `noise`.

    looks: else a coin decides what the picture shows.  only: the one dimension by which it judges all.
    """

    def rates(item: Item, rng: np.random.Generator) -> Verdict:
        dimension = only or item.subset.partition("/")[0]
        if dimension in LOOKED:
            known = [float(bool(holds(item.pictures, reply))) if looks else float(rng.random()) for reply in item.replies]
        elif dimension in ("comprehensiveness", "creativity"):
            known = [float(len(reply.removeprefix(KIND))) for reply in item.replies]
        else:
            known = [float(reply.startswith(KIND)) for reply in item.replies]
        return Verdict(tuple(-x for x in known) if rng.random() < noise else tuple(known))

    return rates


@study
def hidden_faults_found(run: Run) -> dict[str, float]:
    """met: in what share of 40 samples accuracy puts a judge of every dimension that errs in one of four above one that never looks
    and never errs in what it reads; control: in what share the mean over dimensions does; one verdict, by overall: the same, for a
    judge that gives one faultless verdict of accuracy for everything, by the mean over dimensions and by the overall preference;
    blind: accuracy of the judge that never looks."""
    rng = np.random.default_rng(seed_of("study", run.seed))
    sound, never, one = aware(0.25), aware(0.0, looks=False), aware(0.0, only="accuracy")
    blind, single = told_apart(benchmark, rows, sound, never, rng), told_apart(benchmark, rows, sound, one, rng)
    items = [item for row in rows(rng, 300) for item in read(row, "brain")]
    return {
        "met": blind["accuracy"], "control": blind["all dimensions"], "one verdict": single["all dimensions"],
        "by overall": single["overall"], "blind": figures_of(benchmark, items, never, rng)["accuracy"],
    }  # fmt: skip


def med_rewardbench(base: Recipe | None = None) -> Recipe:
    """No settings: `rewardlab scoreboard RATER --on med-rewardbench --data data/pair_gt_all`."""
    base = base or Recipe(name="med_rewardbench")
    return base.but(study=hidden_faults_found())


fidelity = "core"
left_out = "the judges that the paper fine-tunes on its own preferences, and judgements of all six dimensions in one reply"

check = Check(
    says="accuracy tells a judge that errs in one of four from one that never looks, whose mean over the dimensions is higher",
    versus=None, task="arithmetic", measure="met", direction="higher", margin=0.5, against="control",
    finding="accuracy puts the judge that looks ahead in 99% of samples, the mean over dimensions in none. The mean puts it ahead "
    "of one faultless verdict of accuracy for everything in 97%, the doctors' overall preference in none",
)  # fmt: skip
