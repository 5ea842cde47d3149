"""Crome: causal pairs, ties under other prompts, what a baseline model is sure of, and replies that an oracle rewrites."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest
import torch
from reward_runs import taught
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.core import Outputs, Run, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.reward_models.crome import augmented, with_ties
from rewardlab.rewards.recorded import score_in_data
from rewardlab.rollouts.recorded import recorded

LEAVES = ask(
    "Why do leaves fall?",
    chosen="winter",
    rejected="gravity",
    upgraded="winter, and gravity",
    degraded=["summer", "winter", '["spring"'],
)
EGG = ask("How does one boil an egg?", chosen="in water", rejected="in wine")
BOTH = recorded(fields=("chosen", "rejected"))


def pairs_of(problems, run=None, **settings):
    """Prompt, the two replies and their votes of each group."""
    run = run or Run(Replies([]))
    groups = augmented(inner=BOTH, **settings)(problems, run)
    votes = score_in_data()(groups, run)
    return [
        (group[0].problem.question, *(t.reply for t in group), *(s.value for s in row))
        for group, row in zip(groups, votes, strict=True)
    ]


CAUSAL = [
    ("Why do leaves fall?", "winter, and gravity", "gravity", 1.0, 0.0),
    ("Why do leaves fall?", "winter", "summer", 1.0, 0.0),
    ("Why do leaves fall?", "winter", '["spring"', 1.0, 0.0),
]
GIVEN = [
    ("Why do leaves fall?", "winter", "gravity", 1.0, 0.0),
    ("How does one boil an egg?", "in water", "in wine", 1.0, 0.0),
]


def test_ties_are_learnt_both_ways_and_count_lambda_times():
    batch = batch_of([[("rd", {"": outcome(a)}), ("rd", {"": outcome(b)})] for a, b in ((1, 0), (1, 1), (1, 1))])
    out = Outputs(value=torch.tensor([[0.0, x] for x in (2.0, 1.0, 5.0, 2.0, 3.0, 3.0)]))
    # differences 1, 3 and 0: the tie of 3 costs (log(1 + e^-3) + log(1 + e^3)) / 2, which is log(1 + e^3) - 3 / 2
    first, second, third = math.log1p(math.exp(-1)), math.log1p(math.exp(3)) - 1.5, math.log(2)
    assert with_ties()(out, batch, Run(None)).tolist() == pytest.approx([first, second, third])
    assert with_ties(neutral=0.5)(out, batch, Run(None)).tolist() == pytest.approx([first, second / 2, third / 2])


def test_upgraded_replies_beat_the_rejected_one_and_the_chosen_one_beats_degraded_replies():
    assert pairs_of([LEAVES, EGG], neutrals=0) == GIVEN + CAUSAL
    with pytest.raises(RewardlabError, match="'degraded' is neither"):
        pairs_of([ask("?", chosen="a", rejected="b", degraded={"c": 1})])


def test_replies_are_a_tie_under_another_prompt_of_the_step_and_other_ties_the_next_time():
    seen = set()
    for step in range(30):
        run = Run(Replies([]), step=step)
        *known, leaves, egg = pairs_of([LEAVES, EGG], run)
        assert known == GIVEN + CAUSAL
        assert egg == ("Why do leaves fall?", "in water", "in wine", 1.0, 1.0)
        assert (leaves[0], leaves[3:]) == ("How does one boil an egg?", (1.0, 1.0))
        assert pairs_of([LEAVES, EGG], Run(Replies([]), step=step))[-2] == leaves
        seen.add(leaves[1:3])
    # of the pair itself, and of each of its causal pairs
    assert seen == {pair[1:3] for pair in (GIVEN[0], *CAUSAL)}
    assert (run.metrics["causal"], run.metrics["neutral"]) == (1.5, 1.0)
    # a prompt alone has no other, and neither have two copies of it
    assert pairs_of([EGG, EGG]) == [GIVEN[1]] * 2


def test_only_augmented_pairs_stay_that_the_baseline_is_not_sure_of():
    score = {
        "winter, and gravity": 3.0,
        "gravity": 0.0,
        "winter": 0.0,
        "summer": 0.0,
        '["spring"': 9.0,
        "in water": 0.1,
        "in wine": 0.0,
    }
    baseline = SimpleNamespace(score=lambda rows: [score[text] for _, text in rows])
    run = Run(Replies([]), models={"model:runs/x": baseline})
    found = pairs_of([LEAVES, EGG], run, filter="model:runs/x")
    # sure of the first causal pair (chance .95), in doubt about the second, wrong about the third; the eggs are a tie to it
    assert found[:4] == GIVEN + CAUSAL[1:]
    assert all(pair[1:3] != ("in water", "in wine") for pair in found[4:])
    assert 0 < run.metrics["kept"] < 1


class Oracle(Replies):
    """Names two attributes and rewrites; keeps what it was asked."""

    def __init__(self):
        super().__init__([])
        self.asked = []

    def extend(self, trajectories, sampling, rng):
        prompts = [t.problem.question for t in trajectories]
        self.asked += prompts
        said = ["- truth\n- being to the point\n- calm" if "- '" in p else f"new {len(p)}" for p in prompts]
        return self.write(trajectories, said)


def test_an_oracle_rewrites_replies_in_attributes_that_it_names_once_for_each_row_that_brings_none():
    oracle = Oracle()
    run = Run(Replies([]), models={"oracle": oracle})
    found = pairs_of([LEAVES, EGG, EGG], run, neutrals=0)
    rubric, *rewrites = oracle.asked
    assert EGG.question in rubric
    assert [("in wine" in p, "better in this alone" in p, "truth" in p) for p in rewrites] == [
        (True, True, True), (False, False, True), (True, True, False), (False, False, False),
    ]  # fmt: skip
    new = [pair for pair in found if pair[0] == EGG.question and pair != GIVEN[1]]
    assert [(better.startswith("new"), worse.startswith("new")) for _, better, worse, *_ in new] == 2 * [
        (True, False), (True, False), (False, True), (False, True),
    ]  # fmt: skip
    assert pairs_of([LEAVES, EGG, EGG], run, neutrals=0) == found
    assert len(oracle.asked) == 5
    # a run's model is that of its first learner
    (_, learner) = registry.build("crome", {"oracle": "copy:policy"}).also
    assert (learner.name, learner.init, learner.every) == ("oracle", "copy:policy", 0)


def test_an_oracle_writes_each_column_that_is_missing_null_or_empty():
    oracle = Oracle()
    run = Run(Replies([]), models={"oracle": oracle})
    null = ask("Null?", chosen="good", rejected="bad", upgraded=None, degraded="  ")
    half = ask("Half?", chosen="good", rejected="bad", upgraded="better", degraded=None)
    found = pairs_of([null, half], run, neutrals=0, attributes=1)
    assert len([p for p in oracle.asked if "- '" in p]) == 2
    assert [("Null?" in p, "better in this alone" in p) for p in oracle.asked if "- '" not in p] == [
        (True, True), (True, False), (False, False),
    ]  # fmt: skip
    of_half = [pair[1:3] for pair in found if pair[0] == "Half?"]
    assert of_half[:2] == [("good", "bad"), ("better", "bad")]
    assert [better for better, worse in of_half[2:] if worse.startswith("new")] == ["good"]
    assert len([pair for pair in found if pair[0] == "Null?"]) == 3
    # without an oracle an empty text is no reply
    assert pairs_of([null], neutrals=0) == [("Null?", "good", "bad", 1.0, 0.0)]


def test_it_learns_from_a_users_rows_and_the_run_is_a_reward_model(tmp_path):
    after, scores = taught("crome", tmp_path, ["Trees save water in winter.", "Because of gravity alone."])
    assert after["pair_accuracy"] == 1.0
    assert scores[0] != scores[1]
