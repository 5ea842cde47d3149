"""Plain functions that are given in Python in place of a reward."""

from __future__ import annotations

import functools
import pickle
import subprocess
import sys
import types

import pytest

from rewardlab import RewardlabError, as_reward, build
from rewardlab.core import Run, Trajectory, Turn, ask
from rewardlab.registry import load_part
from rewardlab.registry.formula import read_reward, reward_from
from rewardlab.rewards.task import correct
from rewardlab.rewards.user import held


def group(*replies, answer="7"):
    return [[Trajectory(ask("What is 3 + 4?", answer), (Turn("policy", [1], text=reply),)) for reply in replies]]


def paid(reward, *replies):
    return [score.total for score in reward(group(*replies), Run(None))[0]]


def ends_well(completion, answer):
    """At the top of a module: found there by its name."""
    return float(completion.endswith(answer))


class Counts:
    def __init__(self, what):
        self.what = what

    def __call__(self, completion):
        return completion.count(self.what)

    def method(self, completion):
        return -completion.count(self.what)


async def later(completion):
    return len(completion)


def nested(by):
    def scaled(completion):
        return by * len(completion)

    return scaled


FORMS = {
    "a lambda": (lambda completion: len(completion), [1, 3]),
    "a nested function": (nested(2), [2, 6]),
    "an object": (Counts("1"), [0, 2]),
    "a method of an object": (Counts("1").method, [0, -2]),
    "a partial object": (functools.partial(lambda completion, *, by: by * len(completion), by=3), [3, 9]),
    "as in TRL": (lambda prompts, completions, answer, **columns: [len(c) for c in completions], [1, 3]),
    "as in verl": (lambda data_source, solution_str, ground_truth, extra_info: {"score": len(solution_str)}, [1, 3]),
    "async": (later, [1, 3]),
    "at the top of a module": (ends_well, [1, 0]),
}


@pytest.mark.parametrize(("function", "expected"), FORMS.values(), ids=FORMS)
def test_every_form_of_a_function_pays_what_it_returns_and_is_found_again_by_its_saved_part(function, expected):
    reward = build("grpo").but(reward=function).reward
    assert paid(reward, "7", "118") == expected
    # saved and read again, as text, and as a pickle, in one process
    for again in (load_part(reward.to_json()), read_reward(str(reward)), pickle.loads(pickle.dumps(reward))):
        assert again == reward
        assert paid(again, "7", "118") == expected


def test_functions_of_one_place_and_code_stay_apart():
    first, second = (as_reward(lambda completion, by=by: by) for by in (1, 2))
    assert (paid(first, "x"), paid(second, "x")) == ([1], [2])
    same = [as_reward(function) for function in [nested(1)] * 2]
    assert same[0] == same[1]


def test_a_function_is_one_of_a_sum_and_of_any_formula():
    both = correct() + as_reward(lambda completion: 2.0).named("two") - ends_well
    assert [type(part).__name__ for part in both.of] == ["Reward", "Named", "Scaled"]
    summed = reward_from([lambda completion: 1.0, "0.5 * length_penalty(per_token=1.0)", ends_well])
    assert paid(summed, "7") == [1.0 - 0.5 + 1.0]


def test_scored_by_takes_a_function_and_a_search_searches_by_it():
    recipe = build("beam_search").scored_by(ends_well)
    assert recipe.rollout.innermost.settings["score"] == recipe.reward == as_reward(ends_well)


def test_a_function_of_a_module_is_the_very_object_and_saved_by_name_and_file():
    reward = as_reward(ends_well)
    assert reward.name == "from_module"
    assert reward.settings["path"] == __file__
    assert not held.is_held((ends_well.__name__, held.place_of(ends_well), held.code_of(ends_well)))


def test_a_module_that_is_not_found_by_its_name_is_read_from_its_file(tmp_path, monkeypatch):
    (tmp_path / "my_rewards.py").write_text("calls = []\ndef score(completion):\n    calls.append(completion)\n    return 1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    import my_rewards

    reward = as_reward(my_rewards.score)
    assert paid(reward, "a", "b") == [1, 1]
    assert my_rewards.calls == ["a", "b"]
    del sys.modules["my_rewards"]
    monkeypatch.undo()
    assert paid(load_part(reward.to_json()), "a") == [1]


def test_a_changed_module_is_not_taken_for_the_function_that_is_given():
    module = types.ModuleType("made_up")
    sys.modules["made_up"] = module
    try:
        exec("def score(completion): return 3.0", module.__dict__)
        assert as_reward(module.score).name == "from_python"
    finally:
        del sys.modules["made_up"]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (Counts, "the reward Counts is a class: give an object of it"),
        (3, "3 is not a reward: it is the same number"),
        ([], "list of rewards is empty"),
        (len, "asks for unknown argument 'obj'"),
        (object(), "neither a reward nor"),
        ("no_such", "no_such"),
    ],
)
def test_what_is_no_reward_is_refused_in_words(given, says):
    with pytest.raises(RewardlabError, match=says):
        paid(reward_from(given), "7")


def test_another_process_says_that_it_does_not_have_the_function(tmp_path):
    saved = tmp_path / "part"
    saved.write_bytes(pickle.dumps(as_reward(nested(1))))
    code = f"import pickle, rewardlab.rewards.user.external as of\nof.call_of(pickle.load(open({str(saved)!r}, 'rb')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "the reward scaled was given as a function in Python" in done.stderr
    assert "this process does not have it" in done.stderr


def test_the_code_of_a_function_is_known_by_what_it_does():
    one, other = (eval(text) for text in ("lambda completion: len(completion)", "lambda completion:   len(completion)"))
    assert held.code_of(one) == held.code_of(other)
    assert held.code_of(one) != held.code_of(eval("lambda completion: len(completion) + 1"))
    assert held.code_of(nested(1)) != held.code_of(nested(2))
    assert held.code_of(Counts("a")) != held.code_of(Counts("b"))
    assert held.code_of(eval("lambda c: c in {'a', 'b', 'c'}")) == held.code_of(eval("lambda c: c in {'c', 'b', 'a'}"))
