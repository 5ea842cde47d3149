"""Rewards of rewardlab in other frameworks' signatures; with the real frameworks where they are installed."""

from __future__ import annotations

import asyncio
import logging
import math
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rewardlab import registry, reward
from rewardlab.backends.reward_functions import as_openrlhf_reward, as_trl_reward, as_verifiers_reward, as_verl_reward
from rewardlab.errors import RewardlabError
from rewardlab.registry.formula import read_reward
from rewardlab.rewards.algebra import aggregate, constrained, normalised, scheduled
from rewardlab.rewards.length import length_penalty, tokens
from rewardlab.rewards.process import prm_steps
from rewardlab.rewards.task import correct


@reward
def judged_unless_asked(trajectory):
    return None if trajectory.reply == "?" else float(trajectory.reply.endswith(str(trajectory.problem.answer)))


@reward(over="group")
def rarity(group, run):
    replies = [t.reply for t in group]
    return [1.0 / replies.count(r) for r in replies]


@reward
def from_the_policy(trajectory, run):
    return run.policy.score([trajectory])


@reward
def of_the_step(trajectory, run):
    return float(run.step)


@reward
def hinted(trajectory):
    return float(trajectory.problem.meta["hint"] in trajectory.reply)


verify = registry.part("reward", "final_number")


# ---- TRL -------------------------------------------------------------------------------------------------------------


def test_trl_texts_messages_columns_and_none():
    f = as_trl_reward(judged_unless_asked())
    assert f.__name__ == "judged_unless_asked"
    assert f(["2+2?"] * 3, ["4", "5", "?"], answer=["4"] * 3) == [1.0, 0.0, None]
    chats = [[{"role": "assistant", "content": c}] for c in ("4", "5", "?")]
    asked = [[{"role": "user", "content": "2+2?"}]] * 3
    assert f(asked, chats, completion_ids=[[1], [2], [3]], solution=["4"] * 3, log_metric=print) == [1.0, 0.0, None]
    assert as_trl_reward(correct() + hinted(), verify)(["q"] * 2, ["a 4", "5"], answer=["4", "4"], hint=["a", "b"]) == [2.0, 0.0]


def test_trl_answers_in_another_column():
    replies, answers = ["a 4", "5"], ["4", "4"]
    assert as_trl_reward(correct(), verify, answer="result")(["q"] * 2, replies, result=answers) == [1.0, 0.0]
    for given, says in ((None, "none of the columns answer, "), ("reslt", "no column 'reslt'")):
        for verified in (correct(), verify, correct() + 0.1 * tokens()):
            with pytest.raises(RewardlabError, match=rf"{says}.* prompts: result\. Name .*answer=NAME"):
                as_trl_reward(verified, verify, answer=given)(["q"] * 2, replies, result=answers)
    # a reward that compares nothing with an answer may lack a verdict
    assert as_trl_reward(judged_unless_asked())(["q"], ["?"]) == [None]


def test_trl_counts_its_own_tokens():
    assert as_trl_reward(tokens())(["q"], ["four"], completion_ids=[[7, 8]]) == [2.0]


def test_trl_groups_are_equal_prompts_side_by_side():
    f = as_trl_reward(rarity())
    assert f(["a", "a", "b", "b"], ["x", "x", "x", "y"]) == [0.5, 0.5, 1.0, 1.0]


def test_trl_schedules_follow_its_steps():
    f = as_trl_reward(scheduled(tokens(), start=0, end=1))
    at = [f(["q"], ["x"], completion_ids=[[1]], trainer_state=SimpleNamespace(global_step=s, max_steps=10)) for s in (0, 5, 10)]
    assert at == [[0.0], [0.5], [1.0]]


def test_what_a_reward_remembers_goes_on_from_call_to_call():
    running = normalised(tokens(), within="running", eps=0.0)
    f = as_trl_reward(running)
    first, second = (f(["q"] * 2, ["x", "x"], completion_ids=ids) for ids in ([[1], [1] * 3], [[1] * 5, [1] * 7]))
    assert first == pytest.approx([-(0.5**0.5), 0.5**0.5])
    # the mean of 1, 3, 5, 7 is 4, and their variance is 20 / 3
    assert second == pytest.approx([(5 - 4) / (20 / 3) ** 0.5, (7 - 4) / (20 / 3) ** 0.5])
    # calls within a step of the trainer start from the same memory
    told, state = as_trl_reward(running), SimpleNamespace(global_step=1, max_steps=10)
    again = [told(["q"] * 2, ["x", "x"], completion_ids=[[1], [1] * 3], trainer_state=state) for _ in range(2)]
    assert again[0] == again[1]


def test_without_a_trainers_steps_a_schedule_stays_at_its_start():
    f = as_trl_reward(scheduled(tokens(), start=1, end=0))
    assert [f(["q"], ["x"], completion_ids=[[1]]) for _ in range(3)] == [[1.0]] * 3


def test_a_policy_that_is_not_there_is_said():
    with pytest.raises(RewardlabError, match=r"from_the_policy.*the other framework's.*prompt 'q', reply 'x'"):
        as_trl_reward(from_the_policy())(["q"], ["x"])
    with pytest.raises(RewardlabError, match="is no reward of rewardlab"):
        as_trl_reward(lambda: 1)
    # said before anything is trained, with what to take instead
    for dense in (correct() + prm_steps(model="prm:x"), aggregate(prm_steps(model="prm:x"), by="min")):
        with pytest.raises(RewardlabError, match=r"prm_steps pays the tokens at which steps end.*prm_score\(model="):
            as_trl_reward(dense, verify)


# ---- verl and OpenRLHF -----------------------------------------------------------------------------------------------


def test_verl():
    f = as_verl_reward(correct() + 0.5 * hinted(), verify)
    assert f.__name__ == "compute_score"
    assert f("gsm8k", "so 4", "4", {"hint": "so", "index": 3}) == {"score": 1.5}
    assert f(data_source="x", solution_str="5", ground_truth="4", extra_info={"hint": "so"}, reward_router_address="a") == {
        "score": 0.0
    }


def test_openrlhf():
    f = as_openrlhf_reward(judged_unless_asked(), end=("<|end|>",))
    found = f(["Q: 2+2? A: 4<|end|>", "Q: 5"], ["Q: 2+2? A: ", "Q: "], ["4", "6"])
    assert found.keys() == {"rewards", "scores", "extra_logs"}
    assert found["rewards"].tolist() == found["scores"].tolist() == [1.0, 0.0]
    with pytest.raises(RewardlabError, match="query 0 does not begin with its prompt"):
        f(["cut off"], ["Q: "], ["4"])


@pytest.mark.parametrize("missing", ["raise", "nan"])
def test_no_verdict_is_never_a_zero(missing):
    verl, openrlhf = (make(judged_unless_asked(), missing=missing) for make in (as_verl_reward, as_openrlhf_reward))
    if missing == "nan":
        assert math.isnan(verl("x", "?", "4")["score"])
        assert openrlhf(["q?"], ["q"], ["4"])["rewards"].isnan().tolist() == [True]
        return
    for call in (lambda: verl("x", "?", "4"), lambda: openrlhf(["q?"], ["q"], ["4"])):
        with pytest.raises(RewardlabError, match=r"judged_unless_asked.*no verdict.*returned None.*reply '\?'"):
            call()


def test_rewards_that_compare_replies_are_refused_where_each_is_scored_alone():
    for make in (as_verl_reward, as_openrlhf_reward):
        with pytest.raises(
            RewardlabError, match=r"rarity takes the replies of a step together, and this framework scores each reply alone"
        ):
            make(rarity() + tokens())


def test_errors_name_file_line_and_row(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def f(completion):\n    return 1 / (len(completion) - 1)\n")
    f = as_verl_reward(read_reward(f"{file}:f"))
    with pytest.raises(RewardlabError, match=r"the reward f of .*mine.py, line 2: ZeroDivisionError.*reply 'x'"):
        f("x", "x", "4")


def test_one_framework_in_another_one_out(tmp_path):
    """A function for verl, read by rewardlab, handed to TRL."""
    file = tmp_path / "theirs.py"
    file.write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    return {'score': float(ground_truth in solution_str)}\n"
    )
    assert as_trl_reward(read_reward(f"{file}:compute_score"))(["q"] * 2, ["4", "5"], answer=["4", "4"]) == [1.0, 0.0]


# ---- verifiers -------------------------------------------------------------------------------------------------------


def said(text: str) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": text}]


@contextmanager
def logged():
    """What is logged as an error meanwhile."""
    texts = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: texts.append(record.getMessage())
    logging.getLogger().addHandler(handler)
    try:
        yield texts
    finally:
        logging.getLogger().removeHandler(handler)


def test_verifiers_functions():
    f = as_verifiers_reward(judged_unless_asked() + length_penalty(per_token=0.1))
    asked = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}]
    assert f(prompt=asked, completion=said("4"), answer="4", info={}) == pytest.approx(0.9)
    with logged() as errors:
        assert math.isnan(f(prompt=asked, completion=said("?"), answer="4"))
    assert not errors
    with logged() as errors:
        assert math.isnan(as_verifiers_reward(hinted())(prompt=asked, completion=said("4"), answer="4", info={}))
    assert "hinted" in errors[0]
    assert "reply '4'" in errors[0]
    of_group = as_verifiers_reward(rarity())
    assert of_group([asked] * 2, [said("a"), said("a")], ["4"] * 2, [{}] * 2) == [0.5, 0.5]


def test_verifiers_groups_move_a_multiplier_and_single_replies_are_no_steps():
    f = as_verifiers_reward(constrained(of_the_step() * 0.0, tokens(), limit=0.0, lr=1.0))
    asked = [{"role": "user", "content": "2+2?"}]
    paid = [f([asked] * 2, [said("4")] * 2, ["4"] * 2, [{}] * 2) for _ in range(3)]
    # every group has a mean cost of 1, so the multiplier rises by 1 each
    assert paid == [[-1.0] * 2, [-2.0] * 2, [-3.0] * 2]
    steps = as_verifiers_reward(of_the_step())
    assert [steps(prompt=asked, completion=said("4"), answer="4") for _ in range(3)] == [0.0] * 3
    assert [as_verl_reward(of_the_step())("x", "4", "4")["score"] for _ in range(2)] == [0.0] * 2


# ---- the real frameworks ---------------------------------------------------------------------------------------------


def test_in_a_rubric_of_verifiers():
    """verifiers 0.1.14: its own scoring of rollouts and of a group. A rubric makes 0 of an exception, but keeps NaN."""
    vf = pytest.importorskip("verifiers", reason="needs verifiers below 0.4")
    if not hasattr(vf, "Rubric"):
        pytest.skip("verifiers has no Rubric from 0.4 on")
    rubric = vf.Rubric(funcs=[as_verifiers_reward(judged_unless_asked()), as_verifiers_reward(tokens())], weights=[1.0, 0.1])
    states = [state_of(text) for text in ("4", "5", "?")]
    for state in states:
        asyncio.run(rubric.score_rollout(state))
    assert [s["reward"] for s in states[:2]] == [pytest.approx(1.1), pytest.approx(0.1)]
    assert math.isnan(states[2]["reward"])
    grouped = vf.Rubric(funcs=[as_verifiers_reward(rarity())])
    pair = [state_of("a"), state_of("a")]
    asyncio.run(grouped.score_group(pair))
    assert [s["reward"] for s in pair] == [0.5, 0.5]


def state_of(text: str):
    from verifiers.types import State

    asked = [{"role": "user", "content": "2+2?"}]
    row = {"prompt": asked, "answer": "4", "info": {}, "task": "sums", "example_id": 0}
    state = State(input=row, completion=said(text), trajectory=[])
    state["timing"] = SimpleNamespace(scoring_ms=0.0, total_ms=0.0)
    return state


def test_a_rubric_of_verifiers_in_rewardlab(tmp_path):
    vf = pytest.importorskip("verifiers", reason="needs verifiers below 0.4")
    if not hasattr(vf, "Rubric"):
        pytest.skip("verifiers has no Rubric from 0.4 on")
    file = tmp_path / "theirs.py"
    file.write_text(
        "import verifiers as vf\n"
        "def right(parser, completion, answer): return float(parser.parse_answer(completion) == answer)\n"
        "async def brief(completion, state, info): return -float(len(completion[-1]['content']))\n"
        "rubric = vf.Rubric(funcs=[right, brief], weights=[1.0, 0.1], parser=vf.XMLParser(['answer'], answer_field='answer'))\n"
    )
    f = as_trl_reward(read_reward(f"{file}:rubric"))
    assert f(["q"] * 2, ["<answer>4</answer>", "4"], answer=["4", "4"]) == [pytest.approx(1 - 0.1 * 18), pytest.approx(-0.1)]


def test_in_openrlhf(tmp_path):
    """OpenRLHF 0.11.2 loads the file as its remote_url, and calls it as it does in training."""
    agent = pytest.importorskip("openrlhf.utils.agent", reason="needs openrlhf")
    file = tmp_path / "rewards.py"
    file.write_text(
        "from rewardlab import part\nfrom rewardlab.backends.reward_functions import as_openrlhf_reward\n"
        "reward_func = as_openrlhf_reward(part('reward', 'correct'), verify=part('reward', 'final_number'), end=['</s>'])\n"
    )
    executor = agent.SingleTurnAgentExecutor(str(file))
    first, second = asyncio.run(executor._fetch_rewards_via_func(["Q: 2+2? 4</s>", "Q: 5"], ["Q: 2+2? ", "Q: "], ["4", "6"]))
    assert (first["rewards"].tolist(), second["rewards"].tolist()) == ([1.0], [0.0])


def test_in_trl(tmp_path):
    """TRL 1.16 scores two replies with it, one of them without a verdict, which is NaN there."""
    trl = pytest.importorskip("trl")
    import datasets

    from rewardlab.models.embedded import untrained

    start = untrained(hidden=32, layers=2)
    start.save(tmp_path / "start")
    fields = {"output_dir": str(tmp_path / "trl"), "report_to": [], "use_cpu": True, "bf16": False, "gradient_checkpointing": False}
    trainer = trl.GRPOTrainer(
        str(tmp_path / "start"), reward_funcs=as_trl_reward(judged_unless_asked()), processing_class=start.tokenizer,
        args=trl.GRPOConfig(**fields, num_generations=2, per_device_train_batch_size=2),
        train_dataset=datasets.Dataset.from_list([{"prompt": "2+2?", "answer": "4"}]),
    )  # fmt: skip
    rows = [{"prompt": "2+2?", "answer": "4"}] * 2
    found = trainer._calculate_rewards(rows, ["2+2?"] * 2, ["it is 4", "?"], [[1], [2]])
    assert torch.equal(found.isnan(), torch.tensor([[False], [True]]))
    assert found[0, 0] == 1.0


def test_in_verl(tmp_path):
    """verl 0.9.1 loads it as its custom reward function, and its naive reward manager scores with it."""
    pytest.importorskip("verl")
    from omegaconf import OmegaConf
    from test_engine_verl import Letters, of_one
    from verl.experimental.reward_loop.reward_manager.naive import NaiveRewardManager
    from verl.trainer.ppo.reward import get_custom_reward_fn

    file = tmp_path / "rewards.py"
    file.write_text(
        "from rewardlab import part\nfrom rewardlab.backends.reward_functions import as_verl_reward\n"
        "compute_score = as_verl_reward(part('reward', 'correct'), verify=part('reward', 'final_number'))\n"
    )
    config = OmegaConf.create({"reward": {"custom_reward_function": {"path": str(file), "name": "compute_score"}}})
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        manager = NaiveRewardManager(config, Letters(), get_custom_reward_fn(config))
        found = [loop.run_until_complete(manager.run_single(of_one(text, "42")))["reward_score"] for text in ("a 42", "41")]
    finally:
        loop.close()
        asyncio.set_event_loop(None)
    assert found == [1.0, 0.0]


# ---- gold answers that are not there ---------------------------------------------------------------------------------


@pytest.mark.parametrize("hole", [math.nan, np.float32("nan"), None], ids=repr)
def test_an_answer_that_a_table_lacks_gives_no_verdict_anywhere(hole):
    assert as_trl_reward(correct(), verify=verify)(["1+1?"] * 2, ["2", "3"], answer=["2", hole]) == [1.0, None]
    verl = as_verl_reward(correct(), verify=verify, missing="nan")
    assert math.isnan(verl("d", "2", hole)["score"])
    found = as_openrlhf_reward(correct(), verify=verify, missing="nan")(["1+1?2"], ["1+1?"], [hole])
    assert found["rewards"].isnan().all()
    assert math.isnan(as_verifiers_reward(correct(), verify=verify)("1+1?", "2", hole, {}))


def test_a_column_of_answers_of_another_length_is_named(caplog):
    for given in ({}, {"answer": "answer"}):
        with pytest.raises(RewardlabError, match="the column 'answer' has 1 answer for 2 completions; it must have one for each"):
            as_trl_reward(correct(), verify=verify, **given)(["a", "b"], ["5", "6"], answer=["5"])
