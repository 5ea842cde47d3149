"""Episodes: who said what, what was paid for which decision, and why it ended."""

from __future__ import annotations

import time

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Message, Run, Sampling, Trajectory, ask, environment
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.rewards.environment import paid
from rewardlab.rollouts.filtered import solved_between
from rewardlab.rollouts.interactive import answer_once, go_on, interactive
from tests.helpers.scripted import ScriptedPolicy


def start_counting(problem, seed, *, upto=3):
    return Message("user", f"count to {upto}"), {"at": 0, "seed": seed}


@environment(start=start_counting)
def counting(state, turn, *, upto=3):
    """Pays 1, 2, ... for each turn; ends itself after `upto` of them, saying so."""
    at = state["at"] + 1
    return Message("user", f"that was {at}", reward=float(at), last=at == upto), {**state, "at": at}


@environment(start=lambda problem, seed: (None, 0))
def silent(state, turn):
    return None, state


@pytest.fixture(scope="module")
def policy():
    return untrained()


def episodes(policy, **settings):
    run = Run(policy, seed=1, max_new=4)
    return interactive(**settings)([ask("Please."), ask("Again.")], run), run


def test_an_episode_alternates_and_is_paid_for_the_turn_before_the_message(policy):
    groups, run = episodes(policy, env=counting(upto=3), n=2, turns=9)
    assert [len(g) for g in groups] == [2, 2]
    for t in (t for g in groups for t in g):
        assert [turn.author for turn in t.turns] == [None, "policy", None, "policy", None, "policy", None]
        assert t.stop == "end"
        assert [r for _, r in t.paid] == [1.0, 2.0, 3.0]
        assert [at for at, _ in t.paid] == t.ends
        assert len(t.turns[-1].ids) == 0  # the last message is not read
        assert t.turns[-1].text == "that was 3"
    batch = collate(groups, paid()(groups, run), policy.device)
    assert batch.rewarded.sum(1).tolist() == [3] * 4
    assert bool((batch.rewarded <= batch.mask).all())
    assert batch.reward.sum(1).tolist() == [6.0] * 4


def test_episodes_that_run_out_of_turns_keep_the_last_pay(policy):
    groups, _ = episodes(policy, env=counting(upto=5), n=1, turns=2)
    assert [t.stop for g in groups for t in g] == ["turns", "turns"]
    assert [[r for _, r in t.paid] for g in groups for t in g] == [[1.0, 2.0]] * 2


def test_an_environment_may_say_nothing(policy):
    groups, _ = episodes(policy, env=silent(), n=1, turns=5)
    assert all([turn.author for turn in t.turns] == [None, "policy"] for g in groups for t in g)


def test_an_episode_ends_where_the_next_reply_would_not_fit(policy):
    small = policy.copy("policy")
    small.context = 60
    groups, _ = episodes(small, env=counting(upto=99), n=1, turns=99)
    assert {t.stop for g in groups for t in g} == {"context"}
    # it ends before a message that does not fit, and else before the reply
    assert all(len(t) <= 60 and (len(t) + 4 > 60 or not len(t.turns[-1].ids)) for g in groups for t in g)


def test_a_seed_repeats_episodes_and_environments_get_seeds_of_their_own(policy):
    first, _ = episodes(policy, env=counting(), n=2)
    second, _ = episodes(policy, env=counting(), n=2)
    for a, b in zip(first, second, strict=True):
        assert all(np.array_equal(x.ids, y.ids) for x, y in zip(a, b, strict=True))


def test_a_recipe_with_an_environment_comes_back_from_json():

    recipe = registry.build("grpo").but(rollout=interactive(env=counting(upto=2)), reward=paid())
    assert registry.load_recipe(recipe.to_json()) == recipe
    assert "counting(upto=2)" in str(recipe)


@environment(start=lambda problem, seed: (Message("user", "call a tool"), 0))
def talkative(state, turn):
    return Message("tool", "many words " * 200, reward=0.5), state


def test_a_message_longer_than_the_context_ends_the_episode(policy):
    small = policy.copy("policy")
    small.context = 60
    groups, run = episodes(small, env=talkative(), n=2, turns=3)
    for t in (t for g in groups for t in g):
        assert (t.stop, len(t.turns[-1].ids), len(t) <= 60) == ("context", 0, True)
        assert [r for _, r in t.paid] == [0.5]
    assert collate(groups, paid()(groups, run), small.device).reward.sum(1).tolist() == [0.5] * 4


@environment(start=lambda problem, seed: (Message("user", "go \ud800"), 0))
def half_a_pair(state, turn):
    return Message("tool", "cut \ud83d\n\n\udc00", results=("cut \ud83d", "\udc00")), state


def test_half_of_a_surrogate_pair_from_an_environment_stops_no_run(policy):
    groups, _ = episodes(policy, env=half_a_pair(), n=1, turns=2)
    for (t,) in groups:
        assert [turn.text for turn in t.turns if turn.author is None][:2] == [f"{t.problem.question}\ngo ?", "cut ?\n\n?"]
    message, _ = half_a_pair()(0, None)
    assert message.results == ("cut ?", "?")


ANSWERS = [
    (None, "must return a message, or None, and its state"),
    (Message("user", "no state"), "must return a message, or None, and its state"),
    (("hello", 0), "must return a Message or None before its state, not 'hello'"),
    ((Message("user", 5), 0), "whose role or text is no text"),
    ((Message("tool", "5", results=(5,)), 0), "whose role or text is no text"),
    ((Message("user", "x", reward=float("nan")), 0), "whose reward is nan, not a finite number"),
    ((Message("user", "x", reward="1"), 0), "whose reward is '1', not a finite number"),
]


@pytest.mark.parametrize(("answer", "says"), ANSWERS, ids=[f"{i} {says}" for i, (_, says) in enumerate(ANSWERS)])
def test_a_mistake_in_an_environment_names_it_the_problem_and_the_turn(policy, answer, says):
    @environment(start=lambda problem, seed: answer)
    def at_the_start(state, turn):
        return None, state

    @environment(start=lambda problem, seed: (None, 0))
    def later(state, turn):
        return answer

    with pytest.raises(RewardlabError, match=rf"the environment at_the_start .*{says}.* \(problem 'Please\.', its start\)"):
        episodes(policy, env=at_the_start(), n=1)
    with pytest.raises(RewardlabError, match=rf"the environment later .*{says}.* \(problem 'Please\.', turn 1\)"):
        episodes(policy, env=later(), n=1)


def test_an_exception_in_an_environment_names_its_line(policy):
    @environment(start=lambda problem, seed: (None, 0))
    def broken(state, turn):
        return state["no"], state

    says = r"the environment broken of .*test_interactive.py, line \d+: TypeError: .* \(problem 'Please\.', turn 1\)"
    with pytest.raises(RewardlabError, match=says):
        episodes(policy, env=broken(), n=1)


# ---- environments that wait ------------------------------------------------------------------------------------------


def start_waiting(problem, seed, *, seconds, upto=3):
    return Message("user", problem.question), {"at": 0, "wait": (seed % 7) * seconds}


@environment(start=start_waiting, waits=True)
def waiting(state, turn, *, seconds, upto=3):
    """As `counting`, after a while that differs from episode to episode."""
    time.sleep(state["wait"])
    at = state["at"] + 1
    return Message("user", f"that was {at}", reward=float(at), last=at == upto), {**state, "at": at}


def test_replies_are_the_same_whenever_an_answer_comes(policy):
    """Each reply has random numbers of its own: the order of the answers changes nothing."""
    runs = [episodes(policy, env=waiting(seconds=seconds), n=3, turns=5)[0] for seconds in (0.0, 0.004, 0.0)]
    said = [[[turn.text for turn in t.turns] for g in groups for t in g] for groups in runs]
    assert said[0] == said[1] == said[2]
    assert len({tuple(texts) for texts in said[0]}) == 6
    assert all([r for _, r in t.paid] == [1.0, 2.0, 3.0] and t.stop == "end" for g in runs[1] for t in g)


def test_rows_that_their_columns_alone_tell_apart_are_not_played_alike(policy):
    """Their first replies have random numbers of their own; the first of equal rows has those that it has alone."""
    alike = [ask("Please.", number=i) for i in range(3)]
    play = interactive(env=waiting(seconds=0.0), n=1, turns=1)
    said = [t.reply for (t,) in play(alike, Run(policy, seed=1, max_new=4))]
    assert len(set(said)) == 3
    assert said[0] == play(alike[:1], Run(policy, seed=1, max_new=4))[0][0].reply


def test_processes_with_the_same_problem_play_it_each_for_itself(policy):
    """In the same world, with random numbers of their own for the replies."""
    for env in (waiting(seconds=0.0), counting()):
        runs = [Run(policy, seed=1, process=process, max_new=4) for process in (0, 1, 0)]
        said = [interactive(env=env, n=1, turns=1)([ask("Please.")], run)[0][0].reply for run in runs]
        assert said[0] == said[2] != said[1]


def test_the_policy_replies_in_some_episodes_while_others_wait():
    """One of six answers takes long: the five others are at their end before it comes."""

    @environment(
        start=lambda problem, seed: (Message("user", problem.question), {"at": 0, "slow": problem.question == "0?"}), waits=True
    )
    def one_is_slow(state, turn):
        time.sleep(0.5 if state["slow"] and state["at"] == 0 else 0.0)
        at = state["at"] + 1
        return Message("user", "on", last=at == 3), {**state, "at": at}

    policy = ScriptedPolicy(lambda t: [f"{t.problem.question} {len(t.replies)}"])
    groups = interactive(env=one_is_slow(), n=1, turns=9)([ask(f"{i}?") for i in range(6)], Run(policy, seed=0, max_new=20))
    assert [[t.replies for t in g] for g in groups] == [[[f"{i}? {k}" for k in range(3)]] for i in range(6)]
    # the slow one replies for the second and third time when nobody else is left
    assert [len(call) for call in policy.calls][-2:] == [1, 1]


def test_an_error_in_one_answer_stops_the_step_and_names_the_place(policy):
    @environment(start=lambda problem, seed: (None, 0), waits=True)
    def breaks(state, turn):
        raise ValueError("no server")

    with pytest.raises(RewardlabError, match="no server"):
        episodes(policy, env=breaks(), n=2)


def test_answers_that_are_asked_for_at_once_come_in_order():
    policy = ScriptedPolicy(lambda t: ["yes"])
    problems = [ask(f"{i}?") for i in range(8)]
    began = time.monotonic()
    rows = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = policy.extend(rows, Sampling(9), None)
    states = [{"at": 0, "wait": 0.2} for _ in problems]
    answer_once(waiting(seconds=0.0), rows, states, Run(policy, seed=0, max_new=9), turns=9)
    assert time.monotonic() - began < 1.0
    assert [s["at"] for s in states] == [1] * 8


def test_no_episodes_are_played_in_no_time(policy):
    for env in (waiting(seconds=0.0), counting()):
        rows, states = [], []
        go_on(env, rows, states, Run(policy, seed=0, max_new=4), Sampling(4), turns=3)
        assert rows == states == []


PLAYING = (
    "retool", "endless_terminals", "parallelsearch", "reseek", "grail", "ufo_try_again", "tattoo", "orcust", "oprl_implicit_step",
    "stepsearch", "spa_rl", "dr_kernel_trloo", "hdpo_metis", "ppr_renorm", "reason_act_tool_grpo", "atom_searcher", "otc_po",
    "igpo", "spear", "br_rm",
)  # fmt: skip


def filtering(temperature=0.7):
    """A base with a critic that keeps groups by their pass rate."""
    base = registry.build("ppo", {"n": 4, "temperature": temperature})
    return base.but(rollout=solved_between(inner=base.rollout))


@pytest.mark.parametrize("name", PLAYING)
def test_methods_that_play_keep_the_filter_and_the_temperature_of_their_base(name):
    made = registry.method(name)(filtering())
    names = {part.name for part in made.rollout.walk()}
    assert {"solved_between", "interactive"} <= names
    assert made.sampling_settings["temperature"] == 0.7
    # as many episodes as the base has replies, unless it is said otherwise
    assert made.rows_per_problem == 4
    assert registry.method(name)(filtering(), n=2).rows_per_problem == 2
    # without a base as ever
    assert registry.method(name)(n=2).rows_per_problem == 2
    assert registry.method(name)().sampling_settings["temperature"] == 1.0


def test_calls_of_models_keep_the_filter_of_the_base_too():
    made = registry.method("router_r1")(filtering())
    assert (made.rollout.name, made.rollout.innermost.name) == ("solved_between", "routed")
    assert (made.rows_per_problem, made.sampling_settings["temperature"], made.sampling_settings["turns"]) == (4, 0.7, 5)
    assert registry.method("router_r1")(filtering(), n=2).rows_per_problem == 2
    assert registry.method("router_r1")().rows_per_problem == 1


@pytest.mark.parametrize(("name", "n"), [("search_r2", 5), ("advantage_alignment_llm", 8)])
def test_rollouts_of_two_groups_are_as_many_and_as_hot_as_the_replies_of_the_base(name, n):
    for made, own, hot in (
        (registry.method(name)(filtering()), 4, 0.7),
        (registry.method(name)(filtering(), n=2), 2, 0.7),
        (registry.method(name)(), n, 1.0),
    ):
        assert (made.sampling_settings["n"], made.sampling_settings["temperature"]) == (own, hot)


KEEPING = (
    "retool", "endless_terminals", "oprl_implicit_step", "stepsearch", "hdpo_metis", "ppr_renorm", "reason_act_tool_grpo",
    "atom_searcher", "otc_po", "spear",
)  # fmt: skip


@pytest.mark.parametrize("name", KEEPING)
def test_an_environment_of_the_base_is_found_within_its_filter(name):
    base = registry.build("ppo").but(rollout=solved_between(inner=interactive(env=counting(), n=3, turns=7)))
    made = registry.method(name)(base)
    assert (made.sampling_settings["env"], made.sampling_settings["turns"]) == (counting(), 7)
    assert made.measure == base.measure


@pytest.mark.parametrize(("name", "n"), [("otc_po", 8), ("igpo", 8), ("spear", 8), ("br_rm", 8), ("spa_rl", 1), ("stepsearch", 1)])
def test_without_a_base_as_many_episodes_as_the_method_says(name, n):
    assert registry.build(name).rollout.innermost == interactive(**registry.build(name).sampling_settings | {"n": n})
