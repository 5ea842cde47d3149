"""Rows with judgements to imitate, for a judge that writes: of PandaLM people's verdicts alone, of LLMBar whole rationales.

  python benchmarks/_judge_rows.py pandalm OUT       a verdict alone
  python benchmarks/_judge_rows.py rationales OUT    right judgements by GPT-4, ChatGPT and LLaMA2, in the form `llmbar`

OUT/train.jsonl and OUT/test.jsonl hold rows for `rewardlab train trained_judge --distil N`; a fifth of the prompts is held out. A
pair of LLMBar's has a row for each judgement whose verdict is its label, in the order of the replies in which it was written.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rewardlab.judges.named import form_of
from rewardlab.tasks.sources import data_file

Row = dict[str, Any]
HELD_OUT = 0.2


def rows_of(*names: str) -> list[Row]:
    with gzip.open(data_file(*names), "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def pandalm() -> Iterator[Row]:
    """Pairs on which most of three annotators prefer one reply; a judgement is a verdict and nothing else."""
    for row in rows_of("pandalm", "testset.jsonl.gz"):
        votes = [row[f"annotator{k}"] for k in (1, 2, 3)]
        better = next((reply for reply in (1, 2) if votes.count(reply) > 1), None)
        replies = row["response1"], row["response2"]
        if better and all(isinstance(reply, str) and reply for reply in replies):
            yield {
                "prompt": "\n\n".join(filter(None, (row["instruction"], row["input"]))),
                "chosen": replies[better - 1], "rejected": replies[2 - better],
                "judgement": "[[A]]", "judgement_reversed": "[[B]]",
            }  # fmt: skip


def rationales() -> Iterator[Row]:
    """Pairs of LLMBar, each with judgements in both orders where models gave right ones."""
    form, known = form_of("llmbar"), {(row["set"], row["index"]): row for row in rows_of("llmbar", "instances.jsonl.gz")}
    for said in rows_of("llmbar", "rationales.jsonl.gz"):
        row = known[said["set"], said["index"]]
        turned = said["order"] == "swap = True"
        values = form.read(said["completion"]).values
        # the first one shown is output 2 where they were turned round
        first_is_better = (row["label"] == 1) != turned
        if values is None or values[0] == values[1] or (values[0] > values[1]) != first_is_better:
            continue
        replies = row["output_1"], row["output_2"]
        yield {
            "prompt": row["input"], "chosen": replies[row["label"] - 1], "rejected": replies[2 - row["label"]],
            "judgement" if first_is_better else "judgement_reversed": said["completion"].strip(),
            "subset": said["set"].rpartition("/")[2], "by": said["model"],
        }  # fmt: skip


def split(rows: list[Row]) -> tuple[list[Row], list[Row]]:
    """Training and held-out rows; of a held-out pair one, since all of its rows would ask the same."""
    prompts = sorted({row["prompt"] for row in rows})
    held = set(random.Random(0).sample(prompts, round(HELD_OUT * len(prompts))))
    once = {(row["prompt"], row["chosen"], row["rejected"]): row for row in rows if row["prompt"] in held}
    train = [row for row in rows if row["prompt"] not in held]
    random.Random(0).shuffle(train)
    return train, list(once.values())


if __name__ == "__main__":
    kind, out = sys.argv[1], Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    for name, part in zip(("train", "test"), split(list({"pandalm": pandalm, "rationales": rationales}[kind]())), strict=True):
        (out / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in part), "utf-8")
        print(f"{name}: {len(part)} rows, {len({row['prompt'] for row in part})} prompts")
