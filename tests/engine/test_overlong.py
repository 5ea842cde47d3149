"""Rows too long for a model that reads them in a step: left out and counted, never the end of a run."""

import json

import pytest

import rewardlab
from rewardlab import RewardlabError
from rewardlab.core import Group, Learner, Part, Problem, Run, Score, ask, measure, rollout
from rewardlab.core.part import decorator
from rewardlab.engine.overlong import PATIENCE, NothingFits, fitting, leave_out, measured, scored, skip
from rewardlab.errors import TooLong
from rewardlab.methods.baselines.sft import sft
from rewardlab.models.embedded import untrained
from rewardlab.rollouts.ranked import recorded_pairs

LONG = " and so on" * 600
SMALL = {"model": "untrained", "max_new": 6, "device": "cpu", "eval_problems": 2, "checkpoint_every": 0}


def problem(name, text="short"):
    return Problem(ask(f"say {name}").prompt, meta={"text": text, "name": name})


def refuses(problems):
    """Raise TooLong, as a policy does for a text that it cannot read, if one of the problems is long."""
    if any(p.meta["text"] == LONG for p in problems):
        raise TooLong("a prompt of 6000 tokens")


@rollout(rows=lambda **_: 1)
def written(problems: list[Problem], run: Run) -> list[Group]:
    """The texts of the rows, unchecked."""
    return recorded_pairs([(p, [p.meta["text"]]) for p in problems], run)


@rollout(rows=lambda **_: 1)
def checked(problems: list[Problem], run: Run) -> list[Group]:
    """The texts of the rows; one that is too long is refused, as by most rollouts of written text."""
    refuses(problems)
    return written()(problems, run)


@rollout(rows=lambda **_: 1, across_problems=True)
def remembered(problems: list[Problem], run: Run) -> list[Group]:
    """`checked`, which counts its problems before it looks at them."""
    run.memory["seen"] = run.memory.get("seen", 0) + len(problems)
    return checked()(problems, run)


@pytest.fixture(scope="module")
def policy():
    return untrained()  # reads 512 tokens


def names(groups):
    return [group[0].problem.meta["name"] for group in groups]


@pytest.mark.parametrize("part", [written(), checked()], ids=str)
def test_one_row_too_long_is_left_out_of_a_step_and_the_others_stay(part, policy):
    groups, out = fitting(part, [problem("a"), problem("b", LONG), problem("c")], Run(policy), policy.context)
    assert (names(groups), out) == (["a", "c"], 1)


def test_a_memory_holds_nothing_of_the_attempts(policy):
    run = Run(policy, memory={"seen": 5})
    groups, out = fitting(remembered(), [problem("a"), problem("b", LONG), problem("c")], run, policy.context)
    assert (names(groups), out, run.memory["seen"]) == (["a", "c"], 1, 7)


def test_what_a_judge_cannot_read_is_left_out_with_its_group(policy):
    run = Run(policy)
    groups = written()([problem("a"), problem("b", "longer"), problem("c")], run)

    def judge(groups: list[Group], run: Run) -> list[list[Score]]:
        if any(t.reply == "longer" for group in groups for t in group):
            raise TooLong("a prompt of 600 tokens")
        return [[Score(float(len(groups)))] for _ in groups]

    scores, places = scored(judge, groups, run)
    leave_out(groups, places, run)
    # the two others are scored together
    assert ([row[0].total for row in scores], names(groups), run.metrics) == ([2.0, 2.0], ["a", "c"], {"overlong": 1.0})
    with pytest.raises(NothingFits):
        leave_out(groups, [0, 1], run)


def test_a_measure_is_taken_of_the_held_out_rows_that_fit(policy):
    @measure
    def counted(problems: list[Problem], run: Run) -> dict[str, float]:
        refuses(problems)
        return {"n": float(len(problems))}

    assert measured(counted(), [problem("a"), problem("b", LONG), problem("c")], Run(policy)) == {"n": 2.0, "overlong": 1.0}
    with pytest.raises(RewardlabError, match="none of 1 held-out"):
        measured(counted(), [problem("b", LONG)], Run(policy))


def test_steps_without_a_row_that_fits_are_skipped_until_they_are_too_many(policy, capfd):
    run = Run(policy)
    for _ in range(PATIENCE - 1):
        skip(run, NothingFits("'a', for one"))
    assert "step 1 is left out: 'a', for one" in capfd.readouterr().err
    with pytest.raises(RewardlabError, match=f"in {PATIENCE} steps in a row no row fits"):
        skip(run, NothingFits("'a', for one"))


def lines(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_a_run_goes_on_past_a_row_too_long_and_past_a_step_of_such_rows(tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"say {i}", "answer": "x", "solution": "x"}) + "\n" for i in range(12)))

    first: dict[int, str] = {}

    @rollout(rows=lambda **_: 1)
    def drafted(problems: list[Problem], run: Run) -> list[Group]:
        # what a model wrote just now is known to nobody beforehand: in step 2 one of two, in step 3 both
        first.setdefault(run.step, problems[0].question)
        texts = [LONG if run.step == 2 or (run.step == 1 and p.question == first[1]) else "ab" for p in problems]
        groups = recorded_pairs([(p, [text]) for p, text in zip(problems, texts, strict=True)], run)
        for group in groups:
            run.policy.check_fits(group[0], 0)
        return groups

    recipe = sft(problems=2).but(rollout=drafted())
    found = lines(rewardlab.train(recipe, task=str(rows), steps=4, out=tmp_path / "run", **SMALL).out)
    by_step = {line["step"]: line for line in found}
    assert [by_step[i].get("overlong") for i in (1, 2, 3, 4)] == [None, 1.0, 2.0, None]
    assert ["loss" in by_step[i] for i in (1, 2, 3, 4)] == [True, True, False, True]


def test_a_second_learner_that_can_read_nothing_of_a_step_learns_nothing_and_the_policy_does(tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"prompt": f"say {i}", "answer": "x", "solution": "x"}) + "\n" for i in range(12)))

    @rollout(rows=lambda **_: 1)
    def criticised(problems: list[Problem], run: Run) -> list[Group]:
        """What the second learner learns: in step 2 it is too long for it, whatever the row."""
        groups = recorded_pairs([(p, [LONG if run.step == 1 else "ab"]) for p in problems], run)
        for group in groups:
            run.policy.check_fits(group[0], 0)
        return groups

    @decorator(Part)
    def same(groups, scores, run):
        return [group[0].problem for group in groups]

    second = Learner("critic", "copy:policy", sft(problems=2).but(rollout=criticised()), problems=same())
    found = lines(rewardlab.train(sft(problems=2).but(also=(second,)), task=str(rows), steps=3, out=tmp_path / "run", **SMALL).out)
    by_step = {line["step"]: line for line in found}
    assert ["loss" in by_step[i] for i in (1, 2, 3)] == [True, True, True]
    assert ["critic/loss" in by_step[i] for i in (1, 2, 3)] == [True, False, True]
    assert by_step[2]["overlong"] == 2.0
