"""Methods with environments that cannot work together: refused in the dry run, in words, before a model is loaded."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

import rewardlab
from rewardlab import RewardlabError, registry
from rewardlab.api import planning
from tests.helpers.tiers import one_in

ROOT = Path(__file__).parents[2]
SMALL = {"model": "untrained", "steps": 1, "max_new": 6, "device": "cpu", "eval_problems": 2}
sys.path.insert(0, str(ROOT / "benchmarks"))
import _environments as page  # noqa: E402

KEPT = json.loads(page.KEPT.read_text())["methods"]
KINDS = [*page.BY_SETTING, *page.BY_TASK]


@pytest.mark.parametrize(
    ("method", "says"),
    [
        ("igpo", "the problem has no gold answer"), ("stepsearch", "neither gold documents in 'gold_documents'"),
        ("masksearch", "says no number of masks in 'masks'"), ("armap", "armap explores an environment"),
        ("ufo_try_again", r"terminals is judged by what its own environment, untold_terminal\(\), pays .* plays try_again\(\)"),
        ("retool", r"plays interpreter\(\), which pays nothing"),
    ],
)  # fmt: skip
def test_a_method_that_a_task_of_its_own_environment_gives_nothing_is_refused(method, says):
    with pytest.raises(RewardlabError, match=says):
        rewardlab.plan(method, task="terminals", **SMALL)


def test_training_refuses_as_the_dry_run_does_and_writes_nothing(tmp_path):
    with pytest.raises(RewardlabError, match="the problem has no gold answer"):
        rewardlab.train("igpo", task="terminals", out=tmp_path / "run", **SMALL)
    assert not (tmp_path / "run").exists()


def test_an_environment_of_the_users_own_may_pay_and_is_not_refused(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from rewardlab.core import Message, environment\n"
        "def begin(problem, seed):\n"
        "    return None, {}\n"
        "@environment(start=begin)\n"
        "def mine(state, turn):\n"
        "    return Message('user', 'go on', reward=1.0), state\n"
    )
    assert rewardlab.plan("ufo_try_again", settings={"env": f"{mine}:mine"}, task="terminals", **SMALL)["formula"]


@pytest.mark.parametrize(
    ("prompts", "told"), [(["Play."] * 3 + ["Play now."] * 2, True), ([f"Game {i}." for i in range(5)], False)]
)
def test_rows_that_differ_in_what_is_played_alone_are_told(prompts, told, tmp_path, capsys):
    (mine := tmp_path / "mine.py").write_text(
        "from rewardlab.core import Message, environment\n"
        "@environment(start=lambda problem, seed: (None, problem.meta['secret'] // 2))\n"
        "def mine(state, turn):\n"
        "    return Message('user', 'go on', reward=1.0), state\n"
    )
    rows = tmp_path / "rows.jsonl"
    # the last two are the same in all
    secrets = (1, 2, 3, 4, 4)
    rows.write_text("".join(json.dumps({"prompt": p, "secret": i}) + "\n" for p, i in zip(prompts, secrets, strict=True)))
    rewardlab.plan("grpo", reward="paid()", settings={"env": f"{mine}:mine"}, task=str(rows), **SMALL)
    said = " ".join(capsys.readouterr().err.split())
    assert ("warning: 3 rows of rows have the prompt of another row and differ in their columns alone" in said) is told


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    (folder / "mine.py").write_text(page.TOOL)
    (folder / "docs.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in page.documents()))
    return folder


def refusal(method, kind, place, tasks):
    """What planning says of the method in the environment; "" where it plans."""
    rows = place / f"{method}.jsonl"
    rows.write_text(registry.data_of(method).jsonl())
    settings = page.settings_of(method, kind, place)
    name = str(rows) if kind in page.BY_SETTING else page.BY_TASK[kind][0]
    if name not in tasks:
        tasks[name] = registry.task(name)
    try:
        rewardlab.plan(
            registry.build(method, settings), "untrained", tasks[name], **{k: v for k, v in SMALL.items() if k != "model"}
        )
    except RewardlabError as problem:
        # the small policy reads 512 tokens
        return "" if "context of 512" in str(problem) else str(problem)
    return ""


@pytest.mark.parametrize("kind", one_in(2, KINDS))
def test_the_table_of_methods_by_environment_is_what_planning_says(kind, place, monkeypatch):
    package = page.BY_TASK[kind][1] if kind in page.BY_TASK else ""
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    if kind == "verifiers":
        page.export(place)
    # memory is another question, and takes most of the time
    monkeypatch.setattr(planning, "_memory", lambda *_: {})
    tasks = {}
    found = {method: refusal(method, kind, place, tasks) for method in page.methods()}
    assert sorted(KEPT) == sorted(found)
    # that nobody can judge these episodes is known once they are played
    unplanned = {method for method, why in KEPT.items() if "got no verdict" in why.get(kind, "")}
    differ = {
        method: (why, KEPT[method].get(kind))
        for method, why in found.items()
        if bool(why) != bool(KEPT[method].get(kind)) and method not in unplanned
    }
    assert differ == {}
