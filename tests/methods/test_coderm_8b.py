"""CodeRM-8B: who is chosen, and what its probe learns."""

import pytest
import torch
import torch.nn.functional as F

from rewardlab import build, registry
from rewardlab.core import Outputs, Run, Trajectory, ask
from rewardlab.methods.search.coderm_8b import check
from rewardlab.models.embedded import untrained
from tests.helpers.rows import batch_of, outcome

SUM = ask("Sum?", {"io": [["[1, 2]", "3"]]}, generated=[["[1, 2]", "3"], ["[2, 2]", "4"], ["[3]", "4"]])


TIED = ask("Sum?", {"io": [["[1, 2]", "3"]]}, generated=[["[1, 2]", "3"], ["[3]", "4"]])
"""The second test is wrong, so that a right and a wrong program may pass one each."""


def chosen(replies, problem=SUM, **settings):
    policy = untrained(0)
    run = Run(policy, verify=registry.part("reward", "list_program"))
    recipe = build("coderm_8b", {"probe": "", **settings})
    (prompt,) = policy.read([Trajectory(problem)], [problem.prompt])
    group = policy.write([prompt] * len(replies), replies)
    return recipe.select(group, recipe.reward([group], run)[0], run).reply


def test_the_choice_is_the_one_that_passes_most_and_of_equals_the_one_in_larger_company():
    assert chosen(["max", "sum; + 1", "sum"]) == "sum"
    # one test each; two programs pass the first, and one the second
    assert chosen(["sum; + 1", "sum", "* 1; sum"], TIED) == "sum"
    # company among programs that pass fewer tests is worth less than a test
    assert chosen(["max", "max", "max", "sum"], each=1) == "sum"
    # of 2 programs that pass nothing, the first
    assert chosen(["max", "len"], each=1) == "max"


def test_the_probe_learns_the_pass_rate_at_the_end_of_the_prompt():
    probe, _ = build("coderm_8b").also
    rows = [("rrd", {"correct": outcome(1.0)}), ("rrd", {"correct": outcome(0.0)}), ("rrd", {"correct": outcome(None)})]
    value = torch.tensor([[9.0, 2.0, 9.0]] * 3)
    loss = probe.recipe.objective(Outputs(torch.zeros(3, 3), value=value), batch_of([rows]), Run(None))
    right, wrong = (float(-F.logsigmoid(torch.tensor(x))) for x in (2.0, -2.0))
    assert loss.tolist() == pytest.approx([right, wrong, 0.0])


def test_tests_are_written_by_a_second_model_and_shared_out_by_a_probe():
    recipe = build("coderm_8b")
    assert [(x.name, x.init) for x in recipe.also] == [("probe", "value-head"), ("writer", "copy:policy")]
    assert (recipe.reward.settings["writer"], recipe.reward.settings["probe"]) == ("writer", "probe")
    served = build("coderm_8b", {"writer": "openai:http://127.0.0.1:8000/v1#m", "probe": ""})
    assert [x.init for x in served.also] == ["openai:http://127.0.0.1:8000/v1#m"]


def test_without_a_probe_nothing_learns_and_a_finished_one_is_only_read():
    assert not build("coderm_8b", {"probe": ""}).learns
    assert build("coderm_8b").learns
    finished, _ = build("coderm_8b", {"probe": "some/folder", "train_probe": False}).also
    assert finished.every == 0


def test_the_check_says_that_it_holds_by_construction():
    assert check.sanity
    assert check.settings["writer"] == check.versus_settings["probe"] == ""
