"""RLCF: checklists with weights, scores by judge and program, and the pairs with the widest gap in one item."""

from __future__ import annotations

import numpy as np
import pytest
from rows import Replies

from rewardlab import registry
from rewardlab.core import Run, Score, Term, Trajectory, Turn, ask
from rewardlab.methods.judges.rlcf_checklists import (
    UNIVERSAL,
    Item,
    checklist_score,
    items_of,
    largest_gap,
    program_verdicts,
    score_of,
    widest_pairs,
)
from rewardlab.rewards.reward import reward
from rewardlab.worlds.wishes import wishes

SHORT = "def verify_requirement(text):\n    return len(text.split()) <= 2"


def reply(text: str, **meta) -> Trajectory:
    return Trajectory(ask("Greet.", **meta), (Turn("policy", np.zeros(1, np.int64), text=text),), "end")


class Models(Replies):
    """A model that answers by the text of what it is asked, and remembers that."""

    context = 10_000

    def __init__(self, answers):
        super().__init__([])
        self.answers, self.asked, self.samplings = answers, [], []

    def extend(self, trajectories, sampling, rng):
        self.asked += [t.problem.question for t in trajectories]
        self.samplings.append(sampling)
        said = [next(a for key, a in self.answers.items() if key in t.problem.question) for t in trajectories]
        return [t.plus(Turn("judge", np.zeros(1, np.int64), text=text), "end") for t, text in zip(trajectories, said, strict=True)]


def run_of(**answers) -> tuple[Run, Models]:
    model = Models({key.replace("_", " "): said for key, said in answers.items()})
    return Run(model, reference=model, models={"judge": model}), model


def test_checklists_are_read_in_the_forms_that_people_and_models_write():
    said = "Key Criteria Questions:\n- Is it about cats? (100)\n* Does it have 280 characters? (95)\n- Is it nice? (0)\n<END>"
    assert items_of(said) == [Item("Is it about cats?", 100.0), Item("Does it have 280 characters?", 95.0)]
    assert items_of(["Is it kind?", ["Is it short?", 50]]) == [Item("Is it kind?"), Item("Is it short?", 50.0)]
    assert items_of([{"item": "Is it short?", "weight": 80, "program": SHORT}]) == [Item("Is it short?", 80.0, SHORT)]
    assert items_of("None") == items_of(None) == items_of([]) == []


def test_the_score_of_an_item_is_the_first_number_and_a_hundred_at_most():
    assert [score_of(x) for x in ("85", " Score: 40.", "100/100", "0", "300", "1000")] == [0.85, 0.4, 1.0, 0.0, 1.0, 1.0]
    assert [score_of(x) for x in ("", "-1", "good")] == [None] * 3
    assert score_of("<think>2 of 3 rivers...</think>\n66") == 0.66


def test_how_long_a_score_may_be_goes_from_the_recipe_to_the_judge():
    for settings, length in (({}, 10), ({"score_tokens": 400}, 400)):
        run, model = run_of(Is_it_kind="80", address="100")
        by = registry.build("rlcf_checklists", {"programs": False, **settings}).rollout.settings["by"]
        by([[reply("dear", checklist=["Is it kind?"])]], run)
        assert [s.max_new for s in model.samplings] == [length]


def test_programs_run_confined_on_all_replies_and_fail_alone():
    assert program_verdicts(SHORT, ["hello", "hello to you all", ""]) == [1.0, 0.0, 1.0]
    crash = "def verify_requirement(text):\n    return 1 / len(text) > 0"
    assert program_verdicts(crash, ["a", ""]) == [1.0, None]
    assert program_verdicts("import sys; sys.exit(3)", ["a", "b"]) == [None, None]
    assert program_verdicts("no python", ["a"]) == [None]


def test_the_weighted_mean_of_judge_and_program_by_hand():
    """Kind (weight 100): .8. Short (weight 50): judge .6 with the program's 1 is .8, with its 0 is .3."""
    checklist = [["Is it kind?", 100], {"item": "Is it short?", "weight": 50, "program": SHORT}]
    group = [reply("dear you", checklist=checklist), reply("dear you and you", checklist=checklist)]
    run, _ = run_of(Is_it_kind="80", Is_it_short="60", verify_requirement="NONE")
    (scores,) = checklist_score(samples=2, universal=False)([group], run)
    assert [s.total for s in scores] == pytest.approx([0.8, (80 + 15) / 150])
    assert {name: term.value for name, term in scores[1].terms.items()} == pytest.approx({"Is it kind?": 0.8, "Is it short?": 0.3})
    (plain,) = checklist_score(samples=2, universal=False, programs=True)([[reply("dear", checklist=["Is it kind?"])]], run)
    assert plain[0].total == pytest.approx(0.8)


def test_an_item_without_a_score_does_not_count_and_a_reply_without_any_has_no_verdict():
    group = [reply("dear", checklist=["Is it kind?", "Is it odd?"])]
    run, _ = run_of(Is_it_kind="70", Is_it_odd="who knows")
    assert checklist_score(samples=3, universal=False, programs=False)([group], run)[0][0].total == pytest.approx(0.7)
    run, _ = run_of(Is_it_kind="?", Is_it_odd="?")
    assert checklist_score(samples=3, universal=False, programs=False)([group], run)[0][0].missing


def test_checklists_and_programs_are_written_once_from_the_candidates_and_the_universal_item_is_added():
    run, model = run_of(
        Write_a_checklist="- Is it short? (60)\n<END>", Can_a_short=f"```python\n{SHORT}\n```", Is_it_short="40", address="100"
    )
    group = [reply("hello"), reply("hello to you all")]
    (scores,) = checklist_score(samples=1)([group], run)
    # (60 (.4 + 1) / 2 + 100) / 160, and with the program's 0
    assert [s.total for s in scores] == pytest.approx([(60 * 0.7 + 100) / 160, (60 * 0.2 + 100) / 160])
    assert list(scores[0].terms) == ["Is it short?", UNIVERSAL]
    assert "Reply 2:\nhello to you all" in model.asked[0]
    before = len(model.asked)
    again = checklist_score(samples=1)([group], run)
    assert again == [scores]
    assert not any("checklist" in text or "Python" in text for text in model.asked[before:])


def test_one_question_takes_the_place_of_the_checklist():
    run, model = run_of(All_good="55")
    (scores,) = checklist_score(samples=1, overall="All good?")([[reply("a", checklist=["Is it kind?"])]], run)
    assert (scores[0].total, len(model.asked)) == (pytest.approx(0.55), 1)


def test_the_gap_is_that_of_the_item_that_differs_most_not_of_the_sum():
    flat = Score(terms={"a": Term(0.6, weight=0.5), "b": Term(0.6, weight=0.5)})
    even = Score(terms={"a": Term(0.2, weight=0.5), "b": Term(0.2, weight=0.5)})
    apart = Score(terms={"a": Term(0.9, weight=0.5), "b": Term(0.1, weight=0.5)})
    assert largest_gap(flat, even) == pytest.approx(0.4)
    assert largest_gap(flat, apart) == pytest.approx(0.5)
    assert largest_gap(flat, Score(terms={"c": Term(1.0)})) == 0.0
    # the better one, .2 (.5) + .8 (.6) = .58 to .52, leads by .2 in b; that it lags by .5 in a does not speak for the label
    lags = Score(terms={"a": Term(0.5, weight=0.2), "b": Term(0.6, weight=0.8)})
    assert largest_gap(lags, Score(terms={"a": Term(1.0, weight=0.2), "b": Term(0.4, weight=0.8)})) == pytest.approx(0.2)


@reward
def letters(trajectory):
    text = trajectory.reply
    return Score(terms={"a": Term(text.count("a") / 4, weight=0.5), "b": Term(text.count("b") / 4, weight=0.5)})


def test_the_pairs_with_the_widest_gap_in_an_item_stay_better_one_first():
    """Gaps: .25 (ab to b), 1 (aaaa to bbb, with a smaller difference of sums than the last), none (a tie), .5 (aabb to nothing)."""
    said = ["b", "ab", "bbb", "aaaa", "a", "b", "aabb", ""]
    policy = Replies(said)
    run = Run(policy, reference=policy)
    problems = [ask(f"Say {i}") for i in range(4)]
    kept = widest_pairs(by=letters(), keep=0.4)(problems, run)
    assert [[t.reply for t in group] for group in kept] == [["aaaa", "bbb"], ["aabb", ""]]
    assert run.metrics["gap"] == pytest.approx(0.75)
    assert [len(widest_pairs(by=letters(), keep=k)(problems, Run(policy, reference=policy))) for k in (0.1, 1.0)] == [1, 3]
    ties = Replies(["a", "b"])
    (group,) = widest_pairs(by=letters())([ask("x")], Run(ties, reference=ties))
    assert [t.reply for t in group] == ["a", "a"]


def test_a_judge_of_wishes_is_asked_about_one_or_about_the_whole_and_knows_the_truth_without_errors():
    task = wishes(judged=True, error=0.0, test_size=80)
    rng = __import__("random").Random(0)
    assert all(task.demonstrate(p, rng) == p.answer for p in task.test)
    assert 0.3 < np.mean([p.meta["item"] == "Is it as wished?" for p in task.test]) < 0.7
    written = wishes(test_size=80)
    (best,) = written.test[:1]
    assert all(word in best.meta["solution"].split() for word in ("we", "need"))
    assert {p.answer for p in task.test} >= {"0", "33", "67", "100"}
