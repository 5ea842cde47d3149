"""A run whose steps are all its method's first stage is refused before it starts."""

from __future__ import annotations

import pytest

from rewardlab import registry
from rewardlab.api import plan, train
from rewardlab.api.idle import tell_idle
from rewardlab.api.stages import check_stages, first_stage_alone
from rewardlab.commands import cli
from rewardlab.core import loop
from rewardlab.errors import RewardlabError
from rewardlab.runs.config import RunConfig


def told(method: str, steps: int | None = None, **settings) -> list[str]:
    return list(first_stage_alone(registry.build(method, settings), RunConfig(steps=steps)))


def test_it_is_told_with_how_many_steps_are_enough():
    assert told("dpo", 20, sft_steps=20) == [
        "dpo: the first stage (steps=20 of the loop sft_first) takes all 20 steps of this run, so that what follows it is never "
        "trained: take --steps 21 or more, or a shorter stage"
    ]
    assert not told("dpo", 21, sft_steps=20)
    # the default is 100 steps
    assert told("dpo", sft_steps=100)
    assert not told("dpo", 1)


def test_stages_that_follow_each_other_are_added_up():
    (both,) = told("xwin_lm", 24)
    assert "(sft_steps=8 and best_steps=16 of the loop in_stages) takes all 24 steps" in both
    assert not told("xwin_lm", 25)
    assert "--steps 21 or more" in told("ultramedical", 20)[0]


@pytest.mark.parametrize(
    ("method", "steps"),
    [("cream", 10), ("malt", 10), ("dianjin_r1", 20), ("eag_rl", 10), ("grail", 20), ("oreal", 10), ("self_judge_jsft", 30)],
)
def test_every_method_with_a_first_stage_is_looked_at(method, steps):
    assert len(told(method, steps)) == 1
    assert not told(method, steps + 1)


def test_a_stage_that_is_a_share_of_the_run_leaves_some():
    for method in ("online_merging_optimizer", "wrpo"):
        assert not told(method, 3)
        assert told(method, 30, sft_steps=30)


def test_nothing_is_known_of_a_run_that_ends_at_a_budget():
    assert not list(first_stage_alone(registry.build("cream"), RunConfig(budget=1000)))


def test_a_wrapped_loop_is_looked_at_too():
    recipe = registry.build("xwin_lm", {"sft_steps": 2, "best_steps": 2})
    recipe = recipe.but(loop=registry.part("loop", "rlhf_workflow_online/writer_follows", inner=recipe.loop))
    with pytest.raises(RewardlabError, match="takes all 4 steps"):
        check_stages(recipe, RunConfig(steps=4))


def test_a_method_by_name_is_refused_and_a_recipe_is_told(tmp_path, capsys):
    short = {"task": "preferences", "steps": 5, "settings": {"sft_steps": 5}}
    for begin in (train, plan):
        with pytest.raises(RewardlabError, match="takes all 5 steps"):
            begin("dpo", "untrained", out=tmp_path / "run", **short)
    assert not (tmp_path / "run").exists()
    tell_idle(registry.build("dpo", {"sft_steps": 5}), registry.task("preferences", test_size=4), RunConfig(steps=5))
    assert "warning: dpo: the first stage" in capsys.readouterr().err


def test_a_stage_is_a_setting_of_its_loop():
    with pytest.raises(RewardlabError, match="stpes"):

        @loop(first=("stpes",))
        def mine(recipe, run, ops, *, steps: int = 3):
            """A loop."""


def test_the_command_refuses_it_too(capsys):
    for how in ([], ["--dry-run"]):
        line = ["train", "dpo", "--task", "preferences", "--steps", "5", "--sft-steps", "5", *how]
        assert cli.main(line) == 2
        assert "takes all 5 steps" in capsys.readouterr().err
