"""PEAR: what the policy hesitated while thinking, beyond what it hesitated while answering, costs a right reply."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from lengths import credits, reply, run_at, totals

from rewardlab import registry
from rewardlab.core import Outputs, Trajectory, ask
from rewardlab.engine.collate import collate
from rewardlab.methods.shaping.pear import MARKERS, excess, phases
from rewardlab.models.embedded import untrained
from rewardlab.util.outputs import entropies

TEXTS = {1: "2+2", 5: "=4", 3: "\n", 7: "Answer", 8: ": ", 2: "4", 9: "</think>", 0: ""}


class Hesitant:
    """A policy whose entropy at a token is its number, in tenths of a nat."""

    device = torch.device("cpu")

    def evaluate(self, batch, wants):
        assert wants == ("entropy",)
        return Outputs(entropy=torch.where(batch.mask, batch.ids / 10, 0.0))

    def pieces(self, ids):
        return [TEXTS[i] for i in ids.tolist()]


RUN = run_at(policy=Hesitant())
# thinking 1 5 3: mean .3 nats; the marker's tokens 7 and 8 count for nothing; answer 2 0: mean .1
ANSWERED = reply([1, 5, 3, 7, 8, 2, 0])


@pytest.mark.parametrize(
    ("pieces", "thinks", "answers"),
    [
        (["2+2", "=4", "\n", "Answer", ": ", "4"], ["2+2", "=4", "\n"], ["4"]),
        # of two markers the first in the list counts, wherever it stands
        (["Answer: 5?", "no", "</think>", "Answer: ", "4"], ["Answer: 5?", "no"], ["Answer: ", "4"]),
        # a token may hold a marker's first or last letters and more
        (["a", "b</th", "ink> 4", "c"], ["a"], ["c"]),
        # a box of LaTeX, where a reply says neither
        (["so ", "\\boxed", "{", "4", "}"], ["so "], ["4", "}"]),
        (["hm", "m"], ["hm", "m"], []),
        (["</think>", "4"], [], ["4"]),
        ([], [], []),
    ],
)
def test_the_marker_divides_the_tokens_and_belongs_to_neither_phase(pieces, thinks, answers):
    first, second = phases(pieces, MARKERS)
    assert (pieces[first], pieces[second]) == (thinks, answers)


def test_the_excess_by_hand():
    pieces, entropy = ["a", "b", "</think>", "c", "d"], np.array([0.8, 0.4, 9.0, 0.3, 0.1])
    # think .6, answer .2
    assert excess(entropy, pieces, MARKERS, 1.0, 1.0) == pytest.approx(0.4)
    assert excess(entropy, pieces, MARKERS, 0.5, 1.0) == pytest.approx(0.5)
    # no more hesitation than in the answer, or more than may be lost
    assert excess(entropy, pieces, MARKERS, 4.0, 1.0) == 0.0
    assert excess(10 * entropy, pieces, MARKERS, 1.0, 1.0) == 1.0
    # without a marker all is thinking; an answer alone costs nothing
    assert excess(entropy, ["a"] * 5, MARKERS, 1.0, 9.0) == pytest.approx(10.6 / 5)
    assert excess(entropy[2:], pieces[2:], MARKERS, 0.0, 1.0) == 0.0


def test_only_right_replies_lose_and_those_without_a_verdict_get_none():
    unfinished, brief = reply([1, 5, 3], "so 4"), reply([2, 7, 8, 2, 0])
    group = [ANSWERED, reply([1, 5, 3, 7, 8, 2, 0], "5"), unfinished, reply([1, 5], "?"), brief]
    #         .3 - .1       wrong  no marker: .3       thinking .2 - .1
    assert totals(registry.build("pear"), [group], RUN)[0] == pytest.approx([0.8, 0.0, 0.7, None, 0.9], abs=1e-6)
    assert RUN.metrics["hesitation"] == pytest.approx((0.2 + 0.3 + 0.1) / 3)
    assert totals(registry.build("pear", {"alpha": 0.0}), [group], RUN)[0][0] == pytest.approx(0.7)
    assert totals(registry.build("pear", {"max_penalty": 0.05}), [group], RUN)[0][0] == pytest.approx(0.95)
    assert totals(registry.build("pear", {"markers": ("=4",)}), [[ANSWERED]], RUN)[0][0] == pytest.approx(1 - 0.0)


def test_the_credit_where_all_are_right_goes_to_the_one_that_hesitated_less():
    # rewards .8 and .9: deviations of .05 from the mean, std .070711;  .05 / (.070711 + 1e-4) = .70611
    found = credits(registry.build("pear"), [[ANSWERED, reply([2, 7, 8, 2, 0]), reply([1, 5], "?")]], RUN)
    assert found == pytest.approx([-0.70611, 0.70611, 0.0], abs=1e-4)
    # where none is right, nothing is asked of the policy
    assert not any(credits(registry.build("pear"), [[reply([1], "5"), reply([1, 5], "5")]], run_at()))


def test_entropies_are_those_of_the_whole_distribution_at_each_decision():
    policy = untrained()
    prompts = policy.read([Trajectory(p := ask("Start with 7. Add 5."))] * 2, [p.prompt] * 2)
    rows = policy.write(prompts, ["7+5=12\nAnswer: 12", "12"])

    def entropy(logits, ids):
        logp = logits.log_softmax(-1)
        return {"entropy": -(logp.exp() * logp).sum(-1)}

    for row, found in zip(rows, entropies(policy, rows), strict=True):
        batch = collate([[row]], None, policy.device)
        expected = policy.evaluate(batch, (), [entropy]).extra["entropy"][0]
        assert found == pytest.approx(expected.detach().numpy(), abs=1e-5)
        assert (found[row.mask] > 0).all()
        assert not found[~row.mask].any()


def test_it_reads_the_entropy_and_the_tokens_of_a_real_policy():
    policy = untrained()
    prompt = policy.read([Trajectory(p := ask("Start with 2. Add 2.", "4"))], [p.prompt])
    (row,) = policy.write(prompt, ["2+2=4\nAnswer: 4"])
    own, pieces = entropies(policy, [row])[0][row.mask], policy.pieces(row.ids[row.mask])
    before, after = "".join(pieces).split("Answer:")
    thinking = next(i for i in range(len(pieces)) if "".join(pieces[:i]) == before)
    answer = next(i for i in range(len(pieces)) if "".join(pieces[i:]) == after)
    expected = 1 - max(0.0, own[:thinking].mean() - 0.5 * own[answer:].mean())
    recipe = registry.build("pear", {"alpha": 0.5, "max_penalty": 9.0})
    assert totals(recipe, [[row]], run_at(policy=policy))[0] == [pytest.approx(float(expected), abs=1e-5)]
    assert expected < 1
