"""MaPPO: the rejected reply's log-ratio times the gap of prior rewards, in any loss on pairs."""

from __future__ import annotations

import math

import pytest
import torch
from rows import batch_of, outcome

from rewardlab import registry
from rewardlab.api import plan
from rewardlab.core import Outputs, Run, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.methods.baselines.ipo import ipo_loss
from rewardlab.methods.baselines.kto import kto
from rewardlab.methods.objectives.mappo import mappo
from rewardlab.methods.objectives.simpo import simpo_loss
from rewardlab.models.embedded import tokenizer, untrained
from rewardlab.objectives.pairs import dpo_loss
from rewardlab.rewards.reward import reward
from tests.helpers.checkpoints import checkpoint

# two decisions and one; then one and three. Off the decisions NaN, which must not reach a loss
POLICY = [[math.nan, -1.0, -2.0], [math.nan, -4.0], [math.nan, -1.0], [math.nan, -2.0, -2.0, -2.0]]
REF = [[math.nan, -2.0, -2.0], [math.nan, -2.0], [math.nan, -1.0], [math.nan, -1.0, -1.0, -1.0]]
# log-ratios:  1 and -2;  0 and -3


def pairs(*scores: float | None):
    patterns = ("rdd", "rd", "rd", "rddd")
    rows = [(p, {"score": outcome(s)}) for p, s in zip(patterns, scores, strict=True)]
    batch = batch_of([rows[:2], rows[2:]], {"ref": REF})
    run = Run(policy=None)
    batch.credit = registry.build("mappo").credit(batch.reward, batch, run)
    logprobs = torch.tensor([[*row, *[0.0] * (batch.width - len(row))] for row in POLICY], requires_grad=True)
    return batch, run, logprobs


def loss(name: str, batch, run, logprobs, **settings) -> list[float]:
    return registry.build(name, settings).objective(Outputs(logprobs=logprobs), batch, run)


def softplus(x: float) -> float:
    return math.log(1 + math.exp(x))


def test_the_rejected_log_ratio_is_scaled_by_the_gap():
    batch, run, logprobs = pairs(0.9, 0.65, 0.8, 0.3)
    # D = .25 and .5:  beta (1 - .25 * -2) = .5 * 1.5;   .5 (0 - .5 * -3) = .75
    both = loss("dpo+mappo", batch, run, logprobs, beta=0.5)
    assert both.tolist() == pytest.approx([softplus(-0.75)] * 2)
    assert run.metrics["prior_gap"] == pytest.approx(0.375)
    both[0].backward()
    # the gradient on the rejected reply is D times that on the chosen one
    push = 0.5 / (1 + math.exp(0.75))
    assert logprobs.grad is not None
    assert logprobs.grad[0, 1:3].tolist() == pytest.approx([-push] * 2)
    assert logprobs.grad[1, 1].item() == pytest.approx(0.25 * push)


def test_a_gap_of_one_and_a_pair_without_both_scores_are_the_loss_below():
    plain = {"dpo": dpo_loss(), "ipo": ipo_loss(), "simpo": simpo_loss()}
    for scores in ((1.0, 0.0, 1.0, 0.0), (None, 0.9, 1.0, 0.0), (None, None, 1.0, 0.0)):
        batch, run, logprobs = pairs(*scores)
        for name, objective in plain.items():
            ours = loss(f"{name}+mappo", batch, run, logprobs)
            assert ours.tolist() == pytest.approx(objective(Outputs(logprobs=logprobs), batch, run).tolist()), name


def test_ties_and_pairs_that_the_scores_contradict_leave_the_rejected_reply_alone():
    batch, run, logprobs = pairs(0.5, 0.5, 0.1, 0.9)
    loss("dpo+mappo", batch, run, logprobs).sum().backward()
    assert logprobs.grad is not None
    assert torch.equal(logprobs.grad[1::2], torch.zeros(2, batch.width))
    assert logprobs.grad[2, 1] < 0


def test_simpo_and_ipo_scale_their_own_terms():
    batch, run, logprobs = pairs(0.9, 0.65, 0.8, 0.3)
    # per token: -1.5 and -4;  -1 and -2.   2 (-1.5 + .25 * 4) - 1 = -2;   2 (-1 + .5 * 2) - 1 = -1
    assert loss("simpo+mappo", batch, run, logprobs).tolist() == pytest.approx([softplus(2), softplus(1)])
    # (1 + .25 * 2 - 5)^2,  (0 + .5 * 3 - 5)^2
    assert loss("ipo+mappo", batch, run, logprobs).tolist() == pytest.approx([12.25, 12.25])


@pytest.mark.parametrize(
    ("scale", "scores", "gap"), [(10.0, (8, 5), 0.3), (1.0, (0.75, 0.5), 0.25), (None, (2.0, 0.0), 1 / (1 + math.exp(-2)) - 0.5)]
)
def test_scores_of_any_range_are_brought_to_the_unit_interval(scale, scores, gap):
    problem = ask("?", chosen="12", rejected="3", chosen_score=scores[0], rejected_score=scores[1])
    recipe, run = registry.build("mappo", {"scale": scale}), Run(untrained())
    groups = recipe.rollout([problem], run)
    batch = collate(groups, None, run.policy.device)
    weight = recipe.credit(batch.reward, batch, run)
    assert weight[0].unique().tolist() == [1.0]
    assert weight[1].unique().tolist() == pytest.approx([gap])


def test_scores_beyond_their_range_are_refused_since_a_gap_that_is_cut_off_is_dpos():
    problem = ask("?", chosen="12", rejected="3", chosen_score=8, rejected_score=5)
    for method, settings in (("mappo", {}), ("coig_p+mappo", {}), ("mappo", {"scale": 7.0})):
        recipe, run = registry.build(method, settings), Run(untrained())
        batch = collate(registry.build("mappo").rollout([problem], run), None, run.policy.device)
        with pytest.raises(RewardlabError, match=r"score of 8 is not from 0 to [17]: give the range of the scores \(scale=10\)"):
            recipe.credit(batch.reward, batch, run)
    weight = registry.build("coig_p+mappo", {"scale": 10.0}).credit(batch.reward, batch, run)
    assert weight[1].unique().tolist() == pytest.approx([0.3])


def test_the_score_of_a_reward_model_has_no_bounds():
    for method, settings in (("mappo", {"n": 8}), ("rip+mappo", {}), ("xwin_lm+mappo", {})):
        assert registry.build(method, settings).credit.settings["scale"] is None, method
    assert registry.build("mappo").credit.settings["scale"] == 1.0


def test_a_reward_of_its_own_comes_before_what_the_base_pays():
    batch, run, _ = pairs(1.0, 0.0, 1.0, 0.0)

    @reward
    def half(trajectory):
        return 0.5 * (trajectory is batch.rows[0][0])

    weight = registry.build("mappo", {"score": half()}).credit(batch.reward, batch, run)
    assert weight[:, 0].tolist() == [1.0, 0.5, 1.0, 0.0]


def test_data_without_scores_is_refused():
    recipe, run = registry.build("mappo"), Run(untrained())
    batch = collate(recipe.rollout([ask("?", chosen="12", rejected="3", chosen_score=1)], run), None, run.policy.device)
    with pytest.raises(RewardlabError, match="columns chosen_score and rejected_score"):
        recipe.credit(batch.reward, batch, run)


def test_it_ranks_own_replies_and_refuses_what_is_no_pair():
    assert str(registry.build("mappo", {"n": 8}).rollout) == "ranked(by=model_score())"
    assert [x.name for x in registry.build("mappo", {"n": 8}).also] == ["reward_model"]
    assert registry.build("mappo").also == ()
    with pytest.raises(RewardlabError, match="weighs an objective on pairs of replies, such as dpo_loss, and this one is kto_loss"):
        mappo(kto().but(credit=None))
    with pytest.raises(RewardlabError, match=r"by credit, and here credit is prior_gap\(\) already"):
        mappo(mappo())


def test_own_replies_ranked_by_a_given_model_need_prompts_alone(tmp_path):
    rows = tmp_path / "prompts.jsonl"
    rows.write_text('{"prompt": "Name a planet."}\n{"prompt": "Why do leaves fall?"}\n')
    checkpoint(tmp_path / "model", tokenizer(), "LlamaForCausalLM")
    checkpoint(given := tmp_path / "given", tokenizer(), "LlamaForSequenceClassification", num_labels=1)
    recipe = registry.build("mappo", {"n": 8, "reward_model": str(given)})
    plan(recipe, f"hf:{tmp_path / 'model'}", registry.task(str(rows)))
    assert [x.init for x in recipe.also] == [str(given)]
    # the score of a reward model has no bounds
    assert recipe.credit.settings["scale"] is None
