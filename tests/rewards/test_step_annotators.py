"""Labels of steps: found by bisection, by a judge's reply, by checking equations."""

import json
import math

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Run, TokenCount, Trajectory, Turn, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.rewards.judged_steps import first_wrong, judged_steps, verdicts
from rewardlab.rewards.monte_carlo import binary_search_steps, monte_carlo_steps
from rewardlab.rewards.reward import reward
from rewardlab.rewards.steps import correct_steps, step_texts
from rewardlab.rewards.tool_steps import equations, tool_steps

QUESTION = ask("How many?", "right")


class Scripted:
    """A policy of characters that goes on rightly as long as the text has no !, by a counted number of continuations."""

    context = 5000

    def __init__(self):
        self.calls: list[list[str]] = []
        self.token_count = TokenCount()

    def decode(self, ids):
        return "".join(map(chr, ids))

    def read(self, trajectories, messages):
        return [t.plus(self.turn(None, new[-1].text)) for t, new in zip(trajectories, messages, strict=True)]

    def turn(self, author, text):
        return Turn(author, np.array([ord(c) for c in text], np.int64), text=text)

    def extend(self, trajectories, sampling, rng):
        self.calls.append([t.reply for t in trajectories])
        return [t.plus(self.turn("policy", self.goes_on(t)), "end") for t in trajectories]

    def goes_on(self, t):
        return " wrong" if "!" in t.reply else " right"


class Judge(Scripted):
    """Answers what it is told to, in turn."""

    def __init__(self, *replies):
        super().__init__()
        self.replies = iter(replies)

    def goes_on(self, t):
        return next(self.replies)


@reward
def says_right(trajectory):
    return None if "?" in trajectory.reply else float(trajectory.reply.endswith("right"))


def solution(text, problem=QUESTION):
    """A row whose prompt is one token, and whose steps are the lines of the text."""
    lines = text.splitlines(keepends=True)
    ends = np.cumsum([len(line) for line in lines])
    policy = Turn("policy", np.array([ord(c) for c in text], np.int64), text=text)
    return Trajectory(problem, (Turn(None, np.zeros(1, np.int64)), policy), "end", steps=tuple(int(e) for e in ends))


def run_of(policy, **models):
    return Run(policy, models=models, verify=says_right(), max_new=10)


def labels(score, row):
    """By step: its label, or None."""
    found = dict(score.steps)
    return [found.get(at) for at in row.steps]


@pytest.mark.parametrize("first", range(9))
def test_bisection_finds_the_first_step_after_which_nothing_is_right(first):
    text = "\n".join("!" if k == first else "abcdefghi"[k] for k in range(9))
    policy, row = Scripted(), solution(text)
    run = run_of(policy)
    (score,) = binary_search_steps(n=3)([[row]], run)[0]
    assert labels(score, row) == [1.0] * first + [0.0] * (9 - first)
    # of eight steps before the last, at most log2(9) rounded up are gone on from, three times each
    assert len(policy.calls) <= math.ceil(math.log2(9))
    assert run.metrics["completions"] == 3 * len(policy.calls) == sum(map(len, policy.calls))
    assert run.metrics["prefix_tokens"] == sum(1 + len(call[0]) for call in policy.calls)


def test_all_replies_are_searched_at_once_and_equal_prefixes_are_sampled_once():
    policy = Scripted()
    rows = [solution(text) for text in ("a\nb\n!\nd\ne", "a\nb\n!\nd\nf", "a\nright", "?\na\nb", "!")]
    found = binary_search_steps(n=2)([rows], run_of(policy))[0]
    assert labels(found[0], rows[0]) == labels(found[1], rows[1]) == [1, 1, 0, 0, 0]
    assert labels(found[2], rows[2]) == [1, 1]
    assert found[3].missing
    # the whole of a wrong reply is wrong, without a continuation
    assert labels(found[4], rows[4]) == [0]
    # one call a level, for both replies that begin alike
    assert policy.calls == [["a\nb\n"] * 2, ["a\nb\n!\n"] * 2]


def test_a_step_that_the_context_does_not_hold_gets_no_label():
    policy, row = Scripted(), solution("a\nb\n!\nd\ne")
    # it holds the first two steps and a continuation
    policy.context = row.steps[1] + 1 + 10
    (score,) = binary_search_steps(n=1)([[row]], run_of(policy))[0]
    assert labels(score, row) == [1, 1, None, None, 0]


def test_bisection_gives_no_verdict_where_continuations_have_none():
    policy, row = Scripted(), solution("a\nb\nc\nd")
    policy.goes_on = lambda t: "?"
    (score,) = binary_search_steps()([[row]], run_of(policy))[0]
    assert score.missing
    assert "no continuation" in score.why


def test_monte_carlo_samples_equal_prefixes_once_and_counts_its_cost():
    policy = Scripted()
    rows = [solution(text) for text in ("a\nb\n!", "a\nb\nright", "a\n!\nx")]
    run = run_of(policy)
    found = monte_carlo_steps(n=4)([rows[:2], rows[2:]], run)
    assert [labels(s, t) for s, t in zip([*found[0], *found[1]], rows, strict=True)] == [[1, 1, 0], [1, 1, 1], [1, 0, 0]]
    assert policy.calls == [["a\n"] * 4 + ["a\nb\n"] * 4 + ["a\n!\n"] * 4]
    assert (run.metrics["completions"], run.metrics["prefix_tokens"]) == (12, 3 + 5 + 5)


def test_problems_with_one_prompt_and_two_answers_are_told_apart():
    policy = Scripted()
    rows = [solution("a\nb", QUESTION), solution("a\nb", ask("How many?", "another"))]
    monte_carlo_steps(n=1)([[t] for t in rows], run_of(policy))
    assert policy.calls == [["a\n", "a\n"]]


def test_bisection_says_what_it_needs():
    policy = untrained(0)
    with pytest.raises(RewardlabError, match="binary_search_steps needs the task's verifier"):
        binary_search_steps()([[solution("1\n2")]], Run(policy))
    with pytest.raises(RewardlabError, match='steps="newline"'):
        binary_search_steps()([[Trajectory(QUESTION)]], run_of(policy))


@pytest.mark.parametrize(
    ("reply", "index"),
    [
        ("so \\boxed{2}", 2), ("\\boxed{1} no, \\boxed{ -1 }", -1), ("\\boxed{0}.", 0), ("\\boxed{3}", None), ("\\boxed{-2}", None),
        ("the second", None), ("2", None), ("\\boxed{2 or 1}", None), ("\\boxed{paragraph_1}", None), ("", None),
    ],
)  # fmt: skip
def test_the_first_wrong_step_is_read_strictly(reply, index):
    assert first_wrong(reply, 3) == index


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("0: right\n1: wrong", (True, False)), ("Well.\n- **1**: Right\n- **0**: wrong.\n", (False, True)), ("0: right", None),
        ("0: right\n1: wrong\n1: right", None), ("0: right\n1: unclear", None), ("0: right\n2: wrong", None),
    ],
)  # fmt: skip
def test_verdicts_of_every_step_are_read_strictly(reply, said):
    assert verdicts(reply, 2) == said


def test_a_judge_names_the_first_wrong_step_and_says_nothing_of_those_after_it():
    rows = [solution("a\nb\nc") for _ in range(3)]
    judge = Judge("\\boxed{1}", "\\boxed{-1}", "the second one")
    run = run_of(Scripted(), judge=judge)
    found = judged_steps()([rows], run)[0]
    assert [labels(s, t) for s, t in zip(found[:2], rows[:2], strict=True)] == [[1, 0, None], [1, 1, 1]]
    assert found[2].missing
    assert run.metrics["completions"] == 3
    assert run.metrics["prefix_tokens"] > sum(len(row.reply) for row in rows)


def test_the_most_frequent_of_several_verdicts_counts():
    row = solution("a\nb")
    run = run_of(Scripted(), judge=Judge("?", "0: right\n1: wrong", "0: right\n1: right", "0: right\n1: wrong"))
    (score,) = judged_steps(form="each", votes=4, temperature=1.0)([[row]], run)[0]
    assert labels(score, row) == [1, 0]


def test_the_judge_reads_the_problem_and_the_numbered_steps():
    asked = []
    judge = Judge("\\boxed{-1}")
    judge.read = lambda trajectories, messages: [asked.append(m[-1].text) or Trajectory(QUESTION) for m in messages]
    judged_steps()([[solution("a b\nc")]], run_of(Scripted(), judge=judge))
    assert "How many?" in asked[0]
    assert "<paragraph_0>\na b\n</paragraph_0>\n\n<paragraph_1>\nc\n</paragraph_1>" in asked[0]
    # what does not fit its context is not asked
    judge.context = 5
    assert judged_steps()([[solution("a\nc")]], run_of(Scripted(), judge=judge))[0][0].missing
    assert not judge.calls[1:]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3*4=12", [True]), ("so 5+3=9.", [False]), ("2*3=6=5+2", [True, False]), ("5 - 8 = -3", [True]), ("-2*3 = 6", [False]),
        ("10/3 = 3.33", [True]), ("10/3 = 3.34", [False]), ("10/3 = 3", [False]), ("10/3 ≈ 3", [True]), ("7/0 = 3", []),
        ("20% * 50 = 10", [True]), ("5/20 = 25%", [True]), (r"$\frac{1}{2}+\frac{1}{4}=\frac{3}{4}$", [True]),
        (r"40,\!000 \times 2 = 80,000 dollars", [True]), ("It is 7. 5+3 = 8. Then 2*2=5", [True, False]), ("1. 5+3=8", [True]),
        ("5+8 = <<5+8=14>>13", [False, True]), ("(so 5+3=8)", [True]), ("**3*4** = **12**", [True]), ("3 x 4 = 13", [False]),
        # parts of something longer
        ("x + 3 = 5", []), ("2^3 = 8", []), ("2**3 = 8", []), ("6/2 = 3 sqrt(2)", []), ("12*3 = 12x", []), ("3+4 >= 8", []),
        ("(2,6,3) . (2,6,3) = 4+36+9", []), ("P(X=4) = 35*2", []), ("cost - 3 = 5*2", []), ("1 1/2 = 3/2", []), ("5 = 5", []),
        ("the sum of 3 and 4 = 3+5", []), ("Answer: 36", []),
    ],
)  # fmt: skip
def test_equations_between_numbers_are_checked_and_nothing_else(text, found):
    assert [true for _, true in equations(text)] == found


def test_a_step_without_an_equation_gets_no_label():
    row = solution("3*4=12\nso it grows\n12+1=14, and 2*2=4\nAnswer: 14")
    (score,) = tool_steps()([[row]])[0]
    assert labels(score, row) == [1, None, 0, None]
    assert tool_steps()([[solution("it grows")]])[0][0].missing


def test_steps_that_are_turns_keep_their_text_whatever_it_holds():
    turns = (Turn(None, np.zeros(2, np.int64)), *(Turn("policy", np.zeros(1, np.int64), text=x) for x in ("a\nb\n", "c")))
    row = Trajectory(ask("?", "4", steps=["2+2=4"]), turns, "end", steps=(2, 3))
    assert step_texts(row, "newline") == ["a\nb", "c"]
    assert not correct_steps()([[row]])[0][0].missing


class Measured(Judge):
    """A judge that notes how long its replies may be, and how they are sampled."""

    def extend(self, trajectories, sampling, rng):
        self.how = sampling
        return [t.plus(self.turn("judge", "no"), "end") for t in trajectories]


LONGEST = {
    "capo_genprm": lambda r: r.reward, "aurora_universal_prm": lambda r: r.also[-1].recipe.reward, "dg_prm": lambda r: r.rollout,
    "fin_prm": lambda r: r.also[-1].recipe.reward, "reasonflux_prm": lambda r: r.also[-1].recipe.reward,
    "process_reward_agents": lambda r: r.reward,
}  # fmt: skip


@pytest.mark.parametrize("name", LONGEST)
def test_how_long_a_judge_may_write_is_a_setting(name):
    part = LONGEST[name](registry.build(name, {"longest": 77}))
    assert '"max_new": 77' in json.dumps(part.to_json())


@pytest.mark.parametrize(("votes", "temperature"), [(1, 0.0), (5, 1.0)])
def test_several_verdicts_under_a_prompt_are_sampled(votes, temperature):
    judge = Measured()
    row = solution("1+1=2\nAnswer: 2")
    recipe = registry.build("aurora_universal_prm", {"votes": votes, "longest": 77, "reference": False})
    recipe.also[-1].recipe.reward([[row]], Run(None, models={"judge": judge}))
    # at temperature 0 five replies would be one
    assert (judge.how.temperature, judge.how.max_new) == (temperature, 77)
