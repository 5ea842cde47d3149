"""What decides a run's best checkpoint: its own reward where it has one, and what `export` says of it."""

from __future__ import annotations

import json
import math
import re

import pytest

import rewardlab
from rewardlab import RewardlabError, Task, ask, build, part, registry, reward
from rewardlab.api.checking import check_answers
from rewardlab.api.measuring import is_own, measured
from rewardlab.checks.runs import finished
from rewardlab.commands import cli
from rewardlab.core import Run, measure
from rewardlab.evals.episodes import episode_accuracy
from rewardlab.evals.own_reward import own_reward
from rewardlab.evals.pairs import pairs_preferred
from rewardlab.evals.passk import accuracy
from rewardlab.methods.verifiers.rewardagent import supported_facts
from rewardlab.models.embedded import untrained
from rewardlab.rewards.algebra import normalised, rank
from rewardlab.rewards.length import length_penalty
from rewardlab.rewards.operator import across_groups
from rewardlab.rewards.reference import reasoning_reflection
from rewardlab.rewards.task import correct
from rewardlab.rollouts.independent import independent
from rewardlab.runs.metrics import read_metrics
from rewardlab.settings.options import is_relative
from rewardlab.verifiers.match import exact_match

TASK = Task("mine", [ask(f"Say {i}", i) for i in range(8)], [ask(f"Say {i}", i) for i in range(8, 12)], "exact_match", max_new=6)
SMALL = {"steps": 3, "max_new": 6, "eval_problems": 4, "eval_every": 1, "device": "cpu"}


@reward
def steps_done(trajectory, run, *, sign=1.0):
    """More with every step of training, whatever the policy does: the last checkpoint is the best, or with sign=-1 the first."""
    return sign * run.step + 0.01 * (len(trajectory.reply) % 2)


@reward(over="group")
def unlike_others(group):
    return [float(len(group))] * len(group)


@measure
def constant(problems, run):
    return {"constant": 1.0}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def trained(recipe, out="run", task=TASK, **changes):
    return rewardlab.train(recipe.but(problems=2), untrained(), task, out=out, **SMALL | changes)


def grpo_for(own, **settings):
    return build("grpo", {"n": 2} | settings).but(reward=own)


# ---- the rule --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        (steps_done(), True),
        (0.5 * steps_done() + length_penalty(), True),
        (part("reward", "math"), True),
        (correct(), False),
        (correct() + 0.1 * steps_done(), False),
        (steps_done() >> correct(), False),
        # the verifier of the task by its own name
        (exact_match(), False),
        (part("reward", "countdown_equation"), False),
    ],
)
def test_a_reward_of_ones_own_is_one_that_never_asks_the_task(own, expected):
    recipe = grpo_for(own)
    assert is_own(recipe, TASK) is expected
    assert measured(recipe, TASK).measure.name == ("own_reward" if expected else "accuracy")


def test_no_published_method_is_measured_by_another_number_than_before():
    for name in registry.methods():
        recipe = registry.build(name)
        assert recipe.measure is None or measured(recipe, TASK).measure == recipe.measure, name


def test_a_measure_of_ones_own_stays():
    assert measured(grpo_for(steps_done()).but(measure=constant()), TASK).measure == constant()


def test_held_out_problems_are_sampled_as_in_training_once_each_or_in_groups():
    recipe = grpo_for(steps_done(), temperature=0.7)
    assert measured(recipe, TASK).measure == own_reward(reward=steps_done(), rollout=independent(n=1, temperature=0.7))
    grouped = grpo_for(unlike_others(), n=4)
    assert measured(grouped, TASK).measure.settings["rollout"].settings["n"] == 4


def test_what_compares_within_a_group_is_measured_by_what_it_compares():
    own = 2 * normalised(steps_done()) + rank(length_penalty()).named("short")
    assert str(across_groups(own)) == "2 * steps_done() + length_penalty().named('short')"


def test_a_judge_that_compares_replies_is_not_measured_by_its_wins():
    """They are one half on average, and a reply alone has none."""
    served = {"model": "openai:http://localhost:8000#m"}
    assert measured(grpo_for(part("reward", "judge", **served, kind="pairwise")), TASK).measure == accuracy()
    assert measured(grpo_for(part("reward", "judge", **served)), TASK).measure.name == "own_reward"


def test_measuring_leaves_no_trace_in_what_a_reward_remembers():
    @reward
    def counting(trajectory, run):
        run.memory["calls"] = run.memory.get("calls", 0) + 1
        return float(run.memory["calls"])

    run = Run(untrained(), max_new=4, memory={"calls": 5})
    numbers = own_reward(reward=counting(), rollout=independent(n=1))(list(TASK.test), run)
    assert numbers["reward"] == 7.5
    assert run.memory == {"calls": 5}


@pytest.mark.parametrize(
    ("rewards", "bounds"),
    [
        # one problem tells nothing of the spread, nor do several that are all alike
        ([57.3], None),
        ([5.0, 5.0, 5.0], None),
        # t of 2 and 4 degrees of freedom: 4.303 and 2.776; standard errors 1 / sqrt(3) and sqrt(2.5 / 5)
        ([1.0, 2.0, 3.0], (2 - 4.3027 / math.sqrt(3), 2 + 4.3027 / math.sqrt(3))),
        ([1.0, 2.0, 3.0, 4.0, 5.0], (3 - 2.7764 * math.sqrt(0.5), 3 + 2.7764 * math.sqrt(0.5))),
        # in 0 .. 1 by chance: deviations of .1 around .9 reach beyond 1
        ([0.8, 0.9, 1.0], (0.9 - 4.3027 * 0.1 / math.sqrt(3), 0.9 + 4.3027 * 0.1 / math.sqrt(3))),
        # Wilson's of 0 of 2: 0 .. z^2 / (2 + z^2)
        ([0.0, 0.0], (0.0, 3.8415 / 5.8415)),
        ([1.0], None),
    ],
)
def test_the_interval_of_a_reward_is_students_and_of_one_problem_there_is_none(rewards, bounds):
    paid = iter(rewards)

    @reward
    def given(trajectory):
        return next(paid)

    problems = [ask(f"{i}+1?", str(i + 1)) for i in range(len(rewards))]
    numbers = own_reward(reward=given(), rollout=independent(n=1))(problems, Run(untrained(), max_new=4))
    assert numbers["n"] == len(rewards)
    found = (numbers.get("ci95_low"), numbers.get("ci95_high"))
    assert found == ((None, None) if bounds is None else pytest.approx(bounds, abs=1e-3))


# ---- a run -----------------------------------------------------------------------------------------------------------


def test_the_reward_leads_with_accuracy_beside_it_and_decides_the_best():
    result = trained(grpo_for(steps_done()))
    lines = read_metrics(result.out)
    assert next(k for k in lines[0] if k.startswith("eval/")) == "eval/reward"
    assert all("eval/pass@1" in line for line in lines)
    assert next(iter(result.summary["after"])) == "reward"
    assert result.summary["best"]["step"] == 3
    found = rewardlab.export(result.out, "best")
    assert (found["step"], found["measure"]) == (3, "reward")
    assert found["why"] == f"best/: step 3, reward {found['value']:.4g} (start {found['start']:.4g})"
    assert found["value"] == pytest.approx(3, abs=0.02)
    assert "warning" not in found
    assert rewardlab.report.summary.summarise(result.out)["measure"] == "reward"


def test_a_run_with_one_held_out_problem_shows_no_interval(capsys):
    result = trained(grpo_for(steps_done()), eval_problems=1)
    assert result.summary["after"]["ci95"] == [None, None]
    told = rewardlab.report.summary.summarise(result.out)
    assert (told["after"]["ci95"], told["gain"]) == (None, None)
    assert "no interval" in (result.out / "report.html").read_text()
    assert cli.main(["report", str(result.out), str(result.out), "--out", "both.html"]) == 0
    assert finished(result.out).spread == {}


def test_export_warns_that_the_untrained_model_was_best(capsys):
    trained(grpo_for(steps_done(sign=-1.0)))
    assert cli.main(["export", "run", "best", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["step"] == 0
    assert found["warning"].startswith("the untrained model was best: step 0, reward ")
    assert cli.main(["export", "run", "again"]) == 0
    assert "warning: the untrained model was best" in capsys.readouterr().err
    last = rewardlab.export("run", "last", last=True)
    assert (last["which"], last["step"]) == ("last", 3)
    assert last["why"].startswith("model/: the last, step 3; reward ")


def test_a_resumed_run_keeps_the_measure_that_it_began_with():
    result = trained(grpo_for(steps_done()))
    saved = json.loads((result.out / "config.json").read_text())["recipe"]
    assert registry.load_recipe(saved).measure.name == "own_reward"


# ---- prompts without answers -----------------------------------------------------------------------------------------


@pytest.fixture
def prompts(tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n".join(json.dumps({"prompt": f"Say {i}", "hint": "x"}) for i in range(12)))
    (tmp_path / "mine.py").write_text(
        "def brief(completion): return -len(completion)\ndef right(completion, answer): return completion == answer\n"
        "def hinted(completion, hint): return hint in completion\n"
    )
    return path


TRAIN = "train grpo --task {} --n 2 --problems 2 --steps 1 --max-new 4 --eval-problems 2 --model untrained --device cpu --out run"


def test_prompts_alone_suffice_for_a_reward_that_needs_no_answer(prompts, capsys):
    assert cli.main([*TRAIN.format(prompts).split(), "--reward", "mine.py:hinted", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert "reward" in document["after"]
    assert "pass@1" not in document["after"]


@pytest.mark.parametrize(
    ("chosen", "says"),
    [
        ([], r"the reward correct\(\) needs answers"),
        (["--reward", "mine.py:right"], "takes the argument answer, and needs answers"),
        (["--reward", '"mine.py:brief" + math()'], r"the reward math\(\) needs answers"),
    ],
)
def test_where_a_part_needs_answers_it_is_said_before_training(chosen, says, prompts, tmp_path, capsys):
    assert cli.main([*TRAIN.format(prompts).split(), *chosen]) == 2
    said = capsys.readouterr().err
    assert re.search(says, said)
    assert "(columns besides the prompt: hint). Name the column with --answer-column" in said
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("method", ["pqm", "er_prm"])
def test_labels_of_steps_by_the_verifier_need_answers(method, prompts):
    with pytest.raises(RewardlabError, match=r"monte_carlo_steps\(.*\) needs answers, .* there is no column 'answer'"):
        check_answers(build(method), registry.task(str(prompts)))


def test_a_step_without_a_verdict_names_the_row_and_what_the_verifier_lacks(tmp_path):
    (file := tmp_path / "mine.jsonl").write_text("".join(f'{{"prompt": "{i}?", "answer": "5", "note": ""}}\n' for i in range(4)))
    how = {"steps": 1, "max_new": 4, "device": "cpu", "eval_problems": 0, "settings": {"problems": 2, "n": 2}}
    with pytest.raises(RewardlabError) as told:
        rewardlab.train("pqm", untrained(), str(file), verifier="code", out=tmp_path / "run", **how)
    assert (
        "4 of 4 rollouts got no verdict at step 1: the reply has no verdict; the task's verifier: the gold answer has neither"
        in str(told.value)
    )
    assert re.search(r"mine.jsonl, line \d has the columns prompt, answer, note\)", str(told.value))


def test_without_answers_and_a_reward_nothing_is_measured(prompts):
    task = registry.task(str(prompts))
    assert measured(build("sft"), task).measure is None
    with pytest.raises(RewardlabError, match="pass@k needs answers"):
        rewardlab.evaluate(untrained(), task)


def pairs_in(path, rows):
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return registry.task(str(path))


PAIRS = [{"prompt": f"Say {i}", "chosen": f"{i}!", "rejected": "no"} for i in range(16)]


@pytest.mark.parametrize(("method", "names"), [("dpo", {"chosen_gain", "rejected_gain"}), ("simpo", set())])
def test_a_policy_that_learns_from_pairs_is_measured_on_those_held_out(method, names, tmp_path):
    """Rows of pairs have no answers; without a number of held-out pairs nobody sees that it learns, or has learnt enough."""
    task = pairs_in(tmp_path / "pairs.jsonl", PAIRS)
    result = trained(build(method, {"lr": 3e-3}), task=task)
    before, after = result.summary["before"], result.summary["after"]
    assert next(iter(before)) == "pair_likelihood"
    assert after["n"] == min(4, len(task.test))
    assert names <= after.keys()
    if names:
        assert (before["preferred"], before["pair_likelihood"]) == pytest.approx((0.5, math.log(0.5)))
    assert after["margin"] > before["margin"]
    # pairs that are all told apart after a step are told apart still better by the last
    assert result.summary["best"]["step"] == 3


def test_pairs_alone_are_measured_so(tmp_path):
    pairs = pairs_in(tmp_path / "pairs.jsonl", PAIRS)
    assert measured(build("dpo", {"beta": 0.3}), pairs).measure == pairs_preferred(beta=0.3)
    assert measured(build("ipo"), pairs).measure == pairs_preferred()
    # a reply that is only imitated is preferred to none; single judged replies are no pairs; answers are verified
    assert measured(build("sft", {"field": "chosen"}), pairs).measure is None
    single = pairs_in(tmp_path / "single.jsonl", [row | {"rejected": None} for row in PAIRS])
    assert measured(build("kto"), single).measure is None
    answered = pairs_in(tmp_path / "answered.jsonl", [row | {"answer": "1"} for row in PAIRS])
    assert measured(build("dpo"), answered).measure.name == "accuracy"


def test_what_is_judged_by_its_end_is_measured_without_answers():
    task = registry.task("terminals:test_size=4")
    assert "answer" not in task.columns
    assert measured(build("endless_terminals"), task).measure.function is episode_accuracy.function
    # replies that no environment answers leave no folder to judge
    assert measured(build("sft"), task).measure is None
    found = rewardlab.evaluate(untrained(), task, k=(1,), problems=2, max_new=4)
    assert (found["n"], found["pass@1"]["value"]) == (2, 0.0)


def test_the_summary_says_what_became_of_the_truth_under_a_reward_of_ones_own():
    result = trained(grpo_for(steps_done()))
    # three steps: first and last fifth are one each; the untrained policy is never right
    assert re.fullmatch(r"0 → 0, with a reward of 0\.\d+ → 2\.?\d*", result.summary["truth"])
    assert json.loads((result.out / "summary.json").read_text())["truth"] == result.summary["truth"]
    # where the reward is the verdict, there is nothing to say
    assert "truth" not in trained(grpo_for(correct()), out="verified").summary
    unanswered = Task("prompts", [ask(f"Say {i}") for i in range(8)], [ask("Say 9")], "exact_match", max_new=6)
    assert trained(grpo_for(steps_done()), "unanswered", unanswered).summary["truth"].startswith("not known")


def test_a_reward_that_compares_replies_is_not_measured_on_one():
    with pytest.raises(RewardlabError, match=r"compares the replies to a problem.*independent\(n=4\)"):
        own_reward(reward=unlike_others(), rollout=independent(n=1))(list(TASK.test), Run(untrained(), max_new=4))
    numbers = own_reward(reward=unlike_others(), rollout=independent(n=4))(list(TASK.test), Run(untrained(), max_new=4))
    assert "reward" in numbers


def test_which_rewards_compare_replies():
    assert is_relative(normalised(length_penalty()))
    assert not is_relative(normalised(length_penalty(), within="running"))
    assert is_relative(correct() + 0.1 * rank(length_penalty()))
    assert is_relative(reasoning_reflection())
    assert not is_relative(correct() + length_penalty())
    assert not is_relative(supported_facts())


def test_no_method_measures_what_compares_replies_on_one_reply():
    for name in registry.methods():
        measure = registry.build(name).measure
        if measure is not None and measure.name == "own_reward" and is_relative(measure.settings["reward"]):
            sampler = measure.settings["rollout"].innermost
            assert sampler.settings.get("n", 2) >= 4, name
