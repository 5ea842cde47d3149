"""What a newcomer tries first in Python, and on the command line with files of their own: it works, or is refused in words."""

from __future__ import annotations

import json

import pytest

import rewardlab
from rewardlab import RewardlabError, api, part
from rewardlab.core import Run, Score, Trajectory, ask
from rewardlab.registry.formula import read_reward
from rewardlab.rewards.reward import as_reward

SMALL = {"max_new": 4, "eval_problems": 2, "eval_every": 0, "device": "cpu", "steps": 1}
PAIRS = [{"prompt": f"Say {i}", "chosen": str(i), "rejected": "no"} for i in range(20)]
ROWS = [{"prompt": f"Say {i}", "answer": str(i)} for i in range(12)]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# ---- a reward that is called with a text ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reward", "says"),
    [
        (
            lambda: part("reward", "math"),
            r'not the str .Answer: 3.; to judge a text: part\("reward", .math.\).check\(reply, answer\)',
        ),
        (lambda: part("reward", "length_penalty"), r"length_penalty.*not the str .*score\(reply, answer\)"),
        (lambda: 2 * as_reward(len_of) + part("reward", "math"), "reads groups of trajectories, not the str"),
    ],
)
def test_a_reward_called_with_a_text_says_what_judges_one(reward, says):
    with pytest.raises(RewardlabError, match=says):
        reward()("Answer: 3", 3)
    with pytest.raises(RewardlabError, match="reads groups of trajectories, not the list"):
        reward()(["Answer: 3"], [3])


def test_one_trajectory_is_no_group():
    with pytest.raises(RewardlabError, match="reads groups of trajectories, not the Trajectory"):
        part("reward", "math")(Trajectory(ask("?")), Run(None))


def len_of(completion, level=0):
    return len(completion) + level


def test_a_text_is_scored_by_any_reward():
    assert part("reward", "math").check("Answer: 3", 3).correct
    assert part("reward", "math").score("Answer: 3", 3).total == 1.0
    assert (0.5 * as_reward(len_of)).score("four", level=2).total == 3.0


# ---- arguments in another order ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (
            lambda: rewardlab.answer("majority_vote", "What is 3 + 4?", model="llama"),
            r"answer\(recipe, model, task, prompt\) .*model is given twice, as 'What.*' by its place and model='llama'.*prompt=",
        ),
        (lambda: rewardlab.train("grpo", "rows.jsonl", model="llama"), r"train\(recipe, model, task\).* task="),
        (lambda: rewardlab.plan("grpo", "rows.jsonl", model="llama"), r"plan\(recipe, model, task\)"),
        (lambda: rewardlab.evaluate("rows.jsonl", model="llama"), r"evaluate\(model, task\)"),
        (lambda: rewardlab.resume("run", "llama", task="x"), r"resume\(out, task, model\)"),
        (lambda: api.search("best_of_n", "llama", "rows.jsonl"), r"search\(methods, task\) .*no place for 'rows.jsonl'"),
        (lambda: rewardlab.compare(["grpo", "rloo"], None, "rows.jsonl"), r"compare\(methods, config\)"),
    ],
)
def test_arguments_in_another_order_are_told_the_order(call, says):
    with pytest.raises(RewardlabError, match=says):
        call()


# ---- rewards in files -------------------------------------------------------------------------------------------------

FILE = """
class Rew:
    def __init__(self, by, *, most=1.0): self.by = by
    def __call__(self, completion): return self.by
class Plain:
    def __call__(self, completion): return 2.0
def several(completion): return {"short": 1.0, "polite": 2}
def words(completion): return {"short": "yes"}
"""


@pytest.mark.parametrize(("name", "right"), [("Rew", r"mine.py:Rew\(by=...\)"), ("Plain", r"mine.py:Plain\(\)")])
def test_a_class_is_refused_when_it_is_read_and_an_object_of_it_is_suggested(tmp_path, name, right):
    (tmp_path / "mine.py").write_text(FILE)
    with pytest.raises(RewardlabError, match=f"{name} of .*mine.py is a class, and an object of it is the reward: {right}"):
        read_reward(f"mine.py:{name}")


def test_the_object_that_is_suggested_is_a_reward(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    assert read_reward("mine.py:Rew(by=3.0)").score("a").total == 3.0
    assert read_reward("mine.py:Plain()").score("a").total == 2.0


def test_several_numbers_in_a_dict_are_told_how_they_are_returned(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    with pytest.raises(RewardlabError, match=r'Score\(terms=\{"short": Term\(1.0\), "polite": Term\(2\)\}\)') as told:
        read_reward("mine.py:several").score("a")
    from rewardlab.core import Term

    code = str(told.value).rpartition("; ")[2]
    assert eval(code, {"Score": Score, "Term": Term}).total == 3.0
    with pytest.raises(RewardlabError) as other:
        read_reward("mine.py:words").score("a")
    assert "terms" not in str(other.value)


# ---- pairs, and rows of another kind -----------------------------------------------------------------------------------


def test_a_run_on_pairs_is_measured_by_which_reply_it_finds_likelier():
    rewardlab.train("dpo", "untrained", PAIRS, settings={"problems": 2}, out="run", **SMALL)
    found = rewardlab.evaluate("run", PAIRS, problems=3, device="cpu")
    assert 0.0 <= found["likelier"]["value"] <= 1.0
    assert "margin" not in found
    # with a judge its own replies are measured, as of any policy
    assert rewardlab.evaluate("run", PAIRS, problems=2, k=(1,), judge=len_of, max_new=4, device="cpu")["pass@1"]["value"] == 1.0
    with pytest.raises(RewardlabError, match=r"pass@k needs answers.*--judge FILE.py:NAME, or .*in Python judge="):
        rewardlab.evaluate("run", [{"prompt": row["prompt"]} for row in PAIRS], problems=2, device="cpu")


def test_the_likelier_reply_of_a_pair_is_the_one_with_the_greater_log_prob():
    from rewardlab.evals.pairs import preference_margins
    from rewardlab.models.embedded import untrained

    policy, pairs = untrained(), rewardlab.task(PAIRS).test
    rows = [
        policy.write(policy.read([Trajectory(p)], [p.prompt]), [p.meta[side]])[0] for p in pairs for side in ("chosen", "rejected")
    ]
    logprobs = [x[t.mask].sum() for t, x in zip(rows, policy.score(rows), strict=True)]
    expected = sum(a > b for a, b in zip(logprobs[::2], logprobs[1::2], strict=True)) / len(pairs)
    assert preference_margins()(pairs, Run(policy))["likelier"] == expected


def test_a_comparison_names_the_method_that_does_not_read_the_rows(tmp_path):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    with pytest.raises(
        RewardlabError, match=r"(?s)dpo cannot be compared on rows: dpo needs 2 columns.*leave dpo out, or give rows"
    ):
        rewardlab.compare(["grpo", "dpo"], task="rows.jsonl", model="untrained", device="cpu", dry_run=True)


CALL = [{"type": "function", "function": {"name": "weather", "arguments": "{}"}}]
ASKED = {"role": "user", "content": "How warm is it?"}
TALKS = {
    "results and a reply": (
        [ASKED, {"role": "assistant", "content": "x"}, {"role": "tool", "content": "7"}, {"role": "assistant", "content": "7"}],
        "messages of tools follow .assistant, tool, assistant.",
    ),
    "a call alone": ([ASKED, {"role": "assistant", "content": "x", "tool_calls": CALL}], "a reply calls a tool .tool_calls."),
}


@pytest.mark.parametrize(("messages", "says"), TALKS.values(), ids=TALKS)
def test_recorded_calls_of_tools_are_refused_with_what_can_be_done(messages, says):
    other = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    with pytest.raises(RewardlabError, match=rf"row 2: .*{says}.*recorded calls of tools are not learnt from.*--tools"):
        rewardlab.task([{"messages": other}, {"messages": messages}])
    with pytest.raises(RewardlabError, match="recorded calls of tools are not learnt from"):
        rewardlab.task([{"prompt": "Hi", "completion": "Ho"}, {"prompt": "How warm is it?", "completion": messages[1:]}])


def test_a_call_before_the_last_question_is_part_of_the_prompt():
    talk = [ASKED, {"role": "assistant", "content": "x", "tool_calls": CALL}, {"role": "tool", "content": "7"}, ASKED]
    task = rewardlab.task([{"prompt": talk, "answer": "7"}, {"prompt": "Hi", "answer": "Ho"}])
    assert len(task.train.problems) == 1


def test_a_folder_that_is_taken_is_told_in_the_words_of_python_too():
    rewardlab.train("grpo", "untrained", ROWS, reward=len_of, settings={"n": 2, "problems": 2}, out="run", **SMALL)
    with pytest.raises(RewardlabError, match=r"in Python out=\), or extend .*in Python: rewardlab.resume\('run', steps=N\)"):
        rewardlab.train("grpo", "untrained", ROWS, reward=len_of, settings={"n": 2, "problems": 2}, out="run", **SMALL)
