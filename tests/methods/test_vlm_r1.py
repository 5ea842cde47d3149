"""VLM-R1: rewards for boxes by hand, and a policy that really looks."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.api import train
from rewardlab.core import Problem, Sampling, Score, Trajectory, Turn, ask, stream
from rewardlab.engine.collate import collate
from rewardlab.methods.vision.vlm_r1 import seen, vlm_r1
from rewardlab.models.load import load_policy
from rewardlab.policies.hf.vision import VisionPolicy
from rewardlab.rewards.reward import reward
from rewardlab.worlds.scenes import average_precision, box_overlap, boxes_in, first_box_iou, no_more_boxes, overlaps, written

TWO = {"boxes": [[0, 0, 2, 2], [4, 4, 6, 6]], "kind": "detect"}
ONE = {"boxes": [[0, 0, 2, 2]], "kind": "refer"}


def said(text, meta):
    problem = Problem(ask("?").prompt, None, meta)
    return Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


def value(reward, text, meta=TWO):
    return reward([[said(text, meta)]])[0][0].value


# ---- boxes -----------------------------------------------------------------------------------------------------------


def test_overlaps_by_hand():
    a = np.array([[0, 0, 2, 2]], float)
    # the same; shifted by one each way: 1 / (4 + 4 - 1); beside it; turned inside out
    b = np.array([[0, 0, 2, 2], [1, 1, 3, 3], [2, 0, 4, 2], [2, 2, 0, 0]], float)
    assert overlaps(a, b)[0].tolist() == pytest.approx([1.0, 1 / 7, 0.0, 0.0])
    assert boxes_in("<answer>[0,1,2,3][10,2,3,4]").tolist() == [[0, 1, 2, 3], [10, 2, 3, 4]]
    assert boxes_in("[1,2,3] nothing").shape == (0, 4)


@pytest.mark.parametrize(
    "text",
    [
        "<answer>[0, 0, 2, 2]</answer>",
        '<answer>{"bbox_2d": [0, 0, 2, 2], "label": "cup"}</answer>',
        "<answer>[0.0,0.0,2.0,2.0]</answer>",
        '<answer>\n```json\n[{"bbox_2d": [0, 0, 2, 2]}]\n```\n</answer>',
    ],
)
def test_boxes_are_read_as_models_write_them(text):
    assert value(first_box_iou(), text, ONE) == 1.0
    # one for the box and one for the form
    assert vlm_r1().reward([[said(text, ONE)]], None)[0][0].total == pytest.approx(2.0)


def test_reasoning_may_stand_before_the_answer_and_its_boxes_are_not_the_answers():
    text = "<think>The cup is not at [4, 4, 6, 6].</think>\n<answer>[0, 0, 2, 2]</answer>"
    assert vlm_r1().reward([[said(text, ONE)]], None)[0][0].total == pytest.approx(2.0)
    thinking = vlm_r1(think=True).reward
    assert thinking([[said(text, ONE)]], None)[0][0].total == pytest.approx(2.0)
    assert thinking([[said("<answer>[0, 0, 2, 2]</answer>", ONE)]], None)[0][0].total == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        # what it says before its answer is not its answer, nor is what it says of it
        ("The cup is not the thing at [4,4,6,6]. <answer>[0,0,2,2]</answer>", 1.0),
        ("<answer>[4,4,6,6]</answer> No: <answer>[0,0,2,2]</answer>, and not [4,4,6,6].", 1.0),
        ("[0,0,2,2] <answer>[4,4,6,6]</answer>", 0.0),
        ("[0,0,2,2]", 0.0),
        ("<answer>[0,0,2,2]", 0.0),
        ("<think>It is <answer>[0,0,2,2]</answer>?</think> [0,0,2,2]", 0.0),
    ],
)
def test_the_answer_is_between_the_last_tags(text, want):
    ((score,),) = seen()([[said(text, ONE)]], None)
    assert score.value == want
    more = {"boxes": [[0, 0, 2, 2]], "kind": "detect"}
    ((score,),) = seen()([[said(text, more)]], None)
    assert score.value == want


@pytest.mark.parametrize(("text", "want"), [("<answer>None</answer>", 1.0), ("[0,0,2,2]", 0.0)])
def test_where_nothing_is_to_be_found_no_box_is_right(text, want):
    nothing = {"boxes": [], "kind": "detect"}
    assert value(average_precision(), text, nothing) == value(no_more_boxes(), text, nothing) == want
    # and one for the form, where there are tags
    assert vlm_r1().reward([[said(text, nothing)]], None)[0][0].total == want + ("answer" in text)


def test_the_first_box_counts_where_one_is_asked_for():
    assert value(first_box_iou(), "[1,0,3,2][0,0,2,2]", ONE) == pytest.approx(2 / 6)
    assert value(first_box_iou(), "nowhere", ONE) == 0.0


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("[0,0,2,2][4,4,6,6]", 1.0),
        ("[4,4,6,6][0,0,2,2][0,3,1,4][3,0,4,1]", 1.0),  # what follows the last hit costs nothing
        ("[0,3,1,4][0,0,2,2][4,4,6,6]", 2 / 3),  # precision 1/2 and 2/3 at the hits, the first raised to 2/3
        ("[0,0,2,2]", 0.5),
        ("[0,0,2,2][0,0,2,2]", 0.5),  # a second box on the same shape finds nothing
        ("[0,0,2,3]", 0.5 * 4 / 10),  # IoU 4/6 passes .50, .55, .60 and .65
        ("", 0.0),
    ],
)
def test_average_precision_by_hand(text, want):
    assert value(average_precision(), text) == pytest.approx(want)


def test_boxes_too_many_have_a_price():
    assert value(no_more_boxes(), "[0,0,2,2]" * 5) == pytest.approx(2 / 5)
    assert value(no_more_boxes(), "[0,0,2,2]") == 1.0
    assert value(no_more_boxes(), "") == 1.0


def test_the_verifier_matches_the_best_pairs():
    assert value(box_overlap(), "[0,0,2,2]", ONE) == 1.0
    assert value(box_overlap(), "[1,0,3,2]", ONE) == pytest.approx(2 / 6)
    assert value(box_overlap(), "[4,4,6,6][0,0,2,2]") == 1.0
    # overlaps 1 and 2/6; 2 * (4/3) / (2 + 2)
    assert value(box_overlap(), "[5,4,7,6][0,0,2,2]") == pytest.approx(2 / 3)
    assert value(box_overlap(), "[0,0,2,2][4,4,6,6][0,4,1,5][2,3,3,4]") == pytest.approx(4 / 6)
    assert value(box_overlap(), "") == 0.0


def test_its_reward_tells_the_two_kinds_apart():
    one, all_ = said("<answer>[0,0,2,2][3,3,4,4]</answer>", ONE), said("<answer>[0,0,2,2][4,4,6,6][1,4,2,5]</answer>", TWO)
    scores = vlm_r1().reward([[one], [all_]], None)
    assert [row[0].terms["seen"].value for row in scores] == pytest.approx([1.0, 2 / 3])
    assert [row[0].value for row in scores] == pytest.approx([2.0, 5 / 3])
    gamed = vlm_r1(od_length=False).reward([[all_], [said("[0,0,2,2]", ONE)]], None)
    assert [row[0].value for row in gamed] == pytest.approx([2.0, 0.0])  # without tags nothing


# ---- scenes ----------------------------------------------------------------------------------------------------------


def test_pictures_show_what_their_boxes_say():
    task = registry.task("scenes", test_size=20)
    for problem in task.test:
        image = problem.prompt[0].images[0]
        colour = problem.question.split()[1]
        strongest = image.argmax(-1)
        for left, top, right, bottom in problem.meta["boxes"]:
            assert (image[[6 * top, 6 * bottom - 1], 6 * left : 6 * right] == 255).all()
            assert (image[6 * top : 6 * bottom, [6 * left, 6 * right - 1]] == 255).all()
            assert (strongest[6 * top + 1, 6 * left + 1 : 6 * right - 1] == ("red", "green", "blue").index(colour)).all()
    assert {p.meta["kind"] for p in task.test} == {"refer", "detect"}
    assert {p.meta["kind"] for p in registry.task("scenes", refer=0, test_size=20).test} == {"detect"}
    assert all(p.answer == written([tuple(b) for b in p.meta["boxes"]]) for p in task.test)


def test_the_teacher_is_careless_as_told():
    sure = registry.task("scenes", slip=0, extra=0, forget=0, test_size=5)
    assert all(sure.demonstrate(p, random.Random(0)) == p.answer for p in sure.test)
    task = registry.task("scenes", refer=0, slip=0, extra=0.5, forget=0, test_size=200)
    more = [len(boxes_in(task.demonstrate(p, random.Random(i)))) > len(p.meta["boxes"]) for i, p in enumerate(task.test)]
    assert np.mean(more) == pytest.approx(0.5, abs=0.1)


# ---- eyes ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def task():
    return registry.task("scenes", test_size=4)


@pytest.fixture(scope="module")
def policy(task):
    return load_policy("untrained", task=task)


def asked(policy, problems):
    return policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])


def batch_of(policy, rows):
    return collate([[t] for t in rows], [[Score(1.0)]] * len(rows), policy.device)


def test_what_was_drawn_is_what_is_evaluated(policy, task):
    """Rows of unlike length, each with its own picture, by one token at a time, all at once, and row by row."""
    rows = policy.extend(asked(policy, task.test), Sampling(10), stream(0))
    batch = batch_of(policy, rows)
    out = policy.evaluate(batch)
    assert torch.allclose(out.logprobs[batch.mask], batch.old[batch.mask], atol=1e-4)
    for i, scored in enumerate(policy.score(rows)):
        own = batch.mask[i, : len(scored)].numpy()
        assert np.allclose(scored[own], batch.old[i][batch.mask[i]], atol=1e-4)


def test_a_model_that_decides_with_it_looks_too(policy, task):
    other = policy.copy("other")
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for w in other.parameters():
            w += 0.1 * torch.randn(w.shape, generator=noise)
    with policy.joined([(0.7, other)]):
        rows = policy.extend(asked(policy, task.test), Sampling(6), stream(0))
    batch = batch_of(policy, rows)
    decided = batch.mask[:, 1:]
    own, others = (m.evaluate(batch, ("hidden",)).hidden[:, :-1][decided] for m in (policy, other))
    found = policy.joint_logprobs(own, [(0.7, other, others)], batch.ids[:, 1:][decided])
    assert torch.allclose(found, batch.old[batch.mask], atol=1e-3)


def test_it_reads_the_picture_with_its_prompt(policy, task):
    t = asked(policy, task.test[:1])[0]
    token = policy.model.config.image_token_id
    assert int((t.ids == token).sum()) == policy.eye.tokens == 36
    assert t.turns[0].images[0] is task.test[0].prompt[0].images[0]
    assert t.turns[0].text == task.test[0].question


def test_another_picture_changes_what_it_says_and_teaches_its_eyes(policy, task):
    row = policy.extend(asked(policy, task.test[:1]), Sampling(6), stream(0))[0]
    black = replace(row, turns=(replace(row.turns[0], images=(np.zeros((36, 36, 3), np.uint8),)), *row.turns[1:]))
    batch = batch_of(policy, [row, black])
    out = policy.evaluate(batch)
    assert (out.logprobs[0] - out.logprobs[1]).abs().max() > 1e-3
    model = policy.copy("other")
    model.evaluate(batch).logprobs.sum().backward()
    eyes = model.model.base_model.vision_tower
    assert any(p.grad is not None and p.grad.abs().max() > 0 for p in eyes.parameters())


def test_an_image_token_that_it_drew_shows_nothing(policy, task):
    first = asked(policy, task.test[:1])[0]
    token = policy.model.config.image_token_id
    drawn = first.plus(Turn("policy", np.array([token, 5], np.int64), np.zeros(2, np.float32)), "length")
    assert torch.isfinite(policy.evaluate(batch_of(policy, [drawn])).logprobs).all()


def test_it_comes_back_from_disk(policy, task, tmp_path):
    policy.save(tmp_path)
    assert isinstance(load_policy(str(tmp_path), "cpu"), VisionPolicy)
    again = VisionPolicy.load(tmp_path, "cpu", "float32")
    rows = policy.extend(asked(policy, task.test), Sampling(5), stream(1))
    batch = batch_of(policy, rows)
    assert torch.allclose(policy.evaluate(batch).logprobs, again.evaluate(batch).logprobs, atol=1e-5)
    assert again.decode(rows[0].turns[1].ids) == rows[0].reply


def test_pictures_of_another_size_are_scaled_to_its_own(policy, task):
    own = task.test[0].prompt[0].images[0]
    (row,) = policy.write(asked(policy, task.test[:1]), ["all red"])
    shown = [own, own.repeat(2, 0).repeat(2, 1), np.zeros((40, 20, 3), np.uint8)]
    same, large, other = policy.score([replace(row, turns=(replace(row.turns[0], images=(x,)), row.turns[1])) for x in shown])
    assert np.abs(same - large).max() < np.abs(same - other).max() / 4


def test_a_reply_without_pictures_needs_none(policy):
    done = policy.extend(asked(policy, [ask("all red")]), Sampling(3), stream(0))
    assert len(done[0].turns[1].ids) >= 1


@reward
def digits(trajectory):
    """What replies of an untrained policy differ in."""
    return sum(c.isdigit() for c in trajectory.reply) / 12


@pytest.mark.slow
def test_it_learns_through_the_engine(task, policy, tmp_path):
    """Two steps of the whole recipe, pictures and reference included; once more from the same seed is the same."""
    lines = []
    recipe = vlm_r1()
    recipe = recipe.but(reward=recipe.reward + digits(), problems=2)
    for again in ("first", "second"):
        found = train(recipe, policy.copy("policy"), task, steps=2, out=tmp_path / again, max_new=12, eval_every=0, eval_problems=2)
        lines.append({k: v.clone() for k, v in found.run.policy.state().items()})
        assert found.run.reference is not found.run.policy
    assert any(not torch.equal(v, policy.state()[k]) for k, v in lines[0].items())
    assert all(torch.equal(v, lines[1][k]) for k, v in lines[0].items())
