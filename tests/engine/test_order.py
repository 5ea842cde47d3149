"""Training goes through a file in its order, and a run that is resumed goes on in it."""

import json

import rewardlab
from rewardlab import Trajectory, build, reward

SEEN: list[str] = []


@reward
def seen(trajectory: Trajectory) -> float:
    SEEN.append(trajectory.problem.question)
    return len(trajectory.reply) % 3


def test_a_curriculum_is_trained_in_its_order(tmp_path):
    rows = [{"prompt": f"Start with {i}.", "answer": str(i)} for i in range(12)]
    (tmp_path / "o.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "t.jsonl").write_text(json.dumps({"prompt": "Start with 99.", "answer": "99"}) + "\n")
    recipe = build("grpo", {"n": 2, "problems": 2}).but(reward=seen())
    common = {"max_new": 4, "eval_problems": 0, "device": "cpu", "out": tmp_path / "run"}
    task = {"task": str(tmp_path / "o.jsonl"), "test": str(tmp_path / "t.jsonl"), "order": "file"}
    SEEN.clear()
    # without the prompts that are too long: those that are left keep their order
    rewardlab.train(recipe, "untrained", steps=4, overlong="drop", **task, **common)
    rewardlab.resume(tmp_path / "run", steps=7)
    assert list(dict.fromkeys(SEEN)) == [row["prompt"] for row in rows]
    # the next epoch begins anew
    assert SEEN[-4:] == [row["prompt"] for row in rows[:2] for _ in range(2)]
