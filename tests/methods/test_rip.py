"""RIP: DPO on the prompts whose rejected reply is good and long, and whose chosen reply is little better."""

from __future__ import annotations

import math

import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, ask
from rewardlab.engine.step import Ops
from rewardlab.models.embedded import untrained
from rewardlab.runs.config import RunConfig
from rewardlab.worlds.notes import note_quality, notes

META = {"need": "corn", "hurry": False, "kind": False}
GOOD, FAIR, BAD, OTHER = "Send fresh fine corn.", "Send fresh corn.", "Send corn, of course.", "Send rice."
# worth 1, .85, .6 and 0


def test_a_prompt_that_made_the_policy_guess_is_not_learnt_from():
    clear, guessed = ask("Corn, brief.", **META), ask("?", **META)
    policy = Replies([GOOD, FAIR, FAIR, OTHER])
    recipe = registry.build("rip", {"score": note_quality(), "n": 2, "rejected_length": None, "pool": 2})
    run = Run(policy, reference=policy, more_problems=lambda n: [guessed] * n)
    groups = recipe.rollout([clear], run)
    # rejected: .85 against 0, gap: .15 against .85; the medians lie between
    assert [[t.reply for t in group] for group in groups] == [[GOOD, FAIR]]
    assert run.metrics["survived"] == 0.5
    assert run.metrics["gap"] == pytest.approx(0.15)
    every = {"score": note_quality(), "n": 2, "pool": 1} | dict.fromkeys(("rejected_score", "rejected_length", "gap"))
    run = Run(policy, reference=policy, more_problems=lambda n: [])
    assert len(registry.build("rip", every).rollout([clear, guessed], run)) == 2


def test_the_loss_is_dpos_on_the_survivors_alone():
    """At the start policy and reference agree, so that each pair costs log 2; the data's own pairs need no sampling."""
    pairs = [ask(f"{i}+{i}", chosen=f"{i}7", rejected=f"{i}3", chosen_score=i + 1, rejected_score=i) for i in range(4)]
    recipe = registry.build(
        "rip", {"sampled": False, "rejected_score": "2:", "rejected_length": None, "gap": ":1", "pool": 4, "problems": 4}
    )
    run = Run(untrained(), max_new=4)
    run.reference = run.policy.copy("reference")
    task = registry.task("arithmetic", test_size=2)
    ops = Ops(recipe, run, task, RunConfig())
    run.more_problems = lambda n: [pairs[3]] * n
    groups = recipe.rollout(pairs, run)
    assert [g[0].problem.meta["rejected_score"] for g in groups] == [2, 3, 3, 3]
    ops.update(ops.collate(groups, None))
    assert run.metrics["loss"] == pytest.approx(math.log(2), abs=1e-5)


def test_a_reward_model_is_taught_where_no_reward_is_given():
    recipe = registry.build("rip")
    assert str(recipe.rollout).startswith("filter_pairs(inner=ranked(by=model_score()")
    assert (recipe.also[0].name, str(recipe.objective)) == ("reward_model", "dpo_loss()")
    assert str(registry.build("simpo+rip", {"score": note_quality()}).objective) == str(registry.build("simpo").objective)


@pytest.mark.slow
def test_poor_prompts_of_the_world_do_not_say_what_their_notes_are_judged_by():
    task, clear = notes(poor=0.5), notes()
    problems = [task.train[i] for i in range(400)]
    poor = [p for p in problems if not p.meta["clear"]]
    assert 0.42 < len(poor) / 400 < 0.58
    for i, p in enumerate(problems):
        told = clear.train[i]
        assert p.meta | told.meta == p.meta
        assert (p.question == told.question) == p.meta["clear"]
    said = [p.question for p in poor]
    cut = [q for q in said if "need" not in q]
    both = [q for q in said if "Hurry." in q and "No rush." in q and "kind" in q and "brief" in q]
    assert cut
    assert both
    assert len(cut) + len(both) < len(said)
    assert all(p.question == q.question for p, q in zip(task.test, clear.test, strict=True))
