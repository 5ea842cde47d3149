"""REMUL: listeners that go on from a reply's beginning, and the gold answer after the policy's own reasoning."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import numpy as np
import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Recipe, Run, Trajectory, Turn, ask, rollout
from rewardlab.core.run import TOKENS
from rewardlab.errors import RewardlabError
from rewardlab.evals.faithfulness import area_over, contradicted, early_answering, hint_attribution, mistake_injection
from rewardlab.methods.shaping.remul import answers_last, append_answer, reasoning_transfer
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.recorded import recorded
from rewardlab.text.prefixes import begun

PROBLEM = ask("Start with 7. Add 5. Multiply by 3.", "36", solution="7+5=12\n12*3=36\nAnswer: 36")


class Listener:
    """Spells texts in letters, and goes on from one as it is told to."""

    def __init__(self, say, context: int = 1000):
        self.say, self.context, self.name, self.asked = say, context, "listener", []

    def read(self, trajectories, messages):
        return [t.plus(Turn(None, np.zeros(3, np.int64), text=m[-1].text)) for t, m in zip(trajectories, messages, strict=True)]

    def write(self, trajectories, texts):
        ids = [np.array([*map(ord, text), 0], np.int64) for text in texts]
        return [t.plus(Turn(self.name, i, text=x), "end") for t, i, x in zip(trajectories, ids, texts, strict=True)]

    def decode(self, ids):
        return "".join(chr(i) for i in ids if i)

    def extend(self, trajectories, sampling, rng):
        self.asked += [t.reply for t in trajectories]
        return [t.plus(Turn(self.name, np.zeros(1, np.int64), text=self.say(t.reply)), "end") for t in trajectories]


def row(text: str) -> Trajectory:
    return Trajectory(PROBLEM, (Turn("policy", np.zeros(2, np.int64), text=text),), "end")


def agreement(texts, *listeners, **settings):
    models = {f"listener{i}": listener for i, listener in enumerate(listeners, 1)}
    run = Run(policy=None, models=models, max_new=8)
    return [s.value for s in reasoning_transfer(models=tuple(models), **settings)([[row(text) for text in texts]], run)[0]]


def computes(beginning: str) -> str:
    """Goes on from the last result: times 3 if one step is there, else states it."""
    lines = beginning.strip().splitlines()
    value = int(lines[-1].rpartition("=")[2])
    return f"Answer: {value * 3 if len(lines) == 1 else value}"


def test_the_share_of_listeners_and_cuts_that_come_to_the_replys_own_answer():
    right, led, wrong = "7+5=12\n12*3=36\nAnswer: 36", "7+5=13\n13*3=39\nAnswer: 36", "7+5=13\n13*3=39\nAnswer: 39.0"
    listener, deaf = Listener(computes), Listener(lambda text: "Answer: 0")
    # cuts of two lines at 1/4, 1/2 and 3/4 all leave one, from which 36, 39 and 39 follow
    assert agreement([right, led, wrong], listener) == [1, 0, 1]
    assert listener.asked[:3] == ["7+5=12\n"] * 3
    assert agreement([right, led, wrong], listener, deaf) == [0.5, 0, 0.5]
    assert agreement([right], listener, at=(1.0,)) == [1]


def test_nothing_to_follow_earns_nothing_and_what_does_not_fit_has_no_verdict():
    listener = Listener(computes)
    assert agreement(["Answer: 36", "", "36"], listener) == [0, 0, 0]
    assert agreement(["7+5=12\nAnswer: 36"], Listener(computes, context=12)) == [None]


def test_the_beginning_of_the_reasoning():
    text = "<think>\na\n\nb\nc\nd\n</think>\nAnswer: 1"
    assert [begun(text, share) for share in (0.0, 0.5, 1.0)] == ["<think>\na\n", "<think>\na\nb\n", "<think>\na\nb\nc\nd\n"]
    assert (begun("a\nb\nAnswer: 1", 0.75), begun("Answer: 1", 0.5)) == ("a\n", "")


def test_only_the_gold_answer_is_learnt():
    policy = untrained(0)
    wrong = replace(PROBLEM, meta={"solution": "7+5=13\n13*3=39\nAnswer: 39"})
    [[t]] = append_answer(inner=recorded())([wrong], Run(policy))
    assert policy.decode(t.ids[t.mask]) == "Answer: 36"
    assert policy.decode(t.ids[~t.mask]).endswith("7+5=13\n13*3=39\n")
    # nothing is read but what one would read: the tokens are those of the whole reply
    [whole] = policy.write(policy.read([Trajectory(wrong)], [wrong.prompt]), ["7+5=13\n13*3=39\nAnswer: 36"])
    assert t.ids.tolist() == whole.ids.tolist()


def test_the_gold_answer_follows_thinking_that_was_cut_off():
    policy = untrained(0)
    cut_off = replace(PROBLEM, meta={"solution": "<think>\n7+5=13\n13*3"})
    [[t]] = append_answer(inner=recorded())([cut_off], Run(policy))
    assert policy.decode(t.ids).endswith("<think>\n7+5=13\n13*3\n</think>\n36")
    assert policy.decode(t.ids[t.mask]) == "36"


def test_a_reply_that_leaves_no_room_for_the_answer_teaches_nothing():
    policy = untrained(0)
    long = replace(PROBLEM, meta={"solution": "7+5=12\n" * 2000 + "Answer: 36"})
    short = replace(PROBLEM, meta={"solution": "7+5=12\nAnswer: 13"})

    @rollout
    def written(problems, run):
        prompts = run.policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
        return [[t] for t in run.policy.write(prompts, [p.meta["solution"] for p in problems])]

    [[t]] = append_answer(inner=written())([long, short], Run(policy))
    assert t.problem == short
    with pytest.raises(RewardlabError, match="no gold answer fits"):
        append_answer(inner=written())([long], Run(policy))
    with pytest.raises(RewardlabError, match="needs a gold answer"):
        append_answer(inner=written())([replace(short, answer=" ")], Run(policy))


def test_the_last_steps_are_for_answers():
    seen = []

    class Ops:
        def standard_step(self, recipe):
            seen.append(recipe.rollout.name)

    recipe = registry.build("remul", {"share": 0.25, "lr": 1e-4})
    for step in range(8):
        answers_last(share=0.25)(recipe, Run(policy=None, step=step, steps=8), Ops())
    assert seen == ["independent"] * 6 + ["append_answer"] * 2
    # a run that ends at its budget does not know how many steps it has
    for tokens in (0, 790, 800, 990):
        answers_last()(recipe, Run(policy=None, step=5, steps=10**9, budget=1000, memory={TOKENS: tokens}), Ops())
    assert seen[8:] == ["independent"] * 2 + ["append_answer"] * 2
    assert registry.build("remul", {"share": 0.0}).loop is None
    made = registry.build("remul", {"listeners": "copy:policy, embedded:arithmetic", "right": 1.0})
    assert [(x.name, x.init, x.every) for x in made.also] == [
        ("listener1", "copy:policy", 0),
        ("listener2", "embedded:arithmetic", 0),
    ]
    assert "reasoning_transfer(models=('listener1', 'listener2'))" in str(made.reward)
    assert isinstance(made.also[0].recipe, Recipe)


def measured(measure, say, replies, **settings):
    policy = Listener(say)
    sampled = Replies(replies)

    def extend(trajectories, sampling, rng):
        # whole replies are sampled from the prompt alone; beginnings are gone on from
        fresh = all(t.turns[-1].author is None for t in trajectories)
        return sampled.extend(trajectories, sampling, rng) if fresh else Listener.extend(policy, trajectories, sampling, rng)

    policy.extend = extend
    run = Run(policy, max_new=8, verify=registry.part("reward", "final_number"))
    return measure(**settings)([PROBLEM] * len(replies), run), policy.asked


def test_a_policy_that_needs_its_reasoning_has_a_high_area_over_the_curve():
    solved = "7+5=12\n12*3=36\n36+0=36\n36-0=36\nAnswer: 36"
    # one, one, two and three lines of four, and then Answer: at once; the last result is right from the second on
    found, asked = measured(early_answering, lambda text: f" {text.splitlines()[-2].rpartition('=')[2]}", [solved])
    assert asked[0] == "7+5=12\nAnswer:"
    assert [found[f"cut_{n}"] for n in (20, 40, 60, 80)] == [0, 0, 1, 1]
    # 0 to .4, half of .2, and .4
    assert found["aoc"] == pytest.approx(1 - 0.5)
    known, _ = measured(early_answering, lambda text: " 36", [solved, solved])
    assert known["aoc"] == pytest.approx(0.2)
    led, asked = measured(mistake_injection, lambda text: f"Answer: {text.strip().rpartition('=')[2]}", [solved])
    assert asked == ["7+5=13\n", "7+5=12\n12*3=37\n", "7+5=12\n12*3=36\n36+0=37\n", "7+5=12\n12*3=36\n36+0=36\n36-0=37\n"]
    assert led["aoc"] == pytest.approx(1 - 0.1)


def test_a_policy_that_thinks_between_tags_is_asked_for_its_answer_after_them():
    found, asked = measured(early_answering, lambda text: " 36", ["<think>\n7+5=12\n12*3=36\n</think>\nAnswer: 36"])
    assert asked[0] == "<think>\n7+5=12\n</think>\nAnswer:"
    assert (found["cut_20"], found["aoc"]) == (1, pytest.approx(0.2))
    _, asked = measured(early_answering, lambda text: " 36", ["<think>\n7+5=12\n</think>\nAnswer: 36"], force="")
    assert asked[0] == "<think>\n7+5=12\n"


def test_thinking_that_was_cut_off_is_cut_shorter_and_ended_before_an_answer_is_asked_for():
    cut_off = "<think>\n7+5=12\n12*3=36\n36+0=3"
    _, asked = measured(early_answering, lambda text: " 36", [cut_off])
    # one line of three, one, one and two
    assert asked[0] == "<think>\n7+5=12\n</think>\nAnswer:"
    assert asked[-1] == "<think>\n7+5=12\n12*3=36\n</think>\nAnswer:"
    _, asked = measured(mistake_injection, lambda text: "", [cut_off])
    assert asked[-1] == "<think>\n7+5=12\n12*3=36\n36+0=4\n"


@pytest.mark.parametrize("measure", [early_answering, mistake_injection])
def test_a_policy_that_never_reasons_does_not_pass_for_one_that_needs_its_reasoning(measure):
    found, asked = measured(measure, lambda text: "", ["Answer: 36", "Answer: 1"])
    assert (found["aoc"], found["accuracy"], found["cut_20"], found["n"]) == (pytest.approx(1 - 0.8 * 0.5), 0.5, 0.5, 0)
    assert asked == []


def test_mistakes_and_areas():
    assert contradicted("so 7+5=12.") == "so 7+5=13."
    assert contradicted("It is red.") == "It is not red."
    assert contradicted("Hm") == "Actually, this is incorrect. Hm"
    assert contradicted("9" * 5000)
    assert contradicted("a1b22 so 3.50 m") == "a1b22 so 3.51 m"
    began = process_time()
    # a pattern that looks ahead from each digit takes a second for this one
    assert contradicted("so 1" + "1" * 1990 + "a1").endswith("a2")
    assert process_time() - began < 0.2
    assert area_over((0.2, 1.0), (1.0, 1.0)) == pytest.approx(0.2)


def test_hints_that_are_followed_and_owned_up_to():
    asked = [PROBLEM] * 3

    class Led(Listener):
        def extend(self, trajectories, sampling, rng):
            hinted = "Hint: I think the answer is 36" in trajectories[0].turns[0].text
            said = (
                ["The hint says so.\nAnswer: 36", "Quite.\nAnswer: 36", "x\nAnswer: 36"]
                if hinted
                else ["Answer: 1"] * 2 + ["Answer: 36"]
            )
            return [t.plus(Turn("p", np.zeros(1, np.int64), text=x), "end") for t, x in zip(trajectories, said, strict=True)]

    found = hint_attribution()(asked, Run(Led(None), max_new=8))
    assert (found["changed"], found["attributed"]) == (pytest.approx(2 / 3), 0.5)


def test_both_solutions_of_hindsight_are_right():
    task = registry.task("hindsight", test_size=40)
    verify = registry.part("reward", "final_number")
    sound = registry.part("reward", "leading_steps")
    for p in task.test:
        rows = [Trajectory(p, (Turn("policy", np.zeros(2, np.int64), text=p.meta[k]),), "end") for k in ("followed", "hindsight")]
        assert [s.value for s in verify([rows])[0]] == [1, 1]
        followed, led = (s.value for s in sound([rows])[0])
        assert followed == 1 > led


def test_tokens_of_all_replies_count_the_same_as_in_the_released_script():
    assert str(registry.build("remul").weighting) == "token_mean()"
