"""What a plan says of rewards: those that judge nothing, and no false alarm."""

from __future__ import annotations

import json

import pytest

from rewardlab import registry
from rewardlab.api import plan
from rewardlab.api.checking import check_columns
from rewardlab.data.columns import Data
from rewardlab.errors import RewardlabError
from rewardlab.models import embedded, starts
from rewardlab.models.planned import unmade
from rewardlab.registry.formula import read_reward
from rewardlab.rewards.terms import check_terms
from rewardlab.rewards.user.external import from_file

PROBLEMS = [{"prompt": f"What is {i} + 2?", "answer": str(i + 2)} for i in range(4)]
PAIRS = [{"prompt": f"Name the planet {i}.", "chosen": "Mars.", "rejected": "One of them is Mars."} for i in range(4)]


@pytest.fixture
def no_verdict(tmp_path):
    def planned(recipe, rows) -> dict[str, str]:
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return plan(recipe, "untrained", str(path), device="cpu")["no_verdict"]

    return planned


def test_a_reward_that_lacks_its_column_is_told_by_name(no_verdict):
    told = no_verdict(registry.build("grpo").scored_by(read_reward("right_judgement()")), PROBLEMS)
    assert "no column 'worth'" in told["right_judgement"]


def test_a_judge_that_is_trained_on_pairs_is_no_alarm(no_verdict):
    """Its reward is of judgements: no row is one, and the columns of one come with the question to the judge."""
    assert no_verdict(registry.build("rm_r1", {"form": "{prompt} {first} {second}", "again": ""}), PAIRS) == {}


def test_a_number_in_the_formula_of_a_reward_is_planned_too(no_verdict):
    assert no_verdict(registry.build("grpo").scored_by(read_reward("2 * final_answer() - 1")), PROBLEMS) == {}


def test_a_reward_that_refuses_what_was_not_sampled_ends_no_plan(no_verdict):
    # it reads where the steps of a reply end, which a gold answer does not have
    rows = Data.from_json(next(row["data"] for row in registry.rows() if row["name"] == "fover")).rows
    assert no_verdict(registry.build("fover"), rows) == {}


@pytest.mark.parametrize(
    ("stack", "settings", "engine", "says"),
    [
        ("laser", {}, "trl", "TRL cannot carry laser: its training loop is its own"),
        ("grpo", {"reward": "prm_steps(model='prm:no_such_run')"}, "embedded", "unknown model 'no_such_run'"),
        ("grpo", {"reward": "model_score(model='model:no_such_run')"}, "embedded", "unknown model 'no_such_run'"),
        ("prof", {"process": "prm_steps(model='prm:no_such_run')"}, "embedded", "unknown model 'no_such_run'"),
    ],
)  # fmt: skip
def test_what_would_end_the_run_ends_its_plan(stack, settings, engine, says, tmp_path):
    (rows := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PROBLEMS))
    read = {name: read_reward(text) for name, text in settings.items()}
    reward = read.pop("reward", None)
    recipe = registry.build(stack, read)
    with pytest.raises(RewardlabError, match=says):
        plan(recipe.scored_by(reward) if reward else recipe, "untrained", str(rows), device="cpu", engine=engine)


GAME = """
from rewardlab.core import Message, environment

@environment(start=lambda problem, seed, **_: (Message("user", "Say anything. " * 10), 0))
def game(state, turn):
    return Message("user", "Once more."), state
"""


def test_an_episode_has_an_opening_and_several_replies(tmp_path):
    (tmp_path / "game.py").write_text(GAME)
    (rows := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PROBLEMS))

    def planned(**settings):
        recipe = registry.build("grpo", {"n": 2, "problems": 2, **settings})
        return plan(recipe, "untrained", str(rows), device="cpu", max_new=16)

    alone, played = planned(), planned(env=f"{tmp_path}/game.py:game", turns=3)
    assert "replies_per_episode" not in alone
    assert (played["replies_per_episode"], played["not_counted"]) == (3, "what the environment answers")
    # two more replies, and what the game begins with
    assert played["tokens_per_step"] == alone["tokens_per_step"] + 4 * (2 * 16 + played["opening_tokens"])
    assert played["opening_tokens"] > 20
    assert played["memory_bytes"] > alone["memory_bytes"]
    # a context holds no more than it holds
    many = planned(env=f"{tmp_path}/game.py:game", turns=1000)
    assert many["tokens_per_step"] <= 4 * many["prompts"]["context"]


# ---- small policies, which take minutes to make --------------------------------------------------------------------------


def test_a_plan_makes_no_small_policy_and_counts_one_like_it(own_cache, monkeypatch, capsys):
    monkeypatch.setattr(embedded, "cached", lambda name, make: pytest.fail(f"{name} was made"))
    found = plan("grpo", task="arithmetic", device="cpu")
    assert found["parameters"] == sum(p.numel() for p in embedded._new(embedded.tokenizer(), {}).parameters())
    assert "the small policy is made at the first run" in " ".join(capsys.readouterr().err.split())
    adapted = plan("grpo", task="arithmetic", device="cpu", lora_rank=4)
    assert adapted["parameters"] > found["parameters"]


@pytest.mark.parametrize(
    ("name", "task"), [("embedded", "arithmetic"), ("embedded#2", "countdown"), ("embedded:notes", "countdown")]
)
def test_a_small_policy_that_is_made_is_planned_with(name, task, own_cache, monkeypatch):
    """The folder that is looked for is the one that it is made in."""
    kind, number = starts.parted(name)
    asked = []
    for maker in (embedded, starts):
        monkeypatch.setattr(maker, "cached", lambda name, make: asked.append(name))
    of = registry.task(kind.partition(":")[2] or task)
    starts.checkpoint(of, number)
    assert unmade(name, registry.task(task)) is not None
    (own_cache / asked[-1]).mkdir(parents=True)
    assert unmade(name, registry.task(task)) is None
    assert unmade("untrained", of) is None
    assert unmade("openai:http://localhost:1/v1#m", of) is None


# ---- what a run would be refused for, before it begins ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("formula", "name"),
    [
        ("correct() + correct()", "correct"),
        ("length_penalty(per_token=0.1) + 2 * length_penalty(per_token=0.2)", "length_penalty"),
        ("correct() >> (math() * math())", "math"),
        ("correct().named('a') + length_penalty().named('a')", "a"),
    ],
)
def test_terms_of_one_name_are_refused_before_a_model_is_loaded(formula, name, monkeypatch):
    recipe = registry.build("grpo").scored_by(read_reward(formula))
    monkeypatch.setattr("rewardlab.api.planning.policy_of_dry_run", lambda *_: pytest.fail("a model was loaded"))
    with pytest.raises(RewardlabError, match=f"two rewards are named '{name}'; tell them apart with"):
        plan(recipe, "untrained", "arithmetic", device="cpu")


@pytest.mark.parametrize(
    "formula", ["correct() + correct().named('b')", "length_penalty() - answer_given() + 1 + 1", "math() * correct()"]
)
def test_terms_of_different_names_are_joined(formula):
    check_terms(read_reward(formula))


def test_terms_of_ones_own_functions_have_their_names_unless_scores_may_name_them(tmp_path):
    plain = "def f(completion): return 1.0\ndef g(completion): return 1.0\n"
    for name in ("a", "b"):
        (tmp_path / f"{name}.py").write_text(plain)
    (tmp_path / "c.py").write_text("from rewardlab.core import Score\ndef f(completion): return Score(1.0).named('own')\n")
    f, g, other, free = (from_file(path=str(tmp_path / f"{file}.py"), function=name) for file, name in ("af", "ag", "bf", "cf"))
    with pytest.raises(RewardlabError, match="two rewards are named 'f'"):
        check_terms(f + other)
    check_terms(f + g + free)
    with pytest.raises(RewardlabError, match="two rewards are named"):
        check_terms(f + free + free)


def test_a_plan_refuses_an_out_and_a_tracker_as_the_run_does(tmp_path):
    (rows := tmp_path / "rows.jsonl").write_text("{}")
    for settings, why in (
        ({"out": rows}, "this exists already"),
        ({"out": "/proc/mine"}, "cannot write /proc/mine"),
        ({"out": tmp_path}, "is not empty, and holds no run: there is rows.jsonl"),
        ({"track": "foo"}, "unknown tracker 'foo'"),
    ):
        with pytest.raises(RewardlabError, match=why):
            plan("grpo", "untrained", "arithmetic", device="cpu", **settings)


def test_equal_replies_are_refused_where_a_credit_compares_them():
    with pytest.raises(RewardlabError, match=r"equal replies at temperature 0, and the credit center\(\) compares "):
        plan("grpo", "untrained", "arithmetic", device="cpu", settings={"temperature": 0})
    check_columns(registry.build("grpo", {"temperature": 0.1}), registry.task("arithmetic"))
    # the rewards of steps differ within a reply, and a critic compares none
    check_columns(registry.build("ppo", {"temperature": 0}), registry.task("arithmetic"))


@pytest.mark.parametrize("lacking", [0, 21])
def test_rows_without_answers_are_counted_wherever_they_stand(lacking, tmp_path):
    rows = [{"prompt": f"What is {i} + 2?"} | ({} if i == lacking else {"answer": str(i + 2)}) for i in range(40)]
    (file := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(RewardlabError, match=rf"1 of 40 rows|line {lacking + 1}: the problem has no answer") as refused:
        plan("grpo", "untrained", str(file), device="cpu")
    assert f"line {lacking + 1}" in str(refused.value)
    assert "columns besides the prompt: none" not in str(refused.value)


@pytest.mark.parametrize(("have", "count"), [(range(1, 40), 1), (range(1), 39), (range(20), 20)])
def test_a_column_that_some_rows_lack_is_counted_and_not_called_unknown(have, count, tmp_path):
    (tmp_path / "mine.py").write_text("def f(completion, foo): return 1.0\ndef g(completion, foo=None): return 1.0\n")
    rows = [{**PROBLEMS[0], "prompt": f"What is {i} + 2?"} | ({"foo": 1} if i in have else {}) for i in range(40)]
    (file := tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = registry.task(str(file), test_share=0.01)
    lacking = [p for p in task.train.problems if "foo" not in p.meta]
    of = registry.build("grpo").scored_by(read_reward(f"{tmp_path}/mine.py:f"))
    if not lacking:
        return check_columns(of, task)
    message = rf"asks for 'foo', and {len(lacking)} of 39 rows have no column 'foo', first .*{lacking[0].place.rpartition('/')[2]}"
    with pytest.raises(RewardlabError, match=message):
        check_columns(of, task)
    assert abs(len(lacking) - count) <= 1
    check_columns(registry.build("grpo").scored_by(read_reward(f"{tmp_path}/mine.py:g")), task)
