"""Parts by slot and name: found, saved, loaded again, and loaded from what older versions saved."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from torch import nn

from rewardlab import registry
from rewardlab.core import Part, Recipe, credit, rollout
from rewardlab.core.part import Expression
from rewardlab.credit.group import center, whiten
from rewardlab.engine.rates import with_rate
from rewardlab.errors import RewardlabError
from rewardlab.registry import load_part, load_recipe, parts
from rewardlab.registry.formula import read_reward
from rewardlab.registry.index import parts_in
from rewardlab.registry.parts import RENAMED, current_name
from rewardlab.rewards.reward import Reward
from rewardlab.settings.old_names import FIRST, RENAMED_SETTINGS

OLD_PARTS = Path(__file__).with_name("old_parts.txt").read_text().split()
"""Every part of the version that saved module paths."""


def again(part: Part) -> Part:
    return load_part(json.loads(json.dumps(part.to_json())))


# ---- by slot and name ------------------------------------------------------------------------------------------------


def test_parts_are_found_by_slot_and_name():
    assert str(registry.part("credit", "center")) == "center()"
    assert str(registry.part("reward", "length_penalty", per_token=0.5)) == "length_penalty(per_token=0.5)"


def test_a_part_of_one_method_is_found_by_its_name_alone():
    """So what was saved when it was a shared part is still read."""
    alone = registry.part("reward", "length_where_solved", share=0.5)
    assert alone == registry.part("reward", "grpo_lambda/length_where_solved", share=0.5)
    assert again(alone) == alone
    assert load_part({"part": "reward:length_where_solved", "with": {"share": 0.5}}) == alone
    assert read_reward("length_where_solved:share=0.5") == alone


def test_a_name_that_several_methods_use_is_not_guessed(tmp_path, monkeypatch):
    for name in ("one", "other"):
        (tmp_path / "credit").mkdir(exist_ok=True)
        (tmp_path / "credit" / f"{name}.py").write_text("@credit\ndef alike(a, batch, run): return a\n")
    monkeypatch.setenv("REWARDLAB_METHODS", str(tmp_path))
    with pytest.raises(RewardlabError, match="several methods define a credit part alike: name the one that is meant, one/alike"):
        registry.part("credit", "alike")


@pytest.mark.parametrize(
    ("slot", "name", "message"),
    [
        ("credit", "scale_by_sdt", "unknown credit part 'scale_by_sdt'; did you mean scale_by_std"),
        ("rewards", "correct", "'rewards' is a folder; the slot of its parts is 'reward'"),
        ("evals", "accuracy", "'evals' is a folder; the slot of its parts is 'measure'"),
        ("crdit", "center", "unknown slot 'crdit'; did you mean credit"),
    ],
)
def test_an_unknown_slot_or_name_names_the_nearest(slot, name, message):
    with pytest.raises(RewardlabError, match=message):
        registry.part(slot, name)


def test_every_shared_part_is_what_its_file_says():
    for slot, name in parts.shared_parts():
        assert parts.shared_part(slot, name).__name__ == name


def test_two_parts_of_one_name_in_a_slot_are_refused(tmp_path, monkeypatch):
    for name in ("one", "other"):
        (tmp_path / "credit" / name).mkdir(parents=True)
        (tmp_path / "credit" / name / "file.py").write_text("@credit\ndef same(a, batch, run): return a\n")
    monkeypatch.setattr(parts, "PACKAGE", tmp_path)
    parts._read.cache_clear()
    try:
        with pytest.raises(RewardlabError, match="two credit parts are named same"):
            parts.shared_parts()
    finally:
        parts._read.cache_clear()


def test_names_of_parts_and_verifiers_are_read_without_torch():
    code = (
        "import sys; from rewardlab import registry; from rewardlab.registry.parts import shared_parts;"
        "print('math' in registry.verifiers(), ('credit', 'center') in shared_parts(), 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True", "False"]


# ---- saved and loaded ------------------------------------------------------------------------------------------------


def everywhere(recipe: Recipe) -> list[Part]:
    own = [part for top in recipe.parts().values() for part in top.walk()]
    return own + [part for learner in recipe.also for part in everywhere(learner.recipe)]


@pytest.mark.parametrize("name", sorted(registry.methods()))
def test_every_part_of_every_method_comes_back(name):
    recipe = registry.build(name)
    assert load_recipe(json.loads(json.dumps(recipe.to_json()))) == recipe
    for part in everywhere(recipe):
        loaded = again(part)
        assert loaded == part
        assert type(loaded) is type(part)
        # by slot and name alone: no path of a module is saved
        saved = part.to_json()
        assert "rewardlab" not in saved.get("part", saved.get("expression"))
        if not isinstance(part, Expression):
            assert loaded.function is part.function


def test_a_part_that_moved_to_another_file_is_still_loaded(tmp_path, monkeypatch):
    saved = center().to_json()
    moved = {**parts._read(), ("credit", "center"): (parts.PACKAGE / "credit" / "terms.py", None)}
    monkeypatch.setattr("rewardlab.credit.terms.center", whiten, raising=False)
    monkeypatch.setattr(parts, "_read", lambda: moved)
    assert load_part(saved) == whiten()


def test_a_part_that_moved_from_a_method_to_its_slots_folder_is_still_loaded():
    """As parts do when a second method needs them; the slot decides between shared parts of one name."""
    assert load_part({"part": "credit:dapo/center", "with": {}}) == center()
    assert load_part({"part": "credit:removed_method/center", "with": {}}) == center()
    assert load_part({"part": "part:dapo/center", "with": {}}) == center()
    assert load_part({"part": "measure:dapo/term_means", "with": {"reward": None}}).slot == "measure"
    with pytest.raises(RewardlabError, match="unknown part of dapo 'balanced'"):  # a reward and a rollout bear this name
        load_part({"part": "part:dapo/balanced", "with": {}})


@pytest.mark.parametrize(
    ("saved", "message"),
    [
        ({"part": "credit:centre", "with": {}}, "unknown credit part 'centre'; did you mean center"),
        ({"part": "reward:dapo/overlnog", "with": {}}, "unknown part of dapo 'overlnog'; did you mean overlong"),
        ({"part": "reward:dappo/overlnog", "with": {}}, "unknown method 'dappo'; did you mean dapo"),
        ({"part": "credit:no.such.module:mine", "with": {}}, "cannot find the part no.such.module:mine"),
        ({"part": "credit:json:mine", "with": {}}, "cannot find the part json:mine"),
        ({"expression": "reward:Summ", "of": []}, "unknown expression 'reward:Summ'; did you mean reward:Sum"),
        ({"part": "credit:to_go", "with": {"gama": 1.0}}, "unknown hyperparameter of to_go 'gama'; did you mean gamma"),
    ],
)
def test_what_cannot_be_loaded_says_so(saved, message):
    with pytest.raises(RewardlabError, match=message):
        load_part(saved)


MINE = """
from rewardlab.core import credit

@credit
def mine(a, batch, run, *, by=2.0):
    return a * by
"""


def test_a_part_in_a_module_of_ones_own_comes_back(tmp_path, monkeypatch):
    (tmp_path / "my_parts.py").write_text(MINE)
    monkeypatch.syspath_prepend(tmp_path)
    import my_parts

    part = my_parts.mine(by=3.0)
    assert part.to_json() == {"part": "credit:my_parts:mine", "with": {"by": 3.0}}
    assert again(part) == part
    # as the first version saved it
    assert load_part({"part": "my_parts:mine", "with": {"by": 3.0}}) == part


@pytest.mark.slow
def test_a_part_in_a_script_comes_back_while_that_script_runs(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        f"{MINE}\nfrom rewardlab.registry import load_part\n"
        "saved = mine(by=3.0).to_json()\nprint(saved['part'], load_part(saved) == mine(by=3.0))\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["credit:__main__:mine", "True"]
    with pytest.raises(RewardlabError, match="cannot find the part __main__:mine"):
        load_part({"part": "credit:__main__:mine", "with": {"by": 3.0}})


def test_a_method_outside_the_package_saves_its_parts_by_its_name(tmp_path, monkeypatch):
    (tmp_path / "round_trip").mkdir()
    text = f'"""Epsilon: x."""\n{MINE}\ndef epsilon(base=None): return base.but(credit=mine())\n'
    (tmp_path / "round_trip" / "epsilon.py").write_text(text)
    monkeypatch.setenv("REWARDLAB_METHODS", str(tmp_path))
    part = registry.module_of("epsilon").mine(by=3.0)
    assert part.to_json()["part"] == "credit:epsilon/mine"
    assert again(part) == part


def test_parts_that_look_alike_in_two_slots_keep_their_slots():
    assert load_part({"part": "reward:earned", "with": {}}).slot == "reward"
    assert load_part({"part": "measure:term_means", "with": {"reward": center().to_json()}}).slot == "measure"


# ---- older versions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("saved", OLD_PARTS)
def test_every_part_of_the_first_version_is_still_found(saved):
    make = parts._maker(saved)
    name = current_name(saved).rpartition(":")[2].rpartition("/")[2]
    assert make.__name__ == name
    slot = current_name(saved).partition(":")[0]
    assert slot in ("part", make.make.slot)


@pytest.mark.parametrize("module", ["score:Sum", "score:Product", "score:Gate", "score:Scaled", "score:Named", "score:Constant"])
def test_every_expression_of_the_first_version_is_still_found(module):
    assert issubclass(parts._expression(current_name(f"rewardlab.core.{module}")), Reward)


@pytest.mark.parametrize("name", ["ObjectiveSum", "ObjectiveScaled", "Chain"])
def test_every_algebra_of_the_first_version_is_still_found(name):
    assert parts._expression(current_name(f"rewardlab.core.objective:{name}")).__name__ == name


def test_a_renamed_part_is_loaded_by_its_old_name(monkeypatch):
    monkeypatch.setitem(RENAMED, "credit:subtract_mean", "credit:center")
    assert load_part({"part": "credit:subtract_mean", "with": {}}) == center()
    assert load_part({"part": "rewardlab.credit.group:subtract_mean", "with": {}}) == center()


def test_no_present_name_is_listed_as_an_old_one():
    present = {f"{slot}:{name}" for slot, name in parts.shared_parts()}
    assert not present & RENAMED.keys()


# of each kind: a wrapper inside a wrapper, a loop with a wrapped loop, rewards in a dict, and a bound with a name of its own
RENAMED_EXAMPLES = {
    "v0_5": ("inner", "max_n"),
    "wrpo": ("inner",),
    "xwin_lm": ("inner", "sft_lr_scale"),
    "mah_dpo": ("head_lr_scale",),
    "chatshopbuddy": ("inner", "max_calls"),
    "cards": ("max_tokens", "min_tokens"),
    "fin_prm": ("inner",),
}


def under_old_names(data):
    """A saved recipe, with the settings of its parts under the names that they had first."""
    if isinstance(data, list):
        return [under_old_names(x) for x in data]
    if not isinstance(data, dict):
        return data
    settings = {"with": {FIRST.get(k, k): v for k, v in data["with"].items()}} if "part" in data else {}
    return {k: under_old_names(v) for k, v in (data | settings).items()}


@pytest.mark.parametrize("name", sorted(RENAMED_EXAMPLES))
def test_a_recipe_that_was_saved_before_its_settings_were_renamed_is_read(name):
    changed = {k: 5 for k in RENAMED_EXAMPLES[name] if k not in ("inner", "min_tokens")}
    recipe = registry.build(name, changed)
    old = under_old_names(recipe.to_json())
    said, said_then = json.dumps(recipe.to_json()), json.dumps(old)
    for now in RENAMED_EXAMPLES[name]:
        assert (f'"{now}": ' in said, f'"{now}": ' in said_then, f'"{FIRST[now]}": ' in said_then) == (True, False, True)
    assert load_recipe(old) == recipe


@pytest.mark.slow
def test_an_old_name_of_a_setting_stands_for_one_setting_of_each_part():
    definitions = [made for _, made in parts.shared_definitions()]
    definitions += [made for path in registry.methods().values() for made in parts_in(path)]
    assert len(definitions) > 600
    for made in definitions:
        settings = {name for name, *_ in made.settings}
        for old, names in RENAMED_SETTINGS.items():
            assert len(settings & set(names)) <= (old not in settings), (made.name, old)


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (lambda: registry.part("rollout", "solved_between", of=1), "hyperparameter of solved_between 'of'; it is called inner now"),
        (lambda: registry.build("v0_5", {"most": 8}), "setting of v0_5 'most'; it is called max_n now"),
        (lambda: registry.build("grpo+v0_5", {"v0_5.most": 8}), "setting of v0_5 'most'; it is called max_n now"),
        (lambda: rollout(inner="of")(lambda problems, run, *, of: []), "option of @rollout 'inner'; it is called wraps now"),
    ],
)
def test_who_writes_an_old_name_is_told_the_present_one(write, says):
    with pytest.raises(RewardlabError, match=re.escape(says)):
        write()


def test_a_task_is_found_under_the_old_names_of_its_options():
    assert registry.task("masked:most=1").about == registry.task("masked:max_masks=1").about


CONFIGS = json.loads(Path(__file__).with_name("old_recipes.json").read_text())
"""Recipes as the first version saved them in config.json, by method."""
DEFAULTS = {
    # a small language stood in for Python
    "absolute_zero": {"past": 2, "language": "list"},
    "ppo": {"beta": 0.0, "epochs": 1, "minibatches": 2},
    "prime": {"attempts": 1},
}
"""Settings by which the method of today is that of the first version, where its defaults have changed."""


def at_rates(recipe: Recipe) -> Recipe:
    """The recipe with the rates of a small model, which the first version wrote down, and without the kinds of its losses."""
    small = replace(with_rate(recipe.update, nn.Linear(1, 1)), loss_kind="reward", small_lr=None)
    return recipe.but(update=small, also=tuple(replace(x, recipe=at_rates(x.recipe)) for x in recipe.also))


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_a_run_folder_of_the_first_version_is_read(name):
    recipe = load_recipe(CONFIGS[name])
    assert at_rates(recipe) == at_rates(registry.build(name, DEFAULTS.get(name, {})))
    assert load_recipe(json.loads(json.dumps(recipe.to_json()))) == recipe


@credit
def outside(a, batch, run):
    return a


def test_what_is_no_part_is_refused():
    for where in ("json:loads", f"{__name__}:again", "os.path:join"):
        with pytest.raises(RewardlabError, match="is not a part"):
            load_part({"part": f"credit:{where}", "with": {}})
