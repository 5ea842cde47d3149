"""Process reward models as rewards: one number for search, one a step for training."""

from __future__ import annotations

import json

import pytest

from rewardlab import api, build, registry
from rewardlab.core import Learner, Message, Problem, Recipe, Run, Trajectory, Turn, ask
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.prm import load_scorer
from rewardlab.prm.training import solution_of_steps
from rewardlab.registry.formula import read_reward
from rewardlab.rewards.process import doubted_steps, prm_score, prm_steps
from rewardlab.runs.config import RunConfig
from rewardlab.text.splitters import mark
from tests.helpers.checkpoints import checkpoint

TEXTS = ("7+5=12\n12*3=36\nAnswer: 36", "7+5=13\nAnswer: 13", "7+5=12\n12*3=36\nAnswer: 36")


@pytest.fixture
def prm(tmp_path, words):
    checkpoint(tmp_path / "prm", words, "LlamaForTokenClassification", num_labels=2)
    return tmp_path / "prm"


@pytest.fixture
def policy():
    return untrained(0)


def written(policy, *texts, marked=True):
    problem = ask("Start with 7.", "36")
    (prompt,) = policy.read([Trajectory(problem)], [problem.prompt])
    rows = policy.write([prompt] * len(texts), texts)
    return [mark(t, "newline", policy.pieces) for t in rows] if marked else rows


def test_a_reply_is_worth_its_last_step_its_least_or_all_of_them(prm, policy):
    rows, run = written(policy, *TEXTS), Run(policy)
    a, b, c = load_scorer(str(prm), "cpu").score([("Start with 7.", TEXTS[0].split("\n"))])[0]
    values = {
        form: [s.value for s in prm_score(model=f"prm:{prm}", form=form)([rows], run)[0]]
        for form in ("last", "min", "product", "mean")
    }
    expected = {"last": c, "min": min(a, b, c), "product": a * b * c, "mean": (a + b + c) / 3}
    assert {form: v[0] for form, v in values.items()} == pytest.approx(expected, abs=1e-5)
    assert all(v[0] == v[2] != v[1] for v in values.values())
    # equal solutions are read once, and what is read counts
    scorer = run.model(f"prm:{prm}")
    each = [len(scorer.encode("Start with 7.", text.split("\n")).ids) for text in TEXTS[:2]]
    assert run.token_count.scored == 4 * sum(each)


def test_a_step_of_less_than_even_odds_is_doubted(prm, policy):
    rows, run = written(policy, *TEXTS), Run(policy)
    rows = [*rows, written(policy, "")[0]]
    said = prm_steps(model=f"prm:{prm}")([rows], run)[0]
    # a bound between the chances, which a random model puts near each other
    bound = sorted(r for _, r in said[0].steps)[1]
    found = doubted_steps(model=f"prm:{prm}", below=bound)([rows], run)[0]
    assert sum(r for _, r in found[0].steps) == 1.0
    assert [(at, float(r < bound)) for s in said[:3] for at, r in s.steps] == [pair for s in found[:3] for pair in s.steps]
    # one term, so that it may take the name by which a credit knows it
    assert list(found[0].terms) == ["doubted_steps"]
    assert found[3].missing


def test_steps_of_a_search_tree_are_its_turns(prm, policy):
    (row,) = written(policy, "x", marked=False)
    parts = [Turn("policy", policy.write([Trajectory(row.problem)], [text])[0].ids, text=text) for text in ("7+5=12 so\n7", "9")]
    tree = Trajectory(row.problem, (row.turns[0], *parts), path=(0, 1))
    (score,) = prm_score(model=f"prm:{prm}", form="min")([[tree]], Run(policy))[0]
    assert score.value == pytest.approx(
        min(load_scorer(str(prm), "cpu").score([("Start with 7.", ["7+5=12 so\n7", "9"])])[0]), abs=1e-5
    )


def test_dense_rewards_fall_where_steps_end(prm, policy):
    run, marked = Run(policy), written(policy, *TEXTS)
    said = load_scorer(str(prm), "cpu").score([("Start with 7.", TEXTS[0].split("\n"))])[0]
    score = prm_steps(model=f"prm:{prm}")([marked], run)[0][0]
    assert score.steps == tuple(zip(marked[0].steps, map(pytest.approx, said), strict=True))
    assert not score.has_outcome
    # a rollout that marks no steps has them marked
    assert prm_steps(model=f"prm:{prm}")([written(policy, *TEXTS, marked=False)], run)[0][0].steps == score.steps


BLOCKS = "7+5=12\nso 12\n\nAnswer: 12"


def test_a_scorer_is_asked_about_steps_such_as_it_learnt(prm, policy, capsys):
    (prm / "step_scorer.json").write_text(json.dumps({"convention": "head", "splitter": "paragraph"}))
    run, steps = Run(policy), ["7+5=12\nso 12", "Answer: 12"]
    said = load_scorer(str(prm), "cpu").score([("Start with 7.", steps)])[0]
    # lines, as the rollout has marked them
    rows = written(policy, BLOCKS)
    assert len(rows[0].steps) == 3
    paid = prm_steps(model=f"prm:{prm}")([rows], run)[0][0]
    assert [r for _, r in paid.steps] == pytest.approx(said, abs=1e-5)
    assert paid.steps[-1][0] == rows[0].steps[-1]
    assert prm_score(model=f"prm:{prm}", form="min")([rows], run)[0][0].value == pytest.approx(min(said), abs=1e-5)
    assert "learnt from steps" not in capsys.readouterr().err
    for _ in range(2):
        assert len(prm_steps(model=f"prm:{prm}", splitter="newline")([rows], run)[0][0].steps) == 3
    told = "the scorer learnt from steps by 'paragraph', and is asked about steps by 'newline'"
    assert capsys.readouterr().err.count(told) == 1
    # it can be said of a checkpoint that does not say it
    (prm / "step_scorer.json").unlink()
    assert load_scorer(f"{prm}?splitter=paragraph", "cpu").splitter == "paragraph"
    with pytest.raises(RewardlabError, match="unknown splitter"):
        load_scorer(f"{prm}?splitter=chapter", "cpu")


def test_cures_bound_what_padding_earns(prm, policy):
    plain, padded = written(policy, TEXTS[0], TEXTS[0].replace("Answer", "7+5=12\n" * 5 + "Answer"))

    def totals(**cure):
        return [s.total for s in prm_steps(model=f"prm:{prm}", **cure)([[plain, padded]], Run(policy))[0]]

    before = totals()
    assert before[1] > before[0] + 1
    # never above 0, so that more steps never earn more
    clipped = totals(clip=0.3)
    assert clipped[1] <= clipped[0] <= 0
    # what a reply earns is its first step's chance, however many follow
    first = load_scorer(str(prm), "cpu").score([("Start with 7.", ["7+5=12"])])[0][0]
    assert totals(delta=True) == pytest.approx([first, first], abs=1e-5)


TURNS = (Message("user", "Start with 7."), Message("assistant", "Yes?"), Message("user", "Add 5."))


@pytest.mark.parametrize(
    ("prompt", "read"),
    [
        ((Message("system", "Count."), Message("user", "Start with 7.")), "Count.\n\nStart with 7."),
        (TURNS, "User: Start with 7.\n\nAssistant: Yes?\n\nUser: Add 5."),
    ],
)
def test_it_reads_the_whole_prompt_as_it_learns_it(prm, policy, prompt, read):
    problem, text = Problem(prompt, "12"), "7+5=12\nAnswer: 12"
    (before,) = policy.read([Trajectory(problem)], [prompt])
    rows = [mark(t, "newline", policy.pieces) for t in policy.write([before], [text])]
    as_learnt = load_scorer(str(prm), "cpu").score([(read, text.split("\n"))])[0]
    paid = prm_steps(model=f"prm:{prm}")([rows], Run(policy))[0][0]
    assert [r for _, r in paid.steps] == pytest.approx(as_learnt, abs=1e-5)
    assert prm_score(model=f"prm:{prm}")([rows], Run(policy))[0][0].value == pytest.approx(as_learnt[-1], abs=1e-5)
    # labels are written for the same text
    assert solution_of_steps(rows[0], paid, None, "newline", {}).prompt == read


def test_a_reply_that_cannot_be_read_has_no_verdict(prm, policy):
    rows, run = written(policy, "", "7+5=12\n" * 60), Run(policy)
    for part in (prm_score, prm_steps):
        blank, long = part(model=f"prm:{prm}")([rows], run)[0]
        assert blank.missing
        assert blank.why == "the reply is blank"
        assert long.missing
        assert "longer than the scorer's context of 256" in long.why
    with pytest.raises(RewardlabError, match="no model named 'prm'"):
        prm_score()([rows], run)
    with pytest.raises(RewardlabError, match="scores no steps"):
        prm_score(model="policy")([rows], run)


def test_a_learner_may_be_a_process_reward_model(prm, policy):
    task = registry.task("arithmetic", test_size=2)
    recipe = build("grpo").but(reward=prm_score(form="min"), also=(Learner("prm", f"prm:{prm}", Recipe()),))
    from rewardlab.api.inputs import begin_run

    run = begin_run(recipe, policy, task, RunConfig(steps=1))
    assert run.model("prm").convention == "head"
    ops = Ops(recipe, run, task, RunConfig(steps=1))
    # it trains nothing, and is never due
    assert ops.learners["prm"].optimiser is None
    assert not ops.learners["prm"].due(0)


def test_a_process_reward_model_is_a_reward_by_its_path(prm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    reward = read_reward("prm:prm?as=head")
    assert str(reward) == f"prm_steps(model='prm:{prm}?as=head')"
    assert "prm_steps" in str(read_reward('correct() >> "prm:prm"'))
    assert str(read_reward("2 * prm_score(model='prm:prm', form='min')")).count(f"'prm:{prm}'") == 1
    result = api.train(
        build("grpo", {"n": 2, "problems": 2}).but(reward=reward), "untrained", "arithmetic", steps=1, max_new=12,
        eval_problems=0, out=tmp_path / "run",
    )  # fmt: skip
    assert json.loads((tmp_path / "run" / "config.json").read_text())["formula"].count(str(prm)) >= 1
    assert result.summary["steps"] == 1


def test_one_that_is_not_there_is_said_before_anything_is_made(tmp_path):
    recipe = build("grpo").but(reward=read_reward(f"prm:{tmp_path / 'none'}"))
    with pytest.raises(RewardlabError, match="there is no folder"):
        api.train(recipe, "untrained", "arithmetic", steps=1, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
