"""Process reward models: trained on labelled solutions, saved, and read again by transformers and by their convention."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

from rewardlab import api, registry
from rewardlab.data.solutions import Solution, row_of
from rewardlab.data.step_formats import read_solutions
from rewardlab.errors import RewardlabError
from rewardlab.models.load import load_policy
from rewardlab.prm import load_scorer
from rewardlab.prm.held_out import halves, notes
from rewardlab.prm.rows import as_outcome, hard, of_its_own, rounded, solutions_task, splitter_of, up_to_error
from tests.helpers.checkpoints import checkpoint

SOLUTIONS = [
    Solution(f"{k} + 2 = ?", (f"{k}+2={k + 2}", f"{k + 2}*2={2 * k + 4 + off}"), (1.0, float(off == 0)))
    for k in range(30) for off in (0, 1)
]  # fmt: skip
QUICK = {"steps": 2, "problems": 4, "test_share": 0.3, "device": "cpu", "dtype": "float32", "eval_every": 0}


@pytest.fixture
def base(tmp_path, words):
    checkpoint(tmp_path / "base", words, "Qwen2ForCausalLM", added=["Yes", "No"])
    return str(tmp_path / "base")


def test_a_head_is_saved_as_a_token_classifier_that_scores_as_it_learnt(base, tmp_path):
    found = api.train_scorer(SOLUTIONS, base, tmp_path / "prm", lora_rank=2, **QUICK)
    out = tmp_path / "prm"
    scorer = load_scorer(str(out), "cpu", "float32")
    (chances,) = scorer.score([(SOLUTIONS[0].prompt, SOLUTIONS[0].steps)])
    model, tokenizer = AutoModelForTokenClassification.from_pretrained(out).eval(), AutoTokenizer.from_pretrained(out)
    assert model.config.id2label == {0: "wrong", 1: "right"}
    turns = [{"role": "user", "content": SOLUTIONS[0].prompt}]
    ids = tokenizer(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))["input_ids"]
    at = []
    for step in SOLUTIONS[0].steps:
        ids += tokenizer(step)["input_ids"] + tokenizer("\n")["input_ids"]
        at.append(len(ids) - 1)
    with torch.no_grad():
        assert model(torch.tensor([ids])).logits[0, at].softmax(1)[:, 1].tolist() == pytest.approx(chances, abs=1e-5)
    # it learnt something: a head of zeros says 1/2
    assert all(abs(c - 0.5) > 1e-5 for c in chances)
    # what the run measured of the model in training is what is saved
    summary = json.loads((tmp_path / "prm.run" / "summary.json").read_text())
    assert summary["best"]["step_auc"] == pytest.approx(found["steps"]["auc"], abs=0.02)
    text = (out / "README.md").read_text()
    assert "loss: bce" in text
    assert f"| step brier | {found['steps']['brier']:.3f} |" in text
    assert (tmp_path / "prm.run" / "report.html").exists()


@pytest.mark.parametrize(("kind", "loss"), [("generative", "soft"), ("implicit", "rank")])
def test_language_models_as_scorers(base, tmp_path, kind, loss):
    found = api.train_scorer(SOLUTIONS, base, tmp_path / "prm", kind=kind, loss=loss, lr=1e-2, **QUICK)
    scorer = load_scorer(str(tmp_path / "prm"), "cpu", "float32")
    assert scorer.convention == kind
    summary = json.loads((tmp_path / "prm.run" / "summary.json").read_text())
    # in training and afterwards the same tokens are read
    assert summary["best"]["step_auc"] == pytest.approx(found["steps"]["auc"], abs=0.02)


def test_a_model_made_here_is_saved_as_the_reference_of_its_implicit_rewards(tmp_path):
    found = api.train_scorer(SOLUTIONS, "untrained:arithmetic", tmp_path / "prm", kind="implicit", lr=1e-2, **QUICK)
    moved = (tmp_path / "prm").rename(tmp_path / "moved")
    scorer = load_scorer(str(moved), "cpu", "float32")
    (chances,) = scorer.score([(SOLUTIONS[0].prompt, SOLUTIONS[0].steps)])
    # the reference is what the model was before it learnt: against itself all would be 1/2
    assert all(abs(c - 0.5) > 1e-5 for c in chances)
    before = load_policy("untrained:arithmetic", "cpu").state()
    assert torch.equal(next(iter(scorer.reference.parameters())), next(iter(before.values())))
    assert found["held_out"] > 0


def test_an_untrained_model_that_was_best_is_told_in_the_output_and_on_the_card(base, tmp_path, capsys):
    # of held-out problems all labels are turned round: whatever is learnt is worse there than nothing
    held = {s.prompt for s in solutions_task(SOLUTIONS, 0.3, 0)[1]}
    turned = [replace(s, labels=tuple(1 - x for x in s.labels)) if s.prompt in held else s for s in SOLUTIONS]
    turned = [replace(s, steps=("yes", "no"), labels=(0.0, 1.0) if s.prompt in held else (1.0, 0.0)) for s in turned]
    found = api.train_scorer(turned, base, tmp_path / "prm", lr=1e-2, **{**QUICK, "steps": 6})
    assert "untrained" in found["warning"]
    assert "no better than chance" in found["warning"]
    assert "**Warning**: no evaluation was above" in (tmp_path / "prm" / "README.md").read_text()
    assert "warning: no evaluation was above" in capsys.readouterr().err


def test_a_judge_that_learnt_nothing_or_the_opposite_is_told():
    few = {"steps": {"auc": 0.5, "n": 20}}
    # a tie with the untrained head is not step 0: its AUC alone tells of it
    assert "AUC of held-out steps is 0.50, where chance is .50: " in notes({"step": 3}, few, SOLUTIONS[:4], True)["warning"]
    assert "the wrong way round" in notes({"step": 3}, {"steps": {"auc": 0.31, "n": 500}}, SOLUTIONS[:4], True)["warning"]
    said = notes({"step": 3}, {"steps": {"auc": 0.8, "n": 500}}, SOLUTIONS[:40], False)
    assert said == {"note": "the step of training that is saved was chosen by 40 other held-out solutions"}
    note = notes({"step": 3}, few | {"steps": {"auc": 0.8, "n": 20}}, SOLUTIONS[:4], True)["note"]
    assert note.endswith(
        "the same 4 solutions, so that these figures flatter it; 20 steps with a label are few: the figures are rough"
    )


def test_the_solutions_that_choose_the_step_are_not_those_that_are_measured():
    many = [Solution(f"{k} + 2 = ?", ("a",), (1.0,)) for k in range(100) for _ in range(2)]
    chosen_by, measured = halves(many)
    assert len(chosen_by) + len(measured) == 200
    assert min(len(chosen_by), len(measured)) >= 50
    assert not {s.prompt for s in chosen_by} & {s.prompt for s in measured}
    few = many[:39]
    assert halves(few) == (few, few)
    # one problem alone cannot be parted
    assert halves([many[0]] * 60) == ([many[0]] * 60, [many[0]] * 60)


def test_the_figures_are_of_problems_that_chose_nothing(base, tmp_path):
    many = [replace(s, prompt=f"{s.prompt} {k}") for k in range(4) for s in SOLUTIONS]
    found = api.train_scorer(many, base, tmp_path / "prm", **QUICK)
    kept = solutions_task(many, 0.3, 0)[1]
    assert len(kept) >= 40
    assert (found["held_out"], found["chosen_by"]) == tuple(len(x) for x in reversed(halves(kept)))
    document = json.loads((tmp_path / "prm.run" / "summary.json").read_text())
    assert document["best"]["step_auc"] != found["steps"]["auc"]
    card = (tmp_path / "prm" / "README.md").read_text()
    assert f"was chosen by {found['chosen_by']} other held-out solutions" in card
    # what it recommends is what docs/tutorials/process_rewards.md measured as the best
    assert """--reward 'correct() + prm_steps(model="prm:prm", clip=0.5)'""" in card
    assert "--reward prm:" not in card


def test_a_run_that_was_stopped_goes_on(base, tmp_path):
    (tmp_path / "blocked").mkdir()
    first = api.train_scorer(SOLUTIONS, base, tmp_path / "a", run=tmp_path / "run", **QUICK)
    before = (tmp_path / "run" / "metrics.jsonl").read_text()
    again = api.train_scorer(SOLUTIONS, base, tmp_path / "b", run=tmp_path / "run", **QUICK)
    assert again["steps"] == first["steps"]
    assert (tmp_path / "run" / "metrics.jsonl").read_text() == before


def test_wrong_requests_are_refused_before_anything_is_written(base, tmp_path):
    for wrong, message in (
        ({"kind": "heads"}, "kind must be"),
        ({"loss": "hinge"}, "loss must be"),
        ({"test_share": 0.0}, "both are needed"),
    ):
        with pytest.raises(RewardlabError, match=message):
            api.train_scorer(SOLUTIONS, base, tmp_path / "prm", **{**QUICK, **wrong})
    assert not (tmp_path / "prm").exists()
    assert not (tmp_path / "prm.run").exists()


def test_solutions_of_problems_that_a_generated_task_trains_on_are_split_too():
    # the hash by which such tasks keep problems apart has already chosen these
    train_on = registry.task("arithmetic").train
    problems = [train_on[i] for i in range(200)]
    solutions = [Solution(p.question, ("a", "b"), (1.0, 0.0)) for p in problems]
    task, kept = solutions_task(solutions, 0.2, 0)
    assert 20 <= len(kept) <= 60
    assert not {s.prompt for s in kept} & {p.question for p in map(task.train.__getitem__, range(200))}


def test_a_run_goes_on_only_with_what_it_began_with(base, tmp_path):
    api.train_scorer(SOLUTIONS, base, tmp_path / "a", run=tmp_path / "run", **QUICK)
    for other in ({"loss": "soft"}, {"kind": "implicit"}, {"lr": 1e-2}, {"seed": 3}, {"lora_rank": 2}):
        with pytest.raises(RewardlabError, match=r"run holds a run with .* of its own: .* give another --run"):
            api.train_scorer(SOLUTIONS, base, tmp_path / "b", run=tmp_path / "run", **{**QUICK, **other})
    assert not (tmp_path / "b").exists()
    api.train_scorer(SOLUTIONS, base, tmp_path / "c", run=tmp_path / "run", **{**QUICK, "steps": 3})
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["steps"] == 3


@pytest.mark.parametrize("kind", ["head", "generative"])
def test_solutions_that_the_model_cannot_read_are_left_out_and_counted(base, tmp_path, kind):
    # of the same prompts, so that the same ones are held out
    long = [Solution(s.prompt, s.steps * 400, s.labels * 400) for s in SOLUTIONS[::7]]
    found = api.train_scorer([*SOLUTIONS, *long], base, tmp_path / "prm", kind=kind, **QUICK)
    assert found["too_long"] == len(long)
    assert found["trained_on"] + found["held_out"] + found["chosen_by"] == len(SOLUTIONS)


def test_alternatives_are_learnt_from_by_their_last_step_and_what_is_left_out_is_counted(base, tmp_path):
    def rated(*ratings: int) -> dict:
        return {"completions": [{"text": f"step {r}", "rating": r} for r in ratings], "chosen_completion": 0}

    rows = [
        {"question": {"problem": f"Case {i}?"}, "label": {"steps": [rated(1, -1), rated(1, -1, 0)], "finish_reason": "solution"}}
        for i in range(40)
    ]
    rows[0]["label"]["steps"][1]["completions"][0]["text"] = " "
    (tmp_path / "prm800k.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = api.train_scorer(tmp_path / "prm800k.jsonl", base, tmp_path / "prm", **QUICK)
    # the solution itself, one alternative to its first step and two to its second
    assert found["trained_on"] + found["held_out"] + found["chosen_by"] == 4 * 40 - 1
    assert found["with_an_empty_step"] == 1
    task, _ = solutions_task([of_its_own(s) for s in read_solutions(tmp_path / "prm800k.jsonl", alternatives=True)], 0.1, 0)
    labels = sorted({tuple(p.meta["labels"]) for p in task.train.problems}, key=str)
    assert labels == [(0.0,), (1.0, 1.0), (None, 0.0), (None, 1.0)]
    own = api.train_scorer(tmp_path / "prm800k.jsonl", base, tmp_path / "own", alternatives=False, **QUICK)
    assert (own["trained_on"] + own["held_out"] + own["chosen_by"], own["alternatives_left_out"]) == (39, 120)


def test_shares_are_hard_labels_from_the_threshold_up(base, tmp_path, capsys):
    one_of_four = replace(SOLUTIONS[0], labels=(0.25, 0.0))
    # a step is right if one of its continuations is
    assert hard(one_of_four, 0.01).labels == (1.0, 0.0)
    assert hard(replace(one_of_four, labels=(None, 0.25)), 0.5).labels == (None, 0.0)
    told = rounded([one_of_four, replace(one_of_four, labels=(0.75, 1.0))], "bce")
    assert told.startswith("2 of 4 labels are shares between 0 and 1, and --loss bce rounds them at .5: 1 of them, such as 1 right")
    assert rounded([one_of_four], "soft") == rounded(SOLUTIONS, "bce") == ""
    shares = [replace(s, labels=tuple(0.25 * x for x in s.labels)) for s in SOLUTIONS]
    found = api.train_scorer(shares, base, tmp_path / "hard", threshold=0.01, **QUICK)
    # taken as they are no step would be right, and there would be no AUC
    assert 0.5 < found["steps"]["right"] < 1
    assert found["threshold"] == 0.01
    assert "right from 0.01 up" in (tmp_path / "hard" / "README.md").read_text()
    assert "shares between 0 and 1" not in capsys.readouterr().err
    api.train_scorer(shares, base, tmp_path / "plain", **QUICK)
    assert "warning: 90 of 120 labels are shares" in capsys.readouterr().err


def test_what_a_step_was_is_saved_with_the_scorer(base, tmp_path):
    blocks = [replace(s, steps=tuple(f"So\n{step}" for step in s.steps)) for s in SOLUTIONS]
    found = api.train_scorer(blocks, base, tmp_path / "prm", **QUICK)
    assert found["splitter"] == load_scorer(str(tmp_path / "prm"), "cpu").splitter == "paragraph"
    assert "- steps: by paragraph" in (tmp_path / "prm" / "README.md").read_text()
    lines = api.train_scorer(SOLUTIONS, base, tmp_path / "lines", **QUICK)
    assert lines["splitter"] == "newline"
    on_blocks = api.evaluate_scorer(str(tmp_path / "lines"), blocks, device="cpu")
    assert on_blocks["note"] == "the scorer learnt from steps by 'newline', and steps of solutions hold several lines"
    assert "note" not in api.evaluate_scorer(str(tmp_path / "lines"), SOLUTIONS, device="cpu")


def test_what_a_step_is_is_read_from_the_request_of_labels(tmp_path):
    file = tmp_path / "labels.jsonl"
    (tmp_path / "labels.jsonl.request.json").write_text(json.dumps({"request": {"splitter": "sentence"}, "summary": {}}))
    assert splitter_of(file, SOLUTIONS) == "sentence"
    # solutions that came in steps were not cut by it
    assert splitter_of(file, [Solution("?", ("a\nb",), (1.0,))]) == "paragraph"
    assert splitter_of(tmp_path / "others.jsonl", SOLUTIONS) == "newline"


def test_rows_in_python_are_learnt_from_and_measured_on(base, tmp_path):
    rows = [row_of(s) for s in SOLUTIONS]
    found = api.train_scorer(rows, base, tmp_path / "prm", **QUICK)
    assert found["data"] == "solutions"
    assert found["trained_on"] + found["held_out"] == len(SOLUTIONS)
    measured = api.evaluate_scorer(str(tmp_path / "prm"), rows, device="cpu")
    assert measured["steps"] == api.evaluate_scorer(str(tmp_path / "prm"), SOLUTIONS, device="cpu")["steps"]


def test_a_column_that_may_be_meant_as_labels_is_named():
    with pytest.raises(
        RewardlabError, match=r"none of the 1 solutions has a label \(they have a column 'step_labels', which is not"
    ):
        solutions_task(list(read_solutions([{"prompt": "?", "steps": ["a"], "step_labels": [1]}])), 0.1, 0)


def test_what_a_checkpoint_says_stays_where_its_convention_is_named(base, tmp_path):
    api.train_scorer(SOLUTIONS, base, tmp_path / "prm", **QUICK)
    plain, named = (load_scorer(f"{tmp_path / 'prm'}{query}", "cpu", "float32") for query in ("", "?as=head"))
    assert (
        (named.layout, named.separator, named.splitter) == (plain.layout, plain.separator, "newline") == ("chat", "\n", "newline")
    )
    assert load_scorer(f"{tmp_path / 'prm'}?as=head&layout=trl", "cpu").layout == "trl"
    for query, message in (
        ("as=head&layout=bogus", "unknown layout of a scorer 'bogus'"), ("separator=", "cannot be empty"),
        ("as=implicit&reference=x&beta=-1", "beta is a number above 0, and not '-1'"),
        ("as=implicit&reference=x&beta=much", "beta is a number above 0, and not 'much'"),
    ):  # fmt: skip
        with pytest.raises(RewardlabError, match=message):
            load_scorer(f"{tmp_path / 'prm'}?{query}", "cpu")


JUDGED = [replace(s, labels=(None, None), right=s.labels[1] == 1.0) for s in SOLUTIONS]
"""Solutions of which is known whether they are right, and no label of a step."""


@pytest.mark.parametrize("kind", ["head", "generative", "implicit"])
def test_verdicts_on_whole_solutions_teach_a_scorer_without_labels_of_steps(kind, base, tmp_path):
    found = api.train_scorer(JUDGED, base, tmp_path / "prm", kind=kind, taught="outcome", lr=1e-2, **QUICK)
    # of each held-out solution the last step alone is judged, by the verdict
    assert found["steps"]["n"] == found["held_out"]
    assert found["taught"] == "outcome"
    assert "whether whole solutions are right" in (tmp_path / "prm" / "README.md").read_text()
    scorer = load_scorer(str(tmp_path / "prm"), "cpu", "float32")
    (chances,) = scorer.score([(SOLUTIONS[0].prompt, SOLUTIONS[0].steps)])
    assert len(chances) == 2
    assert all(0 < chance < 1 for chance in chances)
    # what the run measured of the model in training is what the saved one says
    summary = json.loads((tmp_path / "prm.run" / "summary.json").read_text())
    assert summary["best"]["step_auc"] == pytest.approx(found["steps"]["auc"], abs=0.02)


def test_an_implicit_scorer_of_outcomes_adds_its_steps_up(base, tmp_path):
    api.train_scorer(JUDGED, base, tmp_path / "prm", kind="implicit", taught="outcome", lr=1e-2, **QUICK)
    asked = [(SOLUTIONS[0].prompt, SOLUTIONS[0].steps)]
    (whole,), (each,) = (load_scorer(f"{tmp_path / 'prm'}{said}", "cpu", "float32").score(asked) for said in ("", "?sums=false"))
    ratios = [torch.logit(torch.tensor(x, dtype=torch.float64)) for x in each]
    assert whole[0] == pytest.approx(each[0], abs=1e-6)
    assert whole[1] == pytest.approx(torch.sigmoid(ratios[0] + ratios[1]).item(), abs=1e-5)
    with pytest.raises(RewardlabError, match="sums is true or false, and not 'perhaps'"):
        load_scorer(f"{tmp_path / 'prm'}?sums=perhaps")


def test_which_labels_are_learnt():
    solution = Solution("?", ("a", "b", "c"), (1.0, 0.0, 0.0), right=None)
    assert up_to_error(solution).labels == (1.0, 0.0, None)
    assert up_to_error(replace(solution, labels=(1.0, None, 1.0))).labels == (1.0, None, 1.0)
    assert (as_outcome(solution).labels, as_outcome(solution).right) == ((None, None, 0.0), False)
    # the verdict counts, not the steps
    assert as_outcome(replace(solution, right=True)).labels == (None, None, 1.0)
    assert as_outcome(replace(solution, labels=(1.0, None, 1.0))).labels == (None, None, None)


def test_solutions_with_verdicts_alone_are_told_how_they_can_teach():
    with pytest.raises(RewardlabError, match=r"none of the 60 solutions has a label .*--taught outcome learns"):
        solutions_task(JUDGED, 0.1, 0)


def test_a_scorer_is_measured_by_what_it_chooses_also_without_labels_of_steps(base, tmp_path, capsys):
    api.train_scorer(SOLUTIONS, base, tmp_path / "prm", **QUICK)
    rows = [{**row_of(s), "right": s.labels[1] == 1.0} for s in SOLUTIONS[:20]]
    # of the first question's two solutions no step is labelled
    bare = [{name: x for name, x in row.items() if name != "labels"} if i < 2 else row for i, row in enumerate(rows)]
    found = api.evaluate_scorer(str(tmp_path / "prm"), bare, device="cpu", page=tmp_path / "page.html", out=tmp_path / "out.jsonl")
    assert (found["solutions"], found["left_out"]) == (18, 0)
    assert [row["by"] for row in found["choosing"]] == ["min", "last", "product", "mean"]
    assert all((row["questions"], row["random"], row["best"]) == (10, 0.5, 1.0) for row in found["choosing"])
    scored = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    # the first steps of both are the same, the last ones differ
    last = [row["chances"][-1] for row in scored]
    chosen = [scored[i + (last[i + 1] > last[i])]["right"] for i in range(0, 20, 2)]
    assert found["choosing"][1]["chosen"] == pytest.approx(sum(chosen) / 10)
    assert "Choosing among solutions" in (tmp_path / "page.html").read_text()
    # nothing is said where each question has one solution
    assert api.evaluate_scorer(str(tmp_path / "prm"), rows[::2], device="cpu")["choosing"] == []
