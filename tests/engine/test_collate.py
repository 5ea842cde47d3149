"""From trajectories and scores to tensors: every reward lands on a decision, and slicing slices everything."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rewardlab.core import Batch, Outputs, Run, Score, Term, Trajectory, Turn, ask
from rewardlab.engine.collate import add_columns, collate
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.rewards.reward import Reward, Sum

CPU = torch.device("cpu")
PROBLEM = ask("1+1=?", "2")


def row(pattern: str, first: int = 10) -> Trajectory:
    """`r` is read, `d` decided by the policy, `o` by an opponent; the log-prob of position t is -t/10."""
    authors = {"r": None, "d": "policy", "o": "opponent"}
    turns, start = [], 0
    while start < len(pattern):
        end = start
        while end < len(pattern) and pattern[end] == pattern[start]:
            end += 1
        author = authors[pattern[start]]
        logprobs = None if author is None else -np.arange(start, end, dtype=np.float32) / 10
        turns.append(Turn(author, np.arange(first + start, first + end), logprobs))
        start = end
    return Trajectory(PROBLEM, tuple(turns), "end")


def batch_of(*pairs: tuple[str, Score], author: str = "policy") -> Batch:
    return collate([[row(p) for p, _ in pairs]], [[s for _, s in pairs]], CPU, author)


def placed(batch: Batch, i: int = 0) -> dict[int, float]:
    """The events of a row: position to reward."""
    return {t: round(float(batch.reward[i, t]), 6) for t in batch.rewarded[i].nonzero().squeeze(1).tolist()}


@pytest.mark.parametrize(
    ("pattern", "score", "expected"),
    [
        ("rrddd", Score(1.0), {4: 1.0}),
        ("rrddd", Score(0.0), {4: 0.0}),
        ("rrddd", Score(None), {}),
        ("rrddrr", Score(1.0), {3: 1.0}),
        ("rrddrrdr", Score(0.5), {6: 0.5}),
        # steps at their positions; one that ends on what was only read belongs to the decision before it
        ("rrddrrd", Score(1.0, ((2, 0.25), (5, 0.5))), {2: 0.25, 3: 0.5, 6: 1.0}),
        # before any decision there is only the first one
        ("rrdd", Score(1.0, ((0, 0.25),)), {2: 0.25, 3: 1.0}),
        # rewards that meet add up
        ("rrdd", Score(1.0, ((3, 0.25), (3, 0.5))), {3: 1.75}),
        # beside steps, an outcome of 0 is an event; without an outcome there is none
        ("rrddd", Score(0.0, ((2, 0.5),)), {2: 0.5, 4: 0.0}),
        ("rrddd", Score(steps=((2, 0.5),)), {2: 0.5}),
        ("rrddd", Score(terms={"steps": Term(None)}), {4: 0.0}),
        ("rrddd", Score(-1.0, ((2, 0.5),)), {2: 0.5, 4: -1.0}),
        # without a verdict, the steps of other terms are no verdict either
        ("rrddd", Score(steps=((2, 0.5),), missing=True), {}),
        ("rrr", Score(1.0, ((1, 1.0),)), {}),
    ],
)
def test_rewards_land_on_decisions(pattern, score, expected):
    batch = batch_of((pattern, score))
    assert placed(batch) == expected
    assert bool((batch.reward[~batch.rewarded] == 0).all())
    assert not bool((batch.rewarded & ~batch.mask).any())


def test_rows_are_padded_on_the_right_and_masked_by_author():
    batch = batch_of(("rrd", Score(1.0)), ("rodro", Score(0.0)))
    assert batch.ids.tolist() == [[10, 11, 12, 0, 0], [10, 11, 12, 13, 14]]
    assert batch.mask.int().tolist() == [[0, 0, 1, 0, 0], [0, 0, 1, 0, 0]]
    assert batch.length.tolist() == [3, 5]
    assert batch.old[batch.mask].tolist() == pytest.approx([-0.2, -0.2])
    other = batch_of(("rrd", Score(1.0)), ("rodro", Score(0.5)), author="opponent")
    assert other.mask.int().tolist() == [[0, 0, 0, 0, 0], [0, 1, 0, 0, 1]]
    assert (placed(other, 0), placed(other, 1)) == ({}, {4: 0.5})


def test_terms_are_kept_apart_and_unweighted():
    terms = {"a": Term(2.0, weight=0.5), "b": Term(None, ((2, 1.0),)), "c": Term(None, weight=None)}
    batch = batch_of(("rrddd", Score(terms=terms)), ("rrd", Score(terms={"a": Term(0.0)})))
    assert {k: e.reward.sum(1).tolist() for k, e in batch.terms.items()} == {"a": [2.0, 0.0], "b": [1.0, 0.0], "c": [0.0, 0.0]}
    given = {k: e.rewarded.nonzero().tolist() for k, e in batch.terms.items()}
    assert given == {"a": [[0, 4], [1, 2]], "b": [[0, 2]], "c": []}


def test_groups_are_numbered_and_may_differ_in_size():
    groups = [[row("rd")], [row("rdd"), row("rd"), row("rddd")], [row("rd"), row("rd")]]
    batch = collate(groups, None, CPU)
    assert batch.group.tolist() == [0, 1, 1, 1, 2, 2]
    assert batch.groups == 3
    assert batch.first_rows.tolist() == [0, 1, 4]
    assert not bool(batch.rewarded.any())


def test_latents_keep_their_shape_and_type():
    ids = np.random.default_rng(0).normal(size=(3, 4, 2)).astype(np.float32)
    batch = collate([[Trajectory(PROBLEM, (Turn("policy", ids),)), Trajectory(PROBLEM, (Turn("policy", ids[:2]),))]], None, CPU)
    assert batch.ids.shape == (2, 3, 4, 2)
    assert batch.ids.dtype == torch.float32
    assert np.array_equal(batch.ids[0].numpy(), ids)


def test_no_trajectory_is_refused():
    with pytest.raises(RewardlabError, match="no trajectory"):
        collate([], None, CPU)


def test_slicing_slices_everything():
    groups = [[row("rddd"), row("rd")], [row("rrddd")], [row("rd", 50), row("rdd", 60)]]
    scores = [[Score(terms={"x": Term(float(10 * g + i))}) for i in range(len(x))] for g, x in enumerate(groups)]
    batch = collate(groups, scores, CPU)
    batch.credit = batch.reward * 2
    batch.columns |= {"ref": batch.reward * 3, "weight.row": torch.arange(5.0)}
    part = batch[torch.tensor([1, 3, 4])]
    assert (len(part), part.width) == (3, 3)
    assert part.ids.tolist() == [[10, 11, 0], [50, 51, 0], [60, 61, 62]]
    assert part.group.tolist() == [0, 1, 1]
    assert part.first_rows.tolist() == [0, 1]
    assert part.length.tolist() == [2, 2, 3]
    assert part.reward.sum(1).tolist() == [1.0, 20.0, 21.0]
    assert part.credit.sum(1).tolist() == [2.0, 40.0, 42.0]
    assert part.ref.sum(1).tolist() == [3.0, 60.0, 63.0]
    assert part.columns["weight.row"].tolist() == [1.0, 3.0, 4.0]
    assert part.terms["x"].reward.sum(1).tolist() == [1.0, 20.0, 21.0]
    assert [s.value for _, s in part.rows] == [1.0, 20.0, 21.0]
    assert {x.shape for x in (part.mask, part.old, part.rewarded, part.credit, part.ref, part.terms["x"].rewarded)} == {(3, 3)}


def test_a_column_that_nobody_asked_for_is_named():
    batch = batch_of(("rd", Score(1.0)))
    with pytest.raises(RewardlabError, match=r"no column 'ref'.*needs=\('ref',\)"):
        _ = batch.ref


# ---- columns that the engine computes --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def policy():
    return untrained()


def recorded(policy, *replies: str) -> list[Trajectory]:
    asked = policy.read([Trajectory(PROBLEM)] * len(replies), [PROBLEM.prompt] * len(replies))
    return policy.write(asked, replies)


@pytest.mark.parametrize("micro_tokens", [1, 60, 10**9])
def test_columns_say_what_each_model_says_of_its_own_accord(policy, micro_tokens):
    reference, critic = untrained(seed=1), policy.copy("critic", value_head=True)
    torch.nn.init.normal_(critic.model.value_head, generator=torch.Generator().manual_seed(2))
    rows = recorded(policy, "1+1=2", "2", "one and one is two\n2")
    run = Run(policy, reference=reference, models={"critic": critic})
    batch = add_columns(collate([rows], None, CPU), ["old", "ref", "value"], run, micro_tokens)
    with torch.no_grad():
        value = critic.evaluate(batch, ("value",)).value
    for name, model in (("old", policy), ("ref", reference)):
        for i, said in enumerate(model.score(rows)):
            assert np.allclose(getattr(batch, name)[i, : len(said)][rows[i].mask], said[rows[i].mask], atol=1e-5)
    for i, n in enumerate(batch.length.tolist()):
        assert torch.allclose(batch.value[i, :n], value[i, :n], atol=1e-5)


def test_what_was_recorded_while_drawing_is_kept(policy):
    drawn = collate([[row("rrdd")]], None, CPU)
    assert add_columns(drawn, ["old"], Run(policy), 99).old.tolist() == [[0.0, 0.0, pytest.approx(-0.2), pytest.approx(-0.3)]]


def test_nobody_mistakes_unrecorded_text_for_certain_text(policy):
    batch = add_columns(collate([recorded(policy, "2")], None, CPU), [], Run(policy), 99)
    assert bool(batch.old[batch.mask].isnan().all())
    assert bool((batch.old[~batch.mask] == 0).all())


def test_columns_that_cannot_be_had_are_refused(policy):
    batch = batch_of(("rd", Score(1.0)))
    with pytest.raises(RewardlabError, match="no model named 'critic'"):
        add_columns(batch, ["value"], Run(policy), 99)
    with pytest.raises(RewardlabError, match="no column 'attention'"):
        add_columns(batch, ["attention"], Run(policy), 99)
    batch.columns["attention"] = batch.reward
    assert add_columns(batch, ["attention"], Run(policy), 99) is batch


def test_outputs_become_tables_and_back():
    out = Outputs(logprobs=torch.ones(1, 2), extra={"x": torch.zeros(1, 2)})
    assert set(out.tensors()) == {"logprobs", "extra.x"}
    again = Outputs.of(out.tensors())
    assert again.logprobs is out.logprobs
    assert set(again.extra) == {"x"}


def uniform_logprob(logits, ids):
    """What a guess at random would be worth to the policy."""
    return {"uniform": logits.log_softmax(-1).mean(-1)}


@pytest.mark.parametrize("micro_tokens", [1, 10**9])
def test_columns_come_from_any_model_and_from_inside_the_head(policy, micro_tokens):
    judge = untrained(seed=3)
    judge.name = "judge"
    rows = recorded(policy, "1+1=2", "2", "one and one is two\n2")
    batch = collate([rows], None, CPU)
    run = Run(policy, models={"judge": judge})
    add_columns(batch, ["judge.entropy", "judge.hidden", "policy.uniform"], run, micro_tokens, (uniform_logprob,))
    assert judge.token_count.scored == 2 * int(batch.length.sum())
    with torch.no_grad():
        out = judge.evaluate(batch, ("entropy", "hidden"))
        own = policy.evaluate(batch, (), (uniform_logprob,)).extra["uniform"]
    assert torch.allclose(batch.columns["judge.entropy"], out.entropy, atol=1e-5)
    assert batch.columns["judge.hidden"].shape == (*batch.mask.shape, judge.model.shape.hidden)
    assert torch.allclose(batch.columns["judge.hidden"][batch.mask], out.hidden[batch.mask], atol=1e-5)
    assert torch.allclose(batch.columns["policy.uniform"], own, atol=1e-5)
    with pytest.raises(RewardlabError, match="has no output 'surprise'"):
        add_columns(batch, ["judge.surprise"], run, 99)


def test_a_term_keeps_the_weight_it_has_in_the_sum(policy):
    terms = {"right": Term(1.0), "short": Term(0.5, weight=0.1)}
    batch = collate([[row("rd")]], [[Score(terms=terms)]], CPU)
    assert {k: e.weight for k, e in batch.terms.items()} == {"right": 1.0, "short": 0.1}


def test_an_outcome_of_0_is_an_event_beside_step_rewards_and_nothing_is_none():
    stepwise, wrong = Score(steps=((2, 0.5),)).named("steps"), Score(0.0).named("right")
    both = Sum(part_giving(stepwise), part_giving(wrong)).combine([stepwise, wrong])
    assert collate([[row("rddd")]], [[stepwise]], CPU).rewarded.tolist() == [[False, False, True, False]]
    batch = collate([[row("rddd")]], [[both]], CPU)
    assert batch.rewarded.tolist() == [[False, False, True, True]]
    assert batch.reward.tolist() == [[0.0, 0.0, 0.5, 0.0]]


def part_giving(score: Score) -> Reward:
    return Reward(lambda trajectory: score)
