"""Prompts that are too long for the model: found before training, and refused, dropped or shortened."""

import json
import shutil

import pytest

import rewardlab
from rewardlab import RewardlabError
from rewardlab.api.prompt_lengths import fit_prompts
from rewardlab.commands import train as train_command
from rewardlab.comparisons.compare import compare
from rewardlab.core import Message, Problem, Recipe, Task, Trajectory, ask, environment
from rewardlab.models.embedded import untrained
from rewardlab.policies.truncate import truncate_left
from rewardlab.rollouts.interactive import interactive
from rewardlab.rollouts.recorded import recorded
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled

SMALL = {"model": "untrained", "steps": 2, "eval_problems": 2, "max_new": 6, "device": "cpu", "checkpoint_every": 0}
GRPO = {"n": 2, "problems": 2}
LONG = "end of the long one 7" + " 7" * 600


@pytest.fixture
def policy():
    return untrained()  # reads 512 tokens


@pytest.fixture
def mine(tmp_path):
    """30 problems, of which two training prompts and one held-out prompt are too long."""

    def write(name, rows):
        (tmp_path / name).write_text("".join(json.dumps({"prompt": p, "answer": 1}) + "\n" for p in rows))
        return str(tmp_path / name)

    train = write("train.jsonl", [f"{i}+1?" for i in range(20)] + [f"{i}? {LONG}" for i in range(2)])
    return {"task": train, "test": write("held.jsonl", [*(f"{i}-1?" for i in range(7)), LONG])}


def begin(tmp_path, **settings):
    return rewardlab.train("grpo", settings=GRPO, out=tmp_path / "run", **SMALL | settings)


def test_one_prompt_too_long_is_refused_before_anything_is_written(mine, tmp_path):
    with pytest.raises(RewardlabError, match=r"2 of 22 training prompts are too long: .*--overlong drop or truncate-left"):
        begin(tmp_path, **mine)
    assert not (tmp_path / "run").exists()
    with pytest.raises(RewardlabError, match="2 of 22 training prompts"):
        rewardlab.plan("grpo", settings=GRPO, **mine, **SMALL)
    with pytest.raises(RewardlabError, match="1 of 8 held-out prompts are too long"):
        rewardlab.evaluate("untrained", k=(1,), problems=2, max_new=6, **mine)
    with pytest.raises(RewardlabError, match="2 of 22 training prompts"):
        # in this process, before any of those that train
        compare(["grpo", "rloo"], RunConfig(model="untrained", max_new=6, **mine), out=tmp_path / "compared")
    with pytest.raises(RewardlabError, match="1 of 8 held-out prompts are too long"):
        rewardlab.answer("best_of_n", "untrained", problems=2, max_new=6, **mine)


def test_dropped_prompts_are_counted_said_and_written_down(mine, tmp_path, capfd):
    result = begin(tmp_path, overlong="drop", **mine)
    assert "dropped 2 of 22 training prompts over 506 tokens" in capfd.readouterr().err
    document = json.loads((result.out / "config.json").read_text())
    assert document["overlong"] == "drop"
    found = document["prompts"]["train"]
    assert (found["prompts"], found["overlong"], found["dropped"]) == (22, 2, 2)
    assert found["longest_kept"] < 100 < 506 < found["longest"]
    kept, longest = found["longest_kept"], f"{found['longest']:,}"
    assert train_command.prompts({"train": found}) == {
        "training prompts": f"20, the longest of {kept} tokens (2 dropped: too long, up to {longest})"
    }
    assert document["prompts"]["test"]["dropped"] == 1
    plan = rewardlab.plan("grpo", settings=GRPO, overlong="drop", **mine, **SMALL)
    assert plan["prompts"] == document["prompts"]
    assert rewardlab.evaluate("untrained", k=(1,), max_new=6, overlong="drop", **mine)["n"] == 7


@pytest.mark.parametrize("action", ["drop", "truncate-left"])
def test_a_run_resumes_on_the_same_prompts(action, mine, tmp_path):
    folder = begin(tmp_path, overlong=action, steps=12, checkpoint_every=6, **mine).out
    weights = (folder / "model" / "model.safetensors").read_bytes()
    for name in ("summary.json", "report.html"):
        (folder / name).unlink()
    # as if the run had been killed after step 6 of 12, in which all 22 prompts are seen
    shutil.rmtree(max((folder / "checkpoints").glob("step-*")))
    assert rewardlab.resume(folder).summary["steps"] == 12
    assert (folder / "model" / "model.safetensors").read_bytes() == weights


def test_what_is_cut_is_the_oldest_text_of_the_user_and_nothing_else(policy):
    prompt = (Message("system", "Add up."), Message("user", f"first words {LONG} 3+4=?"))
    cut = truncate_left(policy, prompt, 60)
    assert policy.prompt_lengths([cut])[0] in range(55, 61)
    assert cut[0] == prompt[0]
    assert prompt[1].text.endswith(cut[1].text)
    rendered = policy.decode_all([policy.read([Trajectory(Problem(cut))], [cut])[0].ids])[0]
    assert rendered.startswith("system\nAdd up.")
    assert rendered.endswith("3+4=?\nassistant\n")


def test_of_a_conversation_whole_turns_go_first(policy):
    talk = (Message("user", LONG), Message("assistant", LONG), Message("user", "What is 3+4?"), Message("assistant", "7"))
    last = Message("user", "and 1 more?")
    assert truncate_left(policy, (Message("system", "s"), *talk, last), 80) == (Message("system", "s"), *talk[2:], last)
    # nothing of the user's text would be left beside such a system message
    assert truncate_left(policy, (Message("system", LONG), last), 80) is None


def test_what_fits_is_left_as_it_is(policy):
    prompt = ask("3+4=?", system="Add up.").prompt
    assert truncate_left(policy, prompt, policy.prompt_lengths([prompt])[0]) == prompt


def test_lengths_are_those_of_the_prompts_that_the_policy_reads(policy):
    prompts = [ask("3+4=?").prompt, ask("é 漢 " * 9, system="Add up.").prompt]
    rows = policy.read([Trajectory(Problem(p)) for p in prompts], prompts)
    assert policy.prompt_lengths(prompts) == [len(t) for t in rows]


class Every9th:
    """An endless source, like that of a generated task."""

    def __getitem__(self, position):
        return ask(f"{position}? {LONG}" if position % 9 == 5 else f"{position}?", 1)


def test_of_an_endless_task_a_sample_is_looked_at_and_the_rest_as_it_comes(policy):
    task, config = Task("mine", Every9th(), [ask("1?", 1)], "exact_match", max_new=6), RunConfig()
    with pytest.raises(RewardlabError, match="22 of 200 sampled training prompts are too long"):
        fit_prompts(task, policy, config, Recipe())
    for action in ("drop", "truncate-left"):
        fitted, found = fit_prompts(task, policy, config.but(overlong=action), Recipe())
        assert found["train"]["overlong"] == 22
        problems = [fitted.train[i] for i in range(999, 1020)]
        assert max(policy.prompt_lengths([p.prompt for p in problems])) <= 506
        assert [p.question for p in problems] == [fitted.train[i].question for i in range(999, 1020)]
        assert fitted.train[1000].question == "1000?"


def test_data_without_replies_is_refused_before_a_method_imitates_them(mine, tmp_path):
    with pytest.raises(RewardlabError, match=r"solution: the reply to imitate.*--completion-column"):
        rewardlab.train("sft", out=tmp_path / "run", overlong="drop", **mine, **SMALL)
    assert not (tmp_path / "run").exists()


def test_recorded_replies_count_with_their_prompts(policy):
    problems = [ask("1?", 1, solution="7 " * 150), ask("7 " * 150, 1, solution="7"), ask("7 " * 150, 1, solution="7 " * 150)]
    task = Task("mine", Shuffled(problems), [], "exact_match", max_new=300)
    fitted, found = fit_prompts(task, policy, RunConfig(overlong="drop"), Recipe(rollout=recorded()))
    lengths = {"longest": found["train"]["longest"], "longest_kept": found["train"]["longest_kept"]}
    assert found["train"] == {"prompts": 3, "overlong": 1, "dropped": 1, **lengths}
    assert [p.question for p in fitted.train.problems] == [p.question for p in problems[:2]]


@environment(start=lambda problem, seed, *, words: (Message("user", "7 " * words), {}))
def talkative(state, turn, *, words=50):
    return None, state


def test_the_opening_of_an_environment_counts_with_the_prompt(policy):
    problems = [ask("1?", 1), ask("7 " * 120, 1)]
    task, config = Task("mine", Shuffled(problems), problems, "exact_match", max_new=200), RunConfig(overlong="drop")
    alone, longer = policy.prompt_lengths([p.prompt for p in problems])
    opening = policy.prompt_lengths([(*problems[0].prompt, Message("user", "7 " * 50))])[0] - alone
    # the longer prompt fits with a reply alone, and with the opening it does not
    assert longer + 200 <= policy.context < longer + opening + 200
    fitted, found = fit_prompts(task, policy, config, Recipe(rollout=interactive(env=talkative())))
    assert (found["train"]["overlong"], found["test"]["overlong"]) == (1, 1)
    assert [p.question for p in fitted.train.problems] == ["1?"]
    assert fit_prompts(task, policy, config, env=talkative())[1]["test"]["overlong"] == 1
    assert fit_prompts(task, policy, config)[1]["test"]["overlong"] == 0
    with pytest.raises(RewardlabError, match="for the opening message and the reply they exceed"):
        fit_prompts(task, policy, RunConfig(), env=talkative())
    # what is cut leaves room for it
    fitted, _ = fit_prompts(task, policy, config.but(overlong="truncate-left"), env=talkative())
    assert max(policy.prompt_lengths([p.prompt for p in fitted.test])) + opening + 200 <= policy.context


@pytest.mark.parametrize("overlong", ["error", "drop", "truncate-left"])
def test_an_opening_longer_than_the_context_is_what_is_told(policy, overlong):
    """No shorter reply would make room for it."""
    problems = [ask("1?", 1), ask("2?", 1)]
    task = Task("mine", Shuffled(problems), problems, "exact_match", max_new=20)
    with pytest.raises(RewardlabError, match="take a model with a longer context") as told:
        fit_prompts(task, policy, RunConfig(overlong=overlong), env=talkative(words=policy.context))
    assert "--max-new" not in str(told.value)


def test_the_questions_of_a_judge_must_fit_and_not_the_prompts_of_its_rows(tmp_path):
    """A run does not end at the first row whose replies are too long to be judged, hours after it began."""
    rows = [{"prompt": f"{i}?", "chosen": "yes" * (1 + 300 * (i == 3)), "rejected": "no"} for i in range(12)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "held.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows[:3]))
    files = {"task": str(tmp_path / "pairs.jsonl"), "test": str(tmp_path / "held.jsonl")}
    asked = {"settings": {"form": "{prompt} {first} {second}", **GRPO}, **files, **SMALL}
    with pytest.raises(RewardlabError, match=r"1 of 9 training prompts, as they are asked, are too long: .*--overlong drop, or"):
        rewardlab.plan("trained_judge", **asked)
    with pytest.raises(RewardlabError, match=r"\(of '3\?'\)"):
        rewardlab.train("trained_judge", out=tmp_path / "run", **asked)
    for cut in ("drop", "truncate-left"):
        found = rewardlab.plan("trained_judge", overlong=cut, **asked)["prompts"]["train"]
        assert (found["overlong"], found["dropped"]) == (1, 1)
