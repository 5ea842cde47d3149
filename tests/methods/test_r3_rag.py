"""R3-RAG: relevance of each retrieval, scaled by the outcome, and advantages within each step alone."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import build
from rewardlab.commands import cli
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.agents.r3_rag import each_retrieval, each_step_alike, gae_by_turn, r3_rag, relevant, return_by_turn, stepwise
from rewardlab.rewards.reward import reward

FACTS = ["ant bee", "cow dog"]


def episode(*texts, **meta):
    """A prompt of two tokens, replies of two, messages of one."""
    turns = [Turn(None, np.zeros(2, np.int64), text="ant")]
    for i, text in enumerate(texts):
        ids = np.zeros(1 if i % 2 else 2, np.int64)
        logprobs = None if i % 2 else np.zeros(2, np.float32)
        turns.append(Turn(None if i % 2 else "policy", ids, logprobs, logprobs, text=text))
    return Trajectory(ask("ant", "Bonn", supporting=FACTS, **meta), tuple(turns), "end")


@reward
def right(trajectory):
    return Score(None, why="down") if "?" in trajectory.reply else float("Bonn" in trajectory.reply)


def steps(part, t):
    ((score,),) = part([[t]], Run(policy=None, verify=right()))
    return score


def test_relevance_is_that_of_question_and_query_or_of_gold_documents():
    t = episode(
        "<search>bee</search>", "<information>\nDoc 1: elk\nDoc 2: ant bee\n</information>", "Search: x", "fox", "Answer: Bonn"
    )
    # question and query are "ant bee": one result is just that, and a fox is like neither
    assert steps(relevant(), t).steps == (pytest.approx((3, 1.0)), pytest.approx((6, 0.0)))
    assert steps(relevant(by="supporting"), t).steps == ((3, 1.0), (6, 0.0))
    none = Trajectory(ask("ant"), t.turns, "end")
    assert steps(relevant(by="supporting"), none).missing
    assert steps(relevant(embed="ngrams"), t).steps[0][1] == pytest.approx(1.0)


def both(t, **settings):
    return steps(stepwise(process=relevant(by="supporting"), outcome=right(), **settings), t)


def test_relevance_counts_in_full_where_the_answer_is_right():
    found, lost = ("Search: a", "ant bee"), ("Search: b", "elk")
    assert both(episode(*found, *lost, "Bonn")).steps == ((3, 1.6), (6, 0.0), (9, 2.0))
    assert both(episode(*found, *lost, "Rome")).steps == ((3, pytest.approx(0.1)), (6, 0.0), (9, 0.1))
    # it ends with a search, though that names the answer
    assert both(episode(*found, "Search: Bonn")).steps == ((3, pytest.approx(0.1)), (6, 0.0))
    assert both(episode("Bonn")).steps == ((3, 2.0),)
    assert both(episode(*found, "?")).missing


def test_a_judge_reads_the_episode_up_to_the_documents():
    read = []

    @reward
    def seen(trajectory):
        read.append([turn.text for turn in trajectory.turns])
        return Score(None, why="no") if "elk" in read[-1][-1] else 0.5

    t = episode("Search: a", "ant bee", "Search: b", "cow dog", "Bonn")
    assert steps(each_retrieval(inner=seen()), t).steps == ((3, 0.5), (6, 0.5))
    assert read == [["ant", "Search: a", "ant bee"], ["ant", "Search: a", "ant bee", "Search: b", "cow dog"]]
    assert steps(each_retrieval(inner=seen()), episode("Search: a", "elk", "Bonn")).missing
    assert steps(each_retrieval(inner=seen()), episode("Bonn")).value == 0.0
    assert "each_retrieval" in str(r3_rag(judge=seen()).reward)


def test_advantages_stay_within_a_turn():
    t = episode("Search: a", "ant bee", "Bonn")
    scores = [[both(t)]]
    batch = collate([[t]], scores, torch.device("cpu"))
    # values before the decisions at 2, 3 and 5, 6 stand at 1, 2 and 4, 5
    batch.columns["value"] = torch.tensor([[0.0, 0.5, 0.6, 9.0, 0.7, 0.8, 9.0]])
    credit = gae_by_turn(gamma=0.9, lam=0.5)(batch.reward, batch, Run(policy=None))
    # turn 1: deltas .9 * .6 - .5 = .04 and 1.6 - .6 = 1.0; turn 2: .9 * .8 - .7 = .02 and 2 - .8 = 1.2; decay .45
    expected = [0, 0, 0.04 + 0.45 * 1.0, 1.0, 0, 0.02 + 0.45 * 1.2, 1.2]
    assert credit[0].tolist() == pytest.approx(expected)
    target = return_by_turn(gamma=0.9, lam=0.5)(batch.reward, batch, Run(policy=None))
    assert target[0].tolist() == pytest.approx([e + v for e, v in zip(expected, [0, 0, 0.5, 0.6, 0, 0.7, 0.8], strict=True)])


def test_every_step_of_a_batch_weighs_the_same():
    long = episode("Search: a", "ant bee", "Bonn")
    last = long.turns[-1]
    long = replace(long, turns=(*long.turns[:-1], replace(last, ids=np.zeros(4, np.int64), logprobs=np.zeros(4, np.float32))))
    rows = [long, episode("Bonn")]
    batch = collate([[t] for t in rows], [[both(t)] for t in rows], torch.device("cpu"))
    weights = each_step_alike()(batch)
    # three steps, of 2, 4 and 2 decisions: a third each
    assert weights[0].tolist() == pytest.approx([0, 0, 1 / 6, 1 / 6, 0, *[1 / 12] * 4])
    assert weights[1].tolist() == pytest.approx([0, 0, 1 / 6, 1 / 6, *[0] * 5])
    recipe = r3_rag()
    critic = next(x for x in recipe.also if x.name == "critic").recipe
    assert [str(recipe.weighting), str(critic.weighting)] == ["each_step_alike()"] * 2


def test_an_episode_without_a_verdict_gets_no_credit():
    rows = [episode("Search: a", "ant bee", "?"), episode("Bonn")]
    scores = [[both(t)] for t in rows]
    batch = collate([[t] for t in rows], scores, torch.device("cpu"))
    batch.columns["value"] = torch.ones(2, batch.width)
    credit = gae_by_turn()(batch.reward, batch, Run(policy=None))
    assert credit[0].abs().sum() == 0
    assert credit[1].abs().sum() > 0


def test_the_recipe_has_both_stages():
    recipe = r3_rag(cold_start=3)
    assert "cold_start_first(steps=3" in str(recipe.loop)
    assert "gae_by_turn" in str(recipe.credit)
    assert "return_by_turn" in str(next(x for x in recipe.also if x.name == "critic").recipe.credit)
    with pytest.raises(RewardlabError, match="critic"):
        r3_rag(build("grpo"))


def test_the_policy_learns_traces_first_and_the_critic_after_them(tmp_path):
    flags = ["--cold-start", "2", "--task", "encyclopaedia:test_size=4", "--model", "untrained", "--steps", "3", "--problems", "4"]
    cli.main(["train", "r3_rag", *flags, "--out", str(tmp_path / "run")])
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    learnt = {line["step"]: "critic/loss" in line for line in lines if "loss" in line}
    assert learnt == {1: False, 2: False, 3: True}
