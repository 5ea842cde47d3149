"""Data of benchmarks by a name of the hub, out of the cache where no hub can be reached, and from folders that `datasets` saved."""

import json

import pytest

from rewardlab.data.hub import saved, stored_rows
from rewardlab.data.pictures import pictures_in
from rewardlab.errors import RewardlabError
from rewardlab.scoreboard.asked import asked, benchmark_of
from rewardlab.scoreboard.run import scoreboard

PAIRS = [{"prompt": f"{n}+1=?", "chosen": str(n + 1), "rejected": f"{n + 2}, I think", "subset": "sums"} for n in range(6)]


@pytest.mark.parametrize(
    "name", ["hf:nobody/pairs:test", "hf:nobody/pairs,config=main:test", "hub:nobody/pairs,config=main,split=test"]
)
def test_a_split_of_the_hub_is_read_as_a_file_is(no_hub, name):
    no_hub("nobody/pairs", "main", train=PAIRS[:4], test=PAIRS[4:])
    document = scoreboard(["length"], ["pairs"], data=name)
    assert document["benchmarks"]["pairs"]["items"] == 2
    assert document["raters"]["length"]["pairs"]["figures"]["overall"]["value"] == 0.0


def test_pairs_of_whole_conversations_are_read_as_prompt_and_replies(tmp_path):
    def turns(*texts):
        return [
            {"role": role, "content": text} for role, text in zip(("user", "assistant", "user", "assistant"), texts, strict=False)
        ]

    rows = [
        {"chosen": turns("1+1=?", "2"), "rejected": turns("1+1=?", "3")},
        {"prompt": "left out", "chosen": turns("1+1=?", "2", "sure?", "yes"), "rejected": turns("1+1=?", "2", "sure?", "no")},
        {"prompt": "2+2=?", "chosen": turns("x", "4")[1:], "rejected": turns("x", "5")[1:]},
    ]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    items = asked("pairs", tmp_path / "mine.jsonl").items
    assert [[m.text for m in item.prompt] for item in items] == [["1+1=?"], ["1+1=?", "2", "sure?"], ["2+2=?"]]
    assert [item.replies for item in items] == [("2", "3"), ("yes", "no"), ("4", "5")]
    (tmp_path / "apart.jsonl").write_text(json.dumps({"chosen": turns("1+1=?", "2"), "rejected": turns("1+2=?", "2")}))
    with pytest.raises(RewardlabError, match=r"line 1 is no row of Own pairs: chosen and rejected have no prompt in common"):
        asked("pairs", tmp_path / "apart.jsonl")


def test_columns_are_those_of_the_benchmark_and_a_split_goes_by_its_name_as_a_file_does(no_hub, tmp_path):
    rows = list(benchmark_of("judgebench").example)
    no_hub("nobody/judgebench", "default", gpt=rows, claude=rows[:1])
    (tmp_path / "gpt.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert asked("judgebench", "hf:nobody/judgebench:gpt").items == asked("judgebench", tmp_path / "gpt.jsonl").items
    assert len(asked("judgebench", "hf:nobody/judgebench:gpt+claude").items) >= len(rows)
    with pytest.raises(RewardlabError, match=r"has the splits gpt, claude: name one, .*:gpt, or several, .*:gpt\+claude"):
        asked("judgebench", "hf:nobody/judgebench")
    with pytest.raises(RewardlabError, match=r"hf:nobody/judgebench/gpt, row 1.*no column 'chosen'"):
        asked("pairs", "hf:nobody/judgebench:gpt")


def test_a_folder_that_datasets_saved_is_read_with_all_its_splits(tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs the extra 'data'")
    one, other = datasets.Dataset.from_list(PAIRS[:4]), datasets.Dataset.from_list(PAIRS[3:])
    datasets.DatasetDict(a=one, b=other).save_to_disk(str(tmp_path / "both"))
    one.save_to_disk(str(tmp_path / "one"))
    assert (len(asked("pairs", tmp_path / "both").items), len(asked("pairs", str(tmp_path / "one")).items)) == (6, 4)


def test_pictures_stay_encoded_as_in_a_file(tmp_path):
    datasets = pytest.importorskip("datasets", reason="needs the extra 'data'")
    image = pytest.importorskip("PIL.Image", reason="needs pillow").new("RGB", (4, 4), (200, 0, 0))
    features = datasets.Features(picture=datasets.Image(), text=datasets.Value("string"))
    datasets.Dataset.from_list([{"picture": image, "text": "red"}], features=features).save_to_disk(str(tmp_path))
    ((place, row),) = stored_rows(saved(tmp_path))
    assert (place, row["text"], row["picture"]["bytes"][:4]) == ("row 1", "red", b"\x89PNG")
    assert pictures_in(row["picture"])[0].shape == (4, 4, 3)


def test_what_is_not_to_be_had_is_told_with_what_to_do(no_hub):
    with pytest.raises(RewardlabError, match=r"no Hugging Face hub can be reached.*hf download --repo-type dataset nobody/pairs"):
        asked("pairs", "hf:nobody/pairs:test")
    with pytest.raises(RewardlabError, match="is named hub:OWNER/NAME"):
        asked("pairs", "hf:pairs")
    with pytest.raises(RewardlabError, match="give its files as they were published"):
        asked("scoring-verifiers-he-r", "hf:nvidia/Scoring-Verifiers")
