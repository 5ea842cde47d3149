"""What docs/methods.md says of a record: levels on both sides, on numbers written down by hand."""

from rewardlab.checks.levels import levels


def record(method, baseline=(), measure="pass@1", updates=40, **claim):
    claim = {"versus": "grpo" if baseline else None, "task": "arithmetic", "model": None, "direction": "higher", "against": None,
             "guard": None, "settings": {}, "versus_settings": {}} | claim  # fmt: skip
    effect = sum(m[measure] - b[measure] for m, b in zip(method, baseline, strict=True)) / len(method) if baseline else 0.3
    return {
        "method": method, "baseline": list(baseline), "measure": measure, "claim": claim, "effect": effect,
        "updates": {"method": updates} if updates else {},
    }  # fmt: skip


def runs(before, *after, **more):
    return [{"before.pass@1": before, "pass@1": x, **more} for x in after]


def test_levels_of_both_sides_and_the_start():
    said = levels("dapo", record(runs(0.4, 0.7, 0.74), runs(0.4, 0.58, 0.6)))
    world, reached = said.split(". ")
    assert world == "40 updates of the small policy of the task on `arithmetic`, 2 seeds"
    assert reached == "40% right at the start; grpo ends at 59%, dapo ends at 72%."


def test_losing_less_is_said_to_help_nobody():
    own = {"versus": "cream", "settings": {"lr": 1e-4}, "versus_settings": {"lr": 1e-4, "label": "sure"}}
    said = levels("cream", record(runs(0.36, 0.18, 0.19, 0.2), runs(0.36, 0.06, 0.07, 0.08), **own))
    assert said.endswith(
        "36% right at the start; cream with label=sure ends at 7.0%, cream ends at 19%. cream loses less; neither helps."
    )
    # one side that gains helps
    assert "neither helps" not in levels("cream", record(runs(0.36, 0.4, 0.41, 0.42), runs(0.36, 0.06, 0.07, 0.08)))
    # changes of -.1 and .08 are noise: mean -.01, standard error .09
    assert "neither helps" not in levels("cream", record(runs(0.36, 0.26, 0.44), runs(0.36, 0.06, 0.08)))


def test_numbers_that_are_no_shares_keep_their_names_and_what_is_guarded_is_told():
    guard = {"guard": {"number": "pass@1", "low": -0.03}, "direction": "lower"}
    short, long = (runs(0.3, 0.6, 0.62, log_right_length=x) for x in (2.302585, 2.995732))
    said = levels("hapo", record(short, long, measure="log_right_length", **guard))
    assert "`log_right_length`: grpo reaches 20.0 tokens, hapo reaches 10.0 tokens. Beside it, right: 61% and 61%." in said


def test_without_a_baseline_the_other_number_or_the_start_is_told():
    numbers = [{"covered": 0.8, "covered.random": 0.6, "before.covered": 0.5}]
    other = levels("codeboost", record(numbers, measure="covered", model="untrained", updates=1, against="covered.random"))
    assert other == (
        "1 update of an untrained policy on `arithmetic`, 1 seed. `covered`: `covered.random` is 0.6, codeboost reaches 0.8."
    )
    start = levels("bradley_terry", record(numbers, measure="covered", updates=0, against="before.covered"))
    assert start.startswith("No training: the small policy of the task on `arithmetic`")
    assert start.endswith("`covered`: before training it is 0.5, bradley_terry reaches 0.8.")
