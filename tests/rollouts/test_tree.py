"""Search trees: what their shape says of steps, how they grow, and that shared steps count once."""

import numpy as np
import pytest
import torch

from rewardlab.core import Batch, Problem, Run, Score, Trajectory, Turn, ask
from rewardlab.credit.tree import quality, step_quality
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import untrained
from rewardlab.objectives.tree import best_right_once, each_step_end_once, shares
from rewardlab.rollouts import tree
from rewardlab.rollouts.stepwise import Stepping, started
from rewardlab.rollouts.tree import Node, back_up, descend, look_ahead, tree_search
from rewardlab.util.outputs import last_values, values


def row(path, lengths, problem=None):
    """A prompt of two tokens, then one turn per step."""
    prompt = Turn(None, np.arange(2))
    steps = tuple(Turn("policy", np.full(n, 7), text=f"{k}\n") for k, n in enumerate(lengths))
    return Trajectory(problem or ask("?"), (prompt, *steps), "end", tuple(path))


# leaves of one tree: 0.0 right after two steps; 0.1 wrong; 1.0.0 wrong; the root is two steps from a right answer
LEAVES, RIGHT = [(0, 0), (0, 1), (1, 0, 0)], [True, False, False]


def batch_of(rows, rewards, group=None):
    length = torch.tensor([len(t) for t in rows])
    width = int(length.max())
    mask = torch.zeros(len(rows), width, dtype=torch.bool)
    reward = torch.zeros(len(rows), width)
    for i, t in enumerate(rows):
        mask[i, : len(t)] = torch.from_numpy(t.mask)
        reward[i, len(t) - 1] = rewards[i]
    group = torch.zeros(len(rows), dtype=torch.long) if group is None else torch.tensor(group)
    scores = [Score(r) for r in rewards]
    return Batch(mask.long(), mask, length, reward, reward, mask, group, rows=list(zip(rows, scores, strict=True)))


def test_the_quality_of_steps_by_hand():
    # right:  v(0) = 0 + 1/2;  v(0.0) = 1/2 + (1/2)/1 = 1            (m = 1, then 0)
    # wrong:  v(0.1) = 1/2 - (1/2)/(1+1) = 1/4                       (m as at node 0: 1)
    #         v(1) = max(0, 0 - 1/(2+1)) = 0, and so all below it    (m as at the root: 2)
    found = quality(LEAVES, RIGHT)
    assert found == {(): 0.0, (0,): 0.5, (0, 0): 1.0, (0, 1): 0.25, (1,): 0.0, (1, 0): 0.0, (1, 0, 0): 0.0}


def test_on_a_right_trace_quality_is_the_share_of_steps_done():
    assert list(quality([(0, 0, 0, 0)], [True]).values()) == pytest.approx([0, 0.25, 0.5, 0.75, 1])


def test_the_shortest_way_counts_and_a_tree_without_a_right_leaf_says_nothing():
    # node 0 has right leaves one and three steps away: m = 1, so v = 1/2, not 1/4
    assert quality([(0, 0), (0, 1, 0, 0)], [True, True])[(0,)] == 0.5
    assert quality(LEAVES, [False] * 3) == {}


def test_shared_steps_count_once():
    rows = [row((0, 0), (2, 1)), row((0, 1), (2, 2)), row((1,), (3,))]
    table = shares(rows, [0, 0, 0], [True, True, True], 6)
    # step 0 is held by two rows: 1/2 each; the others by one
    assert table.tolist() == [[0, 0, 0.5, 0.5, 1, 0], [0, 0, 0.5, 0.5, 1, 1], [0, 0, 1, 1, 1, 0]]
    alone = shares(rows, [0, 1, 1], [True, True, False], 6)
    assert alone[:2].max() == alone[:2, 2:4].min() == 1
    assert not alone[2].any()


def test_rows_of_no_tree_are_refused():
    with pytest.raises(RewardlabError, match="does not come from a search tree"):
        _ = row((0, 1), (2, 1, 1)).spans


def test_credit_and_weights_of_a_tree():
    rows = [row((0, 0), (2, 1)), row((0, 1), (2, 2)), row((1, 0, 0), (1, 1, 1))]
    batch = batch_of(rows, [1.0, 0.0, 0.0])
    credit = step_quality()(batch.reward, batch, None)
    assert credit.tolist() == [[0, 0, 0, 0.5, 1, 0], [0, 0, 0, 0.5, 0, 0.25], [0] * 6]
    # six different steps; the first is held by two rows
    weight = each_step_end_once()(batch) * 6
    assert weight[0].tolist() == pytest.approx([0, 0, 0, 0.5, 1, 0])
    assert weight[1].tolist() == pytest.approx([0, 0, 0, 0.5, 0, 1])
    assert weight[2].tolist() == pytest.approx([0, 0, 1, 1, 1, 0])
    assert float(each_step_end_once()(batch_of(rows, [0.0, 0.0, 0.0])).sum()) == 0


def test_of_the_right_rows_those_thought_best_are_imitated():
    rows = [row((0,), (2,)), row((1,), (2,)), row((2,), (2,)), row((3,), (2,)), row((0,), (2,))]
    batch = batch_of(rows, [1.0, 1.0, 0.0, 1.0, 1.0], group=[0, 0, 0, 0, 1])
    batch.columns["value.value"] = torch.tensor([0.1, 0.9, 2.0, 0.5, -3.0])[:, None].expand(5, 4).contiguous()
    weight = best_right_once(keep=2)(batch)
    # of the first tree rows 1 and 3 (row 2 is wrong), of the second its only right one: 3 rows of 2 tokens
    assert weight.sum(1).tolist() == pytest.approx([0, 1 / 3, 0, 1 / 3, 1 / 3])


# ---- the search ------------------------------------------------------------------------------------------------------


def test_values_go_up_as_means_by_visits():
    root = Node(row((), ()))
    root.children = [Node(row((0,), (1,)), root, value=0.8, visits=2), Node(row((1,), (1,)), root, value=0.2, visits=1)]
    root.visits = 3
    back_up(root.children[1])
    # the child now has 2 visits: (2 * 0.8 + 2 * 0.2) / 4
    assert (root.visits, root.children[1].visits) == (4, 2)
    assert root.value == pytest.approx(0.5)


def test_the_child_that_was_looked_beyond_has_been_visited_and_its_value_goes_up(searched):
    run, groups = searched
    root = Node(row((), ()), value=0.5)
    # an ended child: nothing follows it, and its value stays
    root.children = [Node(groups[0][0], root, value=0.8), Node(groups[0][0], root, value=0.3)]
    look_ahead(root.children[:1], 1, Stepping(), 0.5, run.models["value"], run)
    back_up(root)
    assert [child.visits for child in root.children] == [1, 0]
    # of the released code (mcts.py, executeRound): the mean over visits is the visited child's value, not the node's own
    assert root.value == pytest.approx(0.8)
    # the sibling comes first, though its value is lower
    assert descend(root, 0.4) is root.children[1]


def test_the_search_goes_where_value_and_curiosity_point():
    root = Node(row((), ()), visits=4)
    seen, other = Node(root.row, root, value=0.6, visits=3), Node(root.row, root, value=0.3, visits=1)
    root.children = [seen, other]
    # 0.6 + c sqrt(2 ln 4 / 3) against 0.3 + c sqrt(2 ln 4): equal at c = 0.3 / (1.6651 - 0.9613) = 0.426
    assert descend(root, 0.42) is seen
    assert descend(root, 0.43) is other
    root.children.append(new := Node(root.row, root, value=-5.0))
    assert descend(root, 0.42) is new


@pytest.fixture(scope="module")
def searched():
    policy = untrained(3)
    run = Run(policy, seed=1, max_new=12, models={"value": policy.copy("value", value_head=True)})
    with torch.no_grad():
        run.models["value"].model.value_head.normal_(generator=torch.Generator().manual_seed(0))
    return run, tree_search(iterations=4, branch=3, step_tokens=4, ahead=1)([ask("1+1=?"), ask("Start with 2.")], run)


def test_leaves_share_what_their_paths_share(searched):
    _, groups = searched
    for group in groups:
        assert all(t.stop is not None for t in group)
        assert len({t.path for t in group}) == len(group)
        text = {}
        for t in group:
            for node, a, b in t.spans:
                assert text.setdefault(node, t.ids[a:b].tolist()) == t.ids[a:b].tolist()


def test_values_are_those_of_the_model_whatever_stands_beside_a_row(searched):
    run, (group, *_) = searched
    together, alone = values(run.models["value"], group), [values(run.models["value"], [t])[0] for t in group]
    for a, b, t in zip(together, alone, group, strict=True):
        assert a == pytest.approx(b, abs=1e-5)
        assert len(a) == len(t)
    assert last_values(run.models["value"], group) == [float(v[-1]) for v in together]


def test_one_seed_grows_one_tree(searched):
    run, groups = searched
    again = tree_search(iterations=4, branch=3, step_tokens=4, ahead=1)([g[0].problem for g in groups], run.detached())
    assert [[t.reply for t in g] for g in again] == [[t.reply for t in g] for g in groups]
    assert isinstance(groups[0][0].problem, Problem)


@pytest.mark.parametrize("step_tokens", [None, 5])
def test_a_long_step_is_no_end_of_a_reply(step_tokens):
    policy = untrained(3)
    run = Run(policy, seed=1, max_new=60, models={"value": policy.copy("value", value_head=True)})
    (leaves,) = tree_search(iterations=2, branch=2, step_tokens=step_tokens)([ask("1+1=?")], run)
    # a random policy writes long lines: a leaf ends with the end token, or where the reply has all of its 60 tokens
    assert all(t.stop == "end" or int(t.mask.sum()) == 60 for t in leaves)
    assert any(len(t.path) > 1 for t in leaves) or step_tokens is None
    longest = max(end - start for t in leaves for _, start, end in t.spans)
    assert longest == 5 if step_tokens else longest > 24


def test_the_best_value_at_the_end_of_a_step_beyond_a_node_is_mixed_in(monkeypatch):
    policy = untrained(3)
    run = Run(policy, seed=1, max_new=12)
    (start,) = started([ask("1+1=?")], run)
    node = Node(start, value=0.2)
    # steps of 2 tokens: values 0, 1, 2, .. at the positions, so that the last step's end, 4 tokens on, counts
    monkeypatch.setattr(tree, "values", lambda judge, rows: [np.arange(len(t)) for t in rows])
    look_ahead([node], 2, Stepping(2), 0.25, None, run)
    assert node.visits == 1
    assert node.value == pytest.approx(0.75 * 0.2 + 0.25 * (len(start) + 3))
