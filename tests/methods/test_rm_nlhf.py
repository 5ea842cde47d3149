"""RM-NLHF: how critiques are compared, what judgements are paid, and what the MetaRM learns and predicts."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from rewardlab import build, registry
from rewardlab.api.inputs import begin_run
from rewardlab.core import Run, Score, Trajectory, ask
from rewardlab.credit.group import center
from rewardlab.engine.collate import collate
from rewardlab.engine.step import Ops
from rewardlab.errors import RewardlabError
from rewardlab.judges.cases import Case, to_judge
from rewardlab.judges.named import form_of
from rewardlab.methods.judges import rm_nlhf
from rewardlab.methods.judges.rm_nlhf import ARGUMENT, FORM, SMALL, argument_f1, core_arguments, critique_of, critique_similarity
from rewardlab.models.embedded import untrained
from rewardlab.objectives.labels import label_squared_error
from rewardlab.rewards.reward import reward
from rewardlab.runs.config import RunConfig
from tests.helpers.rows import Replies

PAIR = {"chosen": "Trees save water.", "rejected": "Gravity."}
OF_DUELS = {"form": SMALL, "argument": ARGUMENT, "match": 1.0}
MODEL_LIKE = """Both replies are short.

- Reply A names the cause of it.
- Reply B would also hold in summer.

[[A]]"""


def question(first_is_better=True, form=FORM, **columns):
    case = Case((PAIR["chosen"], PAIR["rejected"]), (1.0, 0.0))
    return to_judge(
        ask("Why do leaves fall?", None, **PAIR, **columns), case if first_is_better else case.at((1, 0)), form_of(form)
    )


def judgements(asked, texts):
    return Replies([]).write([Trajectory(asked)] * len(texts), texts)


def test_arguments_are_points_of_a_list_or_else_sentences_without_the_verdict():
    points = ["reply A names the cause of it", "reply B would also hold in summer"]
    assert core_arguments(MODEL_LIKE) == [point.split() for point in points]
    assert core_arguments("A names the cause. B does not!\nSo [[A]]") == [
        ["A", "names", "the", "cause"],
        ["B", "does", "not"],
        ["so"],
    ]
    assert core_arguments("polite + - signed - + [[A]]", ARGUMENT) == [["polite", "+", "-"], ["signed", "-", "+"]]
    assert core_arguments("12+5=17 17-3=14 A + B - [[A]]", ARGUMENT) == [["12+5=17"], ["17-3=14"], ["A", "+", "B", "-"]]
    assert core_arguments("[[A]]", ARGUMENT) == core_arguments("") == []


@pytest.mark.parametrize(
    ("said", "f1"),
    [
        ("polite + - signed - +", 1.0),
        ("signed - + polite + -", 1.0),
        ("polite + -", 2 / 3),  # precision 1, recall 1/2
        ("polite + - urgent + + signed - +", 0.8),  # precision 2/3, recall 1
        ("polite + - polite + -", 0.0),  # what is said twice is no critique
        ("polite - + signed - +", 0.5),  # a wrong sign is another argument
        ("", 0.0),
    ],
)
def test_f1_of_arguments(said, f1):
    wanted = core_arguments("polite + - signed - +", ARGUMENT)
    assert argument_f1(core_arguments(said, ARGUMENT), wanted, 1.0) == pytest.approx(f1)


def test_arguments_in_other_words_match_from_the_given_share_on():
    human = core_arguments("A names the cause. B would hold in summer, too.")
    # of the points, "names the cause" shares 4 of 7 and 4 words (8/11), the other 4 of 7 and 6 words (would hold in summer with b)
    assert argument_f1(core_arguments(MODEL_LIKE), human) == 1.0
    assert argument_f1(core_arguments(MODEL_LIKE), human, 0.9) == 0.0


def test_praise_of_the_other_reply_is_another_argument():
    """ "A is more detailed" and "B is more detailed" share 3 of 4 words, and say the opposite."""
    human = core_arguments("Reply A is more detailed.")
    assert argument_f1(core_arguments("Reply B is more detailed. [[A]]"), human) == 0.0
    assert argument_f1(core_arguments("Reply A is more detailed than B. [[A]]"), human) == 1.0


def test_what_is_thought_before_a_critique_is_no_part_of_it():
    thought = "<think>\n- Reply B is longer.\n- Is it right?\n</think>\n\n"
    assert core_arguments(thought + MODEL_LIKE) == core_arguments(MODEL_LIKE)


def test_the_critique_is_that_of_the_order_that_is_shown():
    both = {"critique": "A is good", "critique_reversed": "B is good"}
    assert critique_of(question(True, **both)) == "A is good"
    assert critique_of(question(False, **both)) == "B is good"
    assert critique_of(question(False, critique="A is good")) is None
    assert critique_of(question()) is None


def test_right_verdicts_are_paid_for_their_critiques_and_wrong_ones_are_not(monkeypatch):
    recipe, run = build("rm_nlhf", OF_DUELS), Run(Replies([]))
    known = judgements(
        question(form=SMALL, critique="polite + - signed - +"),
        # F1 1, 2/3 (one of two) and 0 (a wrong sign); a wrong verdict; no critique; no verdict
        ["polite + - signed - + [[A]]", "polite + - [[A]]", "polite - + [[A]]", "polite + - [[B]]", "[[A]]", "polite + -"],
    )
    unknown = judgements(question(form=SMALL), ["polite + - [[A]]", "polite - - [[A]]", "polite + + [[B]]", "signed + - [[A]]"])
    read = []

    def values(model, rows):
        read.extend(rows)
        return [1.25, 0.5, 1.75, 2.5]

    monkeypatch.setattr(rm_nlhf, "reader", lambda run, name: name)
    monkeypatch.setattr(rm_nlhf, "last_values", values)
    scores = recipe.reward([known, unknown], run)
    # 1 + 1/2 from an F1 of 1/2 on; without a human critique 1 + 1/2 (m - 1), with m - 1 cut to [0, 1]
    assert [s.total for s in scores[0]] == [1.5, 1.5, 1.0, 0.0, -1.0, -1.0]
    assert [s.total for s in scores[1]] == [1.125, 1.0, 0.0, 1.5]
    assert read == unknown
    assert run.metrics["predicted"] == 0.5  # (.25 + 0 + .75 + 1) / 4
    batch = collate([known, unknown], scores, torch.device("cpu"))
    mean = (1.5 + 1.5 + 1 - 1 - 1) / 6
    expected = [x - mean for x in (1.5, 1.5, 1.0, 0.0, -1.0, -1.0)]
    assert center()(batch.reward, batch, run).sum(1)[:6].tolist() == pytest.approx(expected)


def test_a_critique_is_not_to_be_long():
    asked = question(critique="A names the cause.")
    wordy = f"- A names the cause.\n{'- So it is said by all. ' * 70}\n[[A]]"
    (row,) = build("rm_nlhf").reward([judgements(asked, ["- A names the cause.\n[[A]]", wordy])], Run(Replies([])))
    assert [s.total for s in row] == [1.5, -1.0]


def test_the_share_of_arguments_may_pay_as_it_is():
    recipe = build("rm_nlhf", {**OF_DUELS, "least": 0.0, "weight": 1.0, "meta": False})
    group = judgements(question(form=SMALL, critique="polite + - signed - +"), ["polite + - [[A]]"])
    assert recipe.reward([group], Run(Replies([])))[0][0].total == pytest.approx(1 + 2 / 3)


def test_without_a_metarm_other_rows_are_paid_for_their_verdicts():
    recipe = build("rm_nlhf", {**OF_DUELS, "meta": False})
    assert recipe.also == ()
    group = judgements(question(form=SMALL), ["polite + - [[A]]", "polite + - [[B]]"])
    assert [s.total for s in recipe.reward([group], Run(Replies([])))[0]] == [1.0, 0.0]


def test_the_defaults_are_those_of_the_released_scripts():
    recipe = build("rm_nlhf")
    assert "0.001" in str(recipe.objective)
    assert "temperature=0.7" in str(recipe.rollout)
    assert recipe.loop.settings["name"] == "meta"
    group = judgements(question(critique="A names the cause."), ["- A names the cause.\n[[A]]", "- A is short.\n[[A]]"])
    assert [s.total for s in recipe.reward([group], Run(Replies([])))[0]] == [1.5, 1.0]


def test_the_metarm_learns_what_judgements_of_rows_with_a_critique_are_paid():
    (learner,) = build("rm_nlhf", OF_DUELS).also
    groups = [
        judgements(question(form=SMALL, critique="polite + -"), ["polite + - [[B]]", "polite + - [[A]]", "[[A]]"]),
        judgements(question(form=SMALL), ["polite + - [[A]]"]),
    ]
    scores = learner.recipe.reward(groups, Run(Replies([])))
    assert [s.total for row in scores for s in row] == [0.0, 1.5, -1.0, None]
    batch = collate(groups, scores, torch.device("cpu"))

    class Out:
        value = torch.full(batch.reward.shape, 0.25)

    # (1/4 - 0)^2, (1/4 - 3/2)^2, (1/4 + 1)^2, and nothing of the row without a critique
    assert label_squared_error()(Out, batch, Run(None)).tolist() == pytest.approx([0.0625, 1.5625, 1.5625, 0.0])


def test_in_a_cold_start_the_metarm_alone_learns():
    """Two cold steps and one more: which of judge and MetaRM change. Untrained letters rarely judge, so that form alone is paid."""
    task = registry.task("criticised_duels:kinds=wishes", test_size=1)
    recipe, config = build("rm_nlhf", {**OF_DUELS, "cold": 2, "n": 4, "problems": 4}), RunConfig(max_new=8)
    # what differs between any two judgements, and what the MetaRM is to learn
    letters = registry.part("reward", "likelihood")
    (learner,) = recipe.also
    recipe = recipe.but(reward=letters, also=(replace(learner, recipe=learner.recipe.but(reward=letters)),))
    run = begin_run(recipe, untrained(0, task=task), task, config)
    ops, changed = Ops(recipe, run, task, config), []
    models = run.policy, run.models["meta"]
    for _ in range(3):
        before = [{k: v.clone() for k, v in m.state().items()} for m in models]
        recipe.loop(recipe, run, ops)
        run.step += 1
        changed.append([any(not torch.equal(b[k], v) for k, v in m.state().items()) for b, m in zip(before, models, strict=True)])
    assert changed == [[False, True], [False, True], [True, True]]
    assert build("rm_nlhf", {"cold": 0}).loop is build("rm_nlhf", {"meta": False}).loop is None


@reward
def length_of_critique(trajectory) -> Score:
    return Score(float(len(trajectory.problem.meta["critique"])))


def test_another_reward_may_say_the_similarity_and_reads_the_critique_of_the_order():
    groups = [
        judgements(question(False, critique="AA", critique_reversed="BBB"), ["[[B]]", "[[A]]"]),
        judgements(question(), ["[[A]]"]),
    ]
    scores = critique_similarity(by=length_of_critique())(groups, Run(Replies([])))
    assert [[s.total for s in row] for row in scores] == [[3.0, 3.0], [None]]


def test_held_out_judgements_tell_how_many_right_verdicts_have_no_sound_critique():
    recipe = build("rm_nlhf", {**OF_DUELS, "meta": False})
    row = ask("Why?", None, **PAIR, critique="polite + - signed - +", critique_reversed="polite - + signed + -")
    policy = Replies(["polite + - signed - + [[A]]", "urgent + + [[B]]"])
    policy.context = 10**6
    found = recipe.measure([row], Run(policy))
    assert (found["judged"], found["critique"], found["spurious"]) == (1.0, 0.5, 0.5)
    policy.replies = ["[[A]]", "[[B]]"]
    without = recipe.measure([ask("Why?", None, **PAIR)], Run(policy))
    assert "critique" not in without
    assert np.isclose(without["judged"], 1.0)


def test_a_pattern_that_does_not_compile_is_refused():
    with pytest.raises(RewardlabError, match="no regular expression"):
        build("rm_nlhf", {"argument": "("})
