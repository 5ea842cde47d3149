"""A trained reward model as the reward: model:PATH, in training, in best-of-n, behind a server, and in formulas."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.api import answer, export, train
from rewardlab.backends.reward_functions import as_trl_reward
from rewardlab.core import Message, Problem, Run, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from rewardlab.models.load import load_policy
from rewardlab.models.reward_model import load_reward_model
from rewardlab.prm import load_scorer
from rewardlab.registry.formula import read_reward
from rewardlab.rewards.model import conversation
from rewardlab.scoreboard.raters.passes import end_values
from rewardlab.servers.scoring import Scorer
from rewardlab.util.progress import console
from tests.helpers.checkpoints import checkpoint


@pytest.fixture
def folder(tmp_path):
    checkpoint(tmp_path / "rm", tokenizer(), "LlamaForSequenceClassification", num_labels=1)
    return tmp_path / "rm"


def test_the_functions_of_other_frameworks_ask_it_too(folder):
    asked = [([Message("user", "1+1=?")], text) for text in ("2", "3")]
    paid = as_trl_reward(read_reward(f"model:{folder}"))(prompts=["1+1=?"] * 2, completions=["2", "3"])
    assert paid == pytest.approx(load_reward_model(str(folder)).score(asked))


def test_what_is_longer_than_it_reads_is_told_once_and_its_share_is_logged(folder):
    run, part = Run(registry_policy()), read_reward(f"model:{folder}?max_tokens=24")
    long, short = row("1+1=?" * 20, "2"), row("1+1=?", "3")
    with console.capture() as said:
        (scores,) = part([[long, short, short, short]], run)
        part([[long, short]], run)
    assert [s.why for s in scores[1:]] == ["", "", ""]
    assert scores[0].why.endswith("longer than the 24 tokens that the reward model reads: its beginning was cut off")
    # one of two in the last call
    assert run.metrics["reward_cut_off"] == 0.5
    assert said.get().count("note:") == 1
    assert "note: 1 of the first 4 conversations to be scored is longer than the 24 tokens" in said.get()
    run = Run(registry_policy())
    part([[short]], run)
    assert "reward_cut_off" not in run.metrics


def test_scores_are_finer_than_the_format_of_the_weights(folder):
    """In bfloat16 scores near 4 would be multiples of 1/32: replies of nearly the same worth would tie."""
    asked = [([Message("user", "1+1=?")], str(number)) for number in range(8)]
    scores = np.array(load_reward_model(str(folder), "cpu", "bfloat16").score(asked), np.float32)
    # a number of bfloat16 is one of float32 whose lower half is 0
    assert (scores.view(np.uint32) & 0xFFFF).any()


def row(prompt: str, *texts: str) -> Trajectory:
    """A prompt, a reply, then what an environment answers and replies to it, in turn."""
    turns = [Turn(None, np.zeros(1, np.int64), text=prompt)]
    turns += [Turn("policy" if i % 2 == 0 else None, np.zeros(2, np.int64), text=text) for i, text in enumerate(texts)]
    return Trajectory(Problem((Message("user", prompt),)), tuple(turns), "end")


def test_it_scores_the_conversation_up_to_the_last_reply(folder):
    # the format of weights is chosen for the machine, here and in a run
    model = load_reward_model(str(folder), "cpu")
    rows = [row("1+1=?", "2"), row("1+1=?", "3"), row("2+2=?", "5", "no", "4")]
    messages, reply = conversation(rows[2])
    assert [m.role for m in messages] == ["user", "assistant", "user"]
    assert reply == "4"
    run = Run(registry_policy())
    scores = [s.value for s in read_reward(f"model:{folder}")([rows], run)[0]]
    assert scores == pytest.approx(
        model.score([([Message("user", "1+1=?")], "2"), ([Message("user", "1+1=?")], "3"), (messages, "4")])
    )
    assert len(set(scores)) == 3
    # half of a surrogate pair is a text that no tokenizer takes
    assert np.isfinite(model.score([([Message("user", "1+1=?")], "2\ud800")])).all()


def test_it_reads_the_message_by_which_an_environment_opens_an_episode():
    system, asked = Message("system", "Be brief."), Message("user", "Leave the house.")

    def episode(read, prompt=(system, asked)):
        turns = (Turn(None, np.zeros(1, np.int64), text=read), Turn("policy", np.zeros(2, np.int64), text="open it"))
        return conversation(Trajectory(Problem(prompt), turns, "end"))

    opened = episode("Be brief.\nLeave the house.\nYou see a door.\nIt is shut.")
    assert opened == ([system, asked, Message("user", "You see a door.\nIt is shut.")], "open it")
    for read in ("Be brief.\nLeave the house.", "Leave the house.", ""):
        assert episode(read) == ([system, asked], "open it")
    assert episode("Leave the house.", prompt=()) == ([], "open it")


def registry_policy():
    from rewardlab.models.embedded import untrained

    return untrained()


def test_it_is_read_by_name_and_in_formulas_and_kept_by_an_absolute_path(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    part = read_reward("model:rm")
    assert part.settings["model"] == f"model:{folder.resolve()}"
    formula = read_reward('0.5 * model_score(model="model:rm") + correct()')
    assert str(folder.resolve()) in str(formula)
    assert read_reward(str(formula)) == formula


def test_it_trains_and_selects_and_is_served(folder, tmp_path):
    reward = read_reward(f"model:{folder}")
    task = tmp_path / "task.jsonl"
    task.write_text("".join(json.dumps({"prompt": f"{i}+1=?", "answer": str(i + 1)}) + "\n" for i in range(12)))
    recipe = registry.build("grpo", {"n": 2, "problems": 2}).but(reward=reward)
    result = train(recipe, "untrained", str(task), out=tmp_path / "run", steps=1, max_new=4, eval_problems=2, device="cpu")
    metrics = [json.loads(line) for line in (result.out / "metrics.jsonl").read_text().splitlines()]
    assert np.isfinite(metrics[-1]["reward"])
    best = registry.build("best_of_n", {"n": 3}).scored_by(reward)
    assert answer(best, "untrained", registry.task(str(task)), problems=2, max_new=4, device="cpu")["n"] == 2
    (served,) = Scorer([f"model:{folder}"])([{"prompt": "1+1=?", "response": "2", "answer": None, "meta": {}}])
    direct = load_reward_model(str(folder), "auto").score([([Message("user", "1+1=?")], "2")])
    assert served["score"] == pytest.approx(direct[0], abs=1e-3)


def test_a_run_of_a_reward_model_is_read_as_it_was_trained(tmp_path):
    pairs = tmp_path / "pairs.jsonl"
    pairs.write_text(
        "".join(json.dumps({"prompt": f"{i}+1=?", "chosen": str(i + 1), "rejected": f"{i}"}) + "\n" for i in range(20))
    )
    result = train(
        "bradley_terry",
        "untrained",
        str(pairs),
        out=tmp_path / "run",
        settings={"problems": 4},
        steps=1,
        eval_problems=2,
        device="cpu",
    )
    export(result.out, tmp_path / "exported")
    policy = load_policy(str(result.out), "cpu", "float32")
    prompt = (Message("user", "1+1=?"),)
    rows = policy.write(policy.read([Trajectory(Problem(prompt))] * 2, [prompt] * 2), ["2", "11"])
    expected = end_values(policy, rows)
    for place in (result.out, tmp_path / "exported"):
        found = load_reward_model(str(place), "cpu", "float32")
        assert found.layout == "ours"
        assert found.score([(prompt, "2"), (prompt, "11")]) == pytest.approx(expected, abs=1e-5)
        with pytest.raises(RewardlabError, match="reward model of whole replies"):
            load_scorer(str(place), "cpu")


@pytest.mark.parametrize(("name", "says"), [("model:nowhere/rm", "there is no folder"), ("model:{}?lable=x", "label")])
def test_what_is_no_reward_model_is_told_before_anything_is_written(folder, tmp_path, name, says):
    recipe = registry.build("grpo").but(reward=read_reward(name.format(folder)))
    with pytest.raises(RewardlabError, match=says):
        train(recipe, "untrained", "arithmetic", out=tmp_path / "run", steps=1)
    assert not (tmp_path / "run").exists()
