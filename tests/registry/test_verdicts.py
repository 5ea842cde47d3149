"""The word that is shown for a record follows what the file says now, without new runs."""

import pytest

from rewardlab.checks import verdict
from rewardlab.registry.verdicts import CHECKED, OPEN, inert, last_of, shown


def run(word, low=0.1, high=0.3, **more):
    return {"verdict": word, "interval": [low, high], "effect": (low + high) / 2, "claim": {"margin": 0.1}, **more}


@pytest.mark.parametrize(
    ("record", "claim", "by_construction", "check"),
    [
        (run("holds"), "holds", "sanity", "works"),
        (run("at a cost"), "at a cost", "sanity", "works at a cost"),
        (run("smaller"), "smaller", "sanity", "works less than the margin"),
        (run("reversed", -0.3, -0.1), "reversed", "broken", "opposite"),
        (run("no effect", -0.05, 0.05), "no effect", "broken", "no effect"),
        (run("unfit world"), "unfit world", "sanity", "unfit"),
        (run("unfit world", -0.1, 0.1), "unfit world", "undecided", "unfit"),
        (run("undecided", -0.1, 0.3), "undecided", "undecided", "undecided"),
        (run("works"), "holds", "sanity", "works"),
        (run("sanity"), "holds", "sanity", "works"),
        (run("sanity", 0.01, 0.03), "smaller", "sanity", "works less than the margin"),
        (run("sanity", guard={"ok": False}), "at a cost", "sanity", "works at a cost"),
        (run("sanity", gate=[{"what": "the fault", "ok": False}]), "unfit world", "sanity", "unfit"),
        (run("broken", -0.3, -0.1), "reversed", "broken", "opposite"),
        (run("broken", -0.01, 0.01), "no effect", "broken", "no effect"),
        (run("stopped"), "stopped", "stopped", "stopped"),
    ],
)
def test_the_word_follows_the_file(record, claim, by_construction, check):
    assert shown(record, check=False, sanity=False) == claim
    assert shown(record, check=False, sanity=True) == shown(record, check=True, sanity=True) == by_construction
    assert shown(record, check=True, sanity=False) == check


def test_the_words_are_those_of_the_verdicts():
    assert set(CHECKED) == {verdict.HOLDS, verdict.SMALLER, verdict.REVERSED, verdict.AT_A_COST, verdict.UNFIT}
    assert {verdict.UNDECIDED, verdict.INCOMPLETE, verdict.STOPPED, verdict.NOT_RUN} < set(OPEN)


def test_a_mechanism_that_moved_nothing_is_inert_in_old_records_too():
    assert inert(run("holds", moved={"what": "x", "ok": False}))
    assert not inert(run("holds", moved={"what": "x", "ok": True}))
    assert inert(run("unfit world", gate=[{"what": "the mechanism moves its number: x", "ok": False}]))
    assert not inert(run("holds"))


def test_a_stopped_run_hides_no_verdict_before_it():
    assert last_of({"runs": [run("holds"), run("stopped")]})["verdict"] == "holds"
    assert last_of({"runs": [run("stopped")]})["verdict"] == "stopped"
