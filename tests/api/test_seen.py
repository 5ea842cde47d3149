"""Rows with pictures from end to end: trained on, resumed, measured, answered by served models, and compared by the data tools."""

import json
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

import rewardlab
from rewardlab import api, data, registry
from rewardlab.clients.messages import Request
from rewardlab.core import Message, Problem, Run, Sampling, Trajectory
from rewardlab.data.in_memory import GivenRows
from rewardlab.data.pictures import Picture, address_of, png
from rewardlab.errors import RewardlabError
from rewardlab.judges.critiques import criticised, original
from rewardlab.judges.named import form_of
from rewardlab.models.load import load_policy
from rewardlab.rewards.judge import judge
from rewardlab.runs.metrics import read_metrics
from tests.helpers.seen import lines, looker, pixels, saved
from tests.helpers.served_model import serving

SMALL = {"max_new": 4, "device": "cpu", "eval_problems": 2, "record_every": 1}
ASKED = "what is it ?"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return looker(tmp_path_factory.mktemp("model"))


@pytest.fixture
def rows(tmp_path):
    return [{"prompt": ASKED, "image": name, "answer": str(k % 2)} for k, name in enumerate(saved(tmp_path, 6))]


@pytest.fixture
def source(tmp_path, rows):
    return lines(tmp_path / "rows.jsonl", rows)


def recorded(out):
    return pq.read_table(sorted(out.glob("rollouts/*.parquet"))[0]).to_pylist()


def test_a_run_on_pictures_is_resumed_bit_for_bit_and_says_what_was_seen(model, source, tmp_path):
    settings = {"n": 2, "problems": 2, "minibatches": 1, "epochs": 1}
    # a reward that differs from reply to reply, so that something is learnt
    given = {"reward": "length_penalty", "settings": settings}
    whole = api.train("grpo", model, source, **given, steps=3, out=tmp_path / "whole", **SMALL)
    api.train("grpo", model, source, **given, steps=1, out=tmp_path / "half", **SMALL)
    half = api.resume(tmp_path / "half", steps=3)
    names = ("loss", "entropy", "grad_norm", "tokens", "reward")
    plain = [[[row.get(name) for name in names] for row in read_metrics(run.out)] for run in (whole, half)]
    assert plain[0] == plain[1]
    assert [recorded(run.out) for run in (half,)] == [recorded(whole.out)]
    # equal words below other pictures stay apart wherever they are compared
    questions = {row["question"] for row in recorded(whole.out)}
    assert len(questions) == 2
    assert all(q.startswith(f"{ASKED}\n[1 picture: ") for q in questions)
    measured = api.evaluate(whole.out, eval_problems=2, max_new=4)
    assert measured["n"] == len(registry.task(source).test)


def test_a_run_whose_pictures_have_changed_is_not_resumed(model, source, tmp_path):
    settings = {"n": 2, "problems": 2}
    api.train("grpo", model, source, settings=settings, steps=1, out=tmp_path / "run", **SMALL)
    for k in range(6):
        (tmp_path / f"{k}.png").write_bytes(png(pixels(k + 10)))
    with pytest.raises(RewardlabError, match="trained on other problems"):
        api.resume(tmp_path / "run", steps=2)


@pytest.mark.parametrize(("method", "columns"), [("sft", {"solution": "a cup"}), ("dpo", {"chosen": "the cup", "rejected": "no"})])
def test_replies_and_pairs_below_pictures_are_learnt_from(method, columns, model, rows, tmp_path):
    taught = lines(tmp_path / "rows.jsonl", [{"prompt": ASKED, "image": row["image"], **columns} for row in rows])
    run = api.train(method, model, taught, steps=1, out=tmp_path / "run", settings={"problems": 2}, **SMALL)
    assert run.summary["steps"] == 1


@pytest.mark.parametrize("how", [{}, {"engine": "trl"}])
def test_what_reads_text_alone_is_refused_pictures_before_anything_is_trained(how, model, source, tmp_path):
    says = (
        "through TRL models are trained on text alone"
        if how
        else "line 1: the prompt shows a picture, and the model reads text alone"
    )
    with pytest.raises(RewardlabError, match=says):
        api.plan("grpo", model if how else "untrained", source, settings={"n": 2, "problems": 2}, **how)
    if not how:
        planned = api.plan("grpo", model, source, settings={"n": 2, "problems": 2}, max_new=4)
        # a word each, a mark of the template, and the four tokens of the picture
        assert planned["prompts"]["train"]["longest"] > 4
        api.plan(
            "grpo",
            "untrained",
            lines(tmp_path / "text.jsonl", [{"prompt": f"{k} ?", "answer": 1} for k in range(4)]),
            settings={"n": 2},
        )


def test_served_models_are_sent_pictures_at_their_marks(tmp_path):
    names = saved(tmp_path, 2)
    rows = [{"prompt": f"<image> is a cup, {k} <image> ?", "images": [names[k], names[0]], "answer": "yes"} for k in range(2)]
    source = lines(tmp_path / "rows.jsonl", rows)
    with serving(lambda body: "yes") as server:
        measured = api.evaluate(server.name, source, max_new=4, test=source)
    assert measured["n"] == 2
    parts = next(body for body in server.asked if "1 " in str(body))["messages"][-1]["content"]
    urls = [address_of(Picture(tmp_path / name)) for name in (names[1], names[0])]
    assert parts == [
        {"type": "image_url", "image_url": {"url": urls[0]}}, {"type": "text", "text": " is a cup, 1 "},
        {"type": "image_url", "image_url": {"url": urls[1]}}, {"type": "text", "text": " ?"},
    ]  # fmt: skip


def test_pictures_stay_with_their_message_in_a_request():
    said = (("system", "look"), ("user", "a <image> b"), ("assistant", "no"), ("user", "and ?"))
    body = Request(said, 4, images=((), ("data:1",), (), ("data:2", "data:3"))).body("m")
    contents = [m["content"] for m in body["messages"]]
    assert contents[0] == "look"
    assert [part.get("text", "picture") for part in contents[1]] == ["a ", "picture", " b"]
    assert contents[2] == "no"
    assert [part.get("text", "picture") for part in contents[3]] == ["picture", "picture", "and ?"]
    assert Request(said, 4).body("m")["messages"][1]["content"] == "a <image> b"


def shown(k, text=ASKED):
    return Problem((Message("system", "look"), Message("user", text, images=(Picture(png(pixels(k))),))), "a cup")


def test_judges_see_what_they_judge_a_reply_to():
    groups = [[Trajectory(shown(k)).plus(replace_turn("a cup"), "end")] for k in range(2)]
    with serving(lambda body: "[[1]]") as server:
        judge(model=server.name, temperature=1.0, expected=False)(groups, Run(None, seed=0))
    sent = [body["messages"][-1]["content"][0]["image_url"]["url"] for body in server.asked]
    assert sorted(sent) == sorted(address_of(shown(k).prompt[-1].images[0]) for k in range(2))
    # the same words below another picture are not the first question once more
    assert len({body["seed"] for body in server.asked}) == 2
    assert form_of("", "scale", 0, 10).asked(shown(0), ["a cup"]).prompt[-1].images == shown(0).prompt[-1].images


def replace_turn(text):
    from rewardlab.core import Turn

    return Turn("policy", np.zeros(2, np.int64), text=text)


def test_a_problem_in_other_words_and_one_that_was_criticised_keep_their_pictures():
    problem = shown(0)
    assert problem.reworded("and now ?").prompt[-1] == replace(problem.prompt[-1], text="and now ?")
    assert Problem(()).reworded("so ?").prompt == (Message("user", "so ?"),)
    assert original(criticised(problem, "a cup")).prompt == problem.prompt
    several = Problem(
        (Message("user", "<image> a", images=problem.prompt[-1].images), Message("assistant", "b"), Message("user", "c")), "1"
    )
    assert original(criticised(several, "d")).prompt == several.prompt


def test_rewards_of_the_user_are_given_pictures():
    from rewardlab.rewards.reward import as_reward

    def seen(completion, images, image):
        return float(len(images) + image.shape[0])

    (row,) = as_reward(seen)([[Trajectory(shown(0)).plus(replace_turn("a cup"), "end")]], Run(None))
    assert row[0].value == 13.0


def test_duplicates_are_rows_that_show_the_same(rows, tmp_path):
    other = tmp_path / "elsewhere"
    other.mkdir()
    (other / "same.png").write_bytes((tmp_path / "1.png").read_bytes())
    again = [rows[0], rows[1] | {"image": "./1.png"}, {k: v for k, v in rows[0].items() if k != "image"}]
    source = lines(tmp_path / "rows.jsonl", [*rows, *again])
    told = data.dedupe_file(source, tmp_path / "clean.jsonl")
    assert [json.loads(line).get("image") for line in (tmp_path / "clean.jsonl").open()] == [*(row["image"] for row in rows), None]
    assert told["dropped"] == {"duplicate": 2}
    test = lines(other / "test.jsonl", [rows[1] | {"image": "same.png"}])
    data.dedupe_file(tmp_path / "clean.jsonl", tmp_path / "kept.jsonl", against=[test])
    assert [json.loads(line).get("image") for line in (tmp_path / "kept.jsonl").open()] == [f"{k}.png" for k in (0, 2, 3, 4, 5)] + [
        None
    ]


def test_pairs_are_of_replies_to_the_same_picture(rows, tmp_path):
    said = [{"prompt": ASKED, "image": row["image"], "reply": f"{score}", "score": score} for row in rows[:2] for score in (0, 1)]
    data.pairs_file(lines(tmp_path / "rows.jsonl", said), tmp_path / "pairs.jsonl")
    pairs = [json.loads(line) for line in (tmp_path / "pairs.jsonl").open()]
    assert [(pair["image"], pair["chosen"], pair["rejected"]) for pair in pairs] == [("0.png", "1", "0"), ("1.png", "1", "0")]


def test_pass_rates_are_measured_on_the_picture_and_curves_are_of_it(model, rows, source, tmp_path):
    api.pass_rate_file(source, tmp_path / "rated.jsonl", model=model, samples=2, max_new=4, device="cpu", keep_replies=True)
    rated = [json.loads(line) for line in (tmp_path / "rated.jsonl").open()]
    assert [row["image"] for row in rated] == [row["image"] for row in rows]
    policy, (problem, *_) = load_policy(model, "cpu", "float32"), registry.task(source).train.problems
    assert (
        policy.extend(policy.read([Trajectory(problem)], [problem.prompt]), Sampling(2), _rng())[0].turns[0].images
        == problem.prompt[0].images
    )
    seen = len(registry.task(source).train.problems)
    settings = {"n": 2, "problems": seen}
    run = api.train("grpo", model, source, settings=settings, steps=2, out=tmp_path / "run", **SMALL)
    told = data.learning_file(source, tmp_path / "learnt.jsonl", run=run.out, steps_per_epoch=1)
    # each row that is not held out has a curve of its own
    assert (told["written"], told["epochs"]) == (seen, 2)


def _rng():
    import torch

    return torch.Generator().manual_seed(0)


def test_rows_in_memory_with_pictures_are_written_and_read_again(tmp_path):
    rows = [{"prompt": f"{k} ?", "image": pixels(k), "answer": k} for k in range(3)]
    rows.append({"prompt": "3 ?", "image": {"bytes": png(pixels(3)), "path": None}, "answer": 3})
    path = GivenRows.of(rows).written(tmp_path / "rows")
    first, again = ({p.key for p in [*t.train.problems, *t.test]} for t in map(registry.task, (rows, str(path))))
    assert first == again
    # a table that holds bytes becomes lines that hold them, too
    data.mix_files({_parquet(tmp_path / "rows.parquet"): 1.0}, tmp_path / "mixed.jsonl")
    mixed = registry.task(str(tmp_path / "mixed.jsonl"))
    assert {np.asarray(p.prompt[0].images[0]).tobytes() for p in [*mixed.train.problems, *mixed.test]} == {
        pixels(k).tobytes() for k in range(3)
    }


def _parquet(path):
    import pyarrow

    rows = [{"prompt": f"{k} ?", "images": [{"bytes": png(pixels(k)), "path": f"{k}.png"}], "answer": k} for k in range(3)]
    pq.write_table(pyarrow.Table.from_pylist(rows), path)
    return str(path)


def test_comparing_runs_on_pictures(model, rows, tmp_path):
    given = [row | {"image": pixels(k)} for k, row in enumerate(rows)]
    settings = {"n": 2, "problems": 2, "minibatches": 1, "epochs": 1}
    result = rewardlab.compare(
        ["grpo", "rloo"],
        task=given,
        model=model,
        steps=1,
        seeds=[0],
        settings=settings,
        out=tmp_path / "cmp",
        max_new=4,
        device="cpu",
    )
    assert result
