"""What the run of each method of reward models is used as: plain prompt and reply, under principles, or refused with words."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from rewardlab import api, registry
from rewardlab.core import Learner, Message, Problem, Recipe, Run, Trajectory
from rewardlab.errors import RewardlabError
from rewardlab.evals.on_benchmarks import on_benchmarks
from rewardlab.models.checkpoint import find
from rewardlab.models.embedded import untrained
from rewardlab.models.learners import learner_model
from rewardlab.models.reads import reads_of
from rewardlab.models.reward_model import load_reward_model
from rewardlab.registry.formula import read_reward
from rewardlab.scoreboard.raters import load_rater
from rewardlab.servers.scoring import Scorer
from rewardlab.util.reads import FILE
from tests.helpers.reward_runs import one_step
from tests.helpers.tiers import one_in

STUDIES = {row["name"] for row in registry.rows() if row["kind"] == "study"}
ROOM = sorted(name for name, path in registry.methods().items() if path.parent.name == "reward_models" and name not in STUDIES)
ASKED = [Message("user", "What is 1 + 1?")]


@pytest.fixture(scope="module")
def run_of(tmp_path_factory):
    """A method's run of one step on its template rows, these rows, and their task; each method is trained once."""
    known = {}

    def of(method):
        if method not in known:
            known[method] = one_step(method, tmp_path_factory.mktemp(method))
        return known[method]

    return of


def recorded(run):
    return [row for file in sorted((run / "rollouts").glob("*.parquet")) for row in pq.read_table(file).to_pylist()]


@pytest.mark.parametrize("method", one_in(3, ROOM))
def test_a_run_is_read_as_its_model_was_taught_or_refused_with_words(method, run_of):
    run, rows, task = run_of(method)
    plain = {row["prompt"] for row in rows}
    try:
        model = load_reward_model(str(run), "cpu")
    except RewardlabError as refused:
        follow(str(refused), run, task)
        return
    if model.beside:
        with pytest.raises(RewardlabError, match="beside a reference, and there is none"):
            model.score([(ASKED, "2")])
        assert len(model.score([(ASKED, "2", "two"), (ASKED, "3 is it", "two")])) == 2
        return
    assert len(model.score([(ASKED, "2"), (ASKED, "3 is it")])) == 2
    # what it learnt from were the rows' own prompts, token by token: later turns of a conversation are in no row's prompt
    seen = [row for row in recorded(run) if row["question"] in plain]
    # an episode is a conversation that begins with what it was meant to do
    assert seen or not recorded(run) or any("intent" in row for row in rows)
    for row in seen:
        assert model.read([([Message("user", row["question"])], row["reply"])])[0][2] == len(row["tokens"])


def follow(words, run, task):
    """What the refusal says to do is done."""
    if "principle=" in words:
        brief, kind = (load_reward_model(f"{run}/model?principle={text}", "cpu") for text in ("Be brief.", "Be kind."))
        if brief.reads != "principles":
            # it is asked after the reply, and no prompt can say that
            assert brief.score([(ASKED, "2")]) != kind.score([(ASKED, "2")])
            return
        written = load_reward_model(f"{run}/model?reads=plain", "cpu")
        asked = [Message("user", "What is 1 + 1?\n\nA good reply is judged by this:\n- Be brief.")]
        assert brief.score([(ASKED, "2")]) == written.score([(asked, "2")]) != kind.score([(ASKED, "2")])
    elif "rewardlab eval" in words:
        assert "of prompt and reply alone its score says nothing" in words
        found, known = api.evaluate(str(run), task, device="cpu"), json.loads((run / "summary.json").read_text())
        assert found["pair_accuracy"]["value"] in [known[which]["pair_accuracy"] for which in ("after", "best")]
        assert len(load_reward_model(f"{run}?reads=plain", "cpu").score([(ASKED, "2")])) == 1
    else:
        assert "is no reward model" in words
        if "its run also trained" in words:
            api.export(run, run.parent / "export", model=words.split("--model ")[1].split(",")[0])
            assert len(load_reward_model(str(run.parent / "export"), "cpu").score([(ASKED, "2")])) == 1


WAYS = {
    "answers": lambda run: api.answer(
        registry.build("best_of_n").scored_by(read_reward(f"model:{run}")),
        "untrained",
        str(run.parent / "rows.jsonl"),
        device="cpu",
    ),
    "training": lambda run: api.train(
        registry.build("grpo").but(reward=read_reward(f"model:{run}")),
        "untrained",
        str(run.parent / "rows.jsonl"),
        device="cpu",
        out=run.parent / "grpo",
    ),
    "a served reward": lambda run: Scorer([f"model:{run}"]),
    "a rater": lambda run: load_rater(str(run), "cpu"),
    "a reward model of rlhf": lambda run: learner_model(Learner("reward_model", str(run), Recipe()), untrained()),
    "the strength of pairs": lambda run: api.strength_file(run.parent / "rows.jsonl", run.parent / "s.jsonl", models=[str(run)]),
}


def test_a_reward_model_that_reads_references_is_no_plain_one_inside_a_run(run_of):
    run, *_ = run_of("polar")
    with pytest.raises(RewardlabError, match="a reward model that reads a reference beside the reply, and it would be shown"):
        learner_model(Learner("reward_model", str(run), Recipe()), untrained())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("method", ["critic_rm", "salmon"])
def test_every_way_to_use_it_refuses_plain_texts(method, way, run_of):
    run, *_ = run_of(method)
    with pytest.raises(RewardlabError, match="reads a critique of the reply" if method == "critic_rm" else "reads principles"):
        WAYS[way](run)


def test_a_copy_and_an_export_still_say_what_the_model_reads(run_of, tmp_path):
    run, *_ = run_of("salmon")
    api.export(run, tmp_path / "out")
    api.export(run, tmp_path / "learner", model="reward")
    for folder in ("out", "learner"):
        with pytest.raises(RewardlabError, match=r"principle=Be brief"):
            load_reward_model(str(tmp_path / folder), "cpu")
        assert load_reward_model(f"{tmp_path / folder}?principle=Be true.&principle=Be brief.", "cpu").principles == (
            "Be true.", "Be brief.",
        )  # fmt: skip


def test_a_run_saved_before_models_said_what_they_read_is_read_as_its_method_says(run_of, tmp_path):
    run, *_ = run_of("salmon")
    (run / "best" / FILE).rename(tmp_path / FILE)
    document = (run / "config.json").read_text()
    old = json.loads(document)
    for learner in old["recipe"]["also"]:
        learner.pop("reads", None)
    (run / "config.json").write_text(json.dumps(old))
    try:
        assert reads_of(find(str(run))) == "principles"
        assert api.evaluate(str(run), device="cpu", problems=2)["pair_accuracy"]
    finally:
        (tmp_path / FILE).rename(run / "best" / FILE)
        (run / "config.json").write_text(document)


def test_verdicts_under_one_principle_are_not_kept_for_another(run_of):
    run, *_ = run_of("salmon")
    known = {
        load_rater(f"{run}?{said}", "cpu").fingerprint() for said in ("principle=Be brief.", "principle=Be true.", "reads=plain")
    }
    assert len(known) == 3


def test_a_plain_reward_model_takes_no_principle_and_reads_says_one_thing(run_of):
    run, *_ = run_of("cheems")
    with pytest.raises(RewardlabError, match="takes no principle: it reads prompt and reply alone"):
        load_reward_model(f"{run}?principle=Be brief.", "cpu")
    with pytest.raises(RewardlabError, match="reads='all' is not known"):
        load_reward_model(f"{run}?reads=all", "cpu")


def test_benchmarks_and_rewards_inside_a_run_do_not_show_its_model_less(run_of):
    run, *_ = run_of("salmon")
    model = learner_model(Learner("reward", str(run), Recipe(), reads="principles"), untrained())
    inside = Run(untrained(), models={"reward": model})
    with pytest.raises(RewardlabError, match="leave out the benchmarks"):
        on_benchmarks(names=("rewardbench",))([], inside)
    t = inside.policy.write(inside.policy.read([Trajectory(Problem(tuple(ASKED)))], [tuple(ASKED)]), ["2"])[0]
    with pytest.raises(RewardlabError, match="reads principles"):
        registry.part("reward", "model_score", model="reward")([[t]], inside)
    ((told,),) = registry.part("reward", "principled_score", principles=["Be brief."])([[t]], inside)
    assert told.value == pytest.approx(load_reward_model(f"{run}?principle=Be brief.", "cpu").score([(ASKED, "2")])[0], abs=1e-4)
