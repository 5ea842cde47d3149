"""SFT on replies of the user's own."""

import json

import pytest

import rewardlab
from rewardlab.core import Trajectory
from rewardlab.models.embedded import untrained

SMALL = {
    "model": "untrained",
    "steps": 30,
    "eval_every": 0,
    "eval_problems": 2,
    "checkpoint_every": 0,
    "device": "cpu",
    "max_new": 4,
}
FORMATS = {
    "completion_column": lambda i: {"prompt": f"{i}?", "mine": "yes 7"},
    "prompt-completion": lambda i: {"prompt": f"{i}?", "completion": "yes 7"},
    "messages": lambda i: {"messages": [{"role": "user", "content": f"{i}?"}, {"role": "assistant", "content": "yes 7"}]},
}


@pytest.mark.parametrize("form", FORMATS)
def test_sft_learns_the_users_own_completions(form, tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(FORMATS[form](i)) + "\n" for i in range(8)))
    columns = {"completion_column": "mine"} if form == "completion_column" else {}
    run = rewardlab.train("sft", task=str(path), out=tmp_path / "run", settings={"lr": 1e-2, "problems": 4}, **columns, **SMALL).run
    assert likelihood(run.policy, "yes 7") > likelihood(untrained(), "yes 7") + 5.0
    assert likelihood(run.policy, "no 7") < likelihood(run.policy, "yes 7")


def likelihood(policy, reply: str) -> float:
    """The log-prob of a reply to "3?"."""
    problem = rewardlab.ask("3?")
    row = policy.write(policy.read([Trajectory(problem)], [problem.prompt]), [reply])
    return float(policy.score(row)[0][row[0].mask].sum())
