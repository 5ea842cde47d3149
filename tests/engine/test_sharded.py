"""A transformers model divided between two processes (FSDP2) takes the steps of one that is whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from checkpoints import checkpoint
from ranks import together
from safetensors.torch import load_file, save_file

from rewardlab import RewardlabError, load_policy, registry
from rewardlab.core import Recipe, Run, Sampling, Score, Trajectory, ask, objective
from rewardlab.credit.group import center, whiten
from rewardlab.credit.value import to_go
from rewardlab.engine import distributed
from rewardlab.engine.step import Ops
from rewardlab.engine.update import backward
from rewardlab.models.embedded import tokenizer
from rewardlab.objectives.ratio import policy_gradient
from rewardlab.objectives.regularise import kl_to_reference, negative_entropy
from rewardlab.objectives.weighting import token_mean
from rewardlab.policies.hf.policy import HFPolicy
from rewardlab.policies.hf.sharded import ShardedPolicy
from rewardlab.runs.config import RunConfig
from rewardlab.runs.metrics import read_metrics
from rewardlab.util.sharded import whole

# of five micro-batches, one process has three
REPLIES = [["1", "quite long reply", "2 3"], ["one two three four", "7"]]
REWARDS = [[1.0, 0.0, 0.5], [0.0, 2.0]]
MICRO_TOKENS = 8


@objective(unit="batch")
def spread_of_likelihood(out, batch, run):
    """A loss that no row has alone."""
    return torch.where(batch.mask, out.logprobs, 0.0).sum(1).var()


def recipe(over_batch: bool) -> Recipe:
    loss = policy_gradient() + 0.1 * kl_to_reference() + 0.01 * negative_entropy()
    return Recipe(
        credit=center() >> to_go() >> whiten(), objective=loss + 0.1 * spread_of_likelihood() if over_batch else loss,
        weighting=token_mean(),
    )  # fmt: skip


def batch_of(policy, over_batch):
    """Ops and their batch of recorded rollouts, with log-probs of a reference."""
    problems = [ask(f"{i}?") for i, group in enumerate(REPLIES) for _ in group]
    asked = policy.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    rows = iter(policy.write(asked, [text for group in REPLIES for text in group]))
    groups = [[next(rows) for _ in group] for group in REPLIES]
    run = Run(policy, reference=policy.copy("reference"))
    ops = Ops(recipe(over_batch), run, registry.task("arithmetic", test_size=2), RunConfig(micro_tokens=MICRO_TOKENS))
    return ops, ops.collate(groups, [[Score(r) for r in row] for row in REWARDS])


def gradients(policy, over_batch) -> dict[str, torch.Tensor]:
    ops, batch = batch_of(policy, over_batch)
    backward(policy, batch, ops.recipe, ops.run, MICRO_TOKENS)
    distributed.sum_gradients(policy.parameters())
    found = {k: whole(p.grad).clone() for k, p in policy.whole.named_parameters()}
    for p in policy.parameters():
        p.grad = None
    return found


def updated(policy) -> tuple[dict[str, torch.Tensor], dict[str, float]]:
    """The weights after two updates, and the numbers of the last."""
    ops, batch = batch_of(policy, over_batch=False)
    for _ in range(2):
        ops.update(batch)
    return policy.state(), ops.run.metrics


def sampled(policy, n: int) -> list[list[int]]:
    asked = policy.read([Trajectory(ask(f"{i}+{i}=")) for i in range(n)], [ask(f"{i}+{i}=").prompt for i in range(n)])
    replies = policy.extend(asked, Sampling(6, temperature=0), torch.Generator().manual_seed(0))
    return [t.ids.tolist() for t in replies]


def one_of_two(rank: int, folder: str) -> None:
    distributed.init()
    policy = ShardedPolicy(HFPolicy.load(Path(folder, "untied"), "cpu", "float32"), torch.device("cpu"), torch.float32)
    assert max(p.to_local().numel() / p.numel() for p in policy.parameters()) < 0.6
    out = {f"gradient.{b}.{k}": g for b in (False, True) for k, g in gradients(policy, b).items()}
    # gradient checkpointing: layers are gathered once going back, and computed again
    policy.recomputes = True
    assert all(torch.equal(g, out[f"gradient.{b}.{k}"]) for b in (False, True) for k, g in gradients(policy, b).items())
    assert policy.copy("reference").recomputes
    policy.recomputes = False
    # one process has three prompts and the other one; then the first samples alone, and both the same
    with distributed.in_turns():
        apart = sampled(policy, 3 - 2 * rank)
    samples = [apart, distributed.on_rank_zero(lambda: sampled(policy, 2)), sampled(policy, 2)]
    Path(folder, f"samples{rank}.json").write_text(json.dumps(samples))
    state, metrics = updated(policy)
    save_file(out | {f"weight.{k}": w.contiguous() for k, w in state.items()}, Path(folder, f"rank{rank}.safetensors"))
    Path(folder, f"metrics{rank}.json").write_text(json.dumps(metrics))
    distributed.on_rank_zero(lambda: policy.save(Path(folder, "saved")))
    refused(policy)
    torch.distributed.barrier()
    distributed.shutdown()


def refused(policy) -> None:
    for attempt in (
        lambda: policy.copy("critic", value_head=True),
        lambda: policy.inserted(0, lambda x: x).__enter__(),
        lambda: policy.vocabulary_head(),
        lambda: policy.noised(0.1, torch.Generator()).__enter__(),
        lambda: policy.joined([(1.0, policy)]).__enter__(),
    ):
        with pytest.raises(RewardlabError, match="needs whole weights, which no process has under --shard"):
            attempt()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sharded")
    checkpoint(folder / "untied", tokenizer())
    checkpoint(folder / "tied", tokenizer(), tie_word_embeddings=True)
    return folder


@pytest.fixture(scope="module")
def two(place):
    codes = together(2, place, one_of_two, str(place))
    assert codes == [0, 0], (place / "rank0.log").read_text() + (place / "rank1.log").read_text()
    return place


def test_gradients_and_steps_are_those_of_one_process(two):
    policy = HFPolicy.load(two / "untied", "cpu", "float32")
    expected = {f"gradient.{b}.{k}": g for b in (False, True) for k, g in gradients(policy, b).items()}
    weights, metrics = updated(policy)
    expected |= {f"weight.{k}": w for k, w in weights.items()}
    for rank in range(2):
        found = load_file(two / f"rank{rank}.safetensors")
        assert found.keys() == expected.keys()
        for name, tensor in expected.items():
            torch.testing.assert_close(found[name], tensor, rtol=1e-4, atol=1e-6, msg=name)
        said = json.loads((two / f"metrics{rank}.json").read_text())
        assert said == pytest.approx(metrics, abs=1e-4)


def test_it_samples_while_divided_whoever_has_prompts(two):
    policy = HFPolicy.load(two / "untied", "cpu", "float32")
    one, three, pair = sampled(policy, 1), sampled(policy, 3), sampled(policy, 2)
    assert json.loads((two / "samples0.json").read_text()) == [three, pair, pair]
    assert json.loads((two / "samples1.json").read_text()) == [one, pair, pair]


def test_it_is_saved_whole(two):
    import transformers

    saved = transformers.AutoModelForCausalLM.from_pretrained(two / "saved").state_dict()
    trained = load_file(two / "rank0.safetensors")
    assert type(transformers.AutoModelForCausalLM.from_pretrained(two / "saved")).__name__ == "LlamaForCausalLM"
    assert all(torch.equal(saved[k], trained[f"weight.{k}"]) for k in saved)
    lean = load_policy(str(two / "saved"), "cpu", "float32")
    assert sampled(lean, 2) == sampled(HFPolicy.load(two / "saved", "cpu", "float32"), 2)


def kept_for_backward(rank: int, folder: str) -> None:
    """Writes the bytes that a pass in bfloat16 keeps for the backward pass, and the gradient."""
    distributed.init()
    whole_policy = HFPolicy.load(Path(folder, "wide"), "cpu", "float32")
    policy = ShardedPolicy(whole_policy, torch.device("cpu"), torch.bfloat16)
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(x: torch.Tensor) -> torch.Tensor:
        kept[x.untyped_storage().data_ptr()] = x.untyped_storage()
        return x

    ids, length = torch.arange(8).view(2, 4), torch.full((2,), 4)
    with distributed.in_turns(learning=True):
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            out = policy._forward(ids, length, torch.ones_like(ids, dtype=torch.bool), ("logprobs",))
        # a gathered layer that was freed again has a storage of no bytes
        held = sum(storage.nbytes() for storage in kept.values())
        out.logprobs.sum().backward()
    gradient = {k: whole(p.grad).contiguous() for k, p in policy.whole.named_parameters()}
    save_file(gradient, Path(folder, f"bfloat16-{rank}.safetensors"))
    Path(folder, f"held{rank}.json").write_text(json.dumps(held))
    torch.distributed.barrier()
    distributed.shutdown()


def test_in_bfloat16_no_copies_of_the_layers_stay_for_the_backward_pass(tmp_path):
    checkpoint(tmp_path / "wide", tokenizer(), hidden_size=128, intermediate_size=512, num_hidden_layers=6, head_dim=64)
    codes = together(2, tmp_path, kept_for_backward, str(tmp_path))
    assert codes == [0, 0], (tmp_path / "rank0.log").read_text() + (tmp_path / "rank1.log").read_text()
    # each of the two processes had the same rows
    divided = flat({k: g / 2 for k, g in load_file(tmp_path / "bfloat16-0.safetensors").items()})
    exact, rounded = (gradient_of_a_pass(HFPolicy.load(tmp_path / "wide", "cpu", d)) for d in ("float32", "bfloat16"))
    copies = HFPolicy.load(tmp_path / "wide", "cpu", "bfloat16").copy_bytes(sampling=False)
    assert json.loads((tmp_path / "held0.json").read_text()) < copies / 3
    # its norms' scales are rounded too, which autocast's are not: it is about as far from float32 as that
    error, usual = (float((x - exact).norm() / exact.norm()) for x in (divided, rounded))
    assert 0 < error < 2 * usual
    assert float(divided.norm()) == pytest.approx(float(exact.norm()), rel=0.05)


def gradient_of_a_pass(policy) -> torch.Tensor:
    ids, length = torch.arange(8).view(2, 4), torch.full((2,), 4)
    policy._forward(ids, length, torch.ones_like(ids, dtype=torch.bool), ("logprobs",)).logprobs.sum().backward()
    return flat({k: p.grad for k, p in policy.whole.named_parameters()})


def flat(gradients: dict[str, torch.Tensor]) -> torch.Tensor:
    return torch.cat([gradients[k].flatten() for k in sorted(gradients)])


def command(rank: int, lines: list[list[str]]) -> int:
    from rewardlab.commands.cli import main

    return max(main(line) for line in lines)


def argv(place, out, steps, *more):
    reward = place / "mine.py"
    reward.write_text("def spaces(completion): return completion.count(' ') - 0.1 * len(completion)\n")
    task = "--task arithmetic --n 2 --problems 3 --lr 0.01 --beta 0.1 --max-new 6 --eval-every 2 --eval-problems 5 --device cpu"
    model = f"--reward {reward}:spaces --model hf:{place / 'tied'} --dtype float32 --micro-tokens 64 --checkpoint-every 2"
    return f"train grpo {task} {model} --steps {steps} --out {out}".split() + list(more)


def test_a_run_by_command_line_with_tied_weights_a_reference_and_a_second_half(place, tmp_path):
    """Two steps, and two more after resuming, are four in one go; and nearly those of processes that hold all weights."""
    whole_run, halves, plain = (tmp_path / name for name in ("whole", "halves", "plain"))
    resumed = ["train", "--resume", str(halves), "--steps", "4"]
    lines = [argv(place, whole_run, 4, "--shard"), argv(place, halves, 2, "--shard"), resumed, argv(place, plain, 4)]
    codes = together(2, tmp_path, command, lines)
    assert codes == [0, 0], (tmp_path / "rank0.log").read_text() + (tmp_path / "rank1.log").read_text()
    last, trained = "checkpoints/step-000004", load_file(whole_run / "checkpoints/step-000004/policy.safetensors")
    for file in ("policy.safetensors", "policy.optimiser.safetensors"):
        assert (whole_run / last / file).read_bytes() == (halves / last / file).read_bytes()
    assert json.loads((whole_run / "config.json").read_text())["shard"] is True
    assert [timeless(line) for line in read_metrics(whole_run)] == [timeless(line) for line in read_metrics(halves)]
    first, of_whole_weights = (read_metrics(out)[1] for out in (whole_run, plain))
    assert first["grad_norm"] > 0.01
    assert timeless(first) == pytest.approx(timeless(of_whole_weights), rel=1e-3, abs=1e-4)
    model = HFPolicy.load(whole_run / "model", "cpu", "float32")
    assert all(torch.equal(model.state()[k], trained[k]) for k in trained)
    before = HFPolicy.load(place / "tied", "cpu", "float32").state()
    assert not torch.allclose(before["model.norm.weight"], trained["model.norm.weight"], atol=1e-3)


def timeless(row):
    return {k: v for k, v in row.items() if not k.startswith("seconds")}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({}, "among processes, and there is only this one: torchrun"),
        ({"lora_rank": 4}, "it is not for adapters"),
        ({"engine": "trl"}, "not for engine trl: accelerate divides its weights"),
        ({"model": "untrained"}, "divides language models that transformers runs, and this is a LlamaPolicy"),
    ],
)
def test_what_cannot_be_divided_is_refused(more, told, place, tmp_path):
    from rewardlab import train

    with pytest.raises(RewardlabError, match=told):
        train("grpo", task="arithmetic", out=tmp_path / "run", shard=True, **{"model": f"hf:{place / 'tied'}", **more})
    assert not (tmp_path / "run").exists()
