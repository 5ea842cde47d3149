"""A served model by token ids says what the policy behind the server says, and the searches that need its log-probs work."""

import numpy as np
import pytest
import torch
from served_model import serving

from rewardlab import api
from rewardlab.core import Message, Sampling, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.models.load import load_policy
from rewardlab.policies.served_ids import ServedIds


@pytest.fixture(scope="module")
def lean():
    return load_policy("untrained", "cpu")


@pytest.fixture(scope="module")
def running(lean, tmp_path_factory):
    lean.save_tokenizer(folder := tmp_path_factory.mktemp("tokenizer"))
    with serving(policy=lean) as server:
        yield server, f"{server.name},tokenizer={folder},ids=true"


@pytest.fixture
def served(running) -> ServedIds:
    running[0].troubles, running[0].asked = [], []
    return load_policy(running[1])


def begun(policy, *questions: str) -> list[Trajectory]:
    problems = [ask(q, system="Be short.") for q in questions]
    return policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])


def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def same(here: list[Trajectory], there: list[Trajectory]) -> None:
    for a, b in zip(here, there, strict=True):
        assert (a.ids.tolist(), a.stop, a.reply) == (b.ids.tolist(), b.stop, b.reply)
        np.testing.assert_allclose(a.column("logprobs", 0.0), b.column("logprobs", 0.0), atol=1e-4)
        np.testing.assert_allclose(a.column("sampled", 0.0), b.column("sampled", 0.0), atol=1e-4)


@pytest.mark.parametrize(
    "how", [{}, {"stop": ("e", "\n")}, {"stop_when": lambda text: len(text) > 2}], ids=["length", "stop string", "predicate"]
)
def test_greedy_replies_have_the_ids_and_log_probs_of_the_model_behind_the_server(served, lean, how):
    greedy = Sampling(40, temperature=0.0, **how)
    here, there = (policy.extend(begun(policy, "2 + 2?", "a longer one?"), greedy, rng()) for policy in (lean, served))
    same(here, there)
    assert served.token_count.generated >= sum(t.written for t in there)
    # what was said is continued, and a dialogue goes on, with the ids that were sampled
    here, there = (policy.extend(rows, Sampling(5, temperature=0.0), rng()) for policy, rows in ((lean, here), (served, there)))
    same(here, there)
    asked = [(Message("user", "and now?"),)] * 2
    same(lean.read(here, asked), served.read(there, asked))


def test_sampled_replies_have_the_log_probs_that_the_model_gives_them(served, lean):
    rows = served.extend(begun(served, *["2 + 2?"] * 4), Sampling(12), rng())
    assert len({t.reply for t in rows}) == 4
    for t, scored in zip(rows, lean.score(rows), strict=True):
        np.testing.assert_allclose(t.column("logprobs")[t.mask], scored[t.mask], atol=1e-4)
        assert t.turns[-1].sampled is t.turns[-1].logprobs
    # of another temperature the server does not say the distribution
    (row,) = served.extend(begun(served, "2 + 2?"), Sampling(4, temperature=0.5), rng())
    assert row.turns[-1].sampled is None


def test_settings_that_change_nothing_are_sent_since_servers_have_others(running, served):
    served.extend(begun(served, "2 + 2?"), Sampling(4), rng())
    neutral = {"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0}
    assert neutral.items() <= running[0].asked[-1].items()
    chat = load_policy(f"{running[0].name},neutral=true")
    chat.extend(begun(chat, "2 + 2?"), Sampling(4, top_p=0.5), rng())
    assert (neutral | {"top_p": 0.5}).items() <= running[0].asked[-1].items()


def test_searches_by_the_policys_own_probabilities_need_ids(running, served, monkeypatch, tmp_path):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path))
    for method in ("best_of_n", "beam_search"):
        found = api.answer(method, running[1], prompt="2 + 2?", max_new=6)
        assert isinstance(found["answer"], str)
        with pytest.raises(RewardlabError, match=r"no verdict on any of \d+ replies.*ids=true"):
            api.answer(method, f"{running[0].name},prefill=true", prompt="2 + 2?", max_new=6)


def test_what_cannot_be_is_said(running, served):
    with pytest.raises(RewardlabError, match=r"needs the tokenizer of its ids"):
        load_policy(f"{running[0].name},ids=true")
    with pytest.raises(RewardlabError, match="--max-entropy inf"):
        served.extend(begun(served, "2 + 2?"), Sampling(4, max_entropy=3.0), rng())
    with serving() as mute:
        other = load_policy(running[1].replace(running[0].url, mute.url))
        with pytest.raises(RewardlabError, match="no reply of ids"):
            other.extend(begun(other, "2 + 2?"), Sampling(4), rng())
