"""What a new user of the Python door types first: dir, help, and the name of an object at a prompt."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
from types import GenericAlias

import pytest

import rewardlab
import rewardlab.api
import rewardlab.core
from rewardlab import registry
from rewardlab.core import study
from rewardlab.core.part import PartFactory
from rewardlab.errors import RewardlabError
from rewardlab.models.load import load_policy
from rewardlab.registry.parts import parts_in, shared_part, shared_parts
from rewardlab.rewards.operator import OperatorFactory, operator
from rewardlab.runs.config import RunConfig
from rewardlab.verifiers.contract import verifier

PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (rewardlab, rewardlab.api, rewardlab.core, registry)
    for name in module.__all__
    # the names of types and a path: Python has no place for a text about them
    if not isinstance(getattr(module, name), GenericAlias) and name != "PACKAGE"
}
DECORATORS = {name: getattr(rewardlab.core, name) for name in ("credit", "objective", "rollout", "select", "measure", "weighting")}
DECORATORS |= {"environment": rewardlab.core.environment, "loop": rewardlab.core.loop, "reward": rewardlab.reward}
DECORATORS |= {"operator": operator, "verifier": verifier, "study": study}


def help_of(value) -> str:
    return pydoc.render_doc(value, renderer=pydoc.plaintext)


def first_line(value) -> str:
    return inspect.cleandoc(value.__doc__).split("\n")[0]


def own_parts() -> list[tuple[str, PartFactory]]:
    """The parts in the methods' own files."""
    found = []
    for method, path in registry.methods().items():
        module = registry.module_of(method)
        found += [(f"{method}/{part.name}", getattr(module, part.name)) for part in parts_in(path)]
    return found


@pytest.mark.parametrize("name", PUBLIC)
def test_help_of_a_public_name_says_what_it_is(name):
    value = PUBLIC[name]
    assert value.__doc__, f"{name} has no docstring"
    # a dataclass without a docstring gets its signature as one
    assert not value.__doc__.startswith(f"{name.rpartition('.')[2]}(")
    assert first_line(value) in help_of(value)


@pytest.mark.parametrize("name", DECORATORS)
def test_help_of_a_decorator_names_it_and_its_options(name):
    decorator = DECORATORS[name]
    text = help_of(decorator)
    assert f"\n{name}(function=None, /, *, needs: " in text
    assert "columns of the batch that the engine must compute before the part runs" in text
    assert next(iter(inspect.signature(decorator).parameters)) == "function"
    unknown = {"nonsense": 1}
    with pytest.raises(RewardlabError, match=f"unknown option of @{name} 'nonsense'"):
        decorator(**unknown)(lambda: None)


def test_help_of_every_part_shows_its_settings_and_its_own_text():
    parts = [(f"{slot}:{name}", shared_part(slot, name)) for slot, name in shared_parts()] + own_parts()
    assert len(parts) > 120
    for name, factory in parts:
        text = help_of(factory)
        assert first_line(factory.function) in text, name
        assert first_line(type(factory)) not in text, name
        settings = {n for n, p in inspect.signature(factory.function).parameters.items() if p.kind is p.KEYWORD_ONLY}
        shown = inspect.signature(factory).parameters
        assert settings <= shown.keys(), name
        # what it runs on is not given where it is made; the operands of an operator are
        assert isinstance(factory, OperatorFactory) or settings == shown.keys(), name
        assert all(setting in text for setting in settings), name


def test_help_of_a_bound_part_and_of_an_operator():
    length_penalty, clip = shared_part("reward", "length_penalty"), shared_part("reward", "clip")
    assert first_line(length_penalty.function) in help_of(length_penalty(per_token=0.5))
    assert "length_penalty(per_token=0.5)" in help_of(length_penalty(per_token=0.5))
    assert "clip = <reward clip>\n    clip(x, *, low=None, high=None)\n    \n    The reward clipped to" in help_of(clip)
    assert "rewards" not in inspect.signature(length_penalty).parameters


def test_help_of_the_configuration_explains_every_setting():
    text = " ".join(help_of(RunConfig).replace("|", " ").split())
    for name in ("steps", "lora_rank", "eval_every", "max_missing"):
        said = next(f.metadata["help"] for f in RunConfig.__dataclass_fields__.values() if f.name == name)
        assert f"{name}: {said}" in text


def test_dir_shows_the_public_names_and_loads_nothing():
    code = (
        "import rewardlab, sys; names = dir(rewardlab); assert 'torch' not in sys.modules; "
        "print(rewardlab.__version__, *(n for n in names if n[0] != '_'))"
    )
    version, *names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert names == sorted(rewardlab.__all__)
    assert version[0].isdigit()


def test_objects_show_themselves_in_a_few_words(tmp_path):
    task, recipe = rewardlab.task("arithmetic:test_size=7"), rewardlab.build("grpo", {"n": 4, "problems": 1})
    policy = load_policy("untrained", task=task)
    result = rewardlab.train(recipe, policy, task, out=tmp_path / "run", steps=1, max_new=2, eval_problems=1, device="cpu")
    assert repr(task) == "Task('arithmetic': endless training problems, 7 held out, verifier final_number)"
    assert repr(recipe).startswith("Recipe grpo\nrollout    independent(n=4)\nreward     correct()\n")
    assert repr(policy) == f"LlamaPolicy('policy', {sum(p.numel() for p in policy.parameters()):,} parameters, on cpu)"
    assert repr(policy.adapt(2)).count("parameters, of which ") == 1
    assert repr(result) == f"Result('{tmp_path}/run', grpo: 1 steps, held-out pass@1 0.000 -> 0.000)"
    assert repr(result.run).startswith(f"Run(step 1 of 1, {result.run.tokens:,} tokens, seed 0, policy LlamaPolicy('policy', ")
    assert all(len(repr(x)) < 600 for x in (task, recipe, policy, result, result.run))
