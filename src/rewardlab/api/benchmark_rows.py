"""A published benchmark of rewards as rows of pairs, to train a judge or a reward model on its labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rewardlab.core import Problem
from rewardlab.data.files import write
from rewardlab.errors import RewardlabError
from rewardlab.scoreboard.asked import benchmark_of
from rewardlab.scoreboard.items import Item
from rewardlab.settings.domain import SHARE
from rewardlab.tasks.sources import TEST_SHARE, held_out

WARNING = (
    "{title} is no held-out benchmark of what is trained on these rows: report nothing that such a model scores on it "
    "(rewardlab scoreboard --on {name}), but on its test.jsonl or on another benchmark"
)


def benchmark_rows_file(
    name: str, out: str | Path, data: str | Path | None = None, share: float = TEST_SHARE
) -> dict[str, Any]:  # fmt: skip
    """Write OUT/train.jsonl and OUT/test.jsonl: a row (prompt, chosen, rejected) for each pair of replies of a benchmark that
    differ in worth; returns the counts.

    data: files in the published format (default: those below REWARDLAB_DATA).  share: of the prompts, those held out, so that no
    prompt is in both files. Where several people judged a pair, chosen_score and rejected_score count who preferred each reply (a
    tie counts half for either); where a benchmark grades replies, they are the grades. Left out: ties, items without texts or
    with pictures, pairs with an empty reply or two equal ones. Raises RewardlabError for a benchmark of steps, and where nothing is
    left.
    """
    SHARE.check("held_out", share)
    benchmark = benchmark_of(name)
    if benchmark.asks != "replies":
        raise RewardlabError(f"{name} asks about the steps of solutions, and has no pairs of replies: see rewardlab prm --help")
    rows, left_out = _paired(items := benchmark.items(data), name)
    if not rows:
        told = ", ".join(f"{n:,} {why}" for why, n in left_out.items())
        raise RewardlabError(f"{name} has no pair of replies to learn from: {told or 'no item has two of different worth'}")
    folder = Path(out).expanduser()
    splits: dict[str, list[dict[str, Any]]] = {"train": [], "test": []}
    for item, row in rows:
        splits["test" if held_out(Problem(item.prompt), share) else "train"].append(row)
    folder.mkdir(parents=True, exist_ok=True)
    for split, of in splits.items():
        write(folder / f"{split}.jsonl", of)
    return {
        "benchmark": benchmark.title, "items": len(items), "rows": len(rows), "train": len(splits["train"]),
        "test": len(splits["test"]), "left_out": dict(left_out), "out": str(folder),
        "warning": WARNING.format(title=benchmark.title, name=name),
    }  # fmt: skip


def _paired(items: Sequence[Item], name: str) -> tuple[list[tuple[Item, dict[str, Any]]], Counter[str]]:
    """Each row with its item, and how many items and pairs are left out, by why."""
    graded = len({worth for item in items for worth in item.worth}) > 2
    rows: list[tuple[Item, dict[str, Any]]] = []
    left_out: Counter[str] = Counter()
    for item in items:
        if why := _no_pair(item):
            left_out[why] += 1
            continue
        for better, worse in item.pairs:
            if why := _unlearnable(item.replies[better], item.replies[worse]):
                left_out[why] += 1
            else:
                rows.append((item, _row(item, name, graded, better, worse)))
    return rows, left_out


def _no_pair(item: Item) -> str:
    if item.blank:
        return "without texts"
    if item.pictures:
        return "with pictures"
    return "" if item.pairs else "ties"


def _unlearnable(chosen: str, rejected: str) -> str:
    if not chosen.strip() or not rejected.strip():
        return "pairs with an empty reply"
    return "pairs of equal replies" if chosen == rejected else ""


def _row(item: Item, name: str, graded: bool, better: int, worse: int) -> dict[str, Any]:
    # a list of messages as the columns of a task take it, and one message of a user as a text
    alone = len(item.prompt) == 1 and item.prompt[0].role == "user"
    prompt = item.prompt[0].text if alone else [{"role": m.role, "content": m.text} for m in item.prompt]
    about = {"benchmark": name, "id": item.id, **({"subset": item.subset} if item.subset else {})}
    answer = {} if item.answer is None else {"answer": item.answer}
    pair = {"prompt": prompt, "chosen": item.replies[better], "rejected": item.replies[worse]}
    return pair | _scores(item, better, worse, graded) | answer | about


def _scores(item: Item, better: int, worse: int, graded: bool) -> dict[str, float]:
    """How many people preferred each reply, or its grade; nothing where a benchmark says no more than which is the better one."""
    votes = item.meta.get("votes")
    if len(item.replies) == 2 and isinstance(votes, list) and set(votes) <= {0, 1, 2}:
        chosen, rejected = (votes.count(i + 1) + votes.count(0) / 2 for i in (better, worse))
        return {"chosen_score": chosen, "rejected_score": rejected}
    return {"chosen_score": item.worth[better], "rejected_score": item.worth[worse]} if graded else {}
