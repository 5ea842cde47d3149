"""Searches at equal tokens: budgets that are met, answers that are kept, and a plan that says what it does not know."""

import json
import math
import os
import signal

import pytest

from rewardlab.api import search, searching
from rewardlab.api.sampled import candidates_of
from rewardlab.api.search_advice import Measured, advice
from rewardlab.api.search_arms import arms
from rewardlab.api.searching import next_value
from rewardlab.commands import cli
from rewardlab.commands import search as search_command
from rewardlab.core import Learner, Message, Problem, Recipe, Score, Task, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.prm import StepScorer, load_scorer
from rewardlab.registry import build
from rewardlab.report.searches import chart
from rewardlab.rewards.model import model_score
from rewardlab.rewards.reward import reward
from rewardlab.rewards.task import correct
from rewardlab.util.progress import console
from tests.helpers.checkpoints import checkpoint

SMALL = {"max_new": 8, "device": "cpu"}


DEADLY: list[str] = []
JUDGED: list[str] = []


@reward
def length_of_reply(trajectory):
    JUDGED.append(trajectory.problem.question)
    if trajectory.problem.question in DEADLY:
        os.kill(os.getpid(), signal.SIGKILL)
    return float(len(trajectory.reply))


def world(n=6):
    problems = [ask(f"{i}+1=?", str(i + 1)) for i in range(n)]
    return Task("sums", problems, problems, "final_answer", columns=("prompt", "answer"))


@pytest.fixture(scope="module")
def policy():
    return untrained(3)


# ---- budgets ---------------------------------------------------------------------------------------------------------


def test_the_value_that_meets_a_budget_is_found_on_lines_between_measured_ones():
    def found(cost, budget):
        spent, value = {}, 1
        while value is not None and len(spent) < 8:
            spent[value] = cost(value)
            value = next_value(spent, budget)
        return max((v for v in spent if spent[v] <= budget), default=None), len(spent)

    assert found(lambda v: 10.0 * v, 75) == (7, 3)
    # a cost beside what each costs, and one that grows faster
    assert found(lambda v: 30.0 + 10.0 * v, 75)[0] == 4
    assert found(lambda v: float(v * v), 75)[0] == 8
    assert found(lambda v: 100.0, 75) == (None, 1)
    # a tree that is complete spends no more
    assert found(lambda v: min(v, 5) * 10.0, 1000)[1] <= 4


def test_a_budget_decides_the_width_and_what_was_spent_is_measured(policy):
    document = search(["best_of_n", "beam_search"], world(), model=policy, budgets=(20, 60), problems=6, batch=4, **SMALL)
    cells = {(cell["method"], cell["budget"]): cell for cell in document["results"]}
    # a reply has at most 8 tokens, and a beam of width 1 samples 4 first steps
    assert cells["best_of_n", 60]["setting"]["n"] > cells["best_of_n", 20]["setting"]["n"] >= 2
    assert 0 < cells["best_of_n", 60]["tokens"] <= 60 * 1.1
    assert cells["best_of_n", 60]["policy_tokens"] == cells["best_of_n", 60]["tokens"]
    assert cells["best_of_n", 60]["pilot_tokens"] > 0
    assert "spends" in cells["beam_search", 20].get("why", "spends")
    assert [row["budget"] for row in document["plan"]] == [20, 60]
    with pytest.raises(RewardlabError, match=r"best_of_n spends \d tokens a problem at n=1: give a larger budget"):
        search("best_of_n", world(), model=policy, budgets=1, problems=2, **SMALL)


def test_the_tokens_of_the_scorer_count(policy):
    recipe = build("best_of_n", {"n": 2}).but(reward=model_score(model="judge"))
    recipe = recipe.but(also=(Learner("judge", "value-head", Recipe(), every=0),))
    (cell,) = search(recipe, world(), model=policy, problems=2, **SMALL)["results"]
    # each reply is written once, and read once with its prompt
    assert cell["scorer_tokens"] > cell["policy_tokens"] > 0
    assert cell["tokens"] == cell["scorer_tokens"] + cell["policy_tokens"]
    with_search = build("beam_search", {"width": 1, "branch": 2}).scored_by(model_score(model="judge"))
    with_search = with_search.but(also=recipe.also, name="b")
    (more,) = search(with_search, world(), model=policy, problems=2, **SMALL)["results"]
    assert more["scorer_tokens"] > cell["scorer_tokens"]


@pytest.fixture
def prm(tmp_path, words):
    checkpoint(tmp_path / "prm", words, "LlamaForTokenClassification", num_labels=2)
    return f"prm:{tmp_path / 'prm'}"


def test_a_scorer_in_a_formula_is_looked_for_at_once_and_loaded_once(policy, prm, monkeypatch):
    with pytest.raises(RewardlabError, match="nowhere"):
        search("best_of_n", world(), model=policy, scorer="prm_score(model='prm:nowhere/at/all')", **SMALL)
    loaded = []
    monkeypatch.setattr(searching, "load_scorer", lambda *args: loaded.append(args) or load_scorer(*args))
    methods = [build("best_of_n", {"n": 2}), build("beam_search", {"width": 1, "branch": 2})]
    found = search(methods, world(), model=policy, scorer=f"0.5 * prm_score(model={prm!r})", problems=2, **SMALL)
    assert len(loaded) == 1
    assert all(cell["scorer_tokens"] > 0 for cell in found["results"])


def test_replies_that_a_search_has_scored_are_not_read_again_to_choose_among_them(policy, prm, monkeypatch):
    read = []
    scored = StepScorer._read
    monkeypatch.setattr(StepScorer, "_read", lambda self, x: read.extend((p, tuple(s)) for p, s in x) or scored(self, x))
    recipe = build("beam_search", {"width": 1, "branch": 3})
    (cell,) = search(recipe, world(), model=policy, scorer=prm, problems=2, **SMALL)["results"]
    assert cell["scorer_tokens"] > 0
    assert len(read) == len(set(read)) > 0


# ---- methods and scorers ---------------------------------------------------------------------------------------------


def test_a_scorer_guides_the_search_and_selects():
    (arm,) = arms("dvts", {"branch": 2}, "verifier", False)
    assert arm.recipe.reward == arm.recipe.rollout.settings["score"] == correct()
    assert arm.at(3).recipe.rollout.settings["trees"] == 3
    # a vote reads no scores, and pays for none
    assert arms(["dvts", "majority_vote"], {}, "verifier", False)[1].recipe.reward is None


def test_a_scorer_that_no_method_reads_is_refused(capsys):
    assert cli.main(["search", "majority_vote", "--task", "arithmetic", "--scorer", "prm:nowhere", "--problems", "4"]) == 2
    assert "majority_vote reads no scores: leave out the scorer, prm:nowhere" in capsys.readouterr().err
    # beside one that reads it, it is looked for
    assert (
        cli.main(
            [
                "search",
                "majority_vote,dvts",
                "--task",
                "arithmetic",
                "--scorer",
                "prm:nowhere",
                "--model",
                "untrained",
                "--problems",
                "4",
            ]
        )
        == 2
    )
    assert "nowhere" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--budget", "--budgets"])
def test_a_wrong_budget_is_refused_by_the_flag_that_was_written(flag, capsys):
    assert cli.main(["search", "best_of_n", "--task", "arithmetic", flag, "50,abc"]) == 2
    assert f"rewardlab: {flag} must be a whole number above 0, not 'abc'" in capsys.readouterr().err
    args = cli.parse(search_command, "search", ["best_of_n", flag, "400, 50,400"])
    assert args.budgets == (50, 400)


def test_settings_are_for_every_method_that_has_them_or_for_one():
    one, two = arms(["beam_search", "dvts"], {"branch": 2, "dvts.branch": 3}, None, True)
    assert (one.recipe.rollout.settings["branch"], two.recipe.rollout.settings["branch"]) == (2, 3)
    assert (one.scale, two.scale) == ("width", "trees")


@pytest.mark.parametrize(
    ("methods", "settings", "scaled", "message"),
    [
        ([], {}, False, "which methods"),
        (["grpo"], {}, False, "grpo selects no answer"),
        (["dvts", "dvts"], {}, False, "dvts is named twice"),
        (["dvts"], {"widht": 2}, False, "unknown setting of dvts 'widht'"),
        (["best_of_n"], {"n": 2}, True, "n is what the budget decides"),
    ],
)
def test_what_cannot_be_searched_is_refused(methods, settings, scaled, message):
    with pytest.raises(RewardlabError, match=message):
        arms(methods, settings, None, scaled)


def test_a_page_needs_answers_and_a_task_without_them_is_answered(policy, tmp_path):
    blank = Task("blank", [ask("2+1=?")], [ask("1+1=?")], "final_answer", columns=("prompt",))
    with pytest.raises(RewardlabError, match="a page of accuracies needs answers"):
        search("best_of_n", blank, model=policy, page=tmp_path / "p.html", **SMALL)
    with pytest.raises(RewardlabError, match="needs answers"):
        search("best_of_n", blank, model=policy, scorer="verifier", **SMALL)
    document = search("best_of_n", blank, model=policy, out=tmp_path / "a.jsonl", **SMALL)
    assert document["results"][0]["accuracy"] is None
    assert json.loads((tmp_path / "a.jsonl").read_text())["right"] is None


def test_the_replies_that_were_chosen_among_are_kept_with_their_scores(policy, tmp_path):
    recipe = build("best_of_n", {"n": 3}).but(reward=length_of_reply())
    settings = {"model": policy, "problems": 2, **SMALL}
    search(recipe, world(), out=tmp_path / "with.jsonl", candidates=True, **settings)
    rows = [json.loads(line) for line in (tmp_path / "with.jsonl").read_text().splitlines()]
    assert [len(row["candidates"]) for row in rows] == [3, 3]
    for row in rows:
        # best of n by hand
        best = max(row["candidates"], key=lambda one: one["score"])
        assert row["answer"] == best["reply"]
        assert all(one["score"] == len(one["reply"]) for one in row["candidates"])
    search(recipe, world(), out=tmp_path / "without.jsonl", **settings)
    assert "candidates" not in (tmp_path / "without.jsonl").read_text()
    scored = candidates_of([Trajectory(ask("?"))], [Score(steps=[(3, 0.25), (5, 0.5)])])
    assert scored == [{"reply": "", "score": 0.75, "steps": [0.25, 0.5]}]


# ---- answers that are kept -------------------------------------------------------------------------------------------


def test_killed_it_goes_on_where_it_stopped_with_the_same_answers(policy, tmp_path):
    out, at_once = tmp_path / "answers.jsonl", tmp_path / "at-once.jsonl"
    settings = {"model": policy, "batch": 2, **SMALL}
    recipe = build("best_of_n", {"n": 2}).but(reward=length_of_reply())
    if os.fork() == 0:
        DEADLY.append("5+1=?")
        search(recipe, world(), out=out, **settings)
        os._exit(0)
    _, status = os.wait()
    assert os.WIFSIGNALED(status)
    begun, work = out.read_text(), out.with_name("answers.jsonl.work")
    # the third batch holds the problem at which it is killed
    assert begun.count("\n") == 4
    assert work.exists()
    JUDGED.clear()
    search(recipe, world(), out=out, **settings)
    assert set(JUDGED) == {"4+1=?", "5+1=?"}
    assert not work.exists()
    assert out.read_text().startswith(begun)
    search(recipe, world(), out=at_once, **settings)
    assert at_once.read_text() == out.read_text()


def test_what_is_finished_is_given_again_and_neither_it_nor_another_search_loads_a_model(tmp_path, monkeypatch):
    untrained(3).save(tmp_path / "small")
    settings = {"model": str(tmp_path / "small"), "out": tmp_path / "a.jsonl", "problems": 4, **SMALL}
    first = search("best_of_n", world(), settings={"n": 2}, **settings)
    rows = (tmp_path / "a.jsonl").read_text()
    monkeypatch.setattr(searching, "policy_of", None)
    with console.capture() as said:
        assert search("best_of_n", world(), settings={"n": 2}, **settings) == first
    assert "holds the answers to this very call" in said.get()
    # with a page that the first call did not write
    search("best_of_n", world(), settings={"n": 2}, page=tmp_path / "p.html", **settings)
    assert "<svg" in (tmp_path / "p.html").read_text()
    with pytest.raises(RewardlabError, match=r"a.jsonl was made with other settings \(other methods\): give"):
        search("best_of_n", world(), settings={"n": 3}, **settings)
    others = [ask(f"{i}+2=?", str(i + 2)) for i in range(4)]
    other = Task("sums", others, others, "final_answer", columns=("prompt", "answer"))
    with pytest.raises(RewardlabError, match=r"a.jsonl was made with other settings \(rows"):
        search("best_of_n", other, settings={"n": 2}, **settings)
    # of two models that are objects nothing says that they are one
    with pytest.raises(RewardlabError, match=r"a.jsonl exists, and would be overwritten"):
        search("best_of_n", world(), settings={"n": 2}, **settings | {"model": untrained(3)})
    assert (tmp_path / "a.jsonl").read_text() == rows


def test_a_search_that_fails_at_once_leaves_nothing_that_refuses_the_next(policy, tmp_path):
    @reward
    def broken(trajectory):
        raise RewardlabError("as it was written")

    recipe, settings = build("best_of_n", {"n": 2}), {"model": policy, "out": tmp_path / "a.jsonl", "problems": 2, **SMALL}
    with pytest.raises(RewardlabError, match="as it was written"):
        search(recipe.but(reward=broken()), world(), **settings)
    search(recipe.but(reward=length_of_reply()), world(), **settings)
    assert (tmp_path / "a.jsonl").read_text().count("\n") == 2


# ---- what is told of the replies -------------------------------------------------------------------------------------


@reward
def nothing_known(trajectory):
    return Score(None, why="the judge is down")


def test_a_scorer_without_a_verdict_is_told_and_its_verdicts_are_counted(policy):
    silent = build("best_of_n", {"n": 2}).but(reward=nothing_known())
    with console.capture() as said:
        (cell, vote) = search([silent, "majority_vote"], world(), model=policy, problems=5, batch=2, **SMALL)["results"]
    told = "nothing_known() has no verdict on any of 4 replies, so that the choice among them is arbitrary: the judge is down"
    # once, and not for each batch
    assert said.get().count(f"warning: {told}") == 1
    assert cell["missing"] == 10
    # a vote asks no scorer
    assert "missing" not in vote
    with console.capture() as said:
        (cell,) = search("best_of_n", world(), model=policy, problems=2, **SMALL)["results"]
    assert cell["missing"] == 0
    assert "arbitrary" not in said.get()


def test_replies_that_were_cut_off_are_told(policy, capsys):
    (cell,) = search("best_of_n", world(), model=policy, problems=2, settings={"n": 4}, max_new=1, device="cpu")["results"]
    # an untrained policy seldom ends at its first token
    assert cell["cut_off"] > 0.5
    search_command.show({"results": [{**cell, "cut_off": 0.5, "missing": 3}]})
    said = capsys.readouterr().out
    assert "warning: 50% of the replies of best_of_n were cut off at the length limit" in said
    assert "best_of_n chose among replies of which 3 had no verdict" in said


def test_rows_without_answers_are_told_with_the_column_that_may_hold_them(policy, capsys):
    rows = [Problem((Message("user", f"{i}+1=?"),), meta={"solution": str(i + 1)}) for i in range(2)]
    blank = Task("blank", rows, rows, "final_answer", columns=("prompt", "solution"))
    with console.capture() as said:
        search("best_of_n", blank, model=policy, **SMALL)
    assert "which replies are right is not known" in said.get()
    assert "did you mean solution?" in said.get()


# ---- the plan --------------------------------------------------------------------------------------------------------


def measured(method, tokens, right, of=100):
    return Measured(method, "n=1", tokens, (1.0,) * right + (0.0,) * (of - right))


def test_the_plan_says_what_is_surely_better_and_what_cannot_be_told_apart():
    cheap, good, equal = measured("cheap", 50, 40), measured("good", 190, 80), measured("equal", 150, 78)
    low, high = advice([cheap, good, equal], [100, 200])
    assert (low["use"], low["tied"]) == ("cheap", [])
    assert "nothing to compare it with" in low["words"]
    assert (high["use"], high["tied"]) == ("good", ["equal"])
    gains = {row["method"]: row for row in high["against"]}
    assert gains["cheap"]["gain"] == pytest.approx(0.4)
    assert gains["cheap"]["ci95"][0] > 0.2
    assert gains["cheap"]["p_adjusted"] < 0.001
    assert "cannot be told apart from equal, which is cheaper: 150 tokens" in high["words"]
    (three,) = advice([good, equal, measured("third", 120, 79)], [200])
    assert "cannot be told apart from third and equal, of which third is the cheapest: 120 tokens" in three["words"]
    (best,) = advice([measured("best", 100, 80), measured("one", 150, 79)], [200])
    assert best["words"].endswith("cannot be told apart from one, which costs no less")
    (best,) = advice([measured("best", 100, 80), measured("one", 150, 79), measured("two", 100, 78)], [200])
    assert best["words"].endswith("cannot be told apart from one and two, which cost no less")
    sure = advice([cheap, good], [200])[0]
    assert "surely more than cheap" in sure["words"]
    assert advice([cheap], [10])[0]["use"] is None


def test_where_nothing_is_ever_right_nothing_is_recommended():
    none, right = advice([measured("a", 100, 0), measured("b", 60, 0), measured("c", 300, 1)], [200, 400])
    assert none["use"] is None
    assert none["words"] == "no method is right on any of the 100 problems: none can be recommended"
    assert right["use"] == "c"


def test_of_equal_accuracies_the_cheaper_setting_counts():
    (row,) = advice([measured("a", 100, 50), measured("a", 60, 50)], [200])
    assert row["tokens"] == 60


def test_the_chart_holds_every_point_within_its_frame():
    cells = [
        {"method": m, "tokens": t, "accuracy": {"value": v, "ci95": [v - 0.1, v + 0.1]}}
        for m, t, v in [("<a>", 10, 0.2), ("<a>", 1000, 0.9), ("b", 100, 0.5)]
    ]
    drawn = chart(cells)
    assert drawn.count("<circle") == 3
    assert drawn.count("<polyline") == 2
    assert "<a>" not in drawn.replace("&lt;a&gt;", "")
    one = chart(cells[2:])
    assert "nan" not in one
    assert math.isfinite(float(one.split('cx="')[1].split('"')[0]))


def test_the_command_writes_answers_and_a_page(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, first in (("train", 50), ("d", 0)):
        rows = ({"prompt": f"{i}+1=?", "answer": str(i + 1)} for i in range(first, first + 4))
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    untrained(3).save("small")
    line = "search best_of_n,majority_vote --task train.jsonl --test d.jsonl --model small --budget 16,40 --problems 4"
    rest = "--max-new 8 --device cpu --out a.jsonl --page p.html --json"
    assert cli.main([*line.split(), *rest.split()]) == 0
    document = json.loads(capsys.readouterr().out)
    assert len(document["results"]) == 4
    rows = [json.loads(row) for row in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert [(row["method"], row["budget"]) for row in rows[:5]] == [("best_of_n", 16)] * 4 + [("majority_vote", 16)]
    page = (tmp_path / "p.html").read_text()
    assert "<svg" in page
    assert "Which to use" in page
    assert "<script" not in page
    assert cli.main(["search", "best_of_m", "--task", "arithmetic"]) == 2
    assert "did you mean best_of_n" in capsys.readouterr().err


def test_a_file_that_is_of_no_search_is_neither_overwritten_by_answers_nor_by_a_page(policy, tmp_path):
    (precious := tmp_path / "precious.jsonl").write_text("{}\n")
    for name, why in (("out", "exists, and would be overwritten"), ("page", "would be replaced by an HTML page")):
        with pytest.raises(RewardlabError, match=f"precious.jsonl .*{why}"):
            search("best_of_n", world(), model=policy, **{name: precious}, **SMALL)
    assert precious.read_text() == "{}\n"
