"""RLBFF: what the model is asked after a reply, what labels say, the loss of a yes and a no, the head that starts from two words,
and runs of earlier versions, which were told principles in the prompt."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pytest
import torch
from reward_runs import taught
from rows import Replies

from rewardlab import api, registry
from rewardlab.core import Learner, Message, Outputs, Recipe, Run, Trajectory, Turn, ask
from rewardlab.engine.collate import collate
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.methods.reward_models.rlbff import answer_of, as_taught, entailment, satisfied, under_principle
from rewardlab.models.checkpoint import find
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.models.reads import reads_of
from rewardlab.models.reward_model import load_reward_model
from rewardlab.prm.load import recognised
from rewardlab.rollouts.recorded import recorded
from rewardlab.text.principles import AFTER
from rewardlab.util.reads import FILE


def row(label, reply="Four.", principle="Be brief."):
    return ask("2 + 2?", reply=reply, principle=principle, label=label)


def asked_of(rows, policy, **settings):
    return [t for group in under_principle(inner=recorded(fields=("reply",)), **settings)(rows, Run(policy)) for t in group]


def test_the_question_comes_after_the_reply_in_the_words_of_the_card_up_to_where_the_answer_would_begin():
    policy = untrained()
    (t,) = asked_of([row("yes", principle="correctness")], policy, after=True)
    assert policy.tokenizer.decode(t.ids.tolist()) == (
        "<|im_start|>user\n2 + 2?<|im_end|>\n<|im_start|>assistant\nFour.<|im_end|>\n"
        "<|im_start|>user\nEvaluate the response to the previous prompt in terms of whether it satisfies this principle: "
        "correctness. Only answer Yes or No.<|im_end|>\n<|im_start|>assistant\n"
    )
    # what was decided is the reply, and its label falls on it
    assert (t.problem.question, t.reply, t.stop) == ("2 + 2?", "Four.", "end")
    (sentence,) = asked_of([row("yes", principle="Be brief.")], policy, after=True)
    assert "this principle: Be brief. Only" in policy.tokenizer.decode(sentence.ids.tolist())
    with pytest.raises(RewardlabError, match="principle"):
        asked_of([ask("2 + 2?", reply="4", label="yes")], policy, after=True)


def test_rows_of_earlier_versions_name_the_principle_in_the_prompt():
    (t,) = asked_of([row("yes")], Replies([]))
    assert (t.problem.question, t.reply) == ("2 + 2?\n\nA good reply is judged by this:\n- Be brief.", "Four.")


def test_labels_are_yes_or_no_and_nothing_between():
    known = [answer_of(x) for x in ("Yes", " no ", True, False, 1, "0", "true")]
    assert known == [1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    assert [answer_of(x) for x in ("partially", 0.5, 2, None, "", [])] == [None] * 6


def test_a_yes_costs_minus_log_sigmoid_of_the_score_a_no_that_of_its_negative_and_partly_nothing():
    recipe = registry.build("rlbff")
    (learner,) = recipe.also
    run = Run(Replies([]))
    groups = recipe.rollout([row("yes", "a"), row("no", "bb"), row("partially", "c")], run)
    # the reply, and after it a question of three tokens, whose end is what is read
    groups = [[t.plus(Turn(None, np.zeros(3, np.int64)), "end") for t in group] for group in groups]
    batch = collate(groups, satisfied()(groups, run), torch.device("cpu"))
    ends = torch.arange(batch.width) == batch.length[:, None] - 1
    out = Outputs(value=torch.where(ends, 2.0, -7.0))
    # P(Yes) of the two words is sigmoid(2)
    wanted = [math.log1p(math.exp(-2)), math.log1p(math.exp(2)), 0.0]
    assert learner.recipe.objective(out, batch, run).tolist() == pytest.approx(wanted)


def likelier(policy, trajectory, words):
    """log P(first) - log P(second) as the token after the text, by the model's own log-probs."""
    said = [policy.write([trajectory], [word])[0] for word in words]
    at = len(trajectory)
    return float(np.subtract(*(policy.score([t])[0][at] for t in said)))


def test_the_head_starts_as_the_difference_of_the_log_probs_of_two_words():
    policy = untrained()
    model = learner_model(Learner("reward", "value-head:words=Yes,No", Recipe()), policy)
    problem = ask("Is it so?")
    for question in ("Is it so?", "And this one, is it brief?"):
        (read,) = policy.read([Trajectory(problem)], [ask(question).prompt])
        wanted = likelier(policy, read, ("Yes", "No"))
        assert abs(wanted) > 1e-4
        assert end_values(model, [read])[0] == pytest.approx(wanted, abs=1e-4)
    for init in ("value-head:words=Yes", "value-head:words=,No", "value-head:words=Yes,Yesterday"):
        with pytest.raises(RewardlabError, match=r"two words|same token"):
            learner_model(Learner("reward", init, Recipe()), policy)


def test_before_any_training_the_score_is_what_the_model_answers():
    policy = untrained()
    model = learner_model(registry.build("rlbff").also[0], policy)
    rows = [row("yes"), row("no", "It is 4, as it always was.", "Be kind.")]
    answers = [likelier(policy, t, ("Yes", "No")) for t in asked_of(rows, policy, after=True)]
    run = Run(policy, models={"reward": model})
    assert end_values(model, as_taught(rows, "reply", run, "reward")) == pytest.approx(answers, abs=1e-4)
    assert len({round(x, 3) for x in answers}) == 2


class Judge:
    """A model whose score is what it is asked about: length, or brevity."""

    device = torch.device("cpu")

    def __init__(self, policy):
        self.policy = policy

    def evaluate(self, batch, wants):
        texts = [self.policy.tokenizer.decode(ids[:n]) for ids, n in zip(batch.ids, batch.length, strict=True)]
        signs = torch.tensor([-1.0 if "Be brief." in text else 1.0 for text in texts])
        return Outputs(value=(signs * (batch.length - 200))[:, None].expand(-1, batch.width))


def test_the_measure_counts_right_answers_and_pairs_that_turn_with_the_principle():
    policy = untrained()
    run = Run(policy, models={"reward": Judge(policy)})
    long = "It is four, as anybody who has ever counted that far with any care will tell you, and as sure as can be." * 2
    rows = [row("yes", "4"), row("no", long), row("no", "4"), row("partially", "4")]
    found = entailment()(rows, run)
    assert found["n"] == 3
    short, longer = end_values(run.models["reward"], as_taught(rows[:2], "reply", run, "reward"))
    # yes to the short reply, no to the long one; the third row says no to the short one: 2 of 3
    assert longer < 0 < short
    assert found["accuracy"] == pytest.approx(2 / 3)
    pair = ask("2 + 2?", chosen="4", rejected=long, principle="Be brief.", label="yes", reply="4")
    found = entailment()([pair], run)
    assert (found["pair_accuracy"], found["untold"]) == (1.0, 0.0)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on its template rows, what it measured, and its folder."""
    folder = tmp_path_factory.mktemp("rlbff")
    after, _ = taught("rlbff", folder, [])
    return folder / "run", after


ROWS = [row("yes", "Trees save water."), row("no", "Because of gravity.", "accuracy"), row("yes", "Trees", "Be kind.")]


def test_it_learns_from_a_users_rows_and_used_as_a_reward_it_says_what_it_said_in_the_run(trained):
    run, after = trained
    assert after["accuracy"] >= 0.5
    assert reads_of(find(str(run))) == "a question about one principle after the reply"
    policy = untrained()
    inside = Run(policy, models={"reward": learner_model(Learner("reward", str(run), Recipe(), reads=AFTER), policy)})
    wanted = end_values(inside.models["reward"], as_taught(ROWS, "reply", inside, "reward")).tolist()
    assert len({round(float(x), 3) for x in wanted}) == 3
    by_name = [load_reward_model(f"{run}?principle={p.meta['principle']}", "cpu", "float32") for p in ROWS]
    found = [m.score([(p.prompt, p.meta["reply"])])[0] for m, p in zip(by_name, ROWS, strict=True)]
    assert found == pytest.approx(wanted, abs=1e-4)
    # as many tokens as in training
    lengths = [len(t) for t in as_taught(ROWS, "reply", inside, "reward")]
    assert [m.read([(p.prompt, p.meta["reply"])])[0][2] for m, p in zip(by_name, ROWS, strict=True)] == lengths
    written = policy.write(policy.read([Trajectory(p) for p in ROWS], [p.prompt for p in ROWS]), [p.meta["reply"] for p in ROWS])
    inside.models[f"model:{run} (written)"] = load_reward_model(str(run), "cpu", "float32", written=True)
    for name in ("reward", f"model:{run}"):
        scores = registry.part("reward", "principled_score", model=name)([[t] for t in written], inside)
        assert [s.value for (s,) in scores] == pytest.approx(wanted, abs=1e-4)
        with pytest.raises(RewardlabError, match="about one principle, and here are 2: n=1"):
            registry.part("reward", "principled_score", model=name, principles=["Be brief.", "Be kind."])([[written[0]]], inside)


def test_it_is_told_one_principle_and_no_prompt_can_name_it(trained, tmp_path):
    run, _ = trained
    for said, why in (("", "principle=Be brief"), ("?principle=a&principle=b", "not of 2"), ("?reads=plain", "no prompt holds")):
        with pytest.raises(RewardlabError, match=why):
            load_reward_model(f"{run}{said}", "cpu")
    with pytest.raises(RewardlabError, match="there is none"):
        load_reward_model(str(run), "cpu", written=True).score([(ROWS[0].prompt, "a")])
    api.export(run, tmp_path / "out")
    stated = json.loads((tmp_path / "out" / "config.json").read_text())["rewardlab"]["scored_at"]
    assert stated.endswith("up to where the next reply would begin, where the score is read")
    with pytest.raises(RewardlabError, match="reward model of whole replies"):
        recognised(find(str(tmp_path / "out")), "out")
    asked = [(ROWS[0].prompt, "Trees save water.")]
    ours = load_reward_model(f"{run}?principle=Be brief.", "cpu").score(asked)
    assert load_reward_model(f"{tmp_path / 'out'}?principle=Be brief.", "cpu").score(asked) == pytest.approx(ours, abs=1e-6)


def test_a_run_that_was_told_principles_in_the_prompt_is_read_and_measured_so(trained, tmp_path):
    run, old = trained[0], tmp_path / "run"
    shutil.copytree(run, old)
    (old / "best" / FILE).write_text('{"reads": "principles"}')
    policy, asked = untrained(), (ask("What is 1 + 1?").prompt, "2")
    prompt = [Message("user", "What is 1 + 1?\n\nA good reply is judged by this:\n- Be brief.")]
    wanted = load_reward_model(f"{old}?reads=plain", "cpu", "float32").score([(prompt, "2")])
    assert load_reward_model(f"{old}?principle=Be brief.", "cpu", "float32").score([asked]) == wanted
    model = learner_model(Learner("reward", str(old), Recipe(), reads="principles"), policy)
    inside = Run(policy, models={"reward": model})
    (t,) = as_taught([ask("What is 1 + 1?", reply="2", principle="Be brief.")], "reply", inside, "reward")
    assert end_values(model, [t]) == pytest.approx(wanted, abs=1e-4)
    # one that says nothing of it is older than the question after the reply
    (old / "best" / FILE).unlink()
    assert reads_of(find(str(old))) == "principles"
    # and what it was trained by is what its own recipe says
    saved = {"part": "rollout:rlbff/under_principle", "with": {"inner": recorded(fields=("reply",)).to_json()}}
    part = registry.load_part(saved)
    assert part([row("yes")], Run(Replies([])))[0][0].problem.question.endswith("- Be brief.")
    with pytest.raises(RewardlabError, match="principles at the end of the prompt, and it would be shown a question about one"):
        learner_model(Learner("reward", str(old), Recipe(), reads=AFTER), policy)
