"""Mirror-Critique: critiques with the gold solution in view, imitation before RL, weighted votes and abstention."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.core import Run, Score, Trajectory, Turn, ask
from rewardlab.methods.judges.mirror_critique import (
    mirror_critique,
    mirrored_critiques,
    verified_votes,
    weighed_answer,
    weighed_vote,
)
from rewardlab.rewards.judgements import judged_rightly
from rewardlab.worlds.mirrors import mirrors

PLAIN, SHOWN = "{prompt}\n{reply}", "{prompt}\nGold: {solution}\n{reply}"


class Says(Replies):
    """A model that says these texts in turn to each question, and remembers what it is asked."""

    context = 10_000

    def __init__(self, *texts):
        super().__init__([])
        self.texts, self.asked, self.at = texts, [], 0

    def extend(self, trajectories, sampling, rng):
        self.asked += [t.problem.question for t in trajectories]
        said = [self.texts[(self.at + i) % len(self.texts)] for i in range(len(trajectories))]
        self.at += len(said)
        return [t.plus(Turn("critic", np.zeros(1, np.int64), text=x), "end") for t, x in zip(trajectories, said, strict=True)]


def row(label: str, reply: str = "It is 24."):
    return ask("Half of 46?", None, solution="46 / 2 = 23", reply=reply, label=label)


def test_the_first_critique_with_the_judged_rightly_is_imitated_without_the_gold_solution():
    critic = Says("Fine. [[yes]]", "Not half. [[no]]", "23, not 24. [[no]]")
    run = Run(Says(), models={"critic": critic})
    (group,) = mirrored_critiques(form=PLAIN, shown=SHOWN, n=3)([row("no")], run)
    assert critic.asked == ["Half of 46?\nGold: 46 / 2 = 23\nIt is 24."] * 3
    assert group[0].problem.question == "Half of 46?\nIt is 24."
    assert group[0].reply == "Not half. [[no]]"
    assert run.metrics["accepted"] == pytest.approx(2 / 3)


def test_candidates_without_a_right_critique_are_dropped_and_without_any_nothing_is_learnt():
    run = Run(Says(), models={"critic": Says("[[yes]]", "no mark")})
    kept = mirrored_critiques(form=PLAIN, shown=SHOWN, n=2)([row("no"), row("yes", "23")], run)
    assert [t.problem.question for (t,) in kept] == ["Half of 46?\n23"]
    (group,) = mirrored_critiques(form=PLAIN, shown=SHOWN, n=2)([row("no")], Run(Says(), models={"critic": Says("[[yes]]")}))
    assert group[0].reply == ""


def test_without_the_mirror_the_critic_reads_what_the_verifier_reads():
    critic = Says("[[no]]")
    mirrored_critiques(form=PLAIN, shown="", n=1)([row("no")], Run(Says(), models={"critic": critic}))
    assert critic.asked == ["Half of 46?\nIt is 24."]


def test_votes_are_weighed_by_scores_so_that_a_minority_can_win():
    """7: 3 candidates of .25, .0, .0: .25 + .45 = .7; 9: one of .75: .9; of a plain vote 7 wins."""
    answers, scores = [7, 7, 9, 7], [0.25, 0.0, 0.75, 0.0]
    assert weighed_answer(answers, scores) == (9, 0.75)
    # with a greater bonus the number counts: 7: .25 + 3 b, 9: .75 + b
    assert weighed_answer(answers, scores, bonus=0.3)[0] == 7
    assert weighed_answer([7, None, 9], [None, 1.0, 0.1]) == (9, 0.1)
    assert weighed_answer([None], [1.0]) == (None, 0.0)
    assert weighed_answer([3, 4], [0.5, 0.5])[0] == 3


def test_held_out_candidates_are_voted_on_and_doubtful_answers_withheld():
    """Each candidate is criticised twice. Row 1: 42 found right twice, 13 never. Row 2: both answers are wrong; their scores are
    1/2 and 0. Row 3: 5 is right and is found right by neither of two critiques, so that no answer is given."""
    rows = [
        ask("a", None, solution="x", replies=["Answer: 13", "Answer: 42"], scores=[0, 1]),
        ask("b", None, solution="x", replies=["Answer: 1", "Answer: 2"], scores=[0, 0]),
        ask("c", None, solution="x", replies=["Answer: 5", "Answer: 5"], scores=[1, 1]),
    ]
    yes, no = "[[yes]]", "[[no]]"
    run = Run(Says(no, no, yes, yes, yes, no, no, no, no, no, no, "?"))
    found = verified_votes(form=PLAIN, critiques=2, threshold=0.5)(rows, run)
    # right verdicts: 4 of 4, 3 of 4, 0 of 4
    assert found["verified"] == pytest.approx(7 / 12)
    assert (found["voted"], found["majority"]) == pytest.approx((2 / 3, 1 / 3))
    assert (found["answered"], found["right_if_answered"], found["honesty"]) == pytest.approx((2 / 3, 1 / 2, 0.0))


def test_a_candidate_whose_verdicts_cannot_be_read_has_no_vote_in_the_majority_either():
    """24 twice, the first time without a verdict that can be read, and 23 once: of one vote each the first wins, 23."""
    texts = ["Answer: 24", "Answer: 23", "Answer: 24"]
    row = ask("Half of 46?", replies=texts, scores=[0, 1, 0])
    found = verified_votes(form=PLAIN, critiques=1)([row], Run(Says("?", "[[yes]]", "[[no]]")))
    assert (found["voted"], found["majority"]) == (1.0, 1.0)
    assert verified_votes(form=PLAIN, critiques=1)([row], Run(Says("[[no]]", "[[yes]]", "[[no]]")))["majority"] == 0.0


def candidates(*replies: str):
    policy = Says()
    return policy.write(policy.read([Trajectory(ask("Half of 46?", "23"))] * len(replies), []), list(replies))


def test_the_weighed_vote_answers_with_the_best_of_the_winners_replies_and_withholds_a_doubtful_answer():
    """24 three times, with scores .25, 0, 0: .25 + 3 (.15) = .7; 23 twice, with .5 and .75: 1.25 + 2 (.15) = 1.55, mean .625."""
    group = candidates("Answer: 24", "Answer: 24", "So.\nAnswer: 23", "Answer: 24", "Answer: 23.0", "no answer")
    scores = [Score(x) for x in (0.25, 0.0, 0.5, 0.0, 0.75, 1.0)]
    run = Run(Says())
    assert weighed_vote()(group, scores, run) is group[4]
    assert weighed_vote(unsure="I cannot say.", threshold=0.6)(group, scores, run) is group[4]
    withheld = weighed_vote(unsure="I cannot say.", threshold=0.7)(group, scores, run)
    assert (withheld.reply, withheld.problem) == ("I cannot say.", group[0].problem)
    # nobody votes: the first reply, or none
    silent = [Score(None)] * 6
    assert weighed_vote()(group, silent, run) is group[0]
    assert weighed_vote(unsure="?", threshold=0.0)(group, silent, run).reply == "?"


def test_prompts_are_answered_by_the_vote_that_the_verifiers_critiques_weigh():
    """Three candidates of two critiques each: 24 is found right once of two, 24 never, and 23 twice. Sums: .5 + .3, and 1.15."""
    yes, no = "Fine. [[yes]]", "Not half. [[no]]"
    verifier = Says(yes, no, no, no, yes, yes)
    recipe = mirror_critique(candidates=3, critiques=2, form=PLAIN, checker="hf:somewhere")
    assert [(x.name, x.init, x.every) for x in recipe.also] == [("judge", "hf:somewhere", 0)]
    assert (recipe.rollout.settings["n"], recipe.loop) == (3, None)
    run = Run(Says(), models={"judge": verifier}, max_new=9)
    group = candidates("Answer: 24", "Answer: 24", "Answer: 23")
    scores = recipe.reward([group], run)
    assert [s.total for s in scores[0]] == [0.5, 0.0, 1.0]
    # the verifier reads no gold answer
    assert verifier.asked[0] == "Half of 46?\nAnswer: 24"
    assert recipe.select(group, scores[0], run) is group[2]
    assert mirror_critique(candidates=2).also == ()


def test_verdicts_are_centred_and_not_scaled():
    recipe = registry.build("mirror_critique")
    batch = batch_of([[("rd", {"": outcome(x)}) for x in (1.0, 0.0, 0.0, 0.0)]])
    credit = recipe.credit(batch.reward, batch, Run(None))
    assert torch.allclose(credit[:, 1], torch.tensor([0.75, -0.25, -0.25, -0.25]))
    assert recipe.reward.settings["wrong"] == 0.0
    assert registry.build("mirror_critique", {"first": 0}).also == ()


def test_judges_of_the_world_are_right_without_doubt_and_candidates_have_labels():
    rng = random.Random(0)
    for settings in ({"judged": True}, {"shown": True}):
        task = mirrors(doubt=0.0, test_size=40, **settings)
        for p in task.test:
            assert ("[[yes]]" in task.demonstrate(p, rng)) == (p.meta["worth"] == [1.0])
            assert ("Gold:" in p.question) == ("shown" in settings)
    for p in mirrors(test_size=40).test:
        right = [x.endswith(f"Answer: {p.answer}") for x in p.meta["replies"]]
        assert [s == 1.0 for s in p.meta["scores"]] == right
        assert p.meta["chosen"].endswith(f"Answer: {p.answer}")
        assert not p.meta["rejected"].endswith(f"Answer: {p.answer}")


def test_the_worlds_verdict_is_that_of_the_mark_and_none_is_wrong():
    policy = Says()
    (row,) = mirrors(judged=True, test_size=1).test
    marks = ("[[yes]]", "[[no]]") if row.meta["worth"] == [1.0] else ("[[no]]", "[[yes]]")
    group = policy.write(policy.read([Trajectory(row)] * 3, []), [f"1+1=2 + {marks[0]}", marks[1], "no mark"])
    assert [s.value for s in judged_rightly()([group])[0]] == [1.0, 0.0, 0.0]
    assert judged_rightly()([policy.write([Trajectory(ask("x"))], ["[[yes]]"])])[0][0].missing
