"""Ratings by attribute: the loss by hand, and a run that transformers, every policy and `model:RUN` read with weights of choice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from rows import batch_of, outcome

from rewardlab.api import evaluate, export, train
from rewardlab.core import Message, Outputs, Run, Sampling, Trajectory, ask
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.methods.baselines.attribute_regression import attribute_error, rated
from rewardlab.models.embedded import untrained
from rewardlab.models.load import load_policy
from rewardlab.models.reward_model import load_reward_model
from rewardlab.policies.attributes import read_attributes
from rewardlab.scoreboard.raters.classifier import Classifier

ASKED = [Message("user", "Say 5.")]
REPLIES = ["7 1+1+1+", "3 1+", "7 "]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Of replies whose attribute `seven` is how they begin, and `ones` how often they say 1."""
    folder = tmp_path_factory.mktemp("rated")
    kinds = [(first, n) for first in (7, 3) for n in range(5)]
    rows = [
        {"prompt": f"Say {i}.", "reply": f"{first} " + "1+" * n, "seven": float(first == 7), "ones": float(n)}
        for i, (first, n) in enumerate(kinds * 6)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"attributes": "seven=1,ones=-0.5", "reward_lr": 2e-2, "problems": 20}
    common = {"device": "cpu", "eval_problems": 8, "max_new": 4}
    return train(
        "attribute_regression", "untrained", str(folder / "rows.jsonl"), steps=20, out=folder / "run", settings=settings, **common
    )


def test_the_loss_by_hand():
    # the second reply is rated by one attribute alone, so that the other output moves nothing
    rows = [[("rd", {"a": outcome(1.0, None), "b": outcome(3.0, None)})], [("rdd", {"b": outcome(-1.0, None)})]]
    values = torch.zeros(2, 3, 2)
    values[0, 1], values[1, 2] = torch.tensor([2.0, 1.0]), torch.tensor([9.0, 1.0])
    values.requires_grad_()
    losses = attribute_error(attributes=("a", "b"))(Outputs(values=values), batch_of(rows), Run(None))
    assert losses.tolist() == [(1 + 4) / 2, 4.0]
    losses.sum().backward()
    assert values.grad[1, 2].tolist() == [0.0, 4.0]
    # read at the end alone
    assert values.grad[:, 0].abs().sum() == values.grad[1, 1].abs().sum() == 0


def test_a_reply_that_nobody_rated_is_told(run):
    t = Trajectory(ask("Why?", good="very"))
    ((score,),) = rated(attributes=("good", "kind"))([[t]], Run(None))
    assert (score.total, score.why) == (None, "the row has no number in any of the columns good, kind")
    rows = Path(run.out).parent / "rows.jsonl"
    # a misspelt one stands beside one that is there: its output would stay as it began, and be weighed with the other
    settings = {"attributes": "ones=1,sevens=1", "problems": 4}
    with pytest.raises(RewardlabError, match=r"no row has a number in 'sevens', which --attributes names; .*: prompt, .*seven"):
        train(
            "attribute_regression",
            "untrained",
            str(rows),
            steps=1,
            settings=settings,
            device="cpu",
            max_new=4,
            out=rows.parent / "no",
        )


def test_it_learns_and_the_score_is_the_sum_by_the_weights_that_one_chooses(run):
    assert run.summary["after"]["correlation.ones"] > 0.8
    ones, sevens = (
        load_reward_model(f"{run.out}?label={name}", "cpu").score([(ASKED, r) for r in REPLIES]) for name in ("ones", "seven")
    )
    # 3, 1 and 0 times
    assert ones[0] > ones[1] > ones[2]
    for query, seven, one in (("", 1, -0.5), ("?weights=ones=2", 0, 2), ("?weights=ones,seven=-3", -3, 1)):
        found = load_reward_model(f"{run.out}{query}", "cpu").score([(ASKED, r) for r in REPLIES])
        assert found == pytest.approx([seven * s + one * o for s, o in zip(sevens, ones, strict=True)], abs=1e-5)
    assert (
        Classifier(f"{run.out}?weights=ones=2", "cpu", "auto").fingerprint()
        != Classifier(str(run.out), "cpu", "auto").fingerprint()
    )


def test_transformers_and_both_policies_read_the_export(run, tmp_path):
    from transformers import AutoModelForSequenceClassification

    told = export(run.out, tmp_path / "out")
    assert told["kind"] == "reward model: a sequence classifier with 2 labels: seven, ones"
    read: object = AutoModelForSequenceClassification.from_pretrained(str(tmp_path / "out"))
    assert read.config.id2label == {0: "seven", 1: "ones"}
    model = load_reward_model(str(tmp_path / "out"), "cpu", "float32")
    expected = model.score([(ASKED, r) for r in REPLIES])
    for name in ("", "hf:"):
        policy = load_policy(f"{name}{tmp_path / 'out'}", "cpu", "float32")
        rows = policy.write(policy.read([Trajectory(ask("Say 5."))] * 3, [tuple(ASKED)] * 3), REPLIES)
        assert end_values(policy, rows).tolist() == pytest.approx(expected, abs=1e-4)
        copied = policy.copy("another")
        assert end_values(copied, rows).tolist() == pytest.approx(expected, abs=1e-4)
        policy.save(tmp_path / f"again{name.rstrip(':')}")
        again = load_reward_model(str(tmp_path / f"again{name.rstrip(':')}"), "cpu", "float32")
        assert again.score([(ASKED, r) for r in REPLIES]) == pytest.approx(expected, abs=1e-4)


def test_its_sum_guides_sampling_as_a_value_does(run):
    policy, scorer = untrained(), load_policy(str(run.out / "best"), "cpu")
    row = policy.read([Trajectory(ask("Say 5."))], [tuple(ASKED)])
    sampling = Sampling(1, 0.0)

    def said(weight: float) -> Trajectory:
        with policy.joined([(weight, scorer)], candidates=1000):
            return policy.extend(row, sampling, torch.Generator().manual_seed(0))[0]

    # so heavy a value decides alone: the token after which the sum is highest
    wanted = said(1e6)
    others = [row[0].plus(wanted.turns[-1].__class__("policy", wanted.turns[-1].ids * 0 + i)) for i in range(20)]
    assert end_values(scorer, [wanted])[0] >= end_values(scorer, others).max() - 1e-5


def test_plain_pairs_are_ranked_by_the_sum(run, tmp_path):
    rows = [{"prompt": f"Say {i}.", "chosen": "7 ", "rejected": "3 1+1+1+1+"} for i in range(12)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = evaluate(str(run.out), str(tmp_path / "pairs.jsonl"), device="cpu")
    assert found["pair_accuracy"]["value"] == 1.0
    turned = evaluate(f"{run.out}?weights=ones=1", str(tmp_path / "pairs.jsonl"), device="cpu")
    assert turned["pair_accuracy"]["value"] == 0.0


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("weights=kind=1", "unknown label of the classifier 'kind'"),
        ("weights=ones=much", "names with weights"),
        ("label=ones&weights=ones=1", "leave out label= or weights="),
    ],
)
def test_what_is_no_weight_is_told(run, query, says):
    with pytest.raises(RewardlabError, match=says):
        load_reward_model(f"{run.out}?{query}", "cpu")


def test_attributes_are_names_with_numbers():
    assert read_attributes("a=0.5, b ,c=-1") == {"a": 0.5, "b": 1.0, "c": -1.0}
    for text in ("", "a,a=2", "a=inf", "=1"):
        with pytest.raises(RewardlabError, match="names with weights"):
            read_attributes(text)
