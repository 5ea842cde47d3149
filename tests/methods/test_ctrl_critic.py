"""CTRL: what the frozen generator reads, what a critique is paid, which critiques are imitated, and rounds of revision."""

from __future__ import annotations

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.core import Message, Problem, Run, Score, Task, Trajectory, Turn, ask
from rewardlab.engine.step import Ops
from rewardlab.judges.critiques import AFRESH, FINE, PARTS, REVISE, criticised, hint_of, judgment, to_revise
from rewardlab.methods.judges.ctrl_critic import (
    critique_revision,
    critiques_of_drafts,
    ctrl_critic,
    hinted_critiques,
    judged_right,
    revised,
    revised_once,
    revision_passes,
)
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.rewards.reward import reward
from rewardlab.rollouts.independent import independent
from rewardlab.runs.config import RunConfig
from rewardlab.tasks.sources import Shuffled

ASK, HINTED, REFINE = "C|{question}|{attempt}", "H|{question}|{attempt}|{hint}", "R|{question}|{attempt}|{critique}"
GOOD = "Analysis:\n6 x 7 is more.\n\nImprovement suggestions:\nCount again.\n\nOverall judgment: Incorrect"
BAD = GOOD.replace("Count again", "Leave it")
PRAISE = "Analysis:\nFine.\n\nImprovement suggestions:\nNone.\n\nOverall judgment: Correct"


class Says:
    """A model that says what a function makes of the whole text of its prompt, and keeps what it read."""

    name = "policy"

    def __init__(self, says, context: int = 10_000):
        self.says, self.context, self.prompts = says, context, []

    def read(self, trajectories, messages):
        return [t.plus(Turn(None, np.zeros(2, np.int64), text=t.problem.question)) for t in trajectories]

    def extend(self, trajectories, sampling, rng):
        self.prompts += [t.problem.prompt for t in trajectories]
        return self.write(trajectories, [self.says(t.problem.question) for t in trajectories])

    def write(self, trajectories, texts):
        ids = np.zeros(1, np.int64)
        return [t.plus(Turn("policy", ids, text=x), "end") for t, x in zip(trajectories, texts, strict=True)]

    def check_fits(self, trajectory, further):
        """Its context is large enough."""


def generator(context: int = 10_000) -> Says:
    """It drafts 40, does as it is told where it is told to count again, and else says 40 once more, or 41 after praise."""
    return Says(lambda text: "It is 42." if "Count again" in text else "It is 41." if "Fine" in text else "It is 40.", context)


def run_of(policy: Says, writes: Says | None = None, **models: Says) -> Run:
    run = Run(policy=policy, models={"generator": writes or generator(), **models}, verify=registry.part("reward", "final_number"))
    run.max_new = 8
    return run


def criticised_rows(*critiques: str, draft: str = "It is 40.") -> list[Trajectory]:
    problem = criticised(ask("6 x 7?", "42"), draft, ASK)
    return [Trajectory(problem, (Turn("policy", np.zeros(1, np.int64), text=c),), "end") for c in critiques]


# ---- what a critique says, and what the generator reads --------------------------------------------------------------


def test_a_judgment_stands_after_all_parts():
    assert judgment(GOOD) is False
    assert judgment(f"Well.\n{PRAISE}\n") is True
    # a heading is missing, a part is empty, the order is another, more is said after the judgment
    for text in (
        GOOD.replace("Analysis:", ""),
        GOOD.replace("Count again.", ""),
        "Improvement suggestions:\nx\n\nAnalysis:\ny\n\nOverall judgment: Correct",
        GOOD + ", I think",
        "",
    ):
        assert judgment(text) is None
    assert judgment("7+5=13 no 7+5=12\nConclusion: wrong", ("Conclusion:",)) is False


def test_the_generator_reads_its_draft_as_its_own_turn_and_then_the_critique():
    system = Message("system", "Be brief.")
    asked = criticised(Problem((system, Message("user", "Q")), "1"), "D", ASK)
    # what the generator is told of its manner is not the critic's
    assert asked.prompt == (Message("user", "C|Q|D"),)
    assert to_revise(asked, " c\n").prompt == (
        system, Message("user", "Q"), Message("assistant", "D"), Message("user", REVISE.replace("{critique}", "c")),
    )  # fmt: skip
    # a critic's thinking, where the solution may stand, is its own: nobody reads it, and no part of a critique is in it
    assert to_revise(asked, "<think>6 x 7 is 42.</think>\nc").prompt == to_revise(asked, "c").prompt
    assert judgment(f"<think>{PRAISE}</think>") is None
    assert judgment(f"<think>Analysis: hm.</think>{GOOD}") is False
    # a form with the attempt in it is the whole prompt
    whole = to_revise(asked, "c", REFINE)
    assert (whole.prompt, whole.answer) == ((system, Message("user", "R|Q|D|c")), "1")


def test_a_hint_says_what_the_verifier_found():
    assert hint_of(Score(1.0)) == FINE
    assert hint_of(Score(0.0, tests=(False, False))) == AFRESH
    assert hint_of(Score(0.0, why="said 40, gold 42", tests=(False, True))).endswith("said 40, gold 42")
    assert "does not pass" in hint_of(Score(None))


# ---- rewards ---------------------------------------------------------------------------------------------------------


def test_a_critique_is_paid_what_the_revision_earns():
    """Told to count again the generator says 42, the gold answer; else 40 or 41; and what has not three parts it never reads."""
    run = run_of(Says(str))
    scores = revision_passes()([criticised_rows(GOOD, BAD, PRAISE, "Count again.")], run)
    assert [s.total for s in scores[0]] == [1.0, 0.0, 0.0, -1.0]
    assert len(run.model("generator").prompts) == 3
    assert run.metrics["formed"] == pytest.approx(3 / 4)
    assert run.metrics["passes"] == pytest.approx(1 / 3)
    assert [s.total for s in revision_passes(unformed=0.0)([criticised_rows("")], run)[0]] == [0.0]


def test_a_revision_that_does_not_fit_is_no_verdict():
    run = run_of(Says(str), generator(context=9))
    assert [s.total for s in revision_passes()([criticised_rows(GOOD, "")], run)[0]] == [None, -1.0]


@reward
def brief(trajectory: Trajectory) -> float:
    return 0.25 if trajectory.problem.question == "6 x 7?" and "42" in trajectory.reply else 0.0


def test_a_reward_may_stand_for_the_verifier_and_reads_the_revision_as_a_reply_to_the_question():
    run = run_of(Says(str))
    run.verify = None
    assert [s.total for s in revision_passes(by=brief())([criticised_rows(GOOD, BAD)], run)[0]] == [0.25, 0.0]


# ---- drafts, and critiques to imitate --------------------------------------------------------------------------------


def test_drafts_are_the_row_s_or_the_generator_s():
    run = run_of(Says(lambda text: f"on {text}"))
    rows = [ask("6 x 7?", "42"), ask("2 + 3?", "5", draft="6")]
    groups = critiques_of_drafts(inner=independent(n=2), ask=ASK)(rows, run)
    assert [[t.reply for t in g] for g in groups] == [["on C|6 x 7?|It is 40."] * 2, ["on C|2 + 3?|6"] * 2]
    assert groups[1][0].problem.meta["question"] == "2 + 3?"
    assert groups[1][0].problem.answer == "5"
    assert len(run.model("generator").prompts) == 1


def writer(text: str) -> str:
    """It writes what helps about sixes, mentions the hint about sevens, and else what does not help."""
    return GOOD if "6 x 7" in text else GOOD + " by the hint" if "7 x 6" in text else BAD


def test_critiques_with_a_hint_are_imitated_without_it_where_the_revision_passes():
    helped = Says(lambda text: GOOD.replace("Count", "By the hint, count") if "7 x 6" in text else writer(text))
    writes = Says(lambda text: "It is 42." if "ount again" in text else "It is 40.")
    run = run_of(Says(str), writes, writer=helped)
    rows = [ask("6 x 7?", "42"), ask("7 x 6?", "42"), ask("40 + 2?", "42")]
    kept = hinted_critiques(ask=ASK, hinted=HINTED, writer="writer")(rows, run)
    # the second speaks of the hint, and the third does not help
    assert [(t.problem.question, t.reply) for (t,) in kept] == [("C|6 x 7?|It is 40.", GOOD)]
    assert run.metrics["accepted"] == pytest.approx(1 / 3)
    assert helped.prompts[0][-1].text.startswith("H|6 x 7?|It is 40.|The answer is wrong")


def test_a_row_s_own_critique_is_imitated_where_it_brings_the_draft():
    run = run_of(Says(str), writer=Says(lambda text: BAD))
    kept = hinted_critiques(ask=ASK, hinted=HINTED, writer="writer")
    rows = [ask("6 x 7?", "42", draft="41", critique=GOOD), ask("7 x 6?", "42", critique=GOOD)]
    assert [t.reply for (t,) in kept(rows, run)] == [GOOD]
    # where none is accepted there is a row from which nothing is learnt
    ((alone,),) = kept(rows[1:], run)
    assert not alone.replies


def test_imitation_comes_first_and_then_rewards():
    task = Task("sums", Shuffled([ask(f"{i}+{i}=?", str(2 * i)) for i in range(10, 18)]), (), "final_number", max_new=4)
    recipe = registry.build("ctrl_critic", {"first": 1, "n": 2, "ask": ASK, "hinted": HINTED, "revise": REFINE}).but(
        problems=2, lr=1e-3
    )
    run = Run(untrained().copy("policy"), steps=3, max_new=4, verify=registry.part("reward", "final_number"))
    run.reference = run.policy.copy("reference")
    run.models = {learner.name: learner_model(learner, run.policy) for learner in recipe.also}
    ops = Ops(recipe, run, task, RunConfig())
    recipe.loop(recipe, run, ops)
    # what an untrained model writes has no parts: nothing is accepted, and the step is taken for rewards, too
    assert (run.metrics["accepted"], run.metrics["formed"]) == (0.0, 0.0)
    run.step += 1
    run.metrics.clear()
    recipe.loop(recipe, run, ops)
    assert "accepted" not in run.metrics
    assert run.metrics["formed"] == 0.0


# ---- held out --------------------------------------------------------------------------------------------------------


def test_rounds_mend_and_break_answers():
    """6 x 7: drafted 40, criticised well, mended. 4 x 10: drafted 40, right; criticised as wrong it becomes 42, and is broken.
    8 x 5: right, and left; called right. The first two are judged wrong, wrong and right."""
    critic = Says(lambda text: GOOD if "x 7" in text or "x 10" in text else BAD.replace("Incorrect", "Correct"))
    rows = [ask("6 x 7?", "42"), ask("4 x 10?", "40"), ask("8 x 5?", "40")]
    found = critique_revision(ask=ASK)(rows, run_of(critic))
    told = {name: found[name] for name in ("drafted", "revised", "mended", "broken", "judged")}
    assert told == pytest.approx({"drafted": 2 / 3, "revised": 2 / 3, "mended": 1 / 3, "broken": 1 / 3, "judged": 2 / 3})


def test_a_further_round_starts_from_the_revision():
    """The critic helps only where it reads 41, which the generator says after praise of its 40."""
    critic = Says(lambda text: GOOD if "41" in text else PRAISE)
    rows = [ask("6 x 7?", "42")]
    assert critique_revision(ask=ASK)(rows, run_of(critic))["revised"] == 0.0
    found = critique_revision(ask=ASK, rounds=2)(rows, run_of(critic))
    assert (found["revised"], found["judged"]) == (1.0, 0.0)


# ---- answers ---------------------------------------------------------------------------------------------------------------


def answers_of(*replies: str) -> list[Trajectory]:
    return [Trajectory(ask("6 x 7?", "42"), (Turn("policy", np.zeros(1, np.int64), text=x),), "end") for x in replies]


class InTurn(Says):
    """It says these texts in turn, whatever it reads."""

    def __init__(self, *texts: str):
        left = iter(texts)
        super().__init__(lambda _: next(left))


def test_of_several_critiques_one_with_the_judgment_of_most_is_read():
    problem = ask("6 x 7?", "42")
    for said, heard in (((PRAISE, GOOD, BAD), GOOD), ((PRAISE, GOOD), GOOD), ((GOOD, PRAISE, PRAISE), PRAISE)):
        run = run_of(generator(), critic=InTurn(*said))
        found, texts = revised_once([problem], ["It is 40."], run, "critic", "policy", ASK, REFINE, PARTS, len(said))
        assert (found, texts) == ([heard], ["It is 42." if heard == GOOD else "It is 41."])


def test_replies_are_scored_by_how_many_critiques_judge_them_right():
    """Two critiques of each: right and wrong; right and one without its parts; two without."""
    critic = InTurn(PRAISE, GOOD, PRAISE, "Fine.", "Well.", "")
    scores = judged_right(votes=2, ask=ASK)([answers_of("40", "41", "42")], run_of(generator(), critic=critic))
    assert [s.total for s in scores[0]] == [0.5, 1.0, None]


def test_an_answer_is_chosen_by_judgments_and_then_revised():
    critic = Says(lambda text: PRAISE if text.endswith("44") else GOOD)
    run = run_of(generator(), critic=critic)
    recipe = ctrl_critic(candidates=2, revisions=1, ask=ASK, revise=REFINE, critic="hf:somewhere")
    assert [(x.name, x.init, x.every) for x in recipe.also] == [("critic", "hf:somewhere", 0)]
    assert (recipe.loop, recipe.rollout.settings["n"]) == (None, 2)
    group = answers_of("40", "44")
    scores = recipe.reward([group], run)[0]
    assert [s.total for s in scores] == [0.0, 1.0]
    chosen = recipe.select(group, scores, run)
    # the praised 44 was chosen, and the generator says 41 after praise: every answer is revised, as in the release
    assert (chosen.reply, chosen.problem.question) == ("It is 41.", "6 x 7?")
    assert ctrl_critic(candidates=2, ask=ASK).select(group, scores, run) is group[1]
    assert ctrl_critic(revisions=2).reward is None


def test_a_further_round_of_an_answer_begins_with_the_revision():
    critic = Says(lambda text: GOOD if "41" in text else PRAISE)
    group = answers_of("It is 40.")
    run = run_of(generator(), critic=critic)
    said = [revised(rounds=k, ask=ASK, revise=REFINE)(group, [Score(None)], run).reply for k in range(3)]
    assert said == ["It is 40.", "It is 41.", "It is 42."]


def test_the_recipe_freezes_the_generator():
    recipe = ctrl_critic(generator="hf:somewhere", rounds=3)
    assert [(x.name, x.init, x.every) for x in recipe.also] == [("generator", "hf:somewhere", 0)]
    assert recipe.measure.settings["rounds"] == 3
    assert ctrl_critic(first=0).loop is None
