"""FLR: what a model expects the user to say next, as a reward and to make pairs; wishes and how people react."""

from __future__ import annotations

import random

import numpy as np
import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.methods.intrinsic.flr_followup_likelihood import followup_likelihood
from rewardlab.models.embedded import untrained
from rewardlab.text.followups import FRONT
from rewardlab.worlds.reactions import CONFUSED, DISPLEASED, ITEMS, NEUTRAL, PLEASED, reactions

PROMPT = ask("Tea?", "Tea.", system="Be brief.")
EXPECTED = {("good", "yes"): 0.5, ("good", "no, no"): 0.25, ("bad", "yes"): 0.125, ("bad", "no, no"): 0.5}


class Listener(Replies):
    """One token a character. After a reply it gives each character of a follow-up the same probability, and other tokens e^-9."""

    context = 200

    def __init__(self, expected=None, replies=()):
        super().__init__(replies)
        self.expected, self.heard = expected or EXPECTED, []

    def read(self, trajectories, messages):
        """With two tokens around each message."""
        made = []
        for t, new in zip(trajectories, messages, strict=True):
            text = "".join(f"<{m.text}>" for m in new)
            made.append(t.plus(Turn(None, np.array([*map(ord, text)]), text="|".join(f"{m.role}: {m.text}" for m in new))))
        return made

    def write(self, trajectories, texts):
        turns = [Turn("policy", np.array([*map(ord, text), 0]), text=text) for text in texts]
        return [t.plus(turn, "end") for t, turn in zip(trajectories, turns, strict=True)]

    def pieces(self, ids):
        return [chr(i) if i else "" for i in ids]

    def score(self, trajectories):
        rows = []
        for t in trajectories:
            *before, last = t.turns
            self.heard.append("|".join(turn.text for turn in before) + f" -> {last.text}")
            said = last.text.removeprefix("user: ")
            # the reply is the last message before the follow-up
            p = self.expected[before[-1].text.rpartition("user: ")[2], said]
            row = np.full(len(t), -9.0)
            at = len(t) - len(last.ids) + "".join(self.pieces(last.ids)).find(said)
            row[at : at + len(said)] = np.log(p)
            rows.append(row)
        return rows


def reply(text: str, problem=PROMPT) -> Trajectory:
    return Trajectory(problem, (Turn(None, np.array([1, 2]), text="Tea?"), Turn("policy", np.arange(3), text=text)), "end")


def totals(*texts, run=None, **settings):
    part = followup_likelihood(**{"positive": ("yes",), "negative": ("no, no",), "model": "policy", **settings})
    return [s.total for s in part([[reply(x) for x in texts]], run or Run(Listener()))[0]]


def test_satisfied_less_dissatisfied_per_token_of_the_follow_up_alone():
    # log .5 - log .25, and log .125 - log .5; three characters against six, and what the template adds, do not count
    assert totals("good", "bad") == pytest.approx([np.log(2), -np.log(4)], abs=1e-6)
    expected = {**EXPECTED, ("good", "well"): 0.125}
    # (log .5 + log .125) / 2 - log .25 = 0
    assert totals("good", run=Run(Listener(expected)), positive=("yes", "well")) == pytest.approx([0.0], abs=1e-6)


def test_the_assistant_takes_the_users_part_with_roles_swapped():
    run = Run(Listener())
    assert totals("good", run=run, speaker="assistant") == pytest.approx([np.log(2)], abs=1e-6)
    assert run.policy.heard[0] == f"user: {FRONT}|assistant: Tea?|user: good -> yes"


def test_no_verdict_on_silence_on_several_replies_and_without_room():
    talk = reply("good")
    talk = talk.plus(Turn(None, np.array([3]), text="so?")).plus(Turn("policy", np.arange(2), text="bad"), "end")
    part = followup_likelihood(positive=("yes",), negative=("no, no",), model="policy")
    assert [s.missing for s in part([[reply(""), talk, reply("good")]], Run(Listener()))[0]] == [True, True, False]
    short = Listener()
    short.context = 10
    assert totals("good", run=Run(short)) == [None]
    assert part([[], []], Run(Listener())) == [[], []]


def test_both_sides_are_needed():
    with pytest.raises(RewardlabError, match="at least one of each"):
        totals("good", negative=())


def test_pairs_are_the_most_and_the_least_welcome_of_own_replies():
    recipe = registry.build("flr_followup_likelihood", {"positive": ("yes",), "negative": ("no, no",), "n": 2})

    class Writer(Listener):
        def extend(self, trajectories, sampling, rng):
            return [t.plus(Turn("policy", np.arange(3), text=x), "end") for t, x in zip(trajectories, self.replies, strict=True)]

    writer = Writer(replies=["bad", "good"])
    (pair,) = recipe.rollout([PROMPT], Run(writer, reference=writer))
    assert [t.reply for t in pair] == ["good", "bad"]
    assert "dpo_loss" in str(recipe.objective)


def test_another_model_may_listen_and_is_never_trained():
    (listener,) = registry.build("flr_followup_likelihood", {"reward_model": "runs/people"}).also
    assert (listener.name, listener.init, listener.every) == ("listener", "runs/people", 0)


@pytest.mark.parametrize("speaker", ["user", "assistant"])
def test_a_language_model_is_asked_for_the_same_follow_ups(speaker):
    policy = untrained()
    prompts = policy.read([Trajectory(PROMPT)], [PROMPT.prompt])
    rows = policy.write(prompts * 2, ["Tea.", "Milk."])
    part = followup_likelihood(positive=("Thanks.",), negative=("No.",), speaker=speaker, model="policy")
    first, second = (s.total for s in part([rows], Run(policy))[0])
    assert first != second
    assert all(abs(x) < 5 for x in (first, second))


# ---- the world -------------------------------------------------------------------------------------------------------


def test_a_wish_is_met_by_what_is_left_of_its_kind_and_colour():
    assert len({item for items in ITEMS.values() for item in items}) == 45
    for p in reactions(test_size=50).test:
        wish = p.meta["wish"]
        left = [f"A {item}." for item in ITEMS[wish["colour"], wish["kind"]] if item != wish["without"]]
        assert p.answer == left
        assert p.question.endswith(f"want a {wish['colour']} {wish['kind']}, but no {wish['without']}.")


def test_the_careless_teacher_takes_colours_for_others_or_names_what_was_ruled_out():
    task = reactions(biased=1.0, error=0.0, test_size=60)
    for i, p in enumerate(task.test):
        wish, said = p.meta["wish"], task.demonstrate(p, random.Random(i))
        item = said.removeprefix("A ").removesuffix(".")
        expected = ITEMS[CONFUSED[wish["colour"]], wish["kind"]] if wish["colour"] in CONFUSED else (wish["without"],)
        assert item in expected


def test_people_are_pleased_with_what_they_wished_for():
    task = reactions(shown="reactions", neutral=0.0, mistaken=0.0, test_size=200)
    pleased = 0
    for p in task.test:
        assert [m.role for m in p.prompt] == ["user", "assistant", "user"]
        wish, item = p.meta["wish"], p.question.removeprefix("A ").removesuffix(".")
        met = item in ITEMS[wish["colour"], wish["kind"]] and item != wish["without"]
        assert p.answer[0] in (PLEASED if met else DISPLEASED)
        # a reaction is what it is: no teacher changes it
        assert task.demonstrate(p, random.Random(0)) == p.answer[0]
        pleased += met
    assert 0.5 < pleased / 200 < 0.85
    calm = reactions(shown="reactions", neutral=1.0, test_size=20)
    assert {p.answer[0] for p in calm.test} == {NEUTRAL}


@pytest.mark.parametrize("options", [{"biased": 2.0}, {"mistaken": -1.0}, {"shown": "neither"}])
def test_settings_outside_their_range_are_refused(options):
    with pytest.raises(RewardlabError):
        reactions(**options)
