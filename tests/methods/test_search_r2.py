"""Search-R2: an episode is accepted, or cut before a reply and gone on with; the refiner is paid what its episode earned."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from rows import Replies

from rewardlab import registry
from rewardlab.core import Message, Run, Trajectory, Turn, ask, environment
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.sampling.search_r2 import of_result, repaired, repaired_accuracy, useful_results
from rewardlab.rewards.reward import reward
from rewardlab.text.refining import cut_of, to_refine
from rewardlab.worlds.repairs import first_wrong, repairs

PROBLEM = ask("Q", "right")


def start(problem, seed):
    return Message("user", f"seed {seed % 1000}"), {"said": []}


@environment(start=start)
def echo(state, turn):
    """Says how many replies it has heard and what they were, until one begins with "answer"."""
    said = [*state["said"], turn.text]
    return (None if turn.text.startswith("answer") else Message("user", f"{len(said)}: {' '.join(said)}")), {"said": said}


class Script(Replies):
    """Says the next line of a script each time that it is asked; one token a reply."""

    context = 100

    def __init__(self, *lines):
        super().__init__(lines)
        self.lines, self.seen = list(lines), []

    def read(self, trajectories, messages):
        turns = [Turn(None, np.zeros(1, np.int64), text="|".join(m.text for m in new)) for new in messages]
        return [t.plus(turn) for t, turn in zip(trajectories, turns, strict=True)]

    def extend(self, trajectories, sampling, rng):
        self.seen += ["/".join(turn.text for turn in t.turns) for t in trajectories]
        zero = np.zeros(1, np.float32)
        return [t.plus(Turn("policy", np.zeros(1, np.int64), zero, zero, self.lines.pop(0)), "end") for t in trajectories]


def sampled(*lines, n=1, problems=(PROBLEM,), **settings):
    run = Run(Script(*lines), max_new=4)
    return repaired(env=echo(), n=n, turns=3, **settings)(list(problems), run), run


def test_what_comes_before_the_cut_stays_and_the_rest_is_said_anew():
    (episodes, refiners), run = sampled("look", "stray", "answer wrong", "Cut: 2", "find", "answer right")
    (episode,), (refiner,) = episodes, refiners
    assert episode.replies == ["look", "find", "answer right"]
    # the environment heard what was kept, and not what was cut
    assert [turn.text for turn in episode.turns if turn.author is None][1:] == ["1: look", "2: look find"]
    assert (episode.stop, refiner.tag, refiner.reply) == ("end", "refine", "Cut: 2")
    assert refiner.problem.question.startswith("Q\n1: look\n-> 1: look\n2: stray\n-> 2: look stray\n3: answer wrong\nAccept")
    assert run.metrics["cut"] == 1
    # the second attempt sees the same opening
    assert run.policy.seen[-1].split("/")[0] == run.policy.seen[0]


@pytest.mark.parametrize("said", ["Accept", "Cut: 9", "Cut: 0", "cut it", ""])
def test_what_names_no_reply_accepts(said):
    (episodes, refiners), run = sampled("look", "answer wrong", said)
    assert episodes[0].replies == ["look", "answer wrong"]
    assert len(refiners) == 1
    assert run.metrics["cut"] == 0


def test_a_cut_before_the_first_reply_begins_anew_and_turns_are_no_more_than_before():
    (episodes, _), _ = sampled("look", "stray", "on", "Cut: 1", "a", "b", "c")
    assert (episodes[0].replies, episodes[0].stop) == (["a", "b", "c"], "turns")


def test_of_several_episodes_those_that_are_cut_alone_change():
    (episodes, refiners), run = sampled("answer a", "answer b", "Accept", "cut: 1", "answer c", n=2)
    assert [t.reply for t in episodes] == ["answer a", "answer c"]
    assert [t.path for t in episodes] == [t.path for t in refiners] == [(0,), (1,)]
    assert run.metrics["cut"] == 0.5


def test_without_a_refiner_nothing_is_asked_and_by_chance_another_place_is_cut():
    (episodes,), _ = sampled("answer wrong", where="never")
    assert episodes[0].reply == "answer wrong"
    places = set()
    for seed in range(12):
        run = Run(Script("look", "stray", "answer wrong", "Cut: 3", *["answer right"] * 1), max_new=4, seed=seed)
        (episode,), _ = repaired(env=echo(), n=1, turns=3, where="chance")([PROBLEM], run)
        places.add(len(episode.replies))
    assert places == {1, 2, 3}


def test_the_last_cut_is_meant():
    assert cut_of("Cut: 1. No, Cut: 2", 3) == 2
    assert cut_of("Cut: 12", 3) is None
    assert cut_of("Cut: 4 " * 5000, 4) == 4
    # as models write it, and what they only think of
    assert [cut_of(text, 3) for text in ("**Cut: 2**", "Cut: turn 2.", "I would cut at turn 2", "Cut: 2, I cannot accept it")] == [
        2
    ] * 4
    assert cut_of("<think>Perhaps Cut: 2. But no.</think>\nAccept.", 3) is None
    assert cut_of("Cut: 2? No, all is well.\n**Accept**", 3) is None
    assert cut_of("Accept. No: Cut: 3", 3) == 3


# ---- rewards ---------------------------------------------------------------------------------------------------------


@reward
def right(trajectory):
    return None if "unknown" in trajectory.reply else float("right" in trajectory.reply)


def test_a_refiner_earns_what_its_episode_earned():
    groups, run = sampled("answer wrong", "answer unknown", "Cut: 1", "Accept", "answer right", n=2)
    assert [[s.total for s in row] for row in of_result(inner=right())(groups, run)] == [[1.0, None], [1.0, None]]
    # alone it has nothing to be paid for
    assert [s.missing for s in of_result(inner=right())(groups[1:], run)[0]] == [True, True]


def test_of_a_problem_that_comes_twice_each_refiner_has_its_own_episodes():
    lines = ["answer right", "answer wrong", "Accept", "Accept"]
    groups, run = sampled(*lines, problems=(PROBLEM, PROBLEM))
    assert [[s.total for s in row] for row in of_result(inner=right())(groups, run)] == [[1.0], [1.0], [0.0], [0.0]]


def episode(*results: str, supporting=("A is B.", "B is C.")) -> Trajectory:
    read = [Turn(None, np.zeros(1, np.int64), text=text) for text in results]
    said = [Turn("policy", np.zeros(1, np.int64), text="Search") for _ in results]
    prompt = Turn(None, np.zeros(1, np.int64), text="A is B.")
    turns = [turn for pair in zip(said, read, strict=True) for turn in pair]
    return Trajectory(ask("Q", supporting=supporting), (prompt, *turns, Turn("policy", np.zeros(1, np.int64), text="C")), "end")


def test_a_result_is_of_use_once():
    def useful(*results, **more):
        return useful_results()([[episode(*results, **more)]])[0][0].total

    assert useful("A is B.", "B is C.") == 1
    # documents with titles, and a list as a table holds it
    assert useful("A is B.", "no", supporting=[{"title": "A", "text": "A is B."}]) == 0.5
    assert useful("A is B.", "B is C.", supporting='["A is B.", "B is C."]') == 1
    # said twice, and of no use: one of three
    assert useful("A is B.", "A is B.", "X is Y.") == pytest.approx(1 / 3)
    assert useful() == 0
    assert useful("A is B.", supporting=()) == 0


def test_a_row_without_supporting_documents_is_paid_for_its_answer():
    recipe = registry.build("search_r2", {"env": echo(), "n": 2})
    run = Run(Script("look", "look", "answer right", "answer wrong", "Accept", "Accept"), max_new=4, verify=right())
    groups = recipe.rollout([ask("Q", "right")], run)
    episodes = recipe.reward(groups, run)[0]
    assert [score.total for score in episodes] == [1.0, 0.0]


def test_right_episodes_earn_more_for_useful_searches_and_wrong_ones_nothing():
    recipe = registry.build("search_r2", {"env": echo(), "n": 2, "column": "supporting"})
    problem = ask("Q", "right", supporting=["1: look"])
    run = Run(Script("look", "look", "answer right", "answer wrong", "Accept", "Accept"), max_new=4, verify=right())
    groups = recipe.rollout([problem], run)
    scores = recipe.reward(groups, run)
    # right (1 + 1 of 1 result), and wrong (1 + 1)
    assert [[s.total for s in row] for row in scores] == [[2.0, 0.0], [2.0, 0.0]]
    batch = collate(groups, scores, torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    z = 1 / (2**0.5 + 1e-4)
    assert [float(row[mask][-1]) for row, mask in zip(credit, batch.mask, strict=True)] == pytest.approx([z, -z, z, -z], abs=1e-6)


def test_the_same_episodes_are_measured_as_they_were_repaired_and_cut_at_random():
    first, refined = ["answer wrong", "answer right"], ["Cut: 1", "Accept"]
    run = Run(Script(*first, *first, *refined, "answer right", *first, *refined, "answer wrong"), max_new=4, verify=right())
    found = repaired_accuracy(env=echo(), n=2, turns=3)([PROBLEM], run)
    assert (found["as_it_was"], found["repaired"], found["at_random"]) == (0.5, 1.0, 0.5)
    assert (found["gained"], found["lost"], found["n"]) == (0.5, 0.0, 2.0)


# ---- the world -------------------------------------------------------------------------------------------------------


def test_the_first_wrong_reply_is_where_it_leaves_the_gold_answer():
    gold = ["Search: a", "x", "Search: b", "y", "Answer: c"]
    assert first_wrong(gold, gold) is None
    assert first_wrong(["Search: a", "x", "Search: z", "y", "Answer: c"], gold) == 2
    # it answers too early, or too late
    assert first_wrong(["Search: a", "x", "Answer: c"], gold) == 2
    assert first_wrong([*gold[:4], "Search: b", "y", "Answer: c"], gold) == 3


@pytest.mark.slow
def test_attempts_are_labelled_by_where_they_go_wrong():
    task = repairs(shown="attempts", misjudged=0.0, test_size=60)
    for p in task.test:
        gold = [f"Search: {query}" for query in p.meta["searches"]]
        replies = [line.partition(": ")[2] for line in p.question.splitlines() if line[:1].isdigit()]
        wrong = next(
            (i for i, reply in enumerate(replies, 1) if [reply] != gold[i - 1 : i] and not reply.startswith("Answer")), None
        )
        if wrong is not None:
            assert p.answer == [f"Cut: {wrong}"]
        assert task.demonstrate(p, random.Random(0)) == p.answer[0]
    assert {p.answer[0] for p in task.test} >= {"Accept", "Cut: 1", "Cut: 2"}


def test_questions_have_the_facts_that_answer_them():
    for p in repairs(test_size=20).test:
        assert len(p.meta["supporting"]) == 4
        assert set(p.meta["supporting"]) <= set(p.meta["facts"])
    with pytest.raises(RewardlabError, match="shown"):
        repairs(shown="neither")


def test_a_refiners_problem_has_no_answer_and_is_in_no_accuracy():
    assert to_refine(PROBLEM, ["a"], []).answer is None
