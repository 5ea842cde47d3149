"""KeyChain: the chain that begins at the start ends at the question, others elsewhere, and the documents are all there."""

from __future__ import annotations

import json
import random
import re

import pytest

from rewardlab import data
from rewardlab.data.keychain import chain, hidden, uuid_key
from rewardlab.errors import RewardlabError

PAIR = re.compile(r'\{"([0-9a-f-]{36})": "([^"]*)"\}\.')
DOCUMENTS = ["Ada was born in Rome. She met Bo.", "Bo painted.\nHe lived in Lima, at 3.5 degrees."]


def followed(text: str, start: str) -> tuple[str, int]:
    """Where a chain ends, and after how many links."""
    pairs = dict(PAIR.findall(text))
    links = 0
    while start in pairs:
        start, links = pairs[start], links + 1
    return start, links


def test_a_chain_by_hand():
    keys = iter("abc")
    assert chain("Who?", 3, random.Random(0), lambda rng: next(keys)) == [("a", "b"), ("b", "c"), ("c", "Who?")]
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", uuid_key(random.Random(0)))


@pytest.mark.parametrize("seed", range(5))
def test_the_start_leads_to_the_question_and_nothing_of_the_text_is_lost(seed):
    decoys = ["What is {x}?", "Which {text}?"]
    prompt, start = hidden("Where was Ada born?", DOCUMENTS, decoys, random.Random(seed), links=3)
    assert followed(prompt, start) == ("Where was Ada born?", 3)
    pairs = PAIR.findall(prompt)
    assert len(pairs) == 9
    starts = {a for a, _ in pairs} - {b for _, b in pairs}
    assert {followed(prompt, other)[0] for other in starts - {start}} == set(decoys)
    # without the pairs, the documents stand there as they were, in some order
    plain = re.sub(r" " + PAIR.pattern, "", prompt)
    assert all(document in plain for document in DOCUMENTS)
    assert prompt.count(start) == 2
    assert prompt.endswith("\\boxed{}.")


def test_rows_of_a_file_get_documents_and_questions_of_others(tmp_path):
    rows = [{"q": f"Who is {i}?", "docs": [f"Number {i} is Ada{i}. " + "word " * 20], "answer": f"Ada{i}"} for i in range(6)]
    rows += [{"q": "Who?", "docs": [], "answer": "x"}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"words": 70, "chains": 3, "links": 2, "prompt_column": "q", "documents_column": "docs"}
    told = data.keychain_file(tmp_path / "a.jsonl", tmp_path / "b.jsonl", **settings)
    made = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert told["written"] == 6
    assert told["dropped"] == {"no documents": 1}
    for i, row in enumerate(made):
        assert row["question"] == f"Who is {i}?"
        assert followed(row["q"], row["start"]) == (row["question"], 2)
        assert row["answer"] == f"Ada{i}"
        assert f"Number {i} is Ada{i}." in row["q"]
        # 24 words each: its own and one other fit into 70, a third would not
        assert len(re.findall(r"Number \d is", row["q"])) == 2
        assert "docs" not in row
    again = data.keychain_file(tmp_path / "a.jsonl", tmp_path / "c.jsonl", **settings)
    assert again["written"] == 6
    assert (tmp_path / "c.jsonl").read_text() == (tmp_path / "b.jsonl").read_text()


def test_more_chains_than_questions_leave_nothing(tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"prompt": "Who?", "documents": "Ada.", "answer": "Ada"}) + "\n")
    told = data.keychain_file(tmp_path / "a.jsonl", tmp_path / "b.jsonl", chains=2)
    assert told["dropped"] == {"too few questions": 1}
    with pytest.raises(RewardlabError, match="links is a whole number"):
        data.keychain_file(tmp_path / "a.jsonl", tmp_path / "b.jsonl", links=0)
