"""CoT-Pass@k: by hand, what is asked of the judge of reasoning, and the command."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from scripted import ScriptedPolicy
from served_model import serving

import rewardlab
from rewardlab import RewardlabError
from rewardlab.commands import cli
from rewardlab.core import Run, Sampling, Score, Trajectory, ask
from rewardlab.evals.cot_pass import cot_pass_curve, sound
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward

ASKED: list[str] = []


@reward
def follows(trajectory) -> float | None:
    """1 where a reply says so; silent where it is unsure."""
    ASKED.append(trajectory.reply)
    return None if "unsure" in trajectory.reply else float("because" in trajectory.reply)


def run_of(policy) -> Run:
    def verify(groups, run):
        return [[Score(None, why="down") if "down" in t.reply else Score(float("7" in t.reply)) for t in g] for g in groups]

    return Run(policy=policy, seed=0, max_new=40, verify=verify)


@pytest.fixture(autouse=True)
def nothing_asked():
    ASKED.clear()


def test_a_reply_counts_where_answer_and_reasoning_are_right():
    # of four replies two are right for a reason, one is guessed, one is wrong for a reason
    policy = ScriptedPolicy(lambda t: ["7 because", "7", "8 because", "7, because"])
    found = cot_pass_curve(by=follows(), n=4)([ask("3+4=?", "7")], run_of(policy))
    assert (found["pass@1"], found["cot_pass@1"]) == (0.75, 0.5)
    # of six pairs, one holds neither of the two sound replies
    assert found["cot_pass@2"] == pytest.approx(5 / 6)
    assert (found["pass@4"], found["cot_pass@4"], found["sound"], found["unjudged"]) == (1.0, 1.0, pytest.approx(2 / 3), 0.0)
    # of a wrong answer the reasoning is not asked for
    assert sorted(ASKED) == ["7", "7 because", "7, because"]


def test_what_has_no_verdict_is_not_sound_and_told():
    policy = ScriptedPolicy(lambda t: ["7 unsure", "7 because", "down", "8"])
    found = cot_pass_curve(by=follows(), n=4)([ask("3+4=?", "7")], run_of(policy))
    assert (found["pass@1"], found["cot_pass@1"], found["sound"], found["unjudged"]) == (0.5, 0.25, 0.5, 0.5)
    # nothing right, nothing to judge
    none = cot_pass_curve(by=follows(), n=2)([ask("3+4=?", "7")], run_of(ScriptedPolicy(lambda t: ["8"])))
    assert none["cot_pass@2"] == 0.0
    assert "sound" not in none


@pytest.mark.parametrize(("at_least", "expected"), [(1e-9, 2), (0.5, 1), (1.0, 0)])
def test_any_majority_and_all_of_several_verdicts(at_least, expected):
    @reward
    def shares(trajectory) -> float:
        return {"7 a": 2 / 3, "7 b": 1 / 3, "7 c": 0.0}[trajectory.reply]

    run = run_of(ScriptedPolicy(lambda t: ["7 a", "7 b", "7 c"]))
    group = run.policy.extend(run.policy.read([Trajectory(ask("?", "7"))] * 3, [()] * 3), Sampling(20), None)
    assert sum(ok is True for ok in sound([group], run.verify([group], run), shares(), run, at_least)[0]) == expected


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [{"prompt": f"Start with {i}. Add 2.", "answer": str(i + 2)} for i in range(4)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "mine.py").write_text(
        "def right(completion):\n    return 1.0\n\ndef even(completion):\n    return float(len(completion) % 2 == 0)\n\n"
        "def never(completion):\n    return None\n"
    )
    return tmp_path


ABOUT = {"task": "rows.jsonl", "test": "rows.jsonl", "k": (1, 4), "max_new": 6, "device": "cpu", "judge": "mine.py:right"}


def test_evaluate_tells_it_beside_pass_at_k(folder):
    told = rewardlab.evaluate(untrained(), reasoning="mine.py:even", **ABOUT)
    assert told["pass@4"]["value"] == 1.0
    assert told["cot_pass@1"]["value"] == pytest.approx(told["sound"])
    assert 0 < told["cot_pass@1"]["value"] <= told["cot_pass@4"]["value"] <= 1
    assert "unjudged_reasoning" not in told
    whole = rewardlab.evaluate(untrained(), reasoning="mine.py:right", **ABOUT)
    assert whole["cot_pass@1"] == whole["pass@1"]


def test_what_is_refused(folder):
    with pytest.raises(RewardlabError, match="no verdict on any right reply"):
        rewardlab.evaluate(untrained(), reasoning="mine.py:never", **ABOUT)
    with pytest.raises(RewardlabError, match="two measurements"):
        rewardlab.evaluate(untrained(), reasoning="mine.py:even", best_of="mine.py:even", **ABOUT)


def test_a_served_judge_is_asked_three_times_and_two_verdicts_count(folder, capsys):
    said: Counter[str] = Counter()

    def says(body) -> str:
        said[asked := body["messages"][-1]["content"]] += 1
        return "[[no]]" if said[asked] == 3 else "It follows. [[yes]]"

    with serving(says) as server:
        flags = [
            "--task",
            "rows.jsonl",
            "--test",
            "rows.jsonl",
            "--k",
            "1",
            "--problems",
            "2",
            "--max-new",
            "6",
            "--judge",
            "mine.py:right",
        ]
        assert cli.main(["eval", "untrained", *flags, "--reasoning", server.name, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [n for asked, n in said.items() if "Right answer: " in asked] == [3, 3]
    assert told["cot_pass@1"]["value"] == 1.0
