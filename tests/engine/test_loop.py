"""What the training loop says while it runs."""

import json

import pyarrow.parquet as pq
import pytest

from rewardlab import api, build
from rewardlab.core import Score
from rewardlab.engine.ending import shown
from rewardlab.errors import RewardlabError
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.judgements import accepted_judgements
from rewardlab.rollouts.ranked import ranked
from rewardlab.text.answers import NO_ANSWER


def test_an_older_held_out_value_is_shown_with_the_step_it_was_measured_at():
    evaluations = {0: {"pass@1": 0.125, "n": 8}, 10: {"pass@1": 0.25, "n": 8}}
    assert shown(10, {"reward": 0.5}, evaluations) == "reward 0.500  held-out pass@1 0.250"
    assert shown(12, {"reward": 0.5}, evaluations) == "reward 0.500  held-out pass@1 0.250 (step 10)"
    assert shown(12, {}, {}) == ""


def test_the_share_of_replies_without_an_answer_is_logged(tmp_path):
    config = {"steps": 1, "max_new": 4, "eval_every": 0, "eval_problems": 2, "device": "cpu"}
    api.train("grpo", "untrained", "arithmetic", settings={"problems": 4, "n": 4}, out=tmp_path / "run", **config)
    (told,) = [row["no_answer"] for row in map(json.loads, (tmp_path / "run" / "metrics.jsonl").open()) if row["step"] == 1]
    (file,) = (tmp_path / "run" / "rollouts").glob("*.parquet")
    reasons = [row["why"] for row in pq.read_table(file).to_pylist()]
    assert told == sum(NO_ANSWER in why for why in reasons) / len(reasons)
    assert 0 < told < 1


@reward
def silent(trajectory):
    """A judge that never gives a verdict."""


@pytest.mark.parametrize(
    ("recipe", "says"),
    [
        (build("dpo", {"problems": 2}).but(rollout=ranked(by=silent(), n=2, model="policy")), "At none of 1 steps did a pair hold"),
        (
            build("sft", {"problems": 2}).but(rollout=accepted_judgements(by=silent(), form="{prompt} {first} {second}", n=2)),
            "Nothing was accepted at any of the 1 steps",
        ),
    ],
)
def test_a_run_that_taught_nothing_says_so_at_its_end(recipe, says, tmp_path, capfd):
    rows = [{"prompt": f"{i}?", "chosen": "yes", "rejected": "no", "solution": "so"} for i in range(8)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    config = {"steps": 1, "max_new": 4, "eval_every": 0, "device": "cpu", "patience": 0, "max_missing": 1.0}
    api.train(recipe.but(measure=None), "untrained", str(tmp_path / "rows.jsonl"), out=tmp_path / "run", **config)
    (told,) = [line for line in capfd.readouterr().err.splitlines() if line.startswith("warning: ")]
    assert told.startswith(f"warning: {says}")
    assert "Try: " in told


@reward(over="group")
def seldom(group, run):
    """A judge that gives one verdict in four."""
    return [1.0, *(Score(None, why="hm") for _ in group[1:])]


def test_what_ends_a_run_with_too_few_verdicts_says_how_many_may_be_missing(tmp_path):
    config = {"steps": 1, "max_new": 4, "eval_every": 0, "device": "cpu"}
    recipe = build("grpo", {"problems": 2, "n": 4}).but(reward=seldom(), measure=None)
    with pytest.raises(RewardlabError, match=r"6 of 8 rollouts got no verdict at step 1 \(more than 50%: --max-missing\): hm"):
        api.train(recipe, "untrained", "arithmetic", out=tmp_path / "run", **config)


@reward(over="groups", relative=True)
def one_sided(groups, run, *, pays: float = 0.5):
    """A judge that prefers whatever stands first, so that both orders of every pair disagree."""
    run.log("judge_prefers_first", 1.0)
    return [[pays * i if pays != 0.5 else 0.5 for i, _ in enumerate(group)] for group in groups]


def test_a_judge_that_prefers_what_stands_first_is_told_of_without_being_watched(tmp_path, capfd):
    config = {"steps": 2, "max_new": 4, "eval_every": 0, "device": "cpu"}
    recipe = build("grpo", {"problems": 2, "n": 2}).but(measure=None)
    said = "earned 0.5: there is nothing to learn from. The judge prefers what stands first in 100% of comparisons"
    with pytest.raises(RewardlabError, match=said):
        api.train(recipe.but(reward=one_sided()), "untrained", "arithmetic", out=tmp_path / "same", patience=2, **config)
    api.train(recipe.but(reward=one_sided(pays=1.0)), "untrained", "arithmetic", out=tmp_path / "run", **config)
    assert "warning: The judge prefers the reply that stands first, in 100% of comparisons at step 2" in capfd.readouterr().err
