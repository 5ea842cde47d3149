"""Symptoms on logs made by hand: each is found where it is, and not in a run that is well."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from rewardlab.errors import RewardlabError
from rewardlab.report.diagnosis import diagnose, findings
from rewardlab.report.finding import Curves
from rewardlab.runs.foreign import read_log, renamed

NOISE = np.random.default_rng(0).normal(0, 0.02, (3, 60))


def log(**curves):
    """60 steps of a run that is well, with these metrics (a number, or a function of the step) in place of its own."""
    well = {
        "reward": lambda s: 0.3 + s / 150 + NOISE[0, s], "truth": lambda s: 0.3 + s / 150 + NOISE[1, s],
        "entropy": lambda s: 0.5 - s / 200, "length": lambda s: 200 + s / 2, "signal": 0.8, "all_right": 0.1, "all_wrong": 0.1,
        "cut_off": 0.01, "ratio_far": 0.02, "mismatch_far": 0.001, "kl": lambda s: s / 1000,
        "grad_norm": lambda s: 0.3 + NOISE[2, s], "loss": 0.01,
    }  # fmt: skip
    made = {name: value if callable(value) else lambda s, value=value: value for name, value in (well | curves).items()}
    return [{"step": s + 1, **{name: curve(s) for name, curve in made.items()}} for s in range(60)]


def flat(step):
    return 0.4 + NOISE[1, step]


def named(rows):
    return [finding.name for finding in findings(rows)]


def test_a_run_that_is_well_has_no_findings():
    assert named(log()) == []
    assert named(log(calls=0.8, failed_calls=0.1, failed_searches=0.01, out_of_turns=0.2, out_of_context=0.0)) == []


@pytest.mark.parametrize(
    ("curves", "name"),
    [
        ({"entropy": lambda s: 0.5 * 0.9**s, "truth": flat, "reward": flat}, "entropy collapse"),
        ({"entropy": lambda s: 0.5 + s / 20}, "entropy explosion"),
        ({"length": lambda s: 200 + 6 * s, "truth": flat, "reward": flat}, "length creep"),
        ({"length": lambda s: 200 - 3 * s, "truth": flat, "reward": flat}, "length collapse"),
        ({"cut_off": lambda s: s / 100}, "replies cut off"),
        ({"cut_off": 0.0, "turns_cut_off": lambda s: s / 100}, "replies cut off"),
        ({"no_answer": lambda s: 0.0 if s < 45 else 0.04}, "answers not found"),
        ({"signal": lambda s: 0.8 - s / 100}, "groups without signal"),
        ({"ratio_far": lambda s: s / 100}, "clipped share"),
        ({"clip_share": 0.3}, "clipped share"),
        ({"eval/unread": 0.9}, "judgements not read"),
        ({"accepted": 0.0}, "nothing accepted"),
        ({"paired": 0.0}, "no pairs"),
        ({"judge_no_verdict": 0.4}, "judge without verdicts"),
        ({"judge_prefers_first": 0.9}, "position bias"),
        ({"eval/judge_no_verdict": 1.0}, "judge without verdicts"),
        ({"calls": 1.0, "failed_calls": lambda s: s / 100}, "failing calls"),
        ({"failed_searches": 0.5}, "failing searches"),
        ({"calls": lambda s: 0.5 if s < 40 else 0.0, "failed_calls": 0.0}, "unused tools"),
        ({"out_of_turns": 0.8, "out_of_context": 0.0}, "turns used up"),
        ({"out_of_turns": 0.8, "out_of_context": 0.2}, "context used up"),
        ({"mismatch_far": 0.05}, "sampler/trainer mismatch"),
        ({"mismatch_probability": 0.05}, "sampler/trainer mismatch"),
        ({"kl": lambda s: 0.01 if s < 45 else 0.9}, "KL explosion"),
        ({"grad_norm": lambda s: 40.0 if s == 30 else 0.3}, "gradient spike"),
        ({"loss": lambda s: math.nan if s == 7 else 0.1}, "not finite"),
        ({"missing": lambda s: 0.25 if s == 9 else 0.0}, "missing verdicts"),
        ({"truth": lambda s: 0.7 - s / 150 + NOISE[1, s]}, "reward hacking"),
    ],
)
def test_each_symptom_is_found_where_it_is(curves, name):
    assert named(log(**curves)).count(name) == 1


def test_entropy_and_length_may_move_while_the_policy_learns():
    # sharpening is what learning looks like, and longer replies that are right oftener are what was asked for
    assert named(log(entropy=lambda s: 0.5 * 0.9**s, length=lambda s: 200 + 6 * s)) == []


def test_a_run_in_which_nothing_is_learnt_says_so_but_not_one_at_its_ceiling():
    assert named(log(truth=flat, reward=flat)) == ["standstill"]
    assert named(log(truth=0.99, reward=0.99)) == []


def test_the_remedy_for_groups_without_signal_follows_what_they_are():
    easy, hard = (
        next(f for f in findings(log(signal=0.2, all_right=right, all_wrong=0.8 - right)) if f.name == "groups without signal")
        for right in (0.7, 0.1)
    )
    assert "80% of the last quarter's groups" in easy.text
    assert "(70% all right, 10% all wrong)" in easy.text
    assert "harder problems" in easy.remedy
    assert "easier problems" in hard.remedy


def test_a_term_is_dead_only_beside_others_and_if_it_never_varies():
    both = {"reward/correct": lambda s: s / 100, "reward/format": 1.0}
    (dead,) = findings(log(**both))
    assert dead.text == "The reward term format was 1 at each of 60 steps."
    # its mean is the same by chance: replies differ
    assert findings(log(**both, **{"spread/format": 0.2})) == []
    assert findings(log(**{"reward/format": 1.0})) == []


def test_answers_that_are_not_found_are_told_from_two_in_a_hundred_on():
    assert named(log(no_answer=0.01)) == []
    (found,) = findings(log(no_answer=0.04))
    assert found.text.startswith("4% of replies in the last quarter have no answer that the verifier can find")


def test_missing_verdicts_are_shares_of_the_rollouts():
    (found,) = findings(log(missing=lambda s: 0.3 if s == 9 else 0.0))
    assert "0.50% of the rollouts had no verdict (at worst 30.0%, at step 10)" in found.text


def test_a_held_out_measure_past_its_best_is_told_only_beyond_its_intervals():
    def measured(last):
        evals = {0: 0.4, 30: 0.7, 59: last}
        rows = log()
        for step, value in evals.items():
            rows[step] |= {"eval/pass@1": value, "eval/ci95_low": value - 0.04, "eval/ci95_high": value + 0.04}
        return findings(rows)

    assert measured(0.67) == []
    (found,) = measured(0.55)
    assert found.text == "Held-out pass@1 fell from 0.7 at step 31 to 0.55 at step 60."


def test_short_logs_say_nothing_of_tendencies():
    assert findings(log(truth=flat, reward=flat)[:6]) == []


def test_what_is_too_short_to_be_looked_at_is_not_counted_as_checked(tmp_path):
    def told(steps):
        file = tmp_path / f"{steps}.jsonl"
        file.write_text("\n".join(json.dumps({"step": s, "reward": s / 10, "truth": 1 - s / 10}) for s in range(steps)))
        return diagnose(file)

    assert told(8)["too_short"] == {"reward against truth": 10, "standstill": 16}
    assert "reward against truth" not in told(8)["checked"]
    assert told(10)["too_short"] == {"standstill": 16}
    assert "reward against truth" in told(10)["checked"]
    assert [f["name"] for f in told(10)["findings"]] == ["reward hacking"]
    # without a truth it is its number that lacks
    assert told(10)["not_checked"]["entropy"] == ["entropy"]


def test_a_truth_that_falls_by_more_than_its_noise_is_said_to_fall():
    truth = [0.5, 0.219, 0.094, 0.125, 0, 0, 0.031, 0, 0.03, 0, 0, 0.06, 0, 0]
    rows = [{"step": s + 1, "reward": 0.09 + s / 60, "truth": value} for s, value in enumerate(truth)]
    assert "while the truth falls" in findings(rows)[0].text


def test_curves_leave_out_what_is_not_finite():
    curves = Curves([{"step": 1, "kl": 0.1}, {"step": 2, "kl": None}, {"step": 3, "kl": math.inf}, {"step": 4, "kl": 0.3}])
    steps, values = curves["kl"]
    assert (steps.tolist(), values.tolist()) == ([1, 4], [0.1, 0.3])


# ---- logs of TRL and verl ----------------------------------------------------------------------------------------------------


def test_names_of_trl_and_verl_become_ours():
    trl = {"frac_reward_zero_std": 0.75, "completions/mean_length": 80, "rewards/fmt/mean": 0.5, "rewards/fmt/std": 0.1, "kl": 0.2}
    assert renamed(trl) == {"signal": 0.25, "length": 80, "reward/fmt": 0.5, "spread/fmt": 0.1, "kl": 0.2}
    verl = {"critic/score/mean": 0.4, "critic/rewards/mean": 0.3, "actor/entropy": 0.2, "val-core/gsm8k/acc/mean@1": 0.6}
    # the reward with the penalty in it keeps its name: the score is what the verifier gave
    assert renamed(verl) == {"reward": 0.4, "critic/rewards/mean": 0.3, "entropy": 0.2, "eval/gsm8k/acc/mean@1": 0.6}
    assert renamed({"train/reward": 1.0, "kl": math.nan}) == {"reward": 1.0}


def trl_state(folder, checkpoint, rewards):
    history = [
        {"step": s, "reward": r, "frac_reward_zero_std": 0.9, "entropy": 0.3, "completions/mean_length": 50.0}
        for s, r in enumerate(rewards, 1)
    ]
    history.append({"step": len(rewards), "train_runtime": 3.2, "train_loss": 0.1})
    where = folder / f"checkpoint-{checkpoint}"
    where.mkdir(parents=True)
    (where / "trainer_state.json").write_text(json.dumps({"log_history": history, "global_step": checkpoint}))


def test_an_output_folder_of_trl_is_read_from_its_newest_checkpoint(tmp_path):
    trl_state(tmp_path, 20, [0.1] * 20)
    trl_state(tmp_path, 40, [0.1 + s / 100 for s in range(40)])
    found = diagnose(tmp_path)
    assert (found["source"], found["steps"]) == ("trl", 40)
    assert isinstance(found["steps"], int)
    assert [f["name"] for f in found["findings"]] == ["groups without signal"]
    assert found["not_checked"]["KL to the reference"] == ["kl"]
    assert found["not_checked"]["reward against truth"] == ["truth"]


def test_a_metrics_file_of_verl_is_read(tmp_path):
    lines = [
        {"step": s, "data": {"critic/score/mean": 0.2 + s / 100, "actor/kl_loss": 3.0, "response_length/clip_ratio": 0.4}}
        for s in range(1, 31)
    ]
    file = tmp_path / "metrics.jsonl"
    # the line that a kill cut short
    file.write_text("\n".join(map(json.dumps, lines)) + '\n{"step": 31, "da')
    found = diagnose(file)
    assert (found["source"], found["steps"]) == ("verl", 30)
    assert {f["name"] for f in found["findings"]} == {"replies cut off", "KL explosion"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"step": 1, "reward": 1}\nnonsense\n{"step": 2, "reward": 1}', "line 2: not a JSON object"),
        ('{"reward": 1}', "line 1: no step"),
        ('{"step": 1, "accuracy": 1}', "holds no metric of training from rewards; it logs step, accuracy"),
    ],
)
def test_what_is_no_log_is_refused_with_its_place(tmp_path, text, told):
    file = tmp_path / "log.jsonl"
    file.write_text(text)
    with pytest.raises(RewardlabError, match=told.replace("(", r"\(")):
        read_log(file)


def test_a_folder_without_a_log_and_a_broken_state_are_refused(tmp_path):
    with pytest.raises(RewardlabError, match=r"no trainer_state\.json of TRL"):
        diagnose(tmp_path)
    with pytest.raises(RewardlabError, match="there is no log"):
        diagnose(tmp_path / "nowhere")
    (tmp_path / "trainer_state.json").write_text('{"global_step": 3}')
    with pytest.raises(RewardlabError, match="no readable log_history"):
        diagnose(tmp_path)


# ---- what broke, and what verl prints ----------------------------------------------------------------------------------------


def verl_numbers(step, broken):
    return {
        "critic/score/mean": 0.4 + NOISE[0, step % 60], "actor/entropy": 0.3, "response_length/mean": 80.0,
        "actor/pg_loss": math.nan if "actor/pg_loss" in broken and step >= 21 else 0.1,
        "actor/kl_loss": math.nan if "actor/kl_loss" in broken and step >= 21 else 0.01,
        "actor/grad_norm": math.nan if "actor/grad_norm" in broken and step >= 21 else 0.5,
        "critic/vf_loss": math.inf if "critic/vf_loss" in broken and step >= 21 else 0.5,
    }  # fmt: skip


def as_file(numbers):
    return "".join(json.dumps({"step": step, "data": of}) + "\n" for step, of in numbers.items())


def as_trl(numbers):
    return json.dumps({"log_history": [{"step": step, **of} for step, of in numbers.items()]})


def as_console(numbers, prefix="", number=lambda value: f"{value:.3f}"):
    said = {step: " - ".join([f"step:{step}", *(f"{k}:{number(v)}" for k, v in of.items())]) for step, of in numbers.items()}
    between = "Training Progress:  10%|█         | 4/40 [00:12<01:03,  1.7s/it]\n{'not': 'metrics'}\nstep: 3 - in prose\n"
    return between + "".join(f"{prefix}{line}\n{between}" for line in said.values())


RAY = "\x1b[36m(TaskRunner pid=4242)\x1b[0m "


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("metrics.jsonl", as_file),
        ("trainer_state.json", as_trl),
        ("out.log", as_console),
        ("out.txt", lambda numbers: as_console(numbers, RAY)),
        ("out", lambda numbers: as_console(numbers, RAY, lambda value: f"np.float64({value!r})")),
        ("slurm-1.out", lambda numbers: as_console(numbers, "", repr)),
    ],
)
@pytest.mark.parametrize(
    ("broken", "ours"),
    [("actor/grad_norm", "grad_norm"), ("actor/pg_loss", "loss"), ("critic/vf_loss", "critic/vf_loss")],
)
def test_a_number_that_broke_is_named_and_not_taken_for_standstill(name, written, broken, ours, tmp_path):
    (tmp_path / name).write_text(written({step: verl_numbers(step, {broken}) for step in range(1, 41)}))
    found = diagnose(tmp_path / name)
    assert [f["name"] for f in found["findings"]] == ["not finite"]
    assert found["findings"][0]["text"] == f"{ours} was not a finite number from step 21 on."
    assert found["steps"] == 40


def test_the_same_log_without_a_broken_number_stands_still(tmp_path):
    (tmp_path / "out.log").write_text(as_console({step: verl_numbers(step, ()) for step in range(1, 41)}, RAY))
    found = diagnose(tmp_path / "out.log")
    assert (found["source"], [f["name"] for f in found["findings"]]) == ("verl", ["standstill"])


def test_lines_of_a_console_become_rows(tmp_path):
    text = (
        f"{RAY}step:0 - val-core/gsm8k/acc/mean@1:0.100\n{RAY}step:1 - actor/loss:nan - actor/pg_loss:0.100 - "
        "critic/score/mean:0.250 - perf/who:none - timing_s/step:1.5e+02\nstep:1 - val-core/gsm8k/acc/mean@1:0.200\n"
        "step:2 - critic/score/mean:-0.500 - actor/entr"
    )
    (tmp_path / "out.log").write_text(text)
    rows = read_log(tmp_path / "out.log").rows
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert math.isnan(rows[1].pop("loss"))
    assert rows == [
        {"step": 0, "eval/gsm8k/acc/mean@1": 0.1},
        {"step": 1, "reward": 0.25, "seconds/step": 150.0, "eval/gsm8k/acc/mean@1": 0.2},
        {"step": 2, "reward": -0.5},
    ]
