"""IGPO's rewards and credit against numbers worked out by hand."""

import math

import numpy as np
import pytest
import torch

from rewardlab import registry
from rewardlab.core import Run, Score, Term, TokenCount, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.intrinsic.igpo import belief, information_gain
from rewardlab.models.embedded import untrained
from rewardlab.worlds.facts import facts


class Knows:
    """Says of the gold answer, spelt in letters, what a table says after so many tokens of history."""

    def __init__(self, table):
        self.table, self.scored = table, 0

    def write(self, trajectories, replies):
        ids = [np.array([*map(ord, text), 0], np.int64) for text in replies]
        return [t.plus(Turn("policy", i, text=x), "end") for t, i, x in zip(trajectories, ids, replies, strict=True)]

    def score(self, trajectories):
        self.scored += len(trajectories)
        found = []
        for t in trajectories:
            history = len(t) - len(t.turns[-1].ids)
            row = np.full(len(t), -9.0, np.float32)  # of the history, the prompt and the end: must not count
            gold = slice(len(t) - 1 - len(" ab"), len(t) - 1)
            row[gold] = self.table[history]
            found.append(row)
        return found


def turn(author, n, start=0):
    return Turn(author, np.arange(start, start + n, dtype=np.int64))


def episode(second=5):
    """Prompt of 3, decisions 3-4, answered 5-8, decisions 9-10, answered 11, decision 12."""
    problem = ask("q", "ab")
    parts = [turn(None, 3), turn("policy", 2), turn(None, 4), turn("policy", 2, second), turn(None, 1), turn("policy", 1)]
    return Trajectory(problem, tuple(parts), "end")


def test_each_turn_but_the_last_earns_the_rise_of_the_golds_probability():
    # three gold tokens: mean log-prob ln 0.1 before (history 3), ln 0.4 after the first answer (9), ln 0.3 after the second (12)
    logs = {3: [math.log(0.1)] * 3, 9: [math.log(0.2), math.log(0.4), math.log(0.8)], 12: [math.log(0.3)] * 3}
    policy = Knows(logs)
    score = information_gain()([[episode(), episode(), episode(second=7)]], Run(policy))[0][0]
    assert [t for t, _ in score.steps] == [4, 10]
    assert [r for _, r in score.steps] == pytest.approx([0.4 - 0.1, 0.3 - 0.4])
    # 9 histories, of which (3) and (9) are equal in all rows and (12) in two
    assert policy.scored == 4


def test_without_a_gold_answer_there_is_no_verdict():
    lost = Trajectory(ask("q"), episode().turns, "end")
    score = information_gain()([[lost]], Run(Knows({})))[0][0]
    assert score.value is None


def test_an_outcome_of_nothing_counts_in_the_statistics_and_turns_get_what_follows():
    # one group, three rows of two turns (decisions 3-4 and 9-10 of 11 positions); outcomes 1, 0, 0; gains 0.5, -0.1, 0.1
    rows = [Trajectory(ask("q", "ab"), episode().turns[:4], "end") for _ in range(3)]
    gains, outcomes = (0.5, -0.1, 0.1), (1.0, 0.0, 0.0)
    scores = [Score(terms={"correct": Term(o), "gain": Term(None, ((4, g),))}) for o, g in zip(outcomes, gains, strict=True)]
    batch = collate([rows], [scores], torch.device("cpu"))
    # six events 0.5 -0.1 0.1 1 0 0: mean 0.25; squares of what is off 0.0625 0.1225 0.0225 0.5625 0.0625 0.0625 = 0.895; /5 = 0.179
    std = math.sqrt(0.179) + 1e-4
    a = registry.build("igpo", {"gamma": 0.5}).credit(batch.reward, batch, None)
    last = torch.tensor([0.75, -0.25, -0.25]) / std
    first = torch.tensor([0.25, -0.35, -0.15]) / std + 0.5 * last
    for place, expected in ((3, first), (4, first), (9, last), (10, last)):
        assert torch.allclose(a[:, place], expected)
    assert a[:, [0, 1, 2, 5, 6, 7, 8]].abs().max() == 0

    # apart: gains, mean 1/6, squares (1/3)^2 + (4/15)^2 + (1/15)^2 = .186667 over 2; outcomes, mean 1/3, squares 2/3 over 2
    a = registry.build("igpo", {"gamma": 0.5, "gain": 2.0, "separate": True}).credit(batch.reward, batch, None)
    last = torch.tensor([2 / 3, -1 / 3, -1 / 3]) / (math.sqrt(1 / 3) + 1e-4)
    first = torch.tensor([1 / 3, -4 / 15, -1 / 15]) / (math.sqrt(0.186667 / 2) + 1e-4) + 0.5 * last
    for place, expected in ((3, first), (4, first), (9, last), (10, last)):
        assert torch.allclose(a[:, place], expected, atol=1e-4)


def test_a_mean_of_its_own_takes_nothing_from_gains_that_are_all_alike():
    """All searches find out as much, and all episodes are right: nothing is better than anything, and one mean for both says that
    searches are worse than answers."""
    rows = [Trajectory(ask("q", "ab"), episode().turns[:4], "end") for _ in range(2)]
    terms = {"correct": Term(1.0), "information_gain": Term(None, ((4, 0.1),))}
    batch = collate([rows], [[Score(terms=terms)] * 2], torch.device("cpu"))
    apart, together = (registry.build("igpo", {"separate": x}).credit(batch.reward, batch, None) for x in (True, False))
    assert not apart.any()
    assert float(together[0, 9]) > 0.5  # the answer, for being an answer


def test_belief_is_the_policys_own_probability_of_the_answer():
    policy = untrained()
    asked = policy.read([Trajectory(ask("Who?", "Bob"))], [ask("Who?").prompt])
    [found] = belief(asked, policy)
    [whole] = policy.write(asked, ["Answer: Bob"])
    pieces = policy.pieces(whole.turns[-1].ids)
    prompt = next(k for k in range(len(pieces)) if "".join(pieces[:k]) == "Answer:")
    gold = slice(len(asked[0]) + prompt, len(whole) - 1)
    assert policy.decode(whole.ids[gold]).strip() == "Bob"
    [logprobs] = policy.score([whole])
    assert found == pytest.approx(float(np.exp(logprobs[gold].mean())), rel=1e-5)


def test_of_several_right_answers_the_first_is_followed():
    policy = untrained()
    asked = [policy.read([Trajectory(ask("Who?", gold))], [ask("Who?").prompt])[0] for gold in ("Bob", ["Bob", "Robert"])]
    one, several = belief(asked, policy)
    assert several == one


def test_what_it_scores_is_counted():
    policy = untrained()
    policy.token_count = TokenCount()
    problem = facts(test_size=1).test[0]
    asked = policy.read([Trajectory(problem)], [problem.prompt])
    belief(asked, policy)
    assert policy.token_count.scored > len(asked[0])


def test_without_the_gain_only_the_outcome_is_left():
    assert "information_gain" not in str(registry.build("igpo", {"gain": 0.0}))
    assert "0.5 * information_gain()" in str(registry.build("igpo", {"gain": 0.5}))


def test_the_answer_is_scored_in_the_form_that_the_tools_ask_for(tmp_path):
    (tmp_path / "docs.txt").write_text("Paris lies on the Seine.\n\nLondon lies on the Thames.\n")
    assert "<answer>" in str(registry.build("igpo", {"corpus": str(tmp_path / "docs.txt")}).reward)
    assert "<answer>" not in str(registry.build("igpo").reward)
