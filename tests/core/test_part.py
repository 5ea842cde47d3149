"""Parts print as formulas, survive JSON, refuse unknown names, and tell what they need."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardlab import core
from rewardlab.core import Chain, credit, objective, rollout, select
from rewardlab.core.part import decorator
from rewardlab.errors import RewardlabError
from rewardlab.registry import load_part
from rewardlab.rewards.reward import reward


@credit
def scale(a, batch, run, *, by=2.0):
    return a * by


@credit(needs=("ref",))
def shift(a, batch, run, *, by=1.0):
    return a + by


@credit(needs=("value",))
def inside(a, batch, run, *, part=None, parts=()):
    return a


@credit
def strict(a, batch, run, *, must, may=1):
    return a


@credit
def anything(a, batch, run, *, x=None):
    return a


@objective(needs=("old",))
def first(out, batch, run, *, eps=0.2):
    return out.logprobs


@objective(unit="row", needs=("ref", "old"), wants=("logprobs", "entropy"))
def second(out, batch, run):
    return out.logprobs.sum(1)


@reward
def right(trajectory):
    return 1.0


def round_trip(part):
    return load_part(json.loads(json.dumps(part.to_json())))


@pytest.mark.parametrize(
    ("part", "formula"),
    [
        (scale(), "scale()"),
        (scale(by=3.0), "scale(by=3)"),
        (scale(by=2.0), "scale()"),
        (strict(must="a", may=2), "strict(must='a', may=2)"),
        (inside(part=scale(by=0.5)), "inside(part=scale(by=0.5))"),
        (anything(x=(1, "b")), "anything(x=(1, 'b'))"),
        (scale() >> shift(by=2) >> scale(), "scale() >> shift(by=2) >> scale()"),
        (first() + 0.1 * second(), "first() + 0.1 * second()"),
        (0.5 * (first() + second()), "0.5 * (first() + second())"),
        (first(eps=0.3) * 2, "2 * first(eps=0.3)"),
        ((right() >> right().named("b")) * right(), "(right() >> right().named('b')) * right()"),
    ],
)
def test_a_part_prints_as_its_formula_and_survives_json(part, formula):
    assert str(part) == formula
    again = round_trip(part)
    assert (again, str(again), hash(again)) == (part, formula, hash(part))


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text("ab", max_size=3),
    lambda x: st.lists(x, max_size=3) | st.lists(x, max_size=3).map(tuple) | st.dictionaries(st.sampled_from("cd"), x, max_size=2),
    max_leaves=6,
)


@given(plain)
def test_any_plain_setting_comes_back_as_it_went_in(value):
    part = anything(x=value)
    again = round_trip(part)
    assert again == part
    assert str(again) == str(part)
    assert again.settings == part.settings


def test_parts_in_a_setting_come_back_as_parts():
    part = inside(part=scale(by=3.0) >> shift(), parts=[scale(), scale(by=4.0)])
    again = round_trip(part)
    assert again == part
    assert [str(x) for x in again.walk()] == [str(x) for x in part.walk()]
    assert again.settings["part"](1.0, None, None) == 4.0


def test_a_part_is_what_it_runs_however_it_was_written():
    assert scale() == scale(by=2.0)
    assert len({scale(), scale(by=2.0), scale(by=2)}) == 1
    assert strict(must=1, may=2) == strict(may=2, must=1)
    assert hash(strict(must=1, may=2)) == hash(strict(may=2, must=1))
    assert inside(part=scale()) == inside(part=scale(by=2.0))
    assert scale(by=3.0) != scale()
    assert scale() != shift()
    assert (scale() >> shift()) != (shift() >> scale())


def test_calling_binds_and_the_bound_part_runs():
    assert scale(by=3.0)(2.0, None, None) == 6.0
    assert (scale() >> shift(by=5))(1.0, None, None) == 7.0


def test_an_unknown_hyperparameter_is_refused_with_the_nearest_name():
    with pytest.raises(RewardlabError, match=r"unknown hyperparameter of first 'epss'; did you mean eps\?"):
        first(epss=0.1)
    with pytest.raises(RewardlabError, match="strict needs must"):
        strict()


def test_a_saved_part_that_no_longer_fits_is_refused():
    data = scale(by=3.0).to_json()
    with pytest.raises(RewardlabError, match="unknown hyperparameter of scale 'bye'"):
        load_part(data | {"with": {"bye": 1}})
    with pytest.raises(RewardlabError, match="cannot find the part"):
        load_part(data | {"part": data["part"] + "_gone"})
    with pytest.raises(RewardlabError, match=r"cannot find the part no\.such\.module:x"):
        load_part({"part": "no.such.module:x", "with": {}})


def test_a_setting_that_cannot_be_saved_is_refused():
    with pytest.raises(RewardlabError, match="must be plain data or a part, not set"):
        anything(x={1}).to_json()


def test_needs_are_collected_from_every_part_inside_once():
    assert scale().needs == ()
    assert (scale() >> shift() >> inside(part=shift())).needs == ("ref", "value")
    assert inside(parts=(scale(), shift())).needs == ("value", "ref")
    assert inside(parts={"x": [shift()]}).needs == ("value", "ref")
    assert (first() + 0.1 * second()).needs == ("old", "ref")
    assert (first() + second()).wants == ("logprobs", "entropy")
    assert (first() + second()).units == ("token", "row")


@pytest.mark.parametrize(
    "join",
    [
        lambda: scale() >> shift,
        lambda: scale() >> first(),
        lambda: first() + second,
        lambda: first() + 1,
        lambda: first() + scale(),
    ],
)
def test_joining_with_what_is_no_part_of_the_slot_is_refused(join):
    with pytest.raises(RewardlabError, match=r"cannot join .*forgot to call it"):
        join()


def test_a_chain_of_chains_is_one_chain():
    assert (scale() >> (shift() >> scale())) == ((scale() >> shift()) >> scale())
    assert len((scale() >> (shift() >> scale())).of) == 3
    assert isinstance(scale() >> shift(), Chain)


def test_every_slot_has_its_decorator():
    made = [rollout, select, decorator(type(scale()))]
    for make in made:

        @make
        def part(x, *, y=1):
            return x + y

        assert part(y=2)(3) == 5


def test_no_module_of_core_has_the_name_of_what_core_exports():
    """Once imported, such a module would stand in the place of the export."""
    assert not {path.stem for path in Path(core.__file__).parent.glob("*.py")} & set(core.__all__)
