"""Recorded replies as a policy: selections run on them, and read what else is recorded of each."""

import json

import pytest
import torch

from rewardlab import api, registry
from rewardlab.api.answering import answer_each
from rewardlab.core import Run, Sampling, Task, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.load import load_policy
from rewardlab.rewards.algebra import aggregate
from rewardlab.rewards.recorded import step_scores_in_data, verdict_in_data

STEPS = [["two", "and two", "Answer: 4"], ["Answer: 5"], ["so", "Answer: 5"]]
SCORES = [[0.5, 0.9, 0.8], [0.7], [0.9, 0.2]]
SUM = ask("2+2=?", "4", replies=STEPS, scores=SCORES, tokens=[7, 3, 4], right=[True, False, False])
TEXTS = ask("1+1=?", "2", replies=["Answer: 2", "Answer: 3"])
TASK = Task("sums", train=[ask("0+0=?", "0")], test=[SUM, SUM], verifier="final_answer")


def sampled(problem, n=2, **how):
    policy = load_policy("recorded")
    rows = policy.read([Trajectory(problem)] * n, [problem.prompt] * n)
    return policy, policy.extend(rows, Sampling(**how), torch.Generator())


def test_the_kth_row_of_a_problem_gets_its_kth_reply_with_the_ends_of_its_steps():
    policy, rows = sampled(SUM, 3)
    assert [t.reply for t in rows] == ["\n\n".join(steps) for steps in STEPS]
    assert [t.path for t in rows] == [(0,), (1,), (2,)]
    for t, steps in zip(rows, STEPS, strict=True):
        starts = [0, *(at + 1 for at in t.steps)]
        cut = [policy.decode(t.ids[start : at + 1]) for start, at in zip(starts, t.steps, strict=False)]
        assert [text.removeprefix(SUM.question).strip() for text in cut] == steps
    assert policy.token_count.generated == 7 + 3 + 4
    assert sampled(TEXTS)[0].token_count.generated == 2 * len("Answer: 2")


def test_scores_and_verdicts_are_those_of_the_reply():
    _, rows = sampled(SUM, 3)
    scores = step_scores_in_data()([rows], None)[0]
    assert [[score for _, score in s.steps] for s in scores] == SCORES
    assert [s.value for s in verdict_in_data()([rows], None)[0]] == [1.0, 0.0, 0.0]
    # texts have no steps, and this problem no verdicts
    _, rows = sampled(TEXTS)
    assert all(s.missing for s in step_scores_in_data()([rows], None)[0] + verdict_in_data()([rows], None)[0])


@pytest.mark.parametrize(
    ("by", "best"), [("min", 1), ("last", 0), ("product", 1), ("mean", 0), ("geometric", 0), ("max", 0), ("sum", 0)]
)
def test_the_best_reply_by_each_form_of_its_step_scores(by, best):
    # means .733 .7 .55; geometric .711 .7 .424; products .36 .7 .18
    recipe = registry.build("best_of_n", {"n": 3}).scored_by(aggregate(step_scores_in_data(), by=by))
    table, each = answer_each(recipe, "recorded", TASK)
    assert table["accuracy"]["value"] == float(best == 0)
    assert each["accuracy"] == [float(best == 0)] * 2
    assert each["pass@1"] == pytest.approx([1 / 3] * 2)
    assert each["tokens_per_answer"] == [14.0, 14.0]
    assert table["tokens"] == 28


def test_a_vote_counts_the_recorded_answers():
    assert api.answer(registry.build("majority_vote", {"n": 3}), "recorded", TASK)["accuracy"]["value"] == 0.0


def test_what_recorded_replies_cannot_do_is_said():
    with pytest.raises(RewardlabError, match="has 2 recorded replies, and more are asked for: lower n"):
        sampled(TEXTS, 3)
    with pytest.raises(RewardlabError, match="needs the columns 'replies'"):
        sampled(ask("3+3=?", "6"))
    for bad in ("a text", [3, 4], [[], []]):
        with pytest.raises(RewardlabError, match="a text or a list of steps"):
            sampled(ask("3+3=?", "6", replies=bad))
    with pytest.raises(RewardlabError, match="one of whole replies"):
        sampled(TEXTS, stop=("\n",))
    policy, rows = sampled(TEXTS)
    with pytest.raises(RewardlabError, match="one of whole replies"):
        policy.extend(rows, Sampling(), torch.Generator())
    with pytest.raises(RewardlabError, match="recorded replies are no model"):
        policy.copy("reference")
    with pytest.raises(RewardlabError, match="recorded replies are no model"):
        load_policy("recorded", lora_rank=4)
    assert not hasattr(policy, "evaluate")
    with pytest.raises(RewardlabError, match="recorded replies are no model"):
        api.train("grpo", "recorded", TASK, steps=1)


def test_rows_of_ones_own_with_replies_are_answered(tmp_path):
    rows = [{"prompt": f"{i}+0=?", "answer": str(i), "replies": [f"Answer: {i}", "Answer: 7000"]} for i in range(40)]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = api.answer(registry.build("majority_vote", {"n": 2}), "recorded", str(file))
    assert (found["accuracy"]["value"], found["pass@1"]["value"]) == (1.0, 0.5)


def test_the_geometric_mean_of_hundreds_of_chances_is_not_zero():
    problem = ask("?", "4", replies=[["a"] * 2000], scores=[[0.5] * 2000])
    _, rows = sampled(problem, 1)
    run = Run(load_policy("recorded"))
    assert aggregate(step_scores_in_data(), by="geometric")([rows], run)[0][0].value == pytest.approx(0.5)
    with pytest.raises(RewardlabError, match="no place in a geometric mean"):
        aggregate(step_scores_in_data() - 1.0, by="geometric")([rows], run)
