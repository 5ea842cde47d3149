"""DianJin-R1: traces are checked and tried again; SFT on those that passed, GRPO on the questions that never did."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Task, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.engine.step import Ops
from rewardlab.methods.imitation.dianjin_r1 import HARD, TRACES, in_tags
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Listed
from rewardlab.verifiers.choice.rationale import rationale_agrees

PROBLEMS = [ask(f"Case {i}?", "B", options=["brin", "dask"]) for i in range(4)]
SOUND, CONTRADICTS, WRONG, SILENT = "So dask.\nAnswer: B", "So brin.\nAnswer: B", "So brin.\nAnswer: A", "Answer: B"
SAID = {
    "Case 0?": [SOUND, SOUND, SOUND],  # at once
    "Case 1?": [WRONG, SOUND, WRONG],  # at the second try
    "Case 2?": [CONTRADICTS, SILENT, CONTRADICTS],  # right, and never for a reason
    "Case 3?": [WRONG, WRONG, SOUND],  # at the third
}
FORM = "<think>So dask.</think><answer>Answer: B</answer>"


def begun(said=SAID, **settings) -> tuple[Ops, list]:
    given = {"problems": 2, "n": 4, "sft_steps": 2, "lr": 1e-3, "consistent": rationale_agrees()} | settings
    recipe = registry.build("dianjin_r1", given)
    run = Run(untrained().copy("policy"), steps=4, max_new=3, verify=registry.part("reward", "choice"))
    run.reference = run.policy.copy("reference")
    run.models = {learner.name: learner_model(learner, run.policy) for learner in recipe.also}
    ops = Ops(recipe, run, Task("cases", Listed(PROBLEMS), PROBLEMS[:1], "choice", max_new=3), RunConfig())
    asked: list[list[str]] = []

    def extend(rows, sampling, rng):
        asked.append([t.problem.question for t in rows])
        tries = [sum(q in batch for batch in asked) - 1 for q in asked[-1]]
        ids, logprobs = np.zeros(1, np.int64), np.zeros(1, np.float32)
        texts = [said[t.problem.question][k] for t, k in zip(rows, tries, strict=True)]
        return [t.plus(Turn("teacher", ids, logprobs, logprobs, text), "end") for t, text in zip(rows, texts, strict=True)]

    run.models["teacher"].extend = extend
    return ops, asked


def step(ops: Ops) -> list[list[str]]:
    ops.run.metrics = {}
    ops.recipe.loop(ops.recipe, ops.run, ops)
    ops.run.step += 1
    assert ops.step_data is not None
    return [[group[0].problem.question, *(t.reply for t in group)] for group in ops.step_data.groups]


def same(a, b) -> bool:
    return all(torch.equal(x, b.state()[name]) for name, x in a.state().items())


def test_what_fails_a_check_is_tried_again_and_never_passed_is_left_to_grpo():
    ops, asked = begun()
    run = ops.run
    learnt = [*step(ops), *step(ops)]
    every = [p.question for p in PROBLEMS]
    assert asked == [every, every[1:], every[2:]]
    assert dict(run.memory[TRACES]) == {0: FORM, 1: FORM, 3: FORM}
    assert run.memory[HARD] == [2]
    assert {tuple(row) for row in learnt} <= {(q, FORM) for q in ("Case 0?", "Case 1?", "Case 3?")}
    assert run.metrics["passed"] == 0.75
    imitated = run.policy.copy("imitated")
    grpo = [*step(ops), *step(ops)]
    # GRPO began where SFT ended, which is its reference
    assert same(run.reference, imitated)
    assert {row[0] for row in grpo} == {"Case 2?"}
    assert {len(row) for row in grpo} == {5}
    # the teacher was asked before the first step alone
    assert len(asked) == 3


def test_without_a_check_of_the_reasoning_a_right_answer_passes():
    ops, asked = begun(consistent=None)
    step(ops)
    # the contradiction passes at once; SILENT would have no reasoning to learn
    assert dict(ops.run.memory[TRACES])[2] == "<think>So brin.</think><answer>Answer: B</answer>"
    # all passed in the end, and GRPO has all questions
    assert ops.run.memory[HARD] == [0, 1, 2, 3]
    assert [len(batch) for batch in asked] == [4, 2, 1]
    # a policy that does not know the tags learns traces as they were written
    ops, _ = begun(tags=False)
    step(ops)
    assert dict(ops.run.memory[TRACES]) == {0: SOUND, 1: SOUND, 3: SOUND}


def test_where_no_trace_passed_every_step_is_of_grpo_and_a_run_is_resumed_with_its_traces():
    ops, _ = begun({question: [WRONG, CONTRADICTS, SILENT] for question in SAID})
    assert {len(row) for row in step(ops)} == {5}
    assert (ops.run.memory[TRACES], ops.run.memory[HARD]) == ([], [0, 1, 2, 3])
    assert ops.run.metrics["passed"] == 0
    ops, asked = begun()
    step(ops)
    resumed, again = begun()
    resumed.run.memory, resumed.run.step, resumed.position = json.loads(json.dumps(ops.run.memory)), 1, ops.position
    assert {tuple(row[1:]) for row in step(resumed)} == {(FORM,)}
    assert len(asked) == 3
    assert again == []


@pytest.mark.parametrize(
    ("reply", "trace"),
    [
        ("7+5=12\nAnswer: 12", "<think>7+5=12</think><answer>Answer: 12</answer>"),
        (FORM, FORM),
        ("Answer: 12", None),
        ("I do not know.", None),
        # as reasoning models answer: without a tag of the answer, and where the template has opened the reasoning for them
        ("<think>\n7+5=12\n</think>\n\nIt is \\boxed{12}.", "<think>7+5=12</think><answer>It is \\boxed{12}.</answer>"),
        ("7+5=12\n</think>\n<answer>12</answer>", "<think>7+5=12</think><answer>12</answer>"),
        ("<think>put it in <answer> tags</think> 12", "<think>put it in <answer> tags</think><answer>12</answer>"),
        ("<think>7+5=12</think>", None),
        ("<think></think>12", None),
    ],
)
def test_a_reply_is_put_in_form(reply, trace):
    assert in_tags(reply) == trace


def test_answers_are_paid_in_form_alone_and_what_the_credit_of_a_group_is():
    recipe, case = registry.build("dianjin_r1"), PROBLEMS[0]
    texts = [FORM, SOUND, FORM.replace("B", "A"), FORM + FORM]
    ids, logprobs = np.zeros(2, np.int64), np.zeros(2, np.float32)
    group = [
        Trajectory(case, (Turn(None, np.zeros(2, np.int64)), Turn("policy", ids, logprobs, logprobs, text)), "end")
        for text in texts
    ]
    run = Run(policy=None, verify=registry.part("reward", "choice"))
    scores = recipe.reward([group], run)
    assert [s.total for s in scores[0]] == [1, 0, 0, 0]
    batch = collate([group], scores, torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    without = registry.build("dianjin_r1", {"tags": False}).reward
    assert [s.total for s in without([group], run)[0]][:3] == [1, 1, 0]
    # mean 1/4, unbiased std 1/2; / (1/2 + 1e-4): 1.49970, -.49990
    last = [float(row[mask][-1]) for row, mask in zip(credit, batch.mask, strict=True)]
    assert last == pytest.approx([1.49970, -0.49990, -0.49990, -0.49990], abs=1e-4)
