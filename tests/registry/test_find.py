"""Names to methods and tasks; where settings go."""

import json

import pytest
from method_files import ALPHA, BETA, write

from rewardlab import registry
from rewardlab.errors import RewardlabError
from rewardlab.registry import details


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Methods outside the package, each module imported under a name of its own."""
    root = tmp_path_factory.mktemp("methods")
    write(root, "toy_methods", "alpha", ALPHA)
    write(root, "toy_methods", "beta_2", BETA)
    return root


@pytest.fixture(autouse=True)
def outside(folder, monkeypatch):
    monkeypatch.setenv("REWARDLAB_METHODS", str(folder))


def test_a_method_is_found_by_its_file_however_it_is_spelled(folder):
    assert registry.methods()["beta_2"] == folder / "toy_methods" / "beta_2.py"
    assert registry.method("beta-2") is registry.method("beta.2") is registry.method("beta_2")
    assert registry.spell("100-days-after-r1") == "_100_days_after_r1"


def test_an_unknown_method_names_the_nearest():
    with pytest.raises(RewardlabError, match="unknown method 'alhpa'; did you mean alpha"):
        registry.build("alhpa")


def test_two_files_of_one_name_are_refused(folder):
    path = write(folder, "elsewhere", "alpha", ALPHA)
    try:
        with pytest.raises(RewardlabError, match="two methods are named alpha"):
            registry.build("alpha")
        # the others are not affected
        assert registry.build("beta_2")
    finally:
        path.unlink()


def test_a_file_that_cannot_be_imported_by_its_name_is_told(folder):
    path = write(folder, "toy_methods", "my-method", ALPHA)
    try:
        assert "my-method" not in registry.methods()
        with pytest.raises(RewardlabError, match=r"my-method\.py is no module that can be imported; rename it my_method\.py"):
            registry.build("my-method")
    finally:
        path.unlink()


def test_a_method_that_returns_nothing_is_named_with_its_file(folder):
    path = write(folder, "toy_methods", "silent", '"""Silent: forgets to return."""\n\ndef silent(base=None):\n    pass\n')
    try:
        with pytest.raises(RewardlabError, match=r"the function silent of .*silent\.py returned None; a method returns a recipe"):
            registry.build("silent")
    finally:
        path.unlink()


@pytest.mark.parametrize(("inner", "says"), [("nowhere", "which is no folder"), ("toy_methods", "which holds no FOLDER/NAME.py")])
def test_a_wrong_folder_of_methods_is_told(folder, monkeypatch, inner, says):
    monkeypatch.setenv("REWARDLAB_METHODS", str(folder / inner))
    with pytest.raises(RewardlabError, match=f"REWARDLAB_METHODS names {folder / inner}, {says}"):
        registry.build("alpha")


def test_a_folder_may_have_the_name_of_one_of_the_package(folder):
    path = write(folder, "shaping", "delta", ALPHA.replace("alpha", "delta"))
    try:
        assert registry.build("delta").name == "delta"
    finally:
        path.unlink()


def test_a_file_without_its_function_is_refused(folder):
    path = write(folder, "toy_methods", "gamma", '"""Gamma: nothing."""\n')
    try:
        with pytest.raises(RewardlabError, match="has no function gamma"):
            registry.build("gamma")
    finally:
        path.unlink()


def test_settings_go_to_the_method_that_takes_them_and_to_the_update():
    recipe = registry.build("alpha+beta-2", {"alpha.by": 3, "weight": 0.25, "problems": 7})
    assert str(recipe.credit) == "scaled(by=3) >> center()"
    assert recipe.name == "alpha+beta_2"
    assert (recipe.update.lr, recipe.update.problems) == (0.25, 7)
    assert isinstance(recipe.credit.of[0].settings["by"], float)


def test_a_field_of_the_update_overrides_what_the_method_set():
    assert registry.build("beta_2", {"weight": 0.25, "lr": 1e-3}).update.lr == 1e-3


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("alpha+beta_2", {"by": 1.0}, "both take by; write alpha.by or beta_2.by"),
        ("alpha", {"group_sise": 1}, "unknown setting of alpha 'group_sise'; did you mean group_size"),
        ("alpha", {"problms": 1}, "did you mean problems"),
        ("alpha", {"alpha.bye": 1}, "unknown setting of alpha 'bye'; did you mean by"),
        ("alpha", {"beta_2.by": 1}, "unknown method of this stack 'beta_2'"),
        ("alpha", {"group_size": "many"}, "group_size of alpha must be a whole number, not 'many'"),
        ("alpha", {"group_size": 2.5}, "must be a whole number"),
        ("alpha", {"by": True}, "by of alpha must be a number, not True"),
        ("alpha", {"by": None}, "by of alpha must be a number, not None"),
        ("alpha", {"lr": "fast"}, "lr must be a number from 0 to 1, not 'fast'"),
        ("alpha+alpha", {}, "alpha is named twice"),
    ],
)
def test_a_setting_that_does_not_fit_is_refused_in_one_line(name, settings, message):
    with pytest.raises(RewardlabError) as e:
        registry.build(name, settings)
    assert message in str(e.value)
    assert "\n" not in str(e.value)


def test_parameters_name_flags_types_and_owners():
    found = {p.flag: p for p in registry.parameters("alpha+beta_2")}
    assert found["--group-size"][1:] == ("int", 4, "alpha", "a whole number")
    assert found["--eps"].type == "float"
    assert {"--alpha.by", "--beta-2.by"} <= found.keys()
    assert "--by" not in found
    assert found["--lr"][1:] == ("float", 0.5, "update", "a number from 0 to 1, or none")


def test_text_settings_that_look_like_numbers_stay_text():
    registry.build("alpha", {"style": 3})
    with pytest.raises(RewardlabError):
        registry.build("alpha", {"eps": "3"})


def test_a_task_takes_options_in_its_name():
    short = registry.task("arithmetic:difficulty=1,test_size=20")
    assert len(short.test) == 20
    assert len(short.test[0].meta["steps"]) == 1
    assert {len(p.meta["steps"]) for p in registry.task("arithmetic:difficulty=[1,2],test_size=40").test} == {1, 2}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("arithmetik", "unknown task 'arithmetik'; did you mean arithmetic"),
        ("arithmetic:dificulty=2", "did you mean difficulty"),
        ("arithmetic:difficulty", "write difficulty=VALUE"),
        ("arithmetic:error=often", "error of arithmetic must be a number"),
        ("arithmetic:difficulty=hard", "not hard"),
    ],
)
def test_a_task_that_does_not_exist_or_fit_says_so(name, message):
    with pytest.raises(RewardlabError) as e:
        registry.task(name)
    assert message in str(e.value)


def test_a_path_is_a_task_of_your_own_problems(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps({"q": f"{i}+1?", "a": str(i + 1)}) + "\n" for i in range(30)))
    task = registry.task(str(path), prompt_column="q", answer_column="a", system="Be brief.")
    prompt = task.test[0].prompt
    assert [m.role for m in prompt] == ["system", "user"]
    assert int(prompt[1].text[:-3]) + 1 == int(task.test[0].answer)
    with pytest.raises(RewardlabError, match="prompt_column is for problems of your own"):
        registry.task("arithmetic", prompt_column="q")


def test_a_claim_against_a_method_that_does_not_exist_names_its_file(folder):
    text = '"""Odd: claims."""\nfrom rewardlab.methods.baselines.grpo import grpo\nfrom rewardlab.checks.claim import Claim\n\n'
    text += "def odd(base=None):\n    return base or grpo()\n\n"
    text += 'claim = Claim(says="x", versus="nosuch", task="arithmetic", measure="pass@1", direction="higher", margin=0.1)\n'
    path = write(folder, "toy_methods", "odd", text)
    try:
        with pytest.raises(RewardlabError, match=r"odd\.py, the claim's versus or the baseline: unknown method 'nosuch'"):
            details.details("odd")
    finally:
        path.unlink()


def test_a_text_for_a_setting_that_is_a_reward_names_one(tmp_path):
    (tmp_path / "mine.py").write_text("def sure(reply, answer):\n    return 1.0\n")
    for name, setting in (("mentrasuite_mindora", "detector"), ("grpo+mentrasuite_mindora", "mentrasuite_mindora.detector")):
        assert "sure" in str(registry.build(name, {setting: f"{tmp_path / 'mine.py'}:sure"}).reward)
        assert "answer_given()" in str(registry.build(name, {setting: "answer_given"}).reward)
    with pytest.raises(RewardlabError, match="no_such"):
        registry.build("mentrasuite_mindora", {"detector": "no_such"})
    # a text for any other setting stays one
    assert registry.build("sft", {"field": "correct"}).rollout.settings["fields"] == ("correct",)


BROKEN = '''"""Broken: it fails."""
from rewardlab.methods.baselines.grpo import grpo
{above}

def broken(base=None):
    recipe = base or grpo()
    return {result}
'''


@pytest.mark.parametrize(
    ("above", "result", "line", "says"),
    [
        ("from rewardlab.methods.baselines.grpo import grppo", "recipe", 3, "ImportError: cannot import name 'grppo'"),
        ("import nosuchmodule", "recipe", 3, "ModuleNotFoundError: No module named 'nosuchmodule'"),
        ("x = y", "recipe", 3, "NameError: name 'y' is not defined"),
        ("x = (", "recipe", 3, "SyntaxError: '\\(' was never closed"),
        ("x = 1 / 0", "recipe", 3, "ZeroDivisionError: "),
        ("", "recipe.but(rewrd=None)", 7, "unknown slot 'rewrd'; did you mean reward"),
        ("", "recipee", 7, "NameError: name 'recipee' is not defined"),
        ("", "recipe.but(1, 2)", 7, "TypeError: "),
    ],
)
def test_an_error_in_a_method_of_ones_own_names_file_and_line(folder, above, result, line, says):
    path = write(folder, "toy_methods", f"broken{abs(hash((above, result)))}", BROKEN.format(above=above, result=result))
    name = path.stem
    path.write_text(path.read_text().replace("def broken", f"def {name}"))
    try:
        with pytest.raises(RewardlabError, match=rf"{name}\.py, line {line}: {says}"):
            registry.build(name)
    finally:
        path.unlink()
