"""What the guide says beside the records: where methods are better, what a league costs, and members by what is typed."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from rewardlab import registry
from rewardlab.comparisons import guide
from rewardlab.comparisons.facts import beside_them, pairs_of, sees, spent
from rewardlab.comparisons.guide_commands import cost, on_your_rows, other_names, runs, typed
from rewardlab.comparisons.guide_engines import engines, methods_of
from rewardlab.comparisons.league import league, leagues
from rewardlab.comparisons.standings import detectable, independent
from rewardlab.comparisons.telling import verdict
from rewardlab.comparisons.words import BASELINE, BETTER, EQUAL, WORSE
from rewardlab.registry.formula import read_reward


def record(words):
    """Of a league: by world, the words of its members."""
    members = list(next(iter(words.values())))
    worlds = [
        {"name": name, "fit": True, "rows": [{"member": member, "standing": {"word": word}} for member, word in found.items()]}
        for name, found in words.items()
    ]
    return {"members": members, "baseline": members[0], "worlds": worlds}


def test_where_a_method_is_better_is_named_while_worlds_are_few():
    base = {"grpo": BASELINE}
    two = record({"sums": {**base, "a": BETTER, "b": BETTER, "c": WORSE}, "games": {**base, "a": BETTER, "b": EQUAL, "c": EQUAL}})
    assert guide.who(BETTER, two) == 'a (2 of 2); b (in "sums")'
    assert guide.who(WORSE, two) == 'c (in "sums")'
    many = record({f"w{i}": {**base, "a": BETTER if i < 2 else EQUAL, "b": EQUAL} for i in range(5)})
    assert guide.who(BETTER, many) == "a (2 of 5)"
    assert guide.who(WORSE, many) == "none in 5"


def test_a_league_says_how_many_runs_it_makes_and_how_to_begin_smaller():
    found = league("length")
    ten = len(found.members)
    # six to choose a rate and eight to compare; settings of three members, two values each, on three seeds
    assert runs(found, found.members, 8) == 14 * ten + 18
    assert f"That is at least {14 * ten + 18} runs: {ten} methods" in cost(found)
    assert ", and 18 runs that vary a setting. A method whose best rate is at an edge is tried beyond it." in cost(found)
    assert "`--members hapo --seeds 5` makes 28." in cost(found)
    assert "Nothing is trained" in cost(league("selection"))
    assert "less than 15% of the time" in cost(found)
    assert "by the length of right replies is taken that costs no more than 5 points of right replies" in cost(found)
    assert "does not learn by four standard errors" in cost(league("objectives"))


def test_the_command_for_rows_of_ones_own_has_the_members_that_read_no_special_columns():
    found = league("without_labels")
    assert "--lora-rank 16 --members rlpr,dro_r3,majority,answer_confidence,negentropy,self_certainty\n" in on_your_rows(
        "without_labels", found
    )
    assert "That is at least 98 runs: 7 methods" in cost(found)
    assert "--corpus docs.jsonl --members igpo," in on_your_rows("agents", league("agents"))
    assert "--members 'from rewards alone,rm_r1," in on_your_rows("judges", league("judges"))
    assert "in other words. Further columns let others play: with rewrite, co_reward." in on_your_rows("without_labels", found)
    assert "--members" not in on_your_rows("dense", league("dense")).splitlines()[2]


def test_a_section_opens_with_what_to_try_and_whether_anything_is_better():
    base, found = {"grpo": BASELINE}, replace(league("length"), first="")
    none = record({"sums": {**base, "a": EQUAL, "b": WORSE}})
    assert guide.opening(found, none) == (
        "**Begin with** `grpo`. Of 2 other methods none was shown to be better than grpo, in 1 world."
    )
    one = record({"sums": {**base, "a": BETTER, "b": WORSE}, "games": {**base, "a": EQUAL, "b": WORSE}})
    unfit = {**none, "worlds": [{**none["worlds"][0], "fit": False}]}
    assert guide.opening(found, unfit).endswith("Nothing was decided: in no world did grpo learn as it must for that.")
    assert guide.opening(found, one).endswith('Better than grpo in the comparison: a (in "sums").')


def test_engines_are_told_of_members_and_of_what_a_chapter_names():
    chapter = (
        "Beside it `rip` is prose.\n\n| want | train |\n| --- | --- |\n| pairs | `coig_p`, `prompt` and `rewardlab train rip` |\n"
    )
    assert methods_of(league("data"), chapter)[-2:] == ["coig_p", "rip"]
    told = engines(league("data"), chapter)
    assert told.startswith("**Engines.** `--engine trl` carries `grpo`, `dapo`, `depo`, `prs_vspo`, `coig_p`; ")
    assert (
        "`limr`, `alphamed`, `rip` train here alone. `rewardlab export-recipe METHOD --engine verl` writes `grpo`, `dapo` (" in told
    )
    assert "neither TRL nor verl" in engines(league("reward_models"), "")
    assert engines(league("search"), "") == ""


def test_members_are_told_by_what_is_typed():
    assert "centered: `bradley_terry --center 0.01`" in other_names(league("reward_models"))
    dense = league("dense")
    # the scorer of the league's own worlds is the reader's
    assert "prm:embedded" not in other_names(dense)
    assert "prm_steps(model='prm:PATH', clip=0.5)" in typed(dense.member("clip"), dense)
    # it is a method by its name, and reads a reward that it has not by itself
    assert "prof: `prof --process \"prm_steps(model='prm:PATH')\"`" in other_names(dense)
    assert "by='last')\"`; and so by min, " in other_names(league("selection"))
    assert other_names(league("agents")) == ""


@pytest.mark.parametrize("name", leagues())
def test_what_is_typed_names_methods(name):
    found = league(name)
    for member in found.members:
        stack, *flags = shlex.split(typed(member, found))
        assert set(stack.split("+")) <= registry.methods().keys()
        assert all(flag.startswith("--") for flag in flags[::2])
        settings = dict(zip((flag.removeprefix("--").replace("-", "_") for flag in flags[::2]), flags[1::2], strict=True))
        if reward := settings.pop("reward", None):
            assert read_reward(reward)
        assert all(read_reward(text) for text in settings.values() if "(" in text)


def test_what_first_phases_add_and_what_differences_are_found():
    def row(member, updates, values):
        return {"member": member, "updates": updates, "values": values}

    values = [[0.5, 0.5, 0.5, 0.5], [0.5, 0.6, 0.5, 0.6]]
    worlds = [
        {"name": name, "fit": True, "steps": 40, "rows": [row("grpo", 40.0, values[0]), row("a", updates, values[1])]}
        for name, updates in (("sums", 40.0), ("games", 55.0))
    ]
    outcome = {"scale": "share", "better": "lower"}
    told = {"worlds": worlds, "baseline": "grpo", "outcome": outcome}
    assert beside_them(told) == " (with first phases and replays: a 55)"
    assert beside_them({**told, "worlds": worlds[:1]}) == ""
    # the baseline makes four updates a step, one for each minibatch: those of others are no further phases
    passes = {**worlds[0], "rows": [row("grpo", 160.0, values[0]), row("a", 160.0, values[1])]}
    assert spent({**told, "worlds": [passes]}) == "40 steps of 4 updates of equal size"
    assert spent({**told, "worlds": worlds[:1]}) == "40 updates of equal size"
    # four pairs whose differences have a standard deviation of .0577: (t .95 + t .6) * .0577 / 2
    assert sees(told) == " Smallest difference detected with 80% power: 12.0 points (sums), 12.0 points (games)."
    assert sees({**told, "worlds": [{**worlds[0], "paired": "problems"}]}) == ""


def test_seeds_that_share_initial_policies_find_what_so_many_policies_find():
    # by three policies: differences .1 .0 .2 .1 .0 .2 .1 .0, whose means a policy are .1 .0 .2
    base, own = [0.5] * 8, [0.6, 0.5, 0.7] * 2 + [0.6, 0.5]
    rows = [{"member": "grpo", "values": base}, {"member": "a", "values": own}]
    told = {"worlds": [{"name": "rooms", "fit": True, "starts": 3, "rows": rows}], "baseline": "grpo", "seeds": list(range(8))}
    found = detectable(0.1, 3, 1)
    assert sees({**told, "outcome": {"scale": "share", "better": "higher"}}) == (
        f" Smallest difference detected with 80% power: {100 * found:.1f} points (rooms)."
    )
    assert pairs_of(told) == "8 seeds each (in rooms from 3 initial policies, which count as that many pairs)"
    assert pairs_of({**told, "worlds": [{**told["worlds"][0], "starts": 8}]}) == "8 seeds each"
    assert [independent(8, 3), independent(8, 1), independent(5, 8)] == [3, 8, 5]


def test_a_worse_that_the_guard_alone_says_is_told_so():
    decided = {"word": WORSE, "adjusted": 0.01}
    assert [verdict({**decided, "adjusted": p}) for p in (0.01, 0.56)] == ["worse", "worse by what is guarded"]
    assert verdict({"word": "equal", "adjusted": 1.0}) == "equal"
