"""What a method that selects an answer, and the setting by which it spends more, are called here and elsewhere."""

import pytest

from rewardlab import registry
from rewardlab.api import answer, search
from rewardlab.api.search_arms import arms
from rewardlab.api.selecting import check_selects, selecting
from rewardlab.commands import cli
from rewardlab.errors import RewardlabError


@pytest.mark.parametrize(
    ("name", "here"),
    [("self_consistency", "majority_vote"), ("Self-Consistency", "majority_vote"), ("sc", "majority_vote"),
     ("maj@8", "majority_vote"), ("maj@k", "majority_vote"), ("bon", "best_of_n"), ("bo16", "best_of_n"),
     ("Best-of-4", "best_of_n"), ("beam", "beam_search"), ("weighted_bon", "weighted_vote")],
)  # fmt: skip
def test_a_name_that_is_used_elsewhere_is_answered_by_the_one_here(name, here):
    with pytest.raises(RewardlabError, match=f"unknown method '{name}'; it is called {here} here"):
        check_selects(name)
    check_selects(here)


def test_python_and_the_command_lines_say_it(capsys):
    for call in (search, answer):
        with pytest.raises(RewardlabError, match="it is called majority_vote here"):
            call("self_consistency", task="arithmetic")
    for command in ("search", "answer"):
        assert cli.main([command, "bon", "--task", "arithmetic"]) == 2
        assert "it is called best_of_n here" in capsys.readouterr().err


def test_a_measure_is_no_method_and_only_methods_that_select_are_listed():
    with pytest.raises(RewardlabError, match=r"pass@8 selects no answer: .* rewardlab eval --k"):
        check_selects("pass@8")
    with pytest.raises(RewardlabError, match=r"unknown method that selects an answer 'qqq'; known: .*majority_vote") as refused:
        check_selects("qqq")
    listed = str(refused.value).partition("known: ")[2].split(", ")
    assert listed == sorted(selecting())
    # limr selects problems to train on
    assert not {"grpo", "dpo", "limr"} & set(listed)
    in_folder = [name for name, path in registry.methods().items() if path.parent.name == "search"]
    assert {name for name in in_folder if registry.build(name).select is not None} <= set(listed)
    with pytest.raises(RewardlabError, match="did you mean best_of_n"):
        check_selects("best_of_m")


@pytest.mark.parametrize(
    ("words", "says"),
    [("beam_search --n 4", "did you mean --width?"), ("mcts --n 4", "did you mean --iterations?"),
     ("mcts --num-samples 4", "did you mean --iterations?"), ("beam_search,dvts --n 4", "did you mean --trees or --width?"),
     ("best_of_n --width 4", "did you mean --n?"), ("majority_vote --num-beams 4", "did you mean --n?"),
     ("dvts --num-trees 4", "did you mean --trees?")],
)  # fmt: skip
def test_a_size_of_another_search_is_answered_by_its_own(words, says, capsys):
    assert cli.main(["search", *words.split(), "--task", "arithmetic"]) == 2
    assert says in capsys.readouterr().err


def test_training_still_reads_iterations_as_steps(capsys):
    assert cli.main(["train", "grpo", "--task", "arithmetic", "--iterations", "4"]) == 2
    assert "did you mean --steps?" in capsys.readouterr().err


def test_a_size_in_python_is_answered_too():
    with pytest.raises(RewardlabError, match=r"unknown setting of beam_search 'n'; did you mean width\?"):
        arms("beam_search", {"n": 4}, None, False)
    with pytest.raises(RewardlabError, match=r"unknown setting of best_of_n 'iterations'; did you mean n\?"):
        arms("best_of_n", {"iterations": 4}, None, False)
