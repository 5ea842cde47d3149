"""What searches found, and what they asked for."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rewardlab.core import Trajectory, Turn, ask
from rewardlab.methods.process.stepsearch import rounds, search_progress, searched_for, tfidf_cosines
from rewardlab.text.searches import failed, results_of

ANN, BOB, CAL = "Ann: boss Bob", "Bob: friend Cal", "Cal: boss Dee"


def episode(*turns: str, **meta) -> Trajectory:
    """A prompt, and replies and answers in turn, of two tokens each."""
    ids = np.zeros(2, np.int64)
    made = [Turn(None if k % 2 else "policy", ids, text=text) for k, text in enumerate(turns)]
    return Trajectory(ask("?", "Cal", **meta), (Turn(None, ids), *made), "end")


def paid(trajectory: Trajectory, **settings):
    (score,) = search_progress(**settings)([[trajectory]])[0]
    return score


def test_cosines_by_hand():
    # in a corpus of three texts: "ant" in two, idf log(4/3) + 1; "bee" in one, log 2 + 1; "cow" in none, log 4 + 1
    a, b, c = (math.log(4 / x) + 1 for x in (3, 2, 1))
    found = tfidf_cosines(["ant bee"], ["ant", "bee cow", "The Ant, a bee! 7", "dog"], ["ant", "the ant bee", "elk"])
    ab = math.hypot(a, b)
    assert found[0].tolist() == pytest.approx([a / ab, b * b / ab / math.hypot(b, c), 1.0, 0.0])
    assert tfidf_cosines(["ant"], [], ["ant"]).shape == (1, 0)


def test_new_evidence_is_paid_once_and_repeats_are_charged():
    def like(gold: str, document: str) -> float:
        # the released code counts words over the document that was found and the gold ones
        return float(tfidf_cosines([gold], [document], [document, ANN, BOB])[0, 0])

    # of Cal's document "boss" is in two of three texts: idf log(4/3) + 1 = a; "ann", "bob" (here in two), "cal" (in two), "dee"
    a, b = math.log(4 / 3) + 1, math.log(2) + 1
    # ann b, boss a, bob a  .  cal a, boss a, dee b
    near = like(ANN, CAL)
    assert near == pytest.approx(a * a / (b * b + 2 * a * a))
    played = episode(
        "Search: Cal", CAL, "Search: Ann", ANN, "Search: Ann", ANN, "Search: x", "Nothing found.", "Search: Bob", f"{ANN} {BOB}",
        "Answer: Cal", facts=[ANN, BOB, CAL], gold_documents=[ANN, BOB],
    )  # fmt: skip
    found = paid(played)
    cal_bob = like(BOB, CAL)
    # Cal's document is somewhat like both; then Ann's adds what is left of hers, and is worth nothing and old the second time;
    # the last round brings Bob's, and half of it is old
    ann_bob = like(BOB, ANN)
    best = max(cal_bob, ann_bob)
    wanted = [(near + cal_bob) / 2, (1 - near + best - cal_bob) / 2, -1.0, 0.0, (1 - best) / 2 - 0.5]
    assert [at for at, _ in found.steps] == [3, 7, 11, 15, 19]
    assert [x for _, x in found.steps] == pytest.approx(wanted)
    assert [x for _, x in paid(played, redundancy=0.25).steps][2] == pytest.approx(-0.25)


def test_gold_documents_are_what_gold_queries_find():
    # without the column; the answer to the last reply is never given, so that it is no round
    played = episode("Search: Ann boss", ANN, "Answer: Bob", facts=[ANN, BOB, CAL], searches=["Ann boss", "Bob friend"])
    near = float(tfidf_cosines([BOB], [ANN], [ANN, ANN, BOB])[0, 0])
    assert paid(played).steps == ((3, pytest.approx((1 + near) / 2)),)
    # no corpus: each line of an answer is a document
    lines = episode("Search: a", f"{ANN}\n\n{BOB}\n", "Search: b", BOB, "no", gold_documents=[BOB])
    assert [x for _, x in paid(lines).steps] == pytest.approx([1.0, -1.0])
    # twice in one answer is once too often
    twice = episode("Search: a", f"{BOB}\n{BOB}\n", "no", gold_documents=[BOB])
    assert [x for _, x in paid(twice).steps] == pytest.approx([1.0 - 0.5])


def test_documents_with_titles_and_of_several_lines():
    # a search in tags shows a text in one line, with its title before it
    shown = f"<information>\nDoc 1 (Title: Ann) {ANN}\n</information>"
    facts = [{"title": "Ann", "text": ANN.replace(" boss", "\nboss")}, {"title": "Bob", "text": BOB}]
    played = episode("<search>Ann</search>", shown, "x", facts=facts, gold_documents=[{"paragraph_text": ANN}])
    assert [x for _, x in paid(played).steps] == pytest.approx([1.0])


def test_what_is_found_in_a_corpus_is_compared_without_title_and_an_empty_answer_is_no_document():
    shown = f"<information>\nDoc 1 (Title: Ann (a person), young) {ANN}\nDoc 2: {CAL}\n</information>"
    nothing = "<information>\nNothing found.\n</information>"
    played = episode("<search>Ann</search>", shown, *("<search>x</search>", nothing) * 2, "x", gold_documents=[ANN])
    assert [x for _, x in paid(played).steps] == pytest.approx([1.0, 0.0, 0.0])
    assert results_of(shown, titles=True) == [f"(Title: Ann (a person), young) {ANN}", CAL]
    assert results_of("Doc 1 (Title: open( Ann is here") == ["(Title: open( Ann is here"]


def test_a_search_that_failed_gives_no_verdict():
    played = episode("<search>Ann</search>", failed("<search>Ann</search>", "no answer"), "x", facts=[ANN], gold_documents=[ANN])
    score = paid(played)
    assert score.missing
    assert score.why == "The search failed: no answer"


def test_episodes_without_a_search_and_problems_without_gold():
    silent = paid(episode("Answer: Cal", facts=[ANN], gold_documents=[ANN]))
    assert (silent.steps, silent.missing) == ((), False)
    assert paid(episode("Search: a", ANN, "x")).missing
    assert searched_for()([[episode("Search: a")]])[0][0].missing


def test_what_was_asked_for():
    played = episode(
        "Search: Ann boss", ANN, "hm\nSearch: the friend of Bob", BOB, "Answer: Cal", searches=["Ann boss", "Bob friend"]
    )
    # the second shares two words, of three and two: articles do not count
    assert searched_for()([[played]])[0][0].value == pytest.approx((1 + 2 * 2 / 5) / 2)
    # of several wordings the nearest counts
    worded = episode("Search: boss of Ann", ANN, searches=[["who leads Ann", "Ann boss"], []])
    assert searched_for()([[worded]])[0][0].value == pytest.approx(2 * 2 / 5)
    assert searched_for()([[episode("Answer: Cal", searches=["Ann boss"])]])[0][0].value == 0.0
    assert searched_for(mark="?")([[episode("?boss", searches=["boss"])]])[0][0].value == 1.0


def test_a_reply_over_two_updates_is_one_round():
    ids = np.zeros(2, np.int64)
    turns = (Turn(None, ids), Turn("policy", ids, text="Sea"), Turn("policy", ids, text="rch: a"), Turn(None, ids, text=ANN))
    assert rounds(Trajectory(ask("?"), turns)) == [(5, "Search: a", ANN)]
