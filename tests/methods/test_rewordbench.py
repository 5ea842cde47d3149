"""reWordBench: what transformations do to texts, the drop in accuracy, and the loss that scores paraphrases alike."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from rows import Replies, batch_of

from rewardlab import registry
from rewardlab.core import Message, Outputs, Problem, Run
from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.rewordbench import CHANGES, benchmark, read, robust_preference, transform
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Item, Verdict

TEXT = "One, two: three. " * 10 + "The end."


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("quotes", "Yes.", '"Yes."'),
        ("punctuation_spaces", "Yes, it is.", "Yes , it is ."),
        ("stress_test", "Yes.", "Yes." + " and true is true" * 5),
        ("rot13", "Yes 1", "Lrf 1"),
        ("rot2", "Hazy", "Hcba"),
        ("homoglyphs", "ax", "\u0430\u0445"),
        ("word_delete", "a b c", "a b c"),
        ("math_format", "So it is 5.\n\n# Answer\n\n5", "So it is 5.\n\n\\boxed{5}"),
        ("math_format", "It is $\\boxed{\\frac{1}{2}}$.", "It is $\\frac{1}{2}$.\n\n# Answer\n\n\\frac{1}{2}"),
        ("code_minify", "def f(x):\n    # note\n\n    if x:\n        return 1", "def f(x):\n if x:\n  return 1"),
        ("code_comment", "a = 1\n\nb = 2", "a = 1  # bad\n\nb = 2  # bad"),
    ],
)
def test_what_transformations_do(name, before, after):
    assert transform(name, before) == after


def distance(a: str, b: str) -> int:
    """Levenshtein's."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row, last = [i], row
        for j, y in enumerate(b, 1):
            row.append(min(row[-1] + 1, last[j] + 1, last[j - 1] + (x != y)))
    return row[-1]


@pytest.mark.parametrize("name", ["char_sub", "char_qwerty", "char_insert", "char_delete"])
def test_noise_changes_one_letter_in_twenty(name):
    letters = sum(c.isalpha() for c in TEXT)
    assert 1 <= distance(TEXT, transform(name, TEXT)) <= round(0.05 * letters)
    assert transform(name, TEXT) == transform(name, TEXT)
    assert transform(name, TEXT, 1) != transform(name, TEXT, 2)
    # nothing that could be changed
    assert transform(name, "12 * 12") == "12 * 12"


def test_an_unknown_transformation_is_named():
    with pytest.raises(RewardlabError, match="transformation 'rot14'"):
        transform("rot14", "x")


def forms(row: dict) -> dict[str, Item]:
    return {item.subset: item for item in read({"id": 1, "prompt": "Why?", "chosen": TEXT, "rejected": "No."} | row, "filtered")}


def test_code_and_mathematics_have_their_own_and_rows_may_bring_paraphrases():
    plain = forms({"subset": "llmbar-natural"})
    assert not {"code_minify", "code_comment", "math_format", "paraphrase"} & plain.keys()
    assert set(plain) <= {"original", *CHANGES}
    assert "math_format" in forms({"subset": "math-prm", "chosen": "It is \\boxed{1}."})
    assert forms({"chosen_paraphrase": "a", "rejected_paraphrase": "b"})["paraphrase"].replies == ("a", "b")


def test_prompts_are_transformed_but_where_the_reply_is_in_a_code():
    found = forms({"subset": "x"})
    assert found["quotes"].question == '"Why?"'
    assert found["rot13"].question == "Why?\n\nReply in ROT13."
    assert found["ignore_above"].question == "Why?"


def figures(right: dict[str, dict[str, float]]) -> dict[str, float]:
    items, rows = [], []
    for row, by_form in right.items():
        for form, x in by_form.items():
            items.append(Item(f"{row}/{form}", (Message("user", row),), ("a", "b"), (1.0, 0.0), form, meta={"row": row}))
            rows.append(benchmark.marks(items[-1], Verdict((x, 0.5))))
    return dict(benchmark.figures(Marks.of(items, rows)))


def test_the_drop_is_on_the_pairs_that_a_transformation_changes():
    # rot2 is for the second and third pairs alone: of these both were right before, and one is after
    found = figures(
        {"1": {"original": 0, "quotes": 0}, "2": {"original": 1, "quotes": 1, "rot2": 0}, "3": {"original": 1, "rot2": 1}}
    )
    assert found["original"] == pytest.approx(2 / 3)
    assert (found["quotes"], found["rot2"]) == (0.5, 0.5)
    assert found["robust"] == 0.5
    assert found["drop"] == pytest.approx((0 + 0.5) / 2)
    assert found["worst"] == 0.5


def test_original_pairs_alone_have_no_drop():
    assert math.isnan(figures({"1": {"original": 1}})["drop"])


def test_the_loss_of_a_pair_and_its_paraphrases_by_hand():
    # two decided positions each; the score is the value at the last one
    batch = batch_of([[("rd", {})] * 4])
    value = torch.tensor([[0.0, 2.0], [0.0, 1.0], [0.0, 1.5], [0.0, 1.0]])
    out = Outputs(logprobs=torch.zeros(4, 2), value=value)
    run = Run(Replies([]))
    # -log sigmoid(2 - 1) + 10 * mean((2 - 1.5)^2, (1 - 1)^2)
    expected = math.log(1 + math.exp(-1)) + 10 * (0.25 + 0) / 2
    assert robust_preference(alpha=10)(out, batch, run).tolist() == pytest.approx([expected])
    assert robust_preference(alpha=0)(out, batch, run).tolist() == pytest.approx([math.log(1 + math.exp(-1))])


def test_rows_without_paraphrases_get_noise_that_changes_from_step_to_step():
    recipe = registry.build("rewordbench", {"by": ("char_insert",)})
    own = {"chosen_paraphrase": "fine", "rejected_paraphrase": "poor"}
    problems = [
        Problem((Message("user", f"q{k}"),), meta={"chosen": TEXT, "rejected": "bad word"} | meta)
        for k, meta in enumerate(({}, own))
    ]
    seen = []
    for step in (1, 2):
        run = Run(Replies([]), step=step)
        noisy, brought = recipe.rollout(problems, run)
        assert run.metrics["own_paraphrases"] == 0.5
        assert [t.turns[-1].text for t in brought][2:] == ["fine", "poor"]
        seen.append([t.turns[-1].text for t in noisy])
        assert seen[-1][:2] == [TEXT, "bad word"]
        assert all(distance(a, b) >= 1 for a, b in zip(seen[-1][:2], seen[-1][2:], strict=True))
    assert seen[0][2] != seen[1][2]


def test_it_is_bradley_terry_with_another_loss_and_nothing_without_a_paraphrase():
    recipe = registry.build("rewordbench", {"alpha": 2.0})
    (reward,) = recipe.also
    assert str(reward.recipe.objective) == "robust_preference(alpha=2)"
    assert recipe.objective is None
    with pytest.raises(RewardlabError, match="name transformations with by"):
        registry.build("rewordbench", {"by": ()}).rollout([Problem((), meta={"chosen": "a", "rejected": "b"})], Run(Replies([])))


def test_a_rater_by_length_is_told_by_what_lengthens_a_reply():
    """Who counts characters keeps its order under what adds as much to both, and not under what is said of one."""
    items = list(read({"id": 1, "subset": "x", "prompt": "p", "chosen": "A long and right reply.", "rejected": "Short."}, "f"))
    rows = [benchmark.marks(i, Verdict(tuple(float(len(r)) for r in i.replies))) for i in items]
    assert np.mean([r["right"] for r in rows]) > 0.9
