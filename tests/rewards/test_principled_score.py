"""Scores of reward models that read principles in their prompt."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from rows import Replies

from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.rewards.principles import principled_score

RUN = "model:runs/x"


def scored(problems, replies, step=0, **settings):
    """The scores, and what the model read, by a model whose score is the number of principles that it was told."""
    seen = []

    def read(rows):
        seen.extend((prompt[-1].text, reply) for prompt, reply in rows)
        return [(float(prompt[-1].text.count("\n- ")), False, 0) for prompt, _ in rows]

    run = Run(Replies([]), step=step, models={f"{RUN} (written)": SimpleNamespace(read=read)})
    policy, asked = Replies([]), Turn(None, np.zeros(1, np.int64))
    groups = [policy.write([Trajectory(p, (asked,))] * len(texts), texts) for p, texts in zip(problems, replies, strict=True)]
    return [[s.value for s in row] for row in principled_score(model=RUN, **settings)(groups, run)], seen


def test_the_model_is_told_the_principles_of_the_reward_before_those_of_the_row():
    own = ask("Q?", principle="Be kind.", principles=["Be true."])
    values, seen = scored([own, ask("R?")], [["a", "b"], ["c"]], principles=("Be brief.", "Be plain.", "Be calm."))
    assert values == [[3.0, 3.0], [3.0]]
    assert seen[0] == ("Q?\n\nA good reply is judged by this:\n- Be brief.\n- Be plain.\n- Be calm.", "a")


def test_rows_bring_their_own_and_where_nobody_names_one_there_is_no_verdict():
    own = ask("Q?", principle="Be kind.", principles=["Be true."])
    values, seen = scored([ask("R?"), own], [["a"], ["b"]])
    assert values == [[None], [2.0]]
    assert seen == [("Q?\n\nA good reply is judged by this:\n- Be kind.\n- Be true.", "b")]


def test_some_are_sampled_for_a_prompt_the_same_for_its_replies_and_others_at_other_steps():
    names = tuple("abcdef")
    found = set()
    for step in range(20):
        values, seen = scored([ask("Q?")], [["x", "y"]], step=step, principles=names, n=2)
        assert values == [[2.0, 2.0]]
        assert seen[0][0] == seen[1][0]
        found.add(seen[0][0])
    assert len(found) > 5
