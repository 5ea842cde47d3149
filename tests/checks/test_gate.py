"""The gate: every condition, on runs written down by hand."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from rewardlab.checks import gate, results
from rewardlab.checks.claim import Check, Claim, Within
from rewardlab.checks.judge import judge
from rewardlab.checks.runs import Done, as_plain
from rewardlab.errors import RewardlabError
from rewardlab.evals.core_metrics import core_metrics
from rewardlab.evals.passk import coverage
from rewardlab.rewards.task import correct

CLAIM = Claim(says="x", versus="grpo", task="arithmetic", measure="right_length", direction="lower", margin=2.0)


def runs(before, after, greedy=0.4, **more):
    """One run a seed: numbers that are lists give one number to each."""
    columns = {"before.pass@1": before, "pass@1": after, "before.greedy": [greedy] * len(after), **more}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


# gains .30, .32, .28: mean .3, sd .02
LEARNS = runs([0.3, 0.3, 0.3], [0.60, 0.62, 0.58])


def failing(claim, method, baseline):
    return [check.what for check in gate.conditions(claim, method, baseline) if not check.ok]


def test_a_world_in_which_the_baseline_learns_is_admitted():
    assert failing(CLAIM, LEARNS, LEARNS) == []
    assert len(gate.conditions(CLAIM, LEARNS, LEARNS)) == 3


def test_the_baseline_learns_by_four_standard_errors():
    # gains .1, .3, .5: mean .3, sd .2, standard error .1155
    checks = gate.conditions(CLAIM, LEARNS, runs([0.3] * 3, [0.4, 0.6, 0.8]))
    (learns,) = [check for check in checks if not check.ok]
    assert learns.what == "the baseline learns (pass@1 rises)"
    assert learns.value == pytest.approx(0.3)
    assert learns.needs == "at least 4 standard errors (0.462)"
    # five gains of mean .2 and sd .1, a standard error of .0447: clear of noise, though only two standard deviations
    gains = [0.5 - x for x in (0.1265, 0.0632, 0.0, -0.0632, -0.1265)]
    assert failing(CLAIM, LEARNS * 2, runs([0.3] * 5, gains)) == []
    # without any change, and so without spread
    assert "the baseline learns (pass@1 rises)" in failing(CLAIM, LEARNS, runs([0.3] * 3, [0.3] * 3))
    # a single run has no spread to compare with
    assert "the baseline learns (pass@1 rises)" in failing(CLAIM, LEARNS[:1], LEARNS[:1])


@pytest.mark.parametrize(("after", "ok"), [(0.14, False), (0.16, True), (0.84, True), (0.86, False)])
def test_the_baseline_ends_with_room(after, ok):
    found = failing(CLAIM, LEARNS, runs([0.01] * 3, [after - 0.001, after, after + 0.001]))
    assert ("the baseline ends with room to differ (pass@1)" not in found) == ok
    # in units of another range: a return of -10 to 10 must end within -7 to 7
    wide = replace(CLAIM, span=(-10.0, 10.0))
    assert "the baseline ends with room to differ (pass@1)" not in failing(wide, LEARNS, runs([0.01] * 3, [after] * 3))


def test_whether_a_method_ends_below_its_start_is_told_beside_the_gate():
    # changes -.1, -.12, -.08: sd .02, standard error .0115
    below = runs([0.5] * 3, [0.40, 0.38, 0.42])
    assert failing(CLAIM, below, LEARNS) == []
    assert not gate.kept_up(CLAIM, below).ok
    assert gate.kept_up(CLAIM, below).what == "the method does not end below its start (pass@1)"
    # within two standard errors it may be chance: changes -.01, .01, -.03: mean -.01, standard error .0115
    assert gate.kept_up(CLAIM, runs([0.5] * 3, [0.49, 0.51, 0.47])).ok


def test_where_nothing_need_be_learnt_the_baseline_still_may_not_fall_nor_fill_the_range():
    claim = replace(CLAIM, learns=None)
    assert failing(claim, LEARNS, LEARNS) == []
    # from 36% to 7%, as self-rewarding did
    falls = runs([0.36] * 3, [0.17, 0.16, 0.18])
    assert failing(claim, LEARNS, falls) == ["the baseline does not end below its start (pass@1)"]
    # the fall is the fault that the method mends
    mended = replace(claim, fault=Within("pass@1", high=0.2))
    assert failing(mended, LEARNS, falls) == []
    assert failing(claim, LEARNS, runs([0.8] * 3, [0.9, 0.91, 0.89])) == ["the baseline ends with room to differ (pass@1)"]
    # a check is about a number of the mechanism
    check = Check(**{f.name: getattr(claim, f.name) for f in fields(Claim)})
    assert gate.conditions(replace(check, start=None), LEARNS, falls) == []
    assert gate.kept_up(check, falls) is None


def test_what_a_side_must_not_lose_is_accuracy_else_the_guard_else_a_measure_that_is_to_rise():
    claim = replace(CLAIM, learns=None, guard=Within("success", low=-0.03))
    lengths = {"right_length": 9.0, "before.right_length": 8.0}
    assert gate.outcome(claim, [{"pass@1": 0.3, "before.pass@1": 0.2, "success": 0.1, "before.success": 0.2}]) == "pass@1"
    assert gate.outcome(claim, [{"pass@1": 0.3, "success": 0.1, "before.success": 0.2}]) == "success"
    assert gate.outcome(claim, [lengths]) is None
    assert gate.outcome(replace(claim, direction="higher"), [lengths]) == "right_length"


def test_the_greedy_start_leaves_something_to_learn():
    for greedy, ok in ((0.1, False), (0.2, True), (0.6, True), (0.98, False)):
        found = failing(CLAIM, LEARNS, runs([0.3] * 3, [0.60, 0.62, 0.58], greedy))
        assert (found == []) == ok
    assert failing(replace(CLAIM, start=None), LEARNS, runs([0.3] * 3, [0.60, 0.62, 0.58], 0.98)) == []


def test_fault_judge_and_mechanism_are_those_of_baseline_method_and_pair():
    claim = replace(
        CLAIM, learns=None, fault=Within("train.signal", high=0.5), judge=Within("auc", low=0.7),
        moved=Within("train.signal", low=0.2, says="more groups teach"),
    )  # fmt: skip
    method = [{"train.signal": 0.9, "auc": 0.8}, {"train.signal": 0.5, "auc": 0.8}]
    baseline = [{"train.signal": 0.4}, {"train.signal": 0.5}]
    checks, moved = gate.conditions(claim, method, baseline), gate.moved(claim, method, baseline)
    assert [(check.value, check.ok) for check in checks] == [(pytest.approx(0.45), True), (0.8, True)]
    assert (moved.value, moved.ok) == (pytest.approx(0.25), True)
    assert moved.what == "the mechanism moves its number: more groups teach"
    # what was never measured is not there
    missing = [*gate.conditions(claim, [{}, {}], [{}, {}]), gate.moved(claim, [{}, {}], [{}, {}])]
    assert [(check.value, check.ok) for check in missing] == [(None, False)] * 3


def done(numbers):
    return [Done(row, [], 1.0) for row in numbers]


def test_verdicts_of_worlds_that_are_unfit_costly_or_by_construction():
    lengths = {"right_length": [10.0, 11.0, 10.0, 11.0, 10.0]}
    longer = {"right_length": [20.0, 21.0, 20.0, 21.0, 20.0]}
    five = [0.60, 0.62, 0.58, 0.61, 0.59]
    method, baseline = (done(runs([0.3] * 5, five, **more)) for more in (lengths, longer))
    assert judge("hapo", CLAIM, method, baseline)["verdict"] == "holds"
    # the same numbers where the baseline starts nearly perfect
    perfect = done(runs([0.3] * 5, five, 0.98, **longer))
    unfit = judge("hapo", CLAIM, method, perfect)
    assert unfit["verdict"] == "unfit world"
    assert [check["what"] for check in unfit["gate"] if not check["ok"]] == [
        "the start leaves something to learn: " + CLAIM.start.says
    ]
    # shorter, but less often right: by 5 points where 3 are allowed
    worse = done(runs([0.3] * 5, [x - 0.05 for x in five], **lengths))
    guarded = judge("hapo", replace(CLAIM, guard=Within("pass@1", low=-0.03)), worse, baseline)
    assert guarded["verdict"] == "at a cost"
    assert guarded["guard"]["value"] == pytest.approx(-0.05)
    assert judge("hapo", replace(CLAIM, guard=Within("pass@1", low=-0.06)), worse, baseline)["verdict"] == "holds"
    # by construction
    sane = replace(CLAIM, sanity=True, learns=None)
    assert judge("hapo", sane, method, baseline)["verdict"] == "sanity"
    assert judge("hapo", sane, baseline, method)["verdict"] == "broken"


def test_a_guard_is_kept_by_its_whole_interval():
    lengths, longer = ({"right_length": [x, x + 1, x, x + 1, x]} for x in (10.0, 20.0))
    even = [0.6] * 5
    claim = replace(CLAIM, learns=None, start=None, guard=Within("pass@1", low=-0.03))

    def judged(changes):
        method = done(runs([0.3] * 5, [x + change for x, change in zip(even, changes, strict=True)], **lengths))
        return judge("hapo", claim, method, done(runs([0.3] * 5, even, **longer)))

    # mean -.02 and above the bound, but from -.05 to .01: it takes more pairs to tell
    unclear = judged([-0.05, -0.03, -0.02, -0.01, 0.01])
    assert unclear["guard"]["value"] == pytest.approx(-0.02)
    assert unclear["guard"]["ok"] is None
    assert unclear["guard"]["interval"][0] < -0.03 < unclear["guard"]["interval"][1]
    assert unclear["verdict"] == "undecided"
    assert judged([-0.021, -0.020, -0.019, -0.020, -0.020])["verdict"] == "holds"
    assert judged([-0.051, -0.050, -0.049, -0.050, -0.050])["verdict"] == "at a cost"


def accuracies(before, after):
    return done(runs([before] * 5, [after + x for x in (-0.002, -0.001, 0.0, 0.001, 0.002)]))


def test_a_method_that_collapses_is_worse_and_no_unfit_world():
    claim = replace(CLAIM, measure="pass@1", direction="higher", margin=0.02)
    assert judge("hapo", claim, accuracies(0.3, 0.05), accuracies(0.3, 0.6))["verdict"] == "reversed"


def test_losing_less_than_the_baseline_is_no_gain():
    # from 36% to 19%, where the baseline ends at 17%
    claim = replace(CLAIM, measure="pass@1", direction="higher", margin=0.01, learns=None, fault=Within("pass@1", high=0.2))
    method = done(runs([0.36] * 5, [0.190, 0.191, 0.192, 0.193, 0.194]))
    found = judge("cream", claim, method, accuracies(0.36, 0.17))
    assert found["effect"] == pytest.approx(0.022)
    assert (found["verdict"], found["kept"]["ok"]) == ("at a cost", False)


def test_a_mechanism_that_moved_nothing_is_told_beside_the_verdict():
    claim = replace(CLAIM, measure="pass@1", direction="higher", margin=0.02, moved=Within("train.signal", low=0.2))
    method, baseline = (done([{**row.numbers, "train.signal": 0.5} for row in accuracies(0.3, after)]) for after in (0.7, 0.6))
    found = judge("hapo", claim, method, baseline)
    assert found["verdict"] == "holds"
    assert (found["moved"]["value"], found["moved"]["ok"]) == (0.0, False)
    assert not [check for check in found["gate"] if "mechanism" in check["what"]]


def test_the_margin_that_counts_is_never_below_a_standard_deviation_between_seeds():
    claim = replace(CLAIM, measure="pass@1", direction="higher", margin=0.01, learns=None, start=None)

    def judged(effects):
        return judge(
            "hapo",
            claim,
            done(runs([0.2] * len(effects), [0.4 + e for e in effects])),
            done(runs([0.2] * len(effects), [0.4] * len(effects))),
        )

    # mean .02, sd .0316 of 20 pairs: its interval lies above 0, and it reaches the margin of .01, but not a standard deviation
    wide = judged([0.05, -0.01] * 10)
    assert wide["interval"][0] > 0
    assert wide["sd"] == pytest.approx(0.03 * (20 / 19) ** 0.5)
    assert (wide["margin"], wide["verdict"]) == (wide["sd"], "undecided")
    # mean .02, sd .01
    narrow = judged([0.03, 0.01] * 10)
    assert (narrow["margin"], narrow["verdict"]) == (pytest.approx(0.01 * (20 / 19) ** 0.5), "holds")


def test_claims_that_make_no_sense_are_refused():
    with pytest.raises(RewardlabError, match=r"range of 'pass@1' needs a bound"):
        Within("pass@1")
    with pytest.raises(RewardlabError, match=r"equal updates \(steps\) or about cost \(budget\), not both"):
        replace(CLAIM, steps=3, budget=300)
    with pytest.raises(RewardlabError, match="says why it replaces the version before"):
        replace(CLAIM, version=2)
    with pytest.raises(RewardlabError, match="says why it replaces the version before"):
        replace(CLAIM, replaces="the world was unfit")
    with pytest.raises(RewardlabError, match="span of a claim"):
        replace(CLAIM, span=(1.0, 0.0))


def test_settings_may_be_rewards_in_a_list_or_by_name():
    claim = replace(CLAIM, settings={"annotators": (correct(), correct()), "of": {"right": correct()}, "n": (1, 2)})
    saved = correct().to_json()
    assert results.as_record(claim)["settings"] == {"annotators": [saved, saved], "of": {"right": saved}, "n": [1, 2]}
    assert as_plain(claim.settings) == {"annotators": [correct(), correct()], "of": {"right": correct()}, "n": [1, 2]}


def test_a_claim_is_the_same_after_it_was_recorded():
    claim = replace(CLAIM, guard=Within("pass@1", low=-0.03), version=2, replaces="its world was unfit")
    recorded = results.as_record(claim)
    assert recorded["guard"] == {"number": "pass@1", "low": -0.03, "says": ""}
    assert results.same_claim(recorded, claim)
    assert not results.same_claim(recorded, replace(claim, guard=Within("pass@1", low=-0.02)))
    # what was learnt from its runs is written afterwards, and changes no claim
    assert results.same_claim(recorded, replace(claim, finding="it learns from what is rare"))
    # a record from before these fields were there has their defaults
    old = {k: v for k, v in results.as_record(CLAIM).items() if k not in ("guard", "fault", "start", "span", "learns", "version")}
    assert results.same_claim(old, CLAIM)


def test_a_claim_whose_settings_were_renamed_is_the_same():
    claim = replace(CLAIM, settings={"max_n": 8}, task="masked:max_masks=2,error=0.1", by=core_metrics(inner=coverage()))
    old = results.as_record(claim) | {"settings": {"most": 8}, "task": "masked:most=2,error=0.1"}
    old["by"]["with"]["of"] = old["by"]["with"].pop("inner")
    assert results.same_claim(old, claim)
    assert not results.same_claim(old, replace(claim, settings={"max_n": 4}))
    assert not results.same_claim(old, replace(claim, task="masked:max_masks=3,error=0.1"))


def test_runs_measure_greedy_replies_and_gold_solutions_where_something_is_learnt_or_the_claim_names_them():
    assert CLAIM.beside
    unlearnt = replace(CLAIM, learns=None)
    assert not unlearnt.beside
    assert replace(unlearnt, measure="gold_logprob").beside
    assert replace(unlearnt, against="before.greedy").beside
    assert replace(unlearnt, fault=Within("gold", high=0.5)).beside
    assert not replace(unlearnt, fault=Within("train.signal", high=0.5)).beside


def test_a_guard_from_the_start_sees_that_both_sides_collapse():
    """A method that falls from .36 to .19 is above a rival at .07, and still has unlearnt what it knew."""
    fallen, lower = (done([{"pass@1": end, "before.pass@1": 0.36} for end in ends]) for ends in ([0.19, 0.2], [0.07, 0.08]))
    bound = Within("pass@1", low=-0.05)
    sides = ([run.numbers for run in fallen], [run.numbers for run in lower])
    assert gate.guard(replace(CLAIM, guard=bound), *sides).ok
    found = gate.guard(replace(CLAIM, guard=bound, guard_from="start"), *sides)
    assert not found.ok
    assert found.value == pytest.approx(-0.165)
