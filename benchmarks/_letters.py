"""How many right letters `choice` and `math` reject, and how many wrong ones they accept: python benchmarks/_letters.py [OUT.json]

judgebench: right replies of GPT-4o and Claude to questions from MMLU-Pro, without the paragraphs about the letter written five
times that they were asked to end with, where the last paragraph left names one letter. bbh: answers of Codex to BIG-Bench Hard.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from rewardlab import part
from rewardlab.tasks.strictprm.problems import lines

Case = tuple[str, str, bool]
"""A reply, the gold letter, whether the reply is right."""
_FIVE = re.compile(r"\b([A-J])\1{4}\b")
_ABOUT_FIVE = re.compile(r"duplicat|five times|string|repeat", re.IGNORECASE)
_LETTER = re.compile(r"\(([A-J])\)|\b([B-HJ])\b(?!')")
_CONCLUDES = re.compile(r"answer|option|choice|therefore|thus|correct|best", re.IGNORECASE)


def judgebench() -> Iterator[Case]:
    for model in ("claude", "gpt4o"):
        for row in lines("judgebench", f"pairs_{model}.jsonl.gz"):
            reply = row["response_A" if row["label"] == "A>B" else "response_B"]
            five = _FIVE.findall(reply) if "mmlu" in row["source"] else []
            paragraphs = reply.split("\n\n")
            while paragraphs and (_FIVE.search(paragraphs[-1]) or _ABOUT_FIVE.search(paragraphs[-1])):
                paragraphs.pop()
            named = {a or b for a, b in _LETTER.findall(paragraphs[-1])} if paragraphs else set()
            if five and named == {five[-1]} and _CONCLUDES.search(paragraphs[-1]):
                yield "\n\n".join(paragraphs), five[-1], True


def bbh() -> Iterator[Case]:
    for row in lines("bbh", "codex_cot.jsonl.gz"):
        if re.fullmatch(r"\([A-R]\)", row.get("target", "")):
            said = row["prediction"].rpartition("answer is")[2].strip().removesuffix(".").strip()
            yield row["prediction"], row["target"], said == row["target"]


def measured() -> dict[str, dict[str, int]]:
    found = {}
    for cases in (judgebench, bbh):
        rows = list(cases())
        for name in ("choice", "math"):
            verdicts = [(part("reward", name).check(reply, gold).correct, right) for reply, gold, right in rows]
            found[f"{cases.__name__}, {name}"] = {
                "right": sum(right for _, right in verdicts),
                "rejected": sum(right and not said for said, right in verdicts),
                "wrong": sum(not right for _, right in verdicts),
                "accepted": sum(bool(said) and not right for said, right in verdicts),
            }
    return found


if __name__ == "__main__":
    text = json.dumps(measured(), indent=2)
    print(text)
    if sys.argv[1:]:
        Path(sys.argv[1]).write_text(text + "\n", "utf-8")
