"""Judgements in two turns: what the careless judge names and looks at."""

from __future__ import annotations

import random

from rewardlab import registry
from rewardlab.worlds.duels import fulfilled
from rewardlab.worlds.second_looks import LOOK


def test_a_careless_judge_looks_at_what_it_has_named_and_at_nothing_else():
    task = registry.task("second_looks:judged=true,error=0,test_size=40")
    for i, problem in enumerate(task.test):
        named, said, looked = task.demonstrate(problem, random.Random(i))
        assert said == LOOK
        wishes, *signs = named.split(), *looked.split()[:-1]
        assert wishes
        assert set(wishes) <= set(problem.meta["wishes"])
        first, second = problem.meta["shown"]
        expected = [x for w in wishes for x in (w, "-+"[fulfilled(first, w)], "-+"[fulfilled(second, w)])]
        assert signs == expected
        more = sum(fulfilled(first, w) - fulfilled(second, w) for w in wishes)
        assert more == 0 or looked.endswith("[[A]]" if more > 0 else "[[B]]")


def test_pairs_are_judged_by_the_same_small_judge():
    pairs = registry.task("second_looks:wishes=2")
    assert registry.task(pairs.warmed_as).demonstrate is not None
    assert {"chosen", "rejected"} <= pairs.train[0].meta.keys()
