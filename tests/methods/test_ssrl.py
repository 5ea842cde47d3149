"""SSRL: what a policy writes as its own search engine is not learnt; the form, as the released code has it."""

import numpy as np
import pytest
import torch

from rewardlab import build
from rewardlab.core import Message, Run, Score, Trajectory, Turn, ask, rollout
from rewardlab.engine.collate import collate
from rewardlab.methods.agents.ssrl import (
    TOLD,
    form_of,
    information_learnt,
    self_search_form,
    self_searched,
    sim_to_real,
    ssrl,
    without_information,
    written,
)
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.recorded import recorded

GOOD = (
    "<think>Who composed it?</think>\n<search>composer of Fidelio</search>\n<information>Beethoven, of Bonn.</information>\n"
    "<think>So Bonn.</think>\n<answer>Bonn</answer>"
)
ASK = "<think>a</think><search>q</search><information>i</information>"
END = "<think>b</think><answer>Bonn</answer>"


@pytest.mark.parametrize(
    ("reply", "value"),
    [
        (GOOD, 1.0),
        (ASK + END, 1.0),
        (ASK + ASK + END, 1.0),
        # one thought: half; two thoughts and no search: the thoughts do not fit the searches
        (END, 0.5),
        ("<think>a</think>" + END, 0.5),
        # three searches and two thoughts: 2 of 4
        (ASK + ASK.partition("</think>")[2] * 2 + END, 0.5),
        (ASK * 8 + END, 0.0),
        (ASK * 7 + END, 1.0),
        ("So: " + ASK + END, 0.0),
        (ASK + END + " Done.", 0.0),
        (ASK, 0.0),
        (ASK.replace("i<", "<b>i</b><") + END, 0.0),
        (ASK.replace("i<", "2 < 3<") + END, 0.0),
        (ASK.replace("i<", "3 > 2<") + END, 1.0),
        (ASK.replace(">q<", "> <") + END, 0.0),
        (ASK.replace(">q<", ">q\nr<") + END, 0.0),
        (ASK.replace(">q<", ">your query<") + END, 0.0),
        ("<think>a</think><search>q</search>" + END, 0.0),
        ("<think>a</think><information>i</information>" + END, 0.0),
        ("Answer: Bonn", 0.0),
        ("", 0.0),
    ],
)
def test_the_form_is_that_of_the_released_code(reply, value):
    assert form_of(reply) == pytest.approx(value)


@pytest.fixture(scope="module")
def policy():
    return untrained(hidden=32, layers=1)


def reply_of(policy, text):
    problem = ask("Where?", "Bonn")
    return policy.write(policy.read([Trajectory(problem)], [problem.prompt]), [text])[0]


@pytest.mark.parametrize("text", [GOOD, ASK + ASK + END, "<think>a</think><information>cut off", "no tags at all"])
def test_the_same_tokens_without_the_information(policy, text):
    run, t = Run(policy), reply_of(policy, text)
    cut = without_information(t, run)
    assert cut.ids.tolist() == t.ids.tolist()
    assert written(cut) == written(t)
    learnt = "".join(policy.pieces(cut.ids[cut.mask]))
    assert "Beethoven" not in learnt
    assert "cut off" not in learnt
    assert learnt.count("<information>") == text.count("<information>")
    assert learnt.count("</information>") == text.count("</information>")
    if "<information>" not in text:
        assert cut.mask.tolist() == t.mask.tolist()
    # the verifier reads what follows the last information
    assert ("Bonn</answer>" in cut.reply) == ("Bonn</answer>" in text)


def test_logprobs_go_with_their_tokens():
    ids = np.arange(6)
    pieces = ["<search>q</search>", "<information>", "x", "y</in", "formation>", "<answer>"]

    class Pieces:
        def pieces(self, ids):
            return pieces

        def decode(self, ids):
            return "".join(pieces[i] for i in ids)

    turn = Turn("policy", ids, ids / 10, ids / 20, text="".join(pieces))
    cut = without_information(Trajectory(ask("?"), (Turn(None, np.zeros(1, np.int64)), turn), "end"), Run(Pieces()))
    # y</in reaches over the tag, and is learnt
    assert [(t.author, t.ids.tolist()) for t in cut.turns[1:]] == [("policy", [0, 1]), (None, [2]), ("policy", [3, 4, 5])]
    assert cut.column("logprobs").tolist() == pytest.approx([np.nan, 0, 0.1, np.nan, 0.3, 0.4, 0.5], nan_ok=True)


@reward
def right(trajectory):
    return Score(None, why="down") if "?" in trajectory.reply else float("Bonn" in trajectory.reply)


def test_reward_and_credit_of_a_group(policy):
    recipe = ssrl(build("grpo").but(reward=right()))
    run = Run(policy)
    texts = [GOOD, "Bonn", "<think>b</think><answer>Rome</answer>", "<think>b</think><answer>?</answer>"]
    group = [without_information(reply_of(policy, text), run) for text in texts]
    (scores,) = recipe.reward([group], run)
    # right and formed, right alone, half formed alone, no verdict
    assert [s.value for s in scores] == [pytest.approx(1.0), pytest.approx(0.9), pytest.approx(0.05), None]
    batch = collate([group], [scores], torch.device("cpu"))
    credit = recipe.credit(batch.reward, batch, run)
    hidden = ~torch.from_numpy(group[0].mask)
    assert credit[0, : len(group[0])][hidden].abs().sum() == 0
    assert (credit[0, : len(group[0])][~hidden] > 0).all()
    weight = recipe.weighting(batch)
    # the mean of a row is over what is learnt
    assert weight[0].sum() == pytest.approx(weight[1].sum())
    assert weight[0, : len(group[0])][hidden].sum() == 0


def test_the_policy_is_told_and_its_information_masked(policy):
    problem = ask("Where?", "Bonn", said=GOOD)
    ((t,),) = self_searched(inner=recorded(fields=("said",)))([problem], Run(policy))
    assert t.problem.prompt[-1] == Message("user", TOLD)
    assert "Beethoven" not in "".join(policy.pieces(t.ids[t.mask]))
    assert self_search_form()([[t]])[0][0].value == 1.0
    plain = recorded(fields=("said",))
    shares = information_learnt(plain=plain, own=self_searched(inner=plain, tell=""))([problem], Run(policy))
    assert shares["own"] == 0
    assert 0.05 < shares["plain"] < 0.5


def test_what_the_base_samples_by_stays():
    recipe = build("dapo+ssrl", {"dapo.n": 3})
    assert str(recipe.rollout).startswith("solved_between(inner=self_searched(inner=independent(n=3)),")
    hot = build("grpo+ssrl", {"grpo.temperature": 0.6})
    assert str(hot.rollout) == "self_searched(inner=independent(temperature=0.6))"
    assert str(hot.measure) == "episode_accuracy(rollout=self_searched(inner=independent(n=1, temperature=0.6)))"
    real = ssrl(build("dapo", {"n": 3}), corpus="http://h/retrieve", real=True).rollout
    assert (real.name, real.innermost.name, real.rows_per_problem) == ("solved_between", "interactive", 3)
    # what is said stands, and without a base it is the paper's
    assert ssrl(build("grpo"), n=2, temperature=0.5).rollout.innermost.settings["n"] == 2
    assert ssrl(temperature=0.5).rollout.innermost.settings == {**ssrl().rollout.innermost.settings, "temperature": 0.5}
    assert ssrl().rollout.rows_per_problem == 5


def test_a_real_search_engine_takes_the_place_of_the_information(policy):
    recipe = ssrl(corpus="http://h/retrieve")
    assert recipe.rollout.name.endswith("self_searched")
    assert recipe.measure.settings["real"].settings["env"].settings["corpus"] == "http://h/retrieve"
    assert ssrl(corpus="http://h/retrieve", real=True).rollout.settings["env"].settings["stop"] == ("</search>",)
    assert ssrl().measure.name == "episode_accuracy"

    @rollout
    def says(problems, run, *, text: str):
        return [[reply_of(policy, text)] for _ in problems]

    numbers = sim_to_real(own=says(text="Rome"), real=says(text="Bonn"))([ask("?")] * 3, Run(policy, verify=right()))
    assert (numbers["pass@1"], numbers["real"]) == (0.0, 1.0)
