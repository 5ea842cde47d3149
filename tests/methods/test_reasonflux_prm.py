"""ReasonFlux-PRM: targets of thoughts and of whole replies, and the model that learns them."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import torch
from rows import batch_of, outcome, steps

from rewardlab import registry
from rewardlab.core import Outputs, Run, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.process import reasonflux_prm as thoughts
from rewardlab.methods.process.reasonflux_prm import (
    check,
    parts_of,
    reasonflux_prm,
    softmax_mean,
    template_success,
    thought_and_end,
    thought_steps,
    without_results,
)
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.text.splitters import mark
from rewardlab.worlds.rethought import sound_thoughts

E = math.e


def written(policy, text, question="?", answer="9"):
    p = ask(question, answer)
    (t,) = policy.write(policy.read([Trajectory(p)], [p.prompt]), [text])
    return mark(t, "newline", policy.pieces, policy.name)


def said_of(values):
    @reward(steps=True)
    def told(trajectory):
        return [(at, x) for at, x in zip(trajectory.steps, values, strict=False) if x is not None]

    return told()


def test_larger_numbers_weigh_more():
    assert softmax_mean([0.5]) == 0.5
    # (e + 0) / (e + 1)
    assert softmax_mean([1.0, 0.0]) == pytest.approx(E / (E + 1))


def test_a_mark_at_the_end_of_the_last_thought():
    policy = untrained(hidden=32, layers=1)
    parts = parts_of(written(policy, "a\nso b.</think>\nc\nAnswer: 9"), "</think>")
    assert (parts.thought, parts.response) == (((0, "a"), (1, "so b.")), ((2, "c"), (3, "Answer: 9")))
    # nothing was thought, nothing was answered, and there is no mark
    for text in ("</think>\nAnswer: 9", "a\nb</think>", "a\nAnswer: 9"):
        assert parts_of(written(policy, text), "</think>") is None


def test_targets_of_a_thought(monkeypatch):
    """Steps are plane vectors: a and c at right angles, b between them."""
    plane = {"a": (1, 0), "b": (0.8, 0.6), "c": (0, 1), "Answer: 9": (0, -1), "z": (1, 0)}
    monkeypatch.setattr(thoughts, "embedded", lambda texts, model: np.array([plane[x] for x in texts], float))
    policy = untrained(hidden=32, layers=1)
    t = written(policy, "a\nc\n</think>\nb\nAnswer: 9")
    other = written(policy, "z\n</think>\nb\nAnswer: 9", question="another")
    part = thought_steps(quality=said_of([1.0, None]), heat=0.5)
    (first,), (second,) = part([[t], [other]], Run(policy))
    # a: cosine .8 with b, quality 1, no step before it
    want = (0.8 * math.exp(0.8) + E) / (math.exp(0.8) + E)
    # c: cosine .6 with b, no quality; a, before it, is at cosine 0, and so is z of the other problem: one half
    next_ = (0.6 * math.exp(0.6) + 0.5 * math.exp(0.5)) / (math.exp(0.6) + math.exp(0.5))
    assert [at for at, _ in first.steps] == list(t.steps[:2])
    assert [x for _, x in first.steps] == pytest.approx([want, next_])
    assert len(second.steps) == 1
    # without other problems there is no coherence: c is worth .6
    assert part([[t]], Run(policy))[0][0].steps[1][1] == pytest.approx(0.6)
    for text in ("a\nb\nAnswer: 9", "</think>\nb", "a\n</think>"):
        assert part([[written(policy, text)]], Run(policy))[0][0].value is None


class Follower:
    """A policy that says 9 with a plan that holds b, and 1 with others."""

    context = 4000

    def __init__(self):
        self.policy, self.asked = untrained(hidden=32, layers=1), []

    def read(self, rows, messages):
        self.asked += [m[-1].text for m in messages]
        return self.policy.read(rows, messages)

    def extend(self, rows, sampling, rng):
        return self.policy.write(rows, ["Answer: 9" if "b" in t.problem.question.split("plan:")[1] else "Answer: 1" for t in rows])


@reward
def gold(trajectory):
    return float(trajectory.reply.endswith(f"Answer: {trajectory.problem.answer}"))


def test_a_template_is_worth_what_follows_from_it():
    policy, follower = untrained(hidden=32, layers=1), Follower()
    good, bad = written(policy, "a\n</think>\nb\nAnswer: 9"), written(policy, "a\n</think>\nc\nAnswer: 9")
    run = Run(follower, verify=gold())
    (row,) = template_success(n=2)([[good, bad, good, written(policy, "Answer: 9")]], run)
    assert [s.value for s in row] == [1.0, 0.0, 1.0, None]
    # equal templates are tried once, and the answer is no part of them
    assert len(follower.asked) == 2
    assert "9" not in follower.asked[0]
    assert run.metrics["completions"] == 4


def test_the_default_template_holds_no_result():
    # 12 is computed; 9 is the answer; 7, 5 and 3 are stated
    lines = ["7+5=12", "12-3=9", "so it is 9, or 1,009.5", "Answer: 9"]
    assert without_results(lines, "Start with 7. Add 5. Subtract 3.") == "7+5=_\n_-3=_\nso it is _, or _"
    # a result that the question states as well; an answer in words, which is no part of a longer word
    assert without_results(["7+5 = 12", "Rome, in Romeland", "Answer: Rome"], "7, 5 or 12?") == "7+5 = _\n_, in Romeland"
    policy, follower = untrained(hidden=32, layers=1), Follower()
    t = written(policy, "a\n</think>\n7+5=12\n12*3=36\nAnswer: 36", question="Start with 7. Add 5. Multiply by 3.", answer="36")
    template_success(n=1)([[t]], Run(follower, verify=gold()))
    assert follower.asked[0].endswith("Follow this plan:\n7+5=_\n_*3=_")


def test_a_step_that_goes_on_rightly_from_a_wrong_one_is_sound():
    policy = untrained(hidden=32, layers=1)
    p = ask("Start with 7. Add 5. Multiply by 3.", "36", steps=["7+5=12", "12*3=36"])
    (t,) = policy.write(policy.read([Trajectory(p)], [p.prompt]), ["7+5=13\n13*3=39\n</think>\n7+5=12\n12*3=36\nAnswer: 36"])
    ((said,),) = sound_thoughts()([[mark(t, "newline", policy.pieces, policy.name)]], Run(policy))
    assert [x for _, x in said.steps] == [0.0, 1.0]


def test_labels_of_steps_and_whole_in_one_batch():
    policy = untrained(hidden=32, layers=1)
    t = written(policy, "7+5=12\n</think>\n7+5=12\nAnswer: 9")
    labels = reasonflux_prm(quality=said_of([0.0])).also[-1].recipe.reward
    run = Run(Follower(), verify=gold())
    batch = collate([[t]], labels([[t]], run), torch.device("cpu"))
    # the first line is in the response: alignment 1, quality 0; without a b in the plan nothing is right at the end
    at, end = t.steps[0], t.steps[-1]
    assert batch.rewarded[0].nonzero().flatten().tolist() == [at, end]
    assert batch.reward[0, at].item() == pytest.approx(E / (E + 1), rel=1e-5)
    assert batch.reward[0, end].item() == 0.0


def test_the_two_losses():
    # sigma(0) = 1/2, sigma(log 3) = 3/4; two steps and the end; steps alone, without a verdict on the template; nothing
    log3 = math.log(3)
    rows = [("rdddd", {"r": steps({1: 1.0, 2: 0.25, 4: 0.0})}), ("rddd", {"r": steps({1: 0.0})}), ("rd", {"r": outcome(None)})]
    batch = batch_of([[row] for row in rows])
    value = torch.tensor([[9, 0.0, log3, 9, log3], [9, log3, 9, 9, 9], [9, 9, 9, 9, 9]])
    prm = reasonflux_prm(quality=said_of([0.0]), final=2.0).also[-1].recipe
    loss = prm.objective(Outputs(value=value), batch, Run(None))
    (found,) = loss.values() if isinstance(loss, dict) else (loss,)
    # (1/4 + 1/4) / 2 + 2 * 9/16; 9/16
    assert found.tolist() == pytest.approx([0.25 + 2 * 0.5625, 0.5625, 0.0])


def test_a_reply_is_scored_by_its_thought_and_its_end():
    policy = untrained(hidden=32, layers=1)
    t, plain = written(policy, "a\nb\n</think>\nc\nAnswer: 9"), written(policy, "a\nAnswer: 9")
    part = thought_and_end(inner=said_of([0.5, 1.0, 0.0, 0.0, 0.25]))
    # the mark and the response say nothing: (3/4 + 1/4) / 2; without a thought (3/4 + 1) / 2
    assert [s.total for s in part([[t, plain]], Run(policy))[0]] == pytest.approx([0.5, 0.875])


def test_the_models_word_can_pay_the_policy():
    assert "step_score" in str(reasonflux_prm(online=0.5).reward)
    assert "step_score" not in str(reasonflux_prm().reward)
    assert [x.name for x in reasonflux_prm(writer="copy:policy").also] == ["judge", "writer", "prm"]


def test_the_world_and_what_its_claim_measures():
    task = registry.task("rethought", test_size=20)
    rng, policy = random.Random(0), untrained(hidden=32, layers=1)
    said = [written(policy, task.demonstrate(p, rng), p.question, p.answer) for p in task.test]
    assert all(t.reply.count("</think>") == 1 for t in said)
    # responses are right more often than whole thoughts
    right = np.mean([t.reply.splitlines()[-1] == f"Answer: {t.problem.answer}" for t in said])
    thought = np.mean([t.reply.splitlines()[2].rpartition("=")[2] == t.problem.answer for t in said])
    assert right > thought
    run = Run(policy, max_new=6, seed=1, verify=gold())
    with pytest.raises(Exception, match="speaks of no step"):
        check.by(task.test[:2], run)
