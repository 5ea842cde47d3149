"""Methods stacked on one another: nothing that one of them brings is lost without a word."""

from __future__ import annotations

import ast
import inspect
import random
import textwrap
from dataclasses import fields

import pytest

from rewardlab import registry
from rewardlab.core import Learner, Recipe, Update, rollout
from rewardlab.core.part import Expression, hyperparameters
from rewardlab.credit.group import whiten
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.dpo import dpo
from rewardlab.methods.baselines.grpo import grpo
from rewardlab.methods.baselines.ppo import ppo
from rewardlab.methods.sampling.april import april, partial
from rewardlab.objectives.ratio import imitate
from rewardlab.registry import find, names
from rewardlab.registry.bases import plain_base
from rewardlab.registry.stack import stack
from rewardlab.rollouts.filtered import solved_between
from rewardlab.rollouts.independent import independent

METHODS = {name: registry.method(name) for name in registry.methods()}
ON_ANY_ENVIRONMENT = {
    "atom_searcher", "capo_genprm", "hdpo_metis", "masksearch", "oprl_implicit_step", "otc_po", "planner_r1", "ppr_renorm", "spae",
    "reason_act_tool_grpo", "spear", "stepsearch", "retool", "endless_terminals",
}  # fmt: skip
"""Methods that play the environment of the method below; their own rollout and measure are only used without one."""
AS_MANY_AS_BELOW = {"retool", "endless_terminals", "rlac"}
"""Methods that sample as many episodes of a problem as the method below samples replies: alone it is another number."""
PAID_AS_BELOW = {"rip"}
"""Methods that rank replies by the reward of the method below; alone they teach a reward model for it."""
PLACES = ("rollout", "reward", "credit", "objective", "weighting", "select", "measure", "loop", "study", "update", "learner")


def base_of(method) -> Recipe:
    """The base that a method makes for itself: what `base = base or ...` in its file says, run on its own."""
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(method))).body
    assigns = [i for i, x in enumerate(function.body) if isinstance(x, ast.Assign) and getattr(x.targets[0], "id", None) == "base"]
    # a method that answers under some setting, and trains nothing then, returns before
    trains = [x for x in function.body[: assigns[0] + 1] if not any(isinstance(inner, ast.Return) for inner in ast.walk(x))]
    before = ast.Module(trains, [])
    names = {**method.__globals__, **hyperparameters(method), "base": None}
    exec(compile(before, method.__name__, "exec"), names)
    return names["base"]


def pieces(recipe: Recipe) -> list[tuple[str, str, dict]]:
    """(slot, name, settings that are not the default) of every part, parts within parts too."""
    found = []
    slots = {**recipe.parts(), **{f"learner {x.name}": x.recipe for x in recipe.also}}
    for slot, of in slots.items():
        if isinstance(of, Recipe):
            found += [(slot, name, settings) for _, name, settings in pieces(of)]
            continue
        for part in of.walk():
            if isinstance(part, Expression):
                found.append((slot, part.name, {str(i): x for i, x in enumerate(part._of) if isinstance(x, float)}))
            else:
                usual = hyperparameters(part.function)
                plain = {k: v for k, v in part.settings.items() if not list(_parts_in(v)) and v != usual[k]}
                found.append((slot, part.name, plain))
    return [x for x in found if x[1] not in ("Chain", "Sum", "ObjectiveSum")]


def _parts_in(value):
    values = value.values() if isinstance(value, dict) else value if isinstance(value, tuple) else (value,)
    return (x for x in values if hasattr(x, "walk"))


def lost(below: Recipe, alone: Recipe, base: Recipe, made: Recipe) -> list:
    """What either method brings, relative to the base of the upper one, that the stack does not have."""
    has, usual = pieces(made), pieces(base)

    def kept(slot, name, settings) -> bool:
        return any((s, n) == (slot, name) and settings.items() <= bound.items() for s, n, bound in has)

    def carried(slot, name, settings) -> bool:
        """A sampler that another one replaced: what sets it apart from the base's is in the new one."""
        return any(
            (s, n) == (slot, name) and any(s2 == slot and settings.items() - bound.items() <= now.items() for s2, _, now in has)
            for s, n, bound in usual
        )

    gone = [x for x in pieces(below) if x not in usual and not kept(*x) and not carried(*x)]
    # a part of the base in another slot, such as the reward that a rollout looks at, comes from whatever the base is
    of_base = [(name, settings) for _, name, settings in usual]
    # where it changes a setting of the base's sampler, that is what it brings
    gone += [x for x in pieces(alone) if x[1:] not in of_base and not kept(*x) and not carried(*x)]
    for f in fields(Update):
        low, own, first, now = (getattr(recipe.update, f.name) for recipe in (below, alone, base, made))
        gone += [f.name] if now not in (low, own) or (low != first and now != low) or (own != first and now != own) else []
    return gone


STACKED = {("dapo", "april"), ("april", "dapo"), ("grpo", "dr_grpo"), ("rloo", "remax"), ("dapo", "prime")}
REFUSED = {("rloo", "dr_grpo"), ("sft", "grpo"), ("dapo", "tempflow_grpo"), ("sft", "april")}
SHARE_OF_PAIRS = 0.02


def changed_slots(alone: Recipe, base: Recipe) -> tuple[str, ...]:
    """What a method changes of its base: the slots with other parts, the learners, and the fields of the update."""
    before, after = base.parts(), alone.parts()
    slots = [slot for slot in sorted({*before, *after}) if before.get(slot) != after.get(slot)]
    update = [f.name for f in fields(Update) if getattr(alone.update, f.name) != getattr(base.update, f.name)]
    return (*slots, *(x.name for x in alone.also if x not in base.also), *update)


def pairs_to_stack(alone: dict[str, Recipe], bases: dict[str, Recipe], thorough: bool) -> list[tuple[str, str]]:
    """All pairs of methods, or the named ones, a method of each kind on grpo and below hapo, and a random share of the rest."""
    every = [(low, high) for low in METHODS for high in METHODS if low != high]
    if thorough:
        return every
    kinds = {changed_slots(alone[name], bases[name]): name for name in METHODS if name not in ("grpo", "hapo")}
    by_kind = {pair for name in kinds.values() for pair in (("grpo", name), (name, "hapo"))}
    drawn = random.Random(0).sample(every, round(SHARE_OF_PAIRS * len(every)))
    return sorted({*STACKED, *REFUSED, *by_kind, *drawn})


@pytest.mark.slow
def test_every_part_of_two_methods_is_in_their_stack_or_the_stack_is_refused(thorough):
    alone, bases = {n: f() for n, f in METHODS.items()}, {n: base_of(f) for n, f in METHODS.items()}
    stacked, refused = set(), {}
    for low, high in pairs_to_stack(alone, bases, thorough):
        try:
            made = stack([(low, METHODS[low], {}), (high, METHODS[high], {})])
        except RewardlabError as e:
            refused[low, high] = str(e)
            continue
        stacked.add((low, high))
        gone = lost(alone[low], alone[high], bases[high], made)
        if high in ON_ANY_ENVIRONMENT and "env" in alone[low].sampling_settings:
            gone = [x for x in gone if x[0] not in ("rollout", "measure")]
        if high in AS_MANY_AS_BELOW:
            gone = [x for x in gone if x[0] not in ("rollout", "measure")]
        if high in PAID_AS_BELOW and alone[low].reward is not None:
            gone = [x for x in gone if x not in pieces(alone[high])]
        assert gone == [], f"{low}+{high}"
    assert stacked >= STACKED
    assert refused.keys() >= REFUSED
    for (low, high), why in refused.items():
        assert f"{low} and {high} cannot be stacked" in why
        assert any(place in why for place in PLACES), why


def test_a_sampler_is_replaced_below_the_filter():
    both = solved_between(inner=partial(n=6, temperature=0.7), low=0.001, high=0.999, attempts=10)
    below = [("grpo", grpo, {"n": 6, "temperature": 0.7})]
    dapo = ("dapo", METHODS["dapo"], {})
    assert stack([*below, dapo, ("april", april, {})]).rollout == both
    assert stack([*below, ("april", april, {}), dapo]).rollout == both


@pytest.mark.parametrize(
    ("replaced", "message"),
    [
        (independent(stop=("\n",)), r"partial has no setting stop, so it cannot replace the rollout independent\(stop"),
        (independent(top_p=0.9, top_k=5), "no setting top_p or top_k"),
        (partial(), r"partial replaces the rollout independent, and this one is partial\(\)"),
    ],
)
def test_a_setting_that_the_new_sampler_does_not_know_is_refused(replaced, message):
    with pytest.raises(RewardlabError, match=message):
        april(grpo().but(rollout=solved_between(inner=replaced)))


def test_what_the_first_method_was_told_is_kept_or_refused():
    assert registry.build("grpo+pure_min_form", {"grpo.n": 3}).rollout == independent(n=3, steps="newline")
    with pytest.raises(RewardlabError, match=r"rollout that grpo brings, independent\(n=3\), by independent\(\)"):
        registry.build("grpo+majority_vote", {"grpo.n": 3})
    with pytest.raises(RewardlabError, match=r"objective that grpo brings, clipped_ratio\(eps=0.3\), by sequence_ratio"):
        registry.build("grpo+gspo", {"grpo.eps": 0.3})


def test_a_setting_of_the_base_that_is_not_made_is_refused():
    with pytest.raises(RewardlabError, match=r"gspo\.n has no effect on grpo"):
        registry.build("grpo+gspo", {"gspo.n": 3})
    assert registry.build("gspo", {"n": 3}).rows_per_problem == 3


def slower(base=None, *, lr=1e-5):
    return (base or grpo()).but(lr=lr)


def longer(base=None, *, epochs=3):
    return (base or grpo()).but(epochs=epochs)


def faster(base=None):
    return (base or grpo()).but(lr=1e-3)


def judging(base=None, *, init="copy:policy"):
    base = base or grpo()
    return base.but(also=(*base.also, Learner("critic", init, Recipe(objective=imitate()))))


def unlearning(base=None):
    return (base or grpo()).but(also=())


def stacked(*methods) -> Recipe:
    return stack([(m.__name__, m, {}) for m in methods])


def test_fields_of_the_update_are_kept_or_refused():
    made = stacked(grpo, slower, longer)
    assert (made.update.lr, made.update.epochs) == (1e-5, 3)
    with pytest.raises(RewardlabError, match="slower replaces the update lr that faster brings, 0"):
        stacked(grpo, faster, slower)


def test_learners_are_kept_or_refused():
    assert [x.name for x in stacked(grpo, judging).also] == ["critic"]
    with pytest.raises(RewardlabError, match="ppo and judging cannot be stacked: two learners are named critic"):
        stacked(ppo, judging)
    with pytest.raises(RewardlabError, match="replaces the learner critic that judging brings, from 'copy:policy', by nothing"):
        stacked(grpo, judging, unlearning)


def test_a_part_that_the_base_lacks_is_named():
    def whitened(base=None):
        base = base or grpo()
        return base.but(credit=base.required("credit") >> whiten())

    with pytest.raises(RewardlabError, match="dpo and whitened cannot be stacked: dpo has no credit to build on"):
        stack([("dpo", dpo, {}), ("whitened", whitened, {})])


@rollout(wraps="inner", across_problems=True)
def sorted_by_length(problems, run, *, inner):
    return inner(problems, run)


def test_a_wrapper_of_what_compares_problems_compares_them_too():
    assert solved_between(inner=partial()).across_problems
    assert sorted_by_length(inner=independent()).across_problems
    assert not solved_between(inner=independent()).across_problems


def test_a_field_of_the_update_may_be_set_by_the_name_of_a_method():
    """In a comparison `--grpo.lr` is for grpo alone."""
    assert registry.build("grpo", {"grpo.lr": 1e-5}).update.lr == 1e-5
    assert registry.build("grpo+hapo", {"hapo.lr": 1e-5}).update.lr == 1e-5
    with pytest.raises(RewardlabError, match=r"unknown setting of grpo 'lrr'; did you mean lr"):
        registry.build("grpo", {"grpo.lrr": 1e-5})


def test_a_setting_of_the_method_that_one_builds_on_needs_no_stack():
    alone = registry.build("hapo", {"n": 4, "weight": 2.0})
    assert alone == registry.build("grpo+hapo", {"n": 4, "weight": 2.0}).but(name="hapo")
    assert (alone.name, alone.rollout.innermost.settings["n"]) == ("hapo", 4)
    # also by the name of its owner, and on the command line before torch is loaded
    assert registry.build("hapo", {"grpo.n": 4, "hapo.weight": 2.0}) == alone
    assert {"n", "beta"} <= names.settings_of("hapo")
    assert [p.method for p in registry.parameters("hapo") if p.flag == "--n"] == ["grpo"]
    # a method without the base's objective offers none of its settings, and takes none
    assert {p.flag for p in registry.parameters("deeplatent_reasoning_dlr")} & {"--n", "--beta"} == {"--n"}
    with pytest.raises(RewardlabError, match="deeplatent_reasoning_dlr replaces the objective that grpo brings"):
        registry.build("deeplatent_reasoning_dlr", {"beta": 0.1})
    # a base that is made with settings, grpo(n=n), is no plain one: below it, the method's own n would be lost
    assert [plain_base(registry.file_of(name), name) for name in ("igpo", "hapo")] == [None, "grpo"]


@pytest.mark.parametrize("name", [name for name in registry.methods() if find.base_of(name)])
def test_a_method_alone_is_the_stack_on_its_plain_base(name):
    taken = [p for p in registry.parameters(name) if p.method == find.base_of(name)]
    for p in taken[:1]:
        assert registry.build(name, {p.flag.lstrip("-").replace("-", "_"): p.default}) == registry.build(name)


def test_settings_that_only_go_together_are_taken_in_a_stack():
    # with the default of either one, right replies would lose to longer ones: no reason to refuse both
    own = {"right_until": 50, "longest": 96}
    assert registry.build("grpo+phi_4_reasoning", own) == registry.build("phi_4_reasoning", own).but(name="grpo+phi_4_reasoning")
