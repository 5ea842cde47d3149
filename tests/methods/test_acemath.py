"""AceMath-RM: lists of right and wrong replies, the clearest by score; the mean over their pairs; the best of n."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch
from reward_runs import taught
from rows import Replies, batch_of, outcome

from rewardlab import registry
from rewardlab.core import Outputs, Run, Score, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.methods.reward_models.acemath import best_of_random, listwise_preference, score_sorted
from rewardlab.models.embedded import untrained
from rewardlab.policies.llama import policy


def softplus(x: float) -> float:
    return math.log1p(math.exp(x))


def rows_of(problem, **settings):
    """The texts of the group of this problem, and which are told to be right."""
    (group,) = score_sorted(**settings)([problem], Run(Replies([]), verify=registry.part("reward", "final_answer")))
    return [t.reply for t in group], group[0].problem.meta["right"]


def test_the_loss_is_the_mean_over_pairs_of_a_right_and_a_wrong_row_in_groups_of_any_size():
    # group 1: right 2 and 0, wrong 1: pairs 2-1, 0-1.  group 2: right 3, wrong 0, 1 and 5: pairs 3-0, 3-1, 3-5.  group 3: no pair
    groups = [[("rd", {"": outcome(x)}) for x in row] for row in ((1, 1, 0), (1, 0, 0, 0), (1, 1))]
    scores = [2.0, 0.0, 1.0, 3.0, 0.0, 1.0, 5.0, 9.0, -9.0]
    value = torch.tensor([[7.0, x] for x in scores], requires_grad=True)
    losses = listwise_preference()(Outputs(value=value), batch_of(groups), Run(None))
    first, second = (softplus(-1) + softplus(1)) / 2, (softplus(-3) + softplus(-2) + softplus(2)) / 3
    assert losses.tolist() == pytest.approx([first, second, 0.0])
    losses.sum().backward()
    # the head is read at the end alone, and a list without a pair moves nothing
    assert value.grad[:, 0].abs().sum() == 0
    assert value.grad[7:].abs().sum() == 0


def test_the_highest_right_and_the_lowest_wrong_are_chosen_half_of_each():
    replies = [f"r{i}" for i in range(5)] + [f"w{i}" for i in range(5)]
    problem = ask("?", replies=replies, right=[1] * 5 + [0] * 5, scores=[5, 1, 4, 2, 3, 5, 1, 4, 2, 3])
    texts, right = rows_of(problem, size=4, top=2)
    # of the wrong ones, w0 with the score of 5 may well be right
    assert sorted(texts) == ["r0", "r2", "w1", "w3"]
    assert right == [1, 1, 0, 0]
    assert rows_of(problem, size=4, top=2) == (texts, right)
    seen = {text for i in range(40) for text in rows_of(ask(f"? {i}", **problem.meta), size=4, top=100)[0]}
    assert seen == set(replies)


def test_the_other_kind_fills_a_list_and_equal_texts_count_once():
    problem = ask("?", replies=["a", "a", "b", "c", "d", "e"], right=[True, True, False, False, False, None])
    texts, right = rows_of(problem, size=4)
    assert (texts[0], sorted(texts), right) == ("a", ["a", "b", "c", "d"], [1, 0, 0, 0])


def test_replies_without_verdicts_are_judged_by_the_tasks_verifier():
    problem = ask("6 * 7?", "42", replies=["Answer: 41", "so it is 42", "Answer: 42", "Answer: 6"], scores=[0, 3, 2, 1])
    texts, right = rows_of(problem, size=4, top=1)
    # 6 scores higher than 41, and may be a right answer that the verifier could not read
    assert (texts, right) == (["so it is 42", "Answer: 41"], [1, 0])


def test_problems_with_one_kind_are_replaced_by_further_ones():
    one_kind, both = (ask("?", replies=["a", "b"], right=right) for right in ([1, 1], [0, 1]))
    run = Run(Replies([]))
    run.more_problems = lambda n: [both] * n
    groups = score_sorted()([one_kind, both], run)
    assert [[t.reply for t in group] for group in groups] == [["b", "a"]] * 2
    assert run.metrics["usable"] == pytest.approx(2 / 3)
    with pytest.raises(RewardlabError, match="both a right and a wrong"):
        score_sorted()([one_kind], Run(Replies([])))
    with pytest.raises(RewardlabError, match="2 candidates, but 1 numbers in 'right'"):
        score_sorted()([ask("?", replies=["a", "b"], right=[1])], Run(Replies([])))


def test_best_of_n_is_the_mean_over_all_sets():
    scores, right = [0.5, 2.0, 2.0, -1.0, 3.0], [True, True, False, False, False]
    for n in (1, 2, 3, 5):
        exact = []
        for chosen in combinations(range(5), n):
            top = max(scores[i] for i in chosen)
            at_top = [right[i] for i in chosen if scores[i] == top]
            exact.append(sum(at_top) / len(at_top))
        assert best_of_random(scores, right, n) == pytest.approx(sum(exact) / len(exact))
    assert best_of_random([1.0, 0.0], [True, False], 8) == 1.0


def test_it_learns_from_a_users_rows_and_the_run_is_a_reward_model(tmp_path):
    after, scores = taught("acemath", tmp_path, ["Answer: 750", "Answer: 340"])
    assert after["rm@8"] == 1.0
    assert scores[0] != scores[1]


def test_a_list_is_one_pass_without_padding_in_which_its_prompt_is_read_once(monkeypatch):
    writer = untrained()
    scorer = writer.copy("reward", value_head=True)
    torch.nn.init.normal_(scorer.model.value_head, generator=torch.Generator().manual_seed(0))
    prompt, replies = (
        "What do ten people need of this recipe? " * 3,
        ["Answer: 7", "It is 750, since 75 each.", "no", "Answer: 750"],
    )
    problem = ask(prompt, replies=replies, right=[0, 1, 0, 1])
    (group,) = score_sorted(size=4)([problem], Run(writer))
    batch = collate([group], [[Score(x) for x in group[0].problem.meta["right"]]], torch.device("cpu"))
    passes, made = [], policy.layout
    monkeypatch.setattr(policy, "layout", lambda *args: passes.append(made(*args)) or passes[-1])
    listwise_preference()(scorer.evaluate(batch, ("value",)), batch, Run(None)).sum().backward()
    said = [int(t.mask.sum()) for t in group]
    asked = len(group[0]) - said[0]
    assert [x.real for x in passes] == [asked + sum(said)]
    # as many rows of a padded table would be a multiple of it
    assert batch.ids.numel() > 2 * passes[0].real
    # so are held-out lists
    values = end_values(scorer, group)
    assert passes[-1].real == passes[0].real
    alone = [end_values(scorer, [t])[0] for t in group]
    assert values.tolist() == pytest.approx(alone, abs=1e-5)
