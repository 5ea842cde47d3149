"""Mistakes that Python would let pass, or report as a riddle: refused at once, in words."""

from __future__ import annotations

import pytest

from rewardlab import RewardlabError, build, part, reward
from rewardlab.core import Run, Trajectory, ask, credit
from rewardlab.rewards.operator import operator
from rewardlab.rewards.task import correct


@reward
def polite(trajectory, *, worth=1.0):
    return worth


@operator
def double(x, *, by: float = 2.0):
    return by * x


def plain(trajectory):
    return 1.0


class Plain:
    def __call__(self, completion):
        return 1.0


def method(**changes):
    return build("grpo").but(**changes)


MISTAKES = {
    "a part that was not called": (lambda: method(reward=polite), r"not called: write polite\(\.\.\.\)"),
    "a number": (lambda: method(reward=3), "3 cannot be the reward"),
    "a class": (lambda: method(reward=Plain), "the reward Plain is a class: give an object of it"),
    "a function for another slot": (lambda: method(credit=plain), "cannot be the credit: it is not a part but function"),
    "a text": (lambda: method(reward="correct"), r'rewardlab.part\("reward", name\)'),
    "another slot": (lambda: method(credit=correct()), "it is a part of the slot reward"),
    "another name of the slot": (lambda: method(rewards=correct()), "unknown slot 'rewards'; did you mean reward"),
    "a part's name": (lambda: part("reward", "corect"), "did you mean correct"),
    "a slot's name": (lambda: part("rewards", "correct"), "the slot of its parts is 'reward'"),
    "no slot": (lambda: part("correct"), "takes a slot and a name"),
    "a part for its name": (lambda: part("reward", correct), "takes a slot and a name"),
    "a reward within a reward": (lambda: part("reward", "correct", correct()), "takes no other reward"),
    "a misspelt option value": (lambda: operator(over="groop")(lambda xs: xs), "'groop'; did you mean group or groups"),
    "a misspelt option": (lambda: reward(ovr="group")(plain), "unknown option of @reward 'ovr'; did you mean over"),
    "an option without its name": (lambda: reward("group"), "@reward takes options by name"),
    "a setting that would get the run": (lambda: reward(lambda trajectory, worth=1.0: worth), r"settings come after the \*"),
    "no argument": (lambda: reward(lambda: 1.0), r"write def <lambda>\(trajectory, \*"),
    "a setting by position": (lambda: polite(2.0), "polite takes settings by name"),
    "a misspelt setting": (lambda: polite(wort=2.0), "'wort'; did you mean worth"),
    "a reward for a number": (lambda: polite(worth=correct()), r"worth of polite must be a number, not the reward correct\(\)"),
    "a reward for an annotated number": (lambda: double(polite(), by=polite()), "by of double must be a number"),
    "a part not called as a setting": (lambda: polite(worth=polite), r"polite was not called"),
    "a setting that was changed": (lambda: polite().but(worth=correct()), "worth of polite must be a number"),
    "adding a part not called": (lambda: correct() + polite, "forgot to call it"),
    "adding to a part not called": (lambda: polite + correct(), "polite was not called"),
    "subtracting it": (lambda: correct() - polite, "polite was not called|forgot to call it"),
    "scaling it": (lambda: 2 * polite, "polite was not called"),
    "gating by it": (lambda: polite >> correct(), "polite was not called"),
    "the negative of it": (lambda: -polite, "polite was not called"),
    "adding a class": (lambda: correct() + Plain, "the reward Plain is a class"),
    "subtracting an object": (lambda: correct() - object(), "neither a reward nor a finite number"),
    "multiplying by a text": (lambda: correct() * "2", "neither a reward nor a finite number"),
    "scaling by NaN": (lambda: float("nan") * correct(), "neither a reward nor a finite number"),
    "scaling by a condition": (lambda: True * correct(), "neither a reward nor a finite number"),
    "dividing by a reward": (lambda: correct() / polite(), r"cannot divide correct\(\) by a reward"),
    "dividing by 0": (lambda: correct() / 0, "cannot divide .* by 0"),
    "dividing a number": (lambda: 1 / correct(), "cannot divide by the reward"),
    "comparing": (lambda: correct() > 0.5, r"write threshold\(x, at=\.\.\.\)"),
    "the greater of two": (lambda: max(correct(), polite()), r"maximum\(x, y\)"),
    "a name that is none": (lambda: correct().named(3), "must be a text, not 3"),
}


@pytest.mark.parametrize(("make", "says"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_refused_at_once_in_words(make, says):
    with pytest.raises(RewardlabError, match=f"(?i){says}"):
        make()


def test_a_reward_may_be_divided_by_a_number():
    assert correct() / 4 == 0.25 * correct()


def test_other_slots_parts_take_more_arguments_than_rewards():
    assert credit(lambda a, batch, run, *, by=1.0: a)(by=2.0).settings == {"by": 2.0}


GROUPS = [[Trajectory(ask("?")), Trajectory(ask("?"))]]


@pytest.mark.parametrize(
    ("over", "returned", "says"),
    [
        ("trajectory", "good", "returned 'good', not a number, None or a Score"),
        ("trajectory", [1.0, 2.0], "not a number"),
        ("group", [1.0, 2.0, 3.0], "returned 3 rewards for the 2 rollouts of group 0"),
        ("group", "ab", "must return a list with a reward for each of the 2 rollouts of group 0; it returned 'ab'"),
        ("groups", [[1.0, 2.0], [3.0]], "a list for each of 1 groups"),
        ("groups", [1.0], "must return a list with a reward for each"),
    ],
)
def test_what_a_reward_returns_is_checked(over, returned, says):
    @reward(over=over)
    def mine(given):
        return returned

    with pytest.raises(RewardlabError, match=says):
        mine()(GROUPS, Run(None))


def test_sys_exit_in_a_reward_of_python_is_an_error_of_the_reward():
    @reward
    def leaves(trajectory):
        raise SystemExit(0)

    with pytest.raises(RewardlabError, match=r"the reward leaves of .*test_misuse.py, line \d+: it called sys.exit\(0\)"):
        leaves()(GROUPS, Run(None))
