"""A published benchmark as rows of pairs: what a judge or a reward model learns from it, and what is left out."""

import contextlib
import json

import pytest

from rewardlab import RewardlabError, registry
from rewardlab.api import benchmark_rows_file, plan
from rewardlab.api.pair_labels import check_rows
from rewardlab.commands import cli


def panda(i, votes, first="cold", second="very hot"):
    a, b, c = votes
    told = {"instruction": f"Name the opposite of {i}.", "input": "", "response1": first, "response2": second}
    return {"idx": i, **told, "annotator1": a, "annotator2": b, "annotator3": c, "motivation_app": "", "cmp_key": "a_b"}


def written(folder):
    return [[json.loads(line) for line in (folder / f"{name}.jsonl").read_text().splitlines()] for name in ("train", "test")]


@pytest.fixture
def published(tmp_path):
    def write(rows):
        (tmp_path / "panda.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return tmp_path / "panda.jsonl"

    return write


def test_labels_of_three_people_become_pairs_with_their_votes_and_no_prompt_is_on_both_sides(published, tmp_path):
    votes = [(1, 1, 0), (2, 2, 2), (1, 2, 2), (0, 0, 1)]
    source = published([panda(i, votes[i % 4]) for i in range(80)])
    told = benchmark_rows_file("pandalm", tmp_path / "out", source, share=0.2)
    train, test = written(tmp_path / "out")
    assert (told["items"], told["rows"], told["left_out"]) == (80, 60, {"ties": 20})
    assert (len(train), len(test)) == (told["train"], told["test"])
    assert 3 < len(test) < 25
    assert not {row["prompt"] for row in train} & {row["prompt"] for row in test}
    by_id = {int(row["id"]): row for row in (*train, *test)}
    # a tie counts half for either
    pairs = [tuple(by_id[i][name] for name in ("chosen", "chosen_score", "rejected_score")) for i in (0, 1, 2)]
    assert pairs == [("cold", 2.5, 0.5), ("very hot", 3.0, 0.0), ("very hot", 2.0, 1.0)]
    assert "is no held-out benchmark of what is trained on these rows" in told["warning"]


def test_what_cannot_be_learnt_is_left_out_and_counted(published, tmp_path):
    source = published([panda(0, (1, 1, 1), second=" "), panda(1, (2, 2, 2), "same", "same"), panda(2, (1, 1, 1))])
    told = benchmark_rows_file("pandalm", tmp_path / "out", source)
    assert (told["rows"], told["left_out"]) == (1, {"pairs with an empty reply": 1, "pairs of equal replies": 1})
    with pytest.raises(RewardlabError, match="no pair of replies to learn from: 1 ties"):
        benchmark_rows_file("pandalm", tmp_path / "none", published([panda(0, (0, 0, 0))]))
    with pytest.raises(RewardlabError, match="processbench asks about the steps of solutions"):
        benchmark_rows_file("processbench", tmp_path / "none")


def test_every_benchmark_of_texts_gives_rows_of_its_example(tmp_path):
    """Its published form is one line a row, as its example is; a benchmark of pictures or of steps is refused in words."""
    from rewardlab.scoreboard.asked import benchmark_of, benchmarks

    made = {}
    for name in benchmarks():
        benchmark = benchmark_of(name)
        if benchmark.load or benchmark.asks != "replies" or benchmark.pictures:
            continue
        file = tmp_path / f"{name}.jsonl"
        file.write_text("".join(json.dumps(dict(row)) + "\n" for row in benchmark.example))
        # an example may hold no texts, or ties alone
        with contextlib.suppress(RewardlabError):
            made[name] = benchmark_rows_file(name, tmp_path / name, file)["rows"]
    assert {"pandalm", "llmbar", "judgebench", "rm_bench", "rewardbench", "rewardbench_2", "pairs"} <= made.keys()


def test_a_judge_plans_on_the_rows_of_one_command(published, tmp_path, capsys):
    source, out = published([panda(i, (1, 1, 2)) for i in range(60)]), tmp_path / "out"
    assert cli.main(["data", "benchmark", "pandalm", "--data", str(source), "--out", str(out), "--held-out", "0.2"]) == 0
    assert "warning: PandaLM test set is no held-out benchmark" in capsys.readouterr().out
    check_rows(registry.build("rm_r1"), registry.task(str(out)))
    votes = registry.build("bradley_terry", {"problems": 2, "labels": "votes"})
    assert plan(votes, "untrained", str(out), steps=1, device="cpu", eval_problems=2)["formula"]
