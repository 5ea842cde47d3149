"""Every setting has a domain: declared once, checked by name, in Python and on the command line alike."""

import math
from typing import Literal

import pytest

from rewardlab import registry
from rewardlab.commands import cli
from rewardlab.core import Learner, Recipe, Update, credit, rollout
from rewardlab.credit.group import center, leave_one_out, scale_by_std, whiten
from rewardlab.credit.value import gae, to_go
from rewardlab.errors import RewardlabError
from rewardlab.objectives.ratio import clipped_ratio
from rewardlab.rewards.environment import paid
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.settings.domain import OutOfDomain, PositiveInt, Share, parse_value, setting_of


@rollout
def own(problems, run, *, n: PositiveInt = 4, share: Share | None = None, mode: Literal["a", "b"] = "a", anything=1):
    return []


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: independent(n=0), "n of independent must be a whole number above 0, not 0"),
        (lambda: independent(n=2.5), "n of independent must be a whole number above 0, not 2.5"),
        (lambda: independent(n=True), "n of independent must be a whole number above 0, not True"),
        (lambda: independent(temperature=-1.0), "temperature of independent must be a number from 0 up, not -1.0"),
        (lambda: independent(temperature=math.nan), "temperature of independent must be a number from 0 up, not nan"),
        (lambda: independent(temperature="1"), "temperature of independent must be a number from 0 up, not '1'"),
        (lambda: independent(top_p=0), "top_p of independent must be a number above 0, at most 1, not 0"),
        (lambda: independent().but(n=-1), "n of independent must be a whole number above 0, not -1"),
        (lambda: gae(lam=1.5), "lam of gae must be a number from 0 to 1, not 1.5"),
        (lambda: scale_by_std(eps=0.0), "eps of scale_by_std must be a number above 0, not 0.0"),
        (lambda: clipped_ratio(eps=math.inf), "eps of clipped_ratio must be a number above 0, not inf"),
        (lambda: own(share=1.1), "share of own must be a number from 0 to 1, not 1.1"),
        (lambda: own(mode="c"), "mode of own must be a or b, not 'c'"),
        (lambda: own(anything=math.nan), "anything of own must be a number, not nan"),
        (lambda: Update(problems=0), "problems must be a whole number above 0, not 0"),
        (lambda: Update(lr=-1e-4), "lr must be a number from 0 to 1, not -0.0001"),
        (lambda: Update(lr=3e4), "lr must be a number from 0 to 1, not 30000.0"),
        (lambda: Update(epochs=0), "epochs must be a whole number above 0, not 0"),
        (lambda: Update(minibatches=0), "minibatches must be a whole number above 0, not 0"),
        (lambda: Update(clip_norm=0.0), "clip_norm must be a number above 0, not 0.0"),
        (lambda: Update(beta1=1.0), "beta1 must be a number from 0 to below 1, not 1.0"),
        (lambda: Update(warmup=-1), "warmup must be a whole number from 0 up, not -1"),
        (lambda: Recipe().but(weight_decay=-0.1), "weight_decay must be a number from 0 up, not -0.1"),
        (lambda: Learner("critic", "value-head", Recipe(), every=-1), "every of the learner critic must be a whole number from 0"),
        (lambda: registry.task("arithmetic:error=2"), "error of arithmetic must be a number from 0 to 1, not 2.0"),
        (lambda: registry.task("arithmetic", test_size=-1), "test_size of arithmetic must be a whole number above 0, not -1"),
        (lambda: registry.task("gridworld:side=0"), "side of gridworld must be a whole number above 0, not 0"),
        (lambda: registry.part("reward", "code", seconds=0), "seconds of code must be a number above 0, not 0"),
    ],
)
def test_a_value_outside_its_domain_is_refused_where_it_is_written(make, message):
    with pytest.raises(OutOfDomain) as e:
        make()
    assert message in str(e.value)


def test_a_value_inside_is_kept_as_it_is():
    assert own(n=1, share=None, mode="b", anything={"x": 1}).settings == {"n": 1, "share": None, "mode": "b", "anything": {"x": 1}}
    assert independent(temperature=0, top_p=1).settings["temperature"] == 0
    assert Update(lr=0.0, clip_norm=1e9, beta1=0.0) == Update(lr=0.0, clip_norm=1e9, beta1=0.0)


def test_settings_of_methods_are_refused_in_the_users_words():
    for method, settings, message in [
        ("grpo", {"n": 0}, "n of grpo must be a whole number above 0, not 0"),
        ("grpo", {"temperature": -1.0}, "temperature of grpo must be a number from 0 up, not -1.0"),
        ("grpo", {"eps": 0.0}, "eps of grpo must be a number above 0, not 0.0"),
        ("grpo", {"beta": -0.1}, "beta of grpo must be a number from 0 up, not -0.1"),
        ("ppo", {"lam": 2.0}, "lam of ppo must be a number from 0 to 1, not 2.0"),
        # the part that refuses it calls it `lr`, and `clip`
        ("ppo", {"value_lr": -1.0}, "value_lr of ppo must be a number from 0 to 1, not -1.0"),
        ("ppo", {"value_clip": 0.0}, "value_clip of ppo must be a number above 0, not 0.0"),
        ("dapo", {"cache": 1.5}, "cache of dapo must be a number from 0 to 1, not 1.5"),
        ("hapo", {"worst": math.nan}, "worst of hapo must be a number, not nan"),
        ("grpo+hapo", {"eps": -1.0}, "eps of grpo must be a number above 0, not -1.0"),
        ("grpo", {"epochs": 0}, "epochs must be a whole number above 0, not 0"),
    ]:
        with pytest.raises(RewardlabError) as e:
            registry.build(method, settings)
        assert message in str(e.value)


def test_what_show_says_of_a_setting_is_what_its_part_checks():
    values = {p.flag: p.values for p in registry.parameters("dapo")}
    assert values["--eps"] == "a number above 0"
    assert values["--eps-high"] == "a number above 0, or none"
    assert values["--low"] == "a number from 0 to 1"
    assert values["--lr"] == "a number from 0 to 1, or none"
    assert {p.flag: p.values for p in registry.parameters("simpo")}["--gamma"] == "a number"  # a margin, not a discount


def test_the_command_line_refuses_them_before_anything_else(capsys, tmp_path):
    for flags, message in [
        ("--n 0", "n of grpo must be a whole number above 0, not 0"),
        ("--lr=abc", "lr must be a number from 0 to 1, not 'abc'"),
        ("--lr -1", "lr must be a number from 0 to 1, not -1.0"),
        ("--temperature NaN", "temperature of grpo must be a number, not nan"),
        ("--n 1", "compares the replies to a problem with each other"),
        ("--steps 0", "steps must be a whole number above 0, not 0"),
    ]:
        # a model that does not exist: it is not even looked for
        assert cli.main(f"train grpo --task arithmetic --model nowhere --out {tmp_path}/run {flags}".split()) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_one_reply_is_not_compared_with_itself():
    learns = Recipe(rollout=independent(n=1), reward=correct(), objective=clipped_ratio())
    for part in (center(), leave_one_out(), center() >> scale_by_std() >> to_go()):
        with pytest.raises(RewardlabError, match="nothing would be learned; give n = 2 or more"):
            learns.but(credit=part).validate()
    # nothing is compared; or two replies are; or rewards of steps are, within one reply; or nothing is trained
    for recipe in (
        learns.but(credit=whiten() >> to_go()), learns.but(credit=center(), rollout=independent(n=2)),
        learns.but(credit=center(), reward=paid()), learns.but(credit=center(), objective=None),
    ):  # fmt: skip
        assert recipe.validate() is recipe
    with pytest.raises(RewardlabError, match="1 reply per problem"):
        registry.build("grpo", {"n": 1})


def test_there_are_no_more_minibatches_than_groups():
    with pytest.raises(RewardlabError, match="minibatches is 5, and a step has 4 groups, which are never split: give at most 4"):
        registry.build("grpo", {"minibatches": 5, "problems": 4})
    assert registry.build("grpo", {"minibatches": 4, "problems": 4}).update.minibatches == 4
    # ten branches of each problem are ten groups
    assert registry.build("tempflow_grpo", {"minibatches": 20, "problems": 2}).rollout.groups_per_problem == 10


def test_every_method_can_be_built_with_its_defaults():
    for name in registry.methods():
        registry.build(name).validate()


@credit
def unresolved(a, batch, run, *, by: "NoSuchType" = 1, n: "PositiveInt" = 2):  # noqa: F821
    return a


def test_an_annotation_that_cannot_be_read_hides_no_other():
    assert unresolved(by="anything").settings["by"] == "anything"
    with pytest.raises(OutOfDomain):
        unresolved(n=0)


def test_what_annotations_say():
    assert setting_of(int | None).optional
    assert setting_of(int | tuple).domain is None
    assert setting_of(Share | None).domain.says == "a number from 0 to 1"
    assert setting_of(dict) == (None, None, False)


def test_numbers_as_people_write_them():
    assert parse_value("1e3") == 1000
    assert isinstance(parse_value("1e3"), int)
    assert parse_value("1e-3") == 0.001
    assert parse_value("-2E2") == -200
    assert parse_value("[" * 100_000) == "[" * 100_000
