"""What stands between a policy and vLLM, with an engine that notes what it is told; `test_engine.py` has the real one."""

import numpy as np
import pytest
import torch

from rewardlab.core import Sampling, Trajectory, ask
from rewardlab.credit.mismatch import weigh_mismatch
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.policies.vllm.exchange import Said, untied
from rewardlab.policies.vllm.sampler import VLLMSampler
from rewardlab.settings.sampling import correction, read

RNG = torch.Generator()


class Noting:
    """Answers every row with two tokens of log-probs -1 and -2, the second of which ends it."""

    def __init__(self, policy):
        self.end, self.loads, self.asked = min(policy.ends), 0, []

    def load(self, policy):
        self.loads += 1

    def sample(self, rows, sampling, ends):
        self.asked.append(rows)
        return [Said(np.array([5, self.end]), np.array([-1.0, -2.0], np.float32), "end") for _ in rows]


@pytest.fixture
def policy():
    policy = untrained(hidden=32, layers=1)
    policy.sampler = VLLMSampler(lambda: Noting(policy))
    return policy


@pytest.fixture
def rows(policy):
    problems = [ask("1 + 1 = ?", "2"), ask("1 + 2 = ?", "3")]
    return policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])


def test_weights_are_handed_over_when_they_changed_and_only_then(policy, rows):
    engine = policy.sampler.engine
    optimiser = torch.optim.AdamW(policy.parameters(), lr=1e-3, fused=True)
    for expected in (1, 2, 3):
        policy.extend(rows, Sampling(4), RNG)
        policy.extend(rows, Sampling(4), RNG)
        assert engine.loads == expected
        for p in policy.parameters():
            p.grad = torch.ones_like(p)
        optimiser.step()
    with policy.noised(0.1, RNG.manual_seed(0)):
        policy.extend(rows, Sampling(4), RNG)
    policy.extend(rows, Sampling(4), RNG)
    assert engine.loads == 5
    policy.load_state({k: v + 1 for k, v in policy.state().items()})
    policy.extend(rows, Sampling(4), RNG)
    assert engine.loads == 6


def test_a_reply_carries_the_samplers_log_probs(policy, rows):
    turn = policy.extend(rows, Sampling(4), RNG)[0].turns[-1]
    assert turn.logprobs.tolist() == turn.sampled.tolist() == [-1, -2]
    # one log-prob is told: under a temperature it is not that of the raw policy
    warm = policy.extend(rows, Sampling(4, 0.5), RNG)[0].turns[-1]
    assert warm.logprobs is None
    assert warm.sampled.tolist() == [-1, -2]
    greedy = policy.extend(rows, Sampling(4, 0.0), RNG)[0].turns[-1]
    assert greedy.sampled.tolist() == [0, 0]
    assert policy.token_count.generated == 3 * 2 * 2


def test_every_row_has_a_seed_of_its_own(policy, rows):
    engine = policy.sampler.engine
    policy.extend(rows, Sampling(4), RNG.manual_seed(7))
    policy.extend(rows, Sampling(4), RNG.manual_seed(7))
    policy.extend(rows, Sampling(4, seeds=(11, 12)), RNG)
    policy.extend(rows, Sampling(4, 0.0), RNG)
    first, second, given, greedy = ([row.seed for row in asked] for asked in engine.asked)
    assert first == second
    assert len(set(first)) == 2
    assert given == [11, 12]
    assert greedy == [None, None]


def test_what_vllm_cannot_do_the_policy_does_itself(policy, rows, capsys):
    engine = policy.sampler.engine
    done = policy.extend(rows, Sampling(4, stop_when=lambda text: False), RNG)
    assert not engine.asked
    assert all(len(t.turns[-1].ids) for t in done)
    policy.extend(rows, Sampling(4, stop_when=lambda text: False), RNG)
    assert capsys.readouterr().err.count("a function decides where a reply ends") == 1


def test_prompts_must_fit(policy, rows):
    with pytest.raises(RewardlabError, match="exceed the model's context"):
        policy.extend(rows, Sampling(policy.context), RNG)


def test_a_copy_samples_by_itself(policy):
    assert policy.copy("reference").sampler is None


def test_a_tied_head_gets_a_name_of_its_own():
    x, y = torch.zeros(2), torch.ones(2)
    assert dict(untied(iter([("model.embed_tokens.weight", x)])))["lm_head.weight"] is x
    both = [("model.embed_tokens.weight", x), ("lm_head.weight", y)]
    assert list(untied(iter(both))) == both


@pytest.mark.parametrize(
    ("name", "why"),
    [("sglang", "is no sampler"), ("vllm:nowhere", "no address"), ("vllm,memori=1", "memory"), ("vllm,memory=2", "from 0 to 1"),
     ("vllm,rows", "has no value")],
)  # fmt: skip
def test_names_that_cannot_be_read(name, why):
    with pytest.raises(RewardlabError, match=why):
        read(name)


def test_names():
    assert read("vllm") == read("vllm,memory=0.4")
    assert read("vllm:http://localhost:8000/v1,concurrency=4").url == "http://localhost:8000"


class Log:
    def __init__(self):
        self.metrics = {}

    def log(self, name, value):
        self.metrics[name] = value


def mismatched(told, how):
    """Advantages of 1, weighed: two rows of two tokens, whose ratios to the sampler are e^1, e^-1 and e^0, e^2."""
    from rewardlab.core import Batch, Turn

    def row(sampled):
        return Trajectory(ask("", "")).plus(Turn("policy", np.array([1, 2]), None, np.array(sampled, np.float32)), "end")

    rows = [(row([-2.0, -1.0]), None), (row([-2.0, -3.0]), None)]
    mask = torch.ones(2, 2, dtype=torch.bool)
    zeros = torch.zeros(2, 2)
    batch = Batch(zeros.long(), mask, torch.tensor([2, 2]), zeros, zeros, mask, torch.tensor([0, 0]), rows=rows)
    batch.columns["policy.logprobs"] = torch.tensor([[-1.0, -2.0], [-2.0, -1.0]])
    log = Log()
    done = weigh_mismatch(**vars(correction(how)))(torch.ones(2, 2), batch, log)
    told |= log.metrics
    return done


@pytest.mark.parametrize(
    ("how", "weights"),
    [
        ("truncate", [[2, np.exp(-1)], [1, 2]]), ("mask", [[0, np.exp(-1)], [1, 0]]), ("mask:3", [[np.e, np.exp(-1)], [1, 0]]),
        ("truncate-rows", [[1, 1], [2, 2]]), ("mask-rows", [[1, 1], [0, 0]]), ("truncate-rows:10", [[1, 1], [np.e**2, np.e**2]]),
    ],
)  # fmt: skip
def test_ratios_are_truncated_or_masked(how, weights):
    told = {}
    assert torch.allclose(mismatched(told, how), torch.tensor(weights, dtype=torch.float32))
    assert told["mismatch"] == pytest.approx((1 + 1 + 0 + 2) / 4)


def test_a_correction_that_cannot_be_read():
    with pytest.raises(RewardlabError, match="truncate, mask"):
        correction("clip:2")
