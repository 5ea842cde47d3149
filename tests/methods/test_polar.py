"""POLAR: the layout, triples of two policies, the two stages, and a run that is read beside references wherever it is used."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import numpy as np
import pytest
from reward_runs import taught
from rows import Replies

from rewardlab import registry
from rewardlab.api import evaluate, export, resume, train
from rewardlab.core import Learner, Message, Recipe, Run, Task, Trajectory, ask
from rewardlab.core.recipe import REFERENCE
from rewardlab.errors import RewardlabError
from rewardlab.evals.pairs import end_values
from rewardlab.methods.reward_models import polar as method
from rewardlab.methods.reward_models.polar import against_reference, gathered, laid_out, ranked, triple
from rewardlab.models.layouts import layout_of
from rewardlab.models.learners import learner_model
from rewardlab.models.load import load_policy
from rewardlab.models.reward_model import load_reward_model
from rewardlab.registry.formula import read_reward
from rewardlab.runs.metrics import read_metrics
from rewardlab.scoreboard import own_pairs
from rewardlab.scoreboard.raters import load_rater
from rewardlab.servers.scoring import Scorer
from rewardlab.tasks.sources import Shuffled
from rewardlab.text.reference import LAYOUT, against, reference_of

OUTPUTS = {"curt": ["144.", "It is 144."], "kind": ["Gladly: 144!"]}


def test_a_reply_is_read_as_the_released_client_writes_it(tmp_path):
    # RewardModelClient._encode: p + "\n" + reference + "<|reward|>" + p + "\n" + output, messages joined by line breaks
    asked = (Message("system", "Be brief."), Message("user", "What is the capital of China?"))
    (told,) = against(asked, "Beijing.")
    prompt = "Be brief.\nWhat is the capital of China?"
    assert told == Message("user", f"{prompt}\nBeijing.<|reward|>{prompt}")
    taught("polar", tmp_path, [], steps=1)
    model = load_reward_model(str(tmp_path / "run"))
    model.tokenizer.chat_template = None
    text = f"{prompt}\nBeijing.<|reward|>{prompt}\nShanghai."
    ids = model._encoded(asked, "Shanghai.", "Beijing.")["input_ids"]
    assert ids[:-1] == model.tokenizer(text)["input_ids"]
    assert ids[-1] == model.tokenizer.eos_token_id


def test_the_reference_is_a_text_or_messages_or_else_the_answer():
    assert reference_of(ask("Q?", "42", reference="It is 42.")) == "It is 42."
    turns = [{"role": "assistant", "content": "It is"}, {"role": "assistant", "content": "42."}]
    assert reference_of(ask("Q?", reference=turns)) == "It is\n42."
    assert reference_of(ask("Q?", "42")) == "42"
    assert [reference_of(ask("Q?", x)) for x in (None, 42, " ", ["42"], [])] == [None] * 5
    with pytest.raises(RewardlabError, match="no text 'reference'"):
        ranked(ask("Q?", chosen="a", rejected="b"))


def test_a_triple_has_two_replies_of_one_policy_and_one_of_another():
    found = [triple(ask("Q?", outputs=OUTPUTS), random.Random(i)).meta for i in range(40)]
    # kind has one reply: only curt can be the reference's policy
    assert {m["rejected"] for m in found} == {"Gladly: 144!"}
    assert {(m["reference"], m["chosen"]) for m in found} == {("144.", "It is 144."), ("It is 144.", "144.")}


def test_a_reply_that_both_policies_wrote_is_no_worse_one():
    shared = {"curt": ["144.", "It is 144."], "kind": ["144.", "Gladly: 144!"]}
    found = [triple(ask("Q?", outputs=shared), random.Random(i)).meta for i in range(60)]
    for m in found:
        own = next(texts for texts in shared.values() if {m["reference"], m["chosen"]} <= set(texts))
        assert m["rejected"] not in own
    assert len({m["rejected"] for m in found}) == 2
    for too_few in ({"a": ["1"], "b": ["2"]}, {"a": ["1", "2"]}, {"a": ["1", "1"], "b": ["2"]}, {"a": ["1", "2"], "b": ["1"]}):
        assert triple(ask("Q?", outputs=too_few), random.Random(0)) is None
    for wrong in ("many", {"a": [1, 2]}, {"a": ["1", ""]}, {}):
        with pytest.raises(RewardlabError, match="'outputs' maps"):
            triple(ask("Q?", outputs=wrong), random.Random(0))


def test_rows_of_one_output_each_are_gathered_by_their_prompt():
    rows = [ask("A?", policy=p, output=t) for p, t in (("curt", "1"), ("kind", "2"), ("curt", "3"))]
    rows += [ask("B?", policy="kind", output="4"), ask("A?", chosen="x", rejected="y")]
    first, other, pair = gathered(rows)
    assert first.meta["outputs"] == {"curt": ["1", "3"], "kind": ["2"]}
    assert other.meta["outputs"] == {"kind": ["4"]}
    assert pair == rows[-1]


def groups(problems, stage, step=0):
    run = Run(Replies([]), step=step)
    run.memory[method.STAGE] = stage
    made = against_reference()(problems, run)
    return [(group[0].problem.question, *(t.reply for t in group)) for group in made]


def test_the_stage_says_which_pair_a_row_gives_and_each_step_samples_another_triple():
    row = ask("Q?", reference="best", chosen="good", rejected="bad", outputs=OUTPUTS)
    assert groups([row], method.PREFERENCES) == [("Q?\nbest<|reward|>Q?", "good", "bad")]
    found = {groups([row], method.POLICIES, step)[0] for step in range(30)}
    assert found == {
        ("Q?\n144.<|reward|>Q?", "It is 144.", "Gladly: 144!"),
        ("Q?\nIt is 144.<|reward|>Q?", "144.", "Gladly: 144!"),
    }


ROWS = [
    ask(f"Is {i} more than 9?", "yes", reference="yes, it is", chosen="yes", rejected="no", outputs={
        "right": ["yes", "yes!"], "wrong": ["no", "no!"]
    })
    for i in range(10, 22)
]  # fmt: skip
SMALL = {"max_new": 4, "eval_problems": 4, "device": "cpu", "checkpoint_every": 1}


def task(rows=ROWS, test=ROWS[:4]):
    return Task("rows", Shuffled(rows), test, "final_number", max_new=4)


def run(folder, rows=ROWS, steps=4, test=ROWS[:4], **settings):
    given = {"problems": 2, "reward_lr": 1e-2, **settings}
    return train("polar", "untrained", task(rows, test), steps=steps, out=folder, settings=given, **SMALL)


def stages(folder):
    return [line["pretraining"] for line in read_metrics(folder) if "pretraining" in line]


@pytest.mark.slow
def test_the_first_half_tells_policies_apart_and_a_run_that_is_extended_does_not_go_back(tmp_path):
    run(tmp_path / "run")
    assert stages(tmp_path / "run") == [1, 1, 0, 0]
    resume(tmp_path / "run", task(), steps=10)
    assert stages(tmp_path / "run") == [1, 1] + [0] * 8
    for name, share, of in (("none", 0.0, [0, 0]), ("all", 1.0, [1, 1])):
        run(tmp_path / name, steps=2, pretrain=share)
        assert stages(tmp_path / name) == of


@pytest.mark.slow
def test_rows_for_one_stage_alone_give_it_the_whole_run(tmp_path):
    def without(*names):
        return [replace(p, meta={k: v for k, v in p.meta.items() if k not in names}) for p in ROWS]

    only_outputs, only_pairs = without("chosen", "rejected", "reference"), without("outputs")
    done = run(tmp_path / "policies", only_outputs, steps=2, test=only_outputs[:4])
    assert (stages(tmp_path / "policies"), next(iter(done.summary["after"]))) == ([1, 1], "same_policy")
    done = run(tmp_path / "pairs", only_pairs, steps=2, test=only_pairs[:4])
    assert (stages(tmp_path / "pairs"), "same_policy" in done.summary["after"]) == ([0, 0], False)
    # what the first run learnt is where another starts
    run(tmp_path / "both", only_pairs, steps=2, init=str(tmp_path / "policies"))
    with pytest.raises(RewardlabError, match="of 12 training rows none has either"):
        run(tmp_path / "no", without("outputs", "chosen"), steps=1)
    with pytest.raises(RewardlabError, match=r"no place \{reference\}"):
        registry.build("polar", {"layout": "{prompt}"})


@pytest.mark.slow
def test_a_new_stage_begins_with_a_fresh_optimiser(tmp_path, monkeypatch):
    from rewardlab.engine.learner import LearnerState

    reset, own = [], LearnerState.reset_optimizer
    monkeypatch.setattr(LearnerState, "reset_optimizer", lambda self: (reset.append(self.name), own(self)))
    run(tmp_path / "run")
    assert reset == ["reward"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("polar") / "run"
    # long enough that what is kept is no model without a head
    run(folder, steps=40, pretrain=0.1)
    return folder


def test_the_run_scores_text_as_it_was_trained_and_so_does_its_export(trained, tmp_path):
    policy = load_policy("untrained", "cpu", "float32", None, task())
    model = learner_model(Learner("reward", str(trained), Recipe(), reads=REFERENCE), policy)
    problems = [laid_out(ranked(p), LAYOUT) for p in ROWS[:3]]
    read = model.read([Trajectory(p) for p in problems], [p.prompt for p in problems])
    own = end_values(model, model.write(read, [p.meta["rejected"] for p in problems]))
    rows = [(p.prompt, p.meta["rejected"], p.meta["reference"]) for p in ROWS[:3]]
    assert load_reward_model(str(trained), "cpu", "float32").score(rows) == pytest.approx(own.tolist(), abs=1e-4)
    export(trained, tmp_path / "out")
    exported = load_reward_model(str(tmp_path / "out"), "cpu", "float32")
    assert exported.beside == LAYOUT
    assert exported.score(rows) == pytest.approx(own.tolist(), abs=1e-4)
    assert len({round(x, 6) for x in exported.score([(*rows[0][:2], text) for text in ("yes", "no", "9")])}) == 3


def test_the_config_of_the_run_says_the_layout_and_another_one_is_kept(trained, tmp_path):
    document = json.loads((trained / "config.json").read_text())
    assert document["recipe"]["rollout"]["with"]["layout"] == LAYOUT
    mine = "Reference: {reference}\n{prompt}"
    run(tmp_path / "run", steps=1, layout=mine)
    model = load_reward_model(str(tmp_path / "run"))
    assert layout_of(model.found) == model.beside == mine


def test_without_a_reference_it_refuses_to_score(trained):
    model = load_reward_model(str(trained))
    with pytest.raises(RewardlabError, match="beside a reference, and there is none"):
        model.score([(ROWS[0].prompt, "yes")])
    plain = registry.build("bradley_terry", {"problems": 2})
    assert all("layout" not in part.settings for part in plain.rollout.walk())


def test_it_is_a_reward_for_training_and_a_server_and_a_rater_of_pairs(trained, tmp_path):
    reward = read_reward(f"model:{trained}")
    recipe = registry.build("grpo", {"n": 2, "problems": 2}).but(reward=reward)
    # rows without `reference`: the answer is it
    rows = [ask(f"Is {i} more than 9?", "yes") for i in range(10, 22)]
    done = train(recipe, "untrained", task(rows, rows[:2]), steps=1, out=tmp_path / "grpo", **SMALL)
    assert all(np.isfinite(line["reward"]) for line in read_metrics(done.out) if "reward" in line)

    model = load_reward_model(str(trained))
    row = {"prompt": "Is 10 more than 9?", "reference": "yes, it is", "chosen": "yes", "rejected": "no"}
    texts = [(ROWS[0].prompt, text, "yes, it is") for text in ("yes", "no")]
    (item,) = own_pairs.read(row, "rows.jsonl")
    rater = load_rater(str(trained))
    bare = replace(item, answer=None)
    said, none = rater.judge([item, bare], own_pairs.benchmark)
    assert said.scores == pytest.approx(model.score(texts))
    assert (none.scores, none.why) == ((), "reads replies beside a reference, and there is none")
    assert rater.fingerprint() != load_rater(f"{trained}?layout=template").fingerprint()
    (served,) = Scorer([f"model:{trained}"])([{"prompt": row["prompt"], "response": "no", "answer": "yes, it is", "meta": {}}])
    assert served["score"] == pytest.approx(model.score(texts[1:])[0])


def test_the_run_is_evaluated_on_held_out_pairs_beside_their_references(trained):
    found = evaluate(str(trained), task(), problems=4, device="cpu")
    assert found["n"] == 4
    pairs = [(p.prompt, p.meta[side], p.meta["reference"]) for p in ROWS[:4] for side in ("chosen", "rejected")]
    scores = load_reward_model(str(trained)).score(pairs)
    assert found["pair_accuracy"]["value"] == np.mean([a > b for a, b in zip(scores[::2], scores[1::2], strict=True)])


def test_it_learns_a_users_rows_to_tell_policies_and_pairs_apart(tmp_path):
    after, _ = taught("polar", tmp_path, [], steps=60, reward_lr=1e-2)
    assert after["pair_accuracy"] > 0.5
