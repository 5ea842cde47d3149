"""RLPR: the reference answer's mean probability after the reasoning, and the filter of groups in which it hardly varies."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask, rollout
from rewardlab.methods.intrinsic.rlpr import goes_round
from rewardlab.rewards.reference import aggregated, gold_logprobs, reference_probability
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.filtered import spread_above

PROMPT = ask("Q", "26")


class Scorer(Replies):
    """One token a character, and an end token; the probabilities of the answer's tokens depend on the reasoning."""

    context = 1000

    def __init__(self, by_reasoning):
        super().__init__([])
        self.by_reasoning, self.read_texts = by_reasoning, []

    def decode(self, ids):
        return "".join(map(chr, ids))

    def write(self, trajectories, texts):
        end = [0]
        ids = [np.array([*map(ord, text), *end]) for text in texts]
        return [t.plus(Turn("policy", x, text=text), "end") for t, x, text in zip(trajectories, ids, texts, strict=True)]

    def score(self, trajectories):
        rows = []
        for t in trajectories:
            text = "".join(turn.text for turn in t.turns[:-1])
            self.read_texts.append(text)
            row = np.full(len(t), -9.0, np.float32)
            last = t.turns[-1].ids
            probabilities = next(p for key, p in self.by_reasoning.items() if text.startswith(key))
            row[len(t) - len(last) : len(t) - 1] = np.log(probabilities)
            rows.append(row)
        return rows


def reply(text: str, problem=PROMPT) -> Trajectory:
    return Trajectory(problem, (Turn("policy", np.arange(3), text=text),), "end")


# " 26" are three characters
POLICY = {"good": [1.0, 0.9, 0.8], "bad": [0.9, 0.1, 0.2], "": [0.6, 0.3, 0.3]}
BARE = {"": [0.6, 0.3, 0.3]}


def run(**more) -> Run:
    return Run(policy=Scorer(POLICY), reference=Scorer(BARE), **more)


def totals(*texts: str, **settings):
    state = run()
    return [s.total for s in reference_probability(**settings)([[reply(x) for x in texts]], state)[0]]


def test_the_mean_probability_of_the_references_tokens_less_that_without_reasoning():
    # .9 and .4; without reasoning .4: .5 and 0
    assert totals("good\nAnswer: 26", "bad\nAnswer: 7") == pytest.approx([0.5, 0.0], abs=1e-6)
    assert totals("good\nAnswer: 26", "bad\nAnswer: 7", debias=False) == pytest.approx([0.9, 0.4], abs=1e-6)
    # a product is next to nothing where one token is unlikely: .72, .018
    assert totals("good\nAnswer: 26", "bad\nAnswer: 7", debias=False, over="product") == pytest.approx([0.72, 0.018], abs=1e-6)
    assert aggregated(np.log([0.5, 0.125]), "geometric") == pytest.approx(0.25)


def test_the_policys_own_answer_is_not_read_and_the_mark_is_no_part_of_the_reference():
    state = run()
    reference_probability()([[reply("good\nAnswer: 7")]], state)
    assert state.policy.read_texts == ["good\nAnswer:"]
    assert state.reference.read_texts == ["Answer:"]
    (found,) = gold_logprobs(Scorer(POLICY), [reply("good\nAnswer: 7")], "Answer:")
    assert np.exp(found) == pytest.approx([1.0, 0.9, 0.8])


def test_thinking_is_kept_and_the_reference_follows_it():
    policy = Scorer({"<think>": [0.5, 0.25]})
    (found,) = gold_logprobs(policy, [reply("<think>\nwell\n</think>\n7")], "Answer:")
    assert policy.read_texts == ["<think>\nwell\n</think>\n"]
    assert np.exp(found) == pytest.approx([0.5, 0.25])


@pytest.mark.parametrize(
    ("opened", "text", "read"),
    [
        ("", "<think>\nwell\nAnswer: 3\nso", "<think>\nwell\nAnswer: 3\nso\n</think>\n"),  # cut off within the thinking
        ("<think>\n", "well\nso", "well\nso\n</think>\n"),  # which the prompt as it is read has opened
        ("<think>\n", "well <answer> 3", "well <answer> 3\n</think>\n"),  # an answer within it is none
        ("<think>\n", "well\n</think>\nso", "well\n</think>\n"),  # and is not opened again
        ("<think>\n", "", "</think>\n"),  # without reasoning
        ("<think>\n\n</think>\n", "well\nso", "well\nAnswer:"),  # the prompt has closed it too
    ],
)
def test_the_reference_never_stands_within_thinking(opened, text, read):
    policy = Scorer({"": [0.5]})
    ids = np.array([*map(ord, "7?" + opened)])
    policy.read = lambda rows, messages: [t.plus(Turn(None, ids, text="")) for t in rows]
    (found,) = gold_logprobs(policy, [reply(text, replace(PROMPT, answer="7"))], "Answer:")
    assert policy.read_texts == [read]
    assert np.exp(found[-1]) == pytest.approx(0.5)
    # a probe within the thinking is asked there
    gold_logprobs(policy, [reply("well\nAnswer: ?", replace(PROMPT, answer="7"))], "Answer:", close=False)
    assert policy.read_texts[-1] == "well\nAnswer:"


def test_an_answer_between_tags_is_replaced_there():
    policy = Scorer({"<think>": [0.5, 0.25, 0.75], "well": [0.5, 0.25, 0.75]})
    thought = "<think>\nwell,\n\nso\n</think>\n<answer> 7 </answer>"
    for text, read in ((thought, thought.partition(" 7")[0]), ("well <answer>\\frac{1}{2}", "well <answer>")):
        (found,) = gold_logprobs(policy, [reply(text)], "Answer:")
        # the blank line of the thinking stays, and a space stands before the reference as before the answer
        assert policy.read_texts[-1] == read
        assert np.exp(found) == pytest.approx([0.5, 0.25, 0.75])


def test_who_goes_round_in_circles_is_charged():
    line = "one two three four five six seven eight nine ten "
    texts = [line * 10, line.replace(" ", "_") * 10, line * 9, "", "ten words"]
    (found,) = goes_round()([[reply(text) for text in texts]], run())
    assert [s.total for s in found] == [-1.0, -1.0, 0.0, 0.0, 0.0]
    assert "goes_round" in str(registry.build("rlpr").reward)
    assert "goes_round" not in str(registry.build("rlpr", {"often": 0}).reward)


def test_without_a_reference_or_room_for_it_there_is_no_verdict():
    state = run()
    rows = [[reply("good", ask("Q", None)), reply("good", ask("Q", "  ")), reply("good", ask("Q", [1])), reply("good\nAnswer: 1")]]
    scores = reference_probability()(rows, state)[0]
    assert [s.missing for s in scores] == [True, True, True, False]
    state.policy.context = 3
    assert reference_probability()([[reply("good\nAnswer: 1")]], state)[0][0].missing


@reward
def value(trajectory):
    return None if trajectory.reply == "?" else float(trajectory.reply)


def kept(state: Run, *rows: list[str], **more) -> list[list[str]]:
    @rollout
    def given(problems, run):
        return [[reply(text) for text in row] for row in rows]

    found = spread_above(inner=given(), by=value(), **{"share": 0.5, "decay": 0.5, "start": 1, **more})([PROMPT] * len(rows), state)
    return [[t.reply for t in group] for group in found]


def test_groups_that_vary_less_than_half_of_the_mean_before_are_dropped():
    state = run()
    wide, narrow, none = ["0", "1"], ["0", ".2"], ["?", "1"]
    # deviations .5 and .1; nothing is dropped in the first step, not even what has no deviation
    assert kept(state, wide, narrow, none) == [wide, narrow, none]
    state.step = 1
    # the mean before is .3: at least .15
    assert kept(state, wide, narrow, none) == [wide]
    # again in the same step: from the same mean
    assert kept(state, wide, narrow) == [wide]
    state.step = 2
    # .3/2 + .3/2 = .3;  if none is left, all are kept
    assert kept(state, narrow) == [narrow]
    state.step = 3
    # .3/2 + .1/2 = .2: at least .1
    assert kept(state, narrow, wide) == [narrow, wide]


def test_further_problems_fill_the_step():
    state = run(more_problems=lambda n: [PROMPT] * n)
    state.memory["spread_above.mean"] = {"step": 4, "before": None, "now": 0.5}
    state.step = 5
    batches = iter([[["0", "0"], ["0", "1"]], [["0", "2"]]])

    @rollout
    def given(problems, run):
        return [[reply(text) for text in row] for row in next(batches)]

    found = spread_above(inner=given(), by=value(), start=0, attempts=3)([PROMPT] * 2, state)
    assert [[t.reply for t in group] for group in found] == [["0", "1"], ["0", "2"]]


def test_several_updates_on_a_batch_so_that_the_upper_clip_matters_and_batches_are_refilled():
    recipe = registry.build("rlpr")
    assert recipe.update.minibatches == 4
    assert recipe.objective.settings["eps_high"] == 0.27
    assert recipe.rollout.settings["attempts"] == 10
    assert registry.build("dr_grpo+rlpr").update.minibatches == 1


def test_a_form_is_a_tenth():
    recipe = registry.build("rlpr", {"form": "good.*"})
    (row,) = recipe.reward([[reply("good\nAnswer: 1"), reply("bad\nAnswer: 1")]], run())
    assert row[0].total == pytest.approx(0.9 * 0.5 + 0.1 * row[0].terms["format_ok"].value, abs=1e-6)
    assert not math.isnan(row[1].total)
