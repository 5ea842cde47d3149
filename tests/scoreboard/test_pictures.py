"""Pictures in rows: how they are read, what verdicts on them are kept under, who sees them and who says that it cannot."""

from __future__ import annotations

import base64
import hashlib
import io
import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch
from PIL import Image

from rewardlab.commands.cli import main
from rewardlab.core import Message, Problem, Sampling, Task, Trajectory
from rewardlab.data.files import write
from rewardlab.data.pictures import Picture, address_of, evenly, fitted, pictures_in, png
from rewardlab.errors import RewardlabError
from rewardlab.models.embedded import tokenizer
from rewardlab.models.vision import untrained
from rewardlab.policies.hf.vision import VisionPolicy
from rewardlab.scoreboard.benchmark import Benchmark
from rewardlab.scoreboard.figures import Marks, resamples
from rewardlab.scoreboard.items import Item, users
from rewardlab.scoreboard.pairs import right
from rewardlab.scoreboard.raters import Rater, load_rater
from rewardlab.scoreboard.raters.rater import UNSEEN, rated
from rewardlab.scoreboard.run import scoreboard
from tests.helpers.checkpoints import checkpoint
from tests.helpers.served_model import serving

SIZE = 36


pytestmark = pytest.mark.usefixtures("own_cache")


def picture(seed: int = 0, height: int = SIZE, width: int = SIZE) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def read(row, file):
    prompt = users(row["question"], pictures_in(row["image"]) if row.get("image") is not None else ())
    yield Item(str(row["id"]), prompt, (row["chosen"], row["rejected"]), (1.0, 0.0))


BENCHMARK = Benchmark(
    title="Pictures", read=read, marks=lambda item, verdict: {"right": right(item, verdict)},
    figures=lambda marks: {"overall": marks.mean("right")}, example=(), pictures=("image",),
)  # fmt: skip


def row(image, i=0) -> dict:
    return {"id": i, "question": "how many red?", "chosen": "1", "rejected": "2", "image": image}


def items(*images) -> list[Item]:
    return [item for i, image in enumerate(images) for item in read(row(image, i), "")]


# ---- reading -----------------------------------------------------------------------------------------------------------


def test_a_picture_is_read_from_every_form_in_which_rows_hold_one(tmp_path):
    array = picture(height=5, width=9)
    data = png(array)
    (tmp_path / "a.png").write_bytes(data)
    (tmp_path / "clip").mkdir()
    for k in range(3):
        (tmp_path / "clip" / f"{k}.png").write_bytes(png(picture(k)))
    text = base64.b64encode(data).decode()
    for form in ("a.png", data, text, f"data:image/png;base64,{text}", {"bytes": data, "path": "x.png"}, {"path": "a.png"}, array):
        (found,) = pictures_in(form, tmp_path)
        assert np.array_equal(np.asarray(found), array), form
        assert np.shape(found) == (5, 9, 3)
    frames = pictures_in("clip.mp4", tmp_path)
    assert [np.asarray(f).tolist() for f in frames] == [picture(k).tolist() for k in range(3)]
    assert len(pictures_in(["a.png", {"bytes": data, "path": None}, "clip"], tmp_path)) == 5
    assert len(pictures_in(np.stack([array, array]))) == 2


def test_a_png_of_ours_is_what_others_read():
    array = picture(height=3, width=7)
    assert np.array_equal(np.asarray(Image.open(io.BytesIO(png(array)))), array)


def test_columns_of_hugging_face_datasets_and_paths_beside_the_file_are_read(tmp_path):
    write(
        tmp_path / "rows.parquet",
        [row({"bytes": png(picture()), "path": "a.png"}), row({"bytes": png(picture(1)), "path": None}, 1)],
    )
    (tmp_path / "b.jpg").write_bytes(png(picture(2)))
    (tmp_path / "more.jsonl").write_text(json.dumps(row("b.jpg", 2)))
    found = BENCHMARK.items(tmp_path)
    pixels = {item.id: np.asarray(item.prompt[0].images[0]).tolist() for item in found}
    assert pixels == {str(i): picture(i).tolist() for i in range(3)}


@pytest.mark.parametrize(
    ("image", "says"),
    [
        ("nowhere.png", "there is no picture"), ("http://example.org/a.png", "is an address"), ("clip.mp4", "save its frames"),
        (base64.b64encode(b"no picture " * 20).decode(), "can be read as no picture"), ("A" * 101, "not base64"),
        (base64.b64encode(png(picture())[:-900]).decode(), "can be read as no picture"), ([], "a picture is a path"),
        (7, "a picture is a path"),
    ],
)  # fmt: skip
def test_a_broken_or_missing_picture_is_a_broken_row_told_with_its_place(tmp_path, image, says):
    good = row(base64.b64encode(png(picture())).decode())
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(good) + "\n" + json.dumps(row(image, 1)))
    with pytest.raises(RewardlabError, match=f"line 2.*{says}"):
        BENCHMARK.items(path)


def test_pictures_of_any_size_are_fitted_whole():
    wide = np.zeros((10, 40, 3), np.uint8)
    found = fitted(wide, 20)
    assert found.shape == (20, 20, 3)
    # 40 x 10 becomes 20 x 5, between grey margins
    assert (found == 0).all(-1).sum() == 100
    assert fitted(picture(), SIZE) is not None
    assert np.array_equal(fitted(picture(), SIZE), picture())
    assert evenly(range(9), 3) == (0, 4, 8)
    assert evenly(range(2), 3) == (0, 1)


# ---- what verdicts are kept under ---------------------------------------------------------------------------------------


def test_two_pictures_that_print_alike_have_two_keys():
    one = np.zeros((64, 64, 3), np.uint8)
    other = one.copy()
    other[30, 30] = 1
    assert str(one) == str(other)
    for form in (lambda x: x, lambda x: Picture(png(x))):
        (a,), (b,), (again,) = (items(form(x)) for x in (one, other, one.copy()))
        assert a.key("replies") == again.key("replies") != b.key("replies")
    observed = [replace(items(None)[0], prompt=(Message("user", "?", data=x),)).key("replies") for x in (one, other)]
    assert observed[0] != observed[1]


def test_items_without_pictures_are_kept_under_what_they_were():
    (item,) = items(None)
    read = ["replies", [asdict(m) for m in item.prompt], item.replies, item.steps, item.pairs, item.answer]
    before = hashlib.sha256(json.dumps(read, ensure_ascii=True, default=str).encode()).hexdigest()[:24]
    assert item.key("replies") == before


def test_items_of_one_picture_are_resampled_together():
    shared = [*items(picture(0), picture(0), picture(0)), *items(picture(1)), *items(picture(2))]
    for index in resamples(shared)[:50]:
        counts = np.bincount(index, minlength=5)
        assert counts[0] == counts[1] == counts[2]
    # the same question about other pictures is another prompt
    apart = items(*(picture(k) for k in range(5)))
    assert any(len(set(np.bincount(index, minlength=5)[:3])) > 1 for index in resamples(apart)[:20])
    told = [replace(item, meta={"cluster": "clip"}) for item in apart]
    assert all(len(set(np.bincount(index, minlength=5))) == 1 for index in resamples(told)[:20])


# ---- who cannot see -----------------------------------------------------------------------------------------------------


def blind_raters(folder):
    checkpoint(folder / "lm", tokenizer(), max_position_embeddings=1024)
    checkpoint(folder / "rm", tokenizer(), "LlamaForSequenceClassification", num_labels=1)
    names = (
        f"likelihood:{folder}/lm",
        f"{folder}/rm",
        f"{folder}/lm?as=likelihood",
        f"judge:{folder}/lm",
        f"judge:{folder}/lm?by=text",
    )
    return [load_rater(name, "cpu", "float32") for name in names]


def test_raters_of_text_say_that_they_cannot_see_and_go_on_with_text(tmp_path):
    seen, plain = items(picture(), None)
    for rater in blind_raters(tmp_path):
        first, second = rated(rater, [seen, plain], BENCHMARK)
        assert first.why == UNSEEN, rater.name
        assert first.prefers(0, 1) is None
        assert second.why != UNSEEN
        assert rated(rater, [seen], BENCHMARK)[0].why == UNSEEN


def test_a_formula_is_a_blind_baseline_on_pictures_alone(tmp_path):
    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row(base64.b64encode(png(picture(i))).decode(), i)) + "\n" for i in range(3)))
    text = tmp_path / "text.jsonl"
    text.write_text(json.dumps({"prompt": "?", "chosen": "12", "rejected": "1"}))
    rater, found = load_rater("length"), BENCHMARK.items(data)
    assert [v.why for v in rated(rater, found, BENCHMARK)] == [""] * 3
    assert not rater.sees
    assert rater.blind
    document = scoreboard(["length"], ["pairs"], data=text)
    assert document["raters"]["length"]["pairs"]["blind"] is False


def test_a_formula_on_a_benchmark_of_pictures_is_shown_as_blind(tmp_path, capsys, monkeypatch):
    from rewardlab.scoreboard import own_pairs

    data = tmp_path / "rows.jsonl"
    data.write_text("".join(json.dumps(row(base64.b64encode(png(picture(i))).decode(), i)) + "\n" for i in range(3)))
    monkeypatch.setattr(own_pairs, "benchmark", replace(BENCHMARK, example=(row(picture()),)))
    out = tmp_path / "out"
    assert main(["scoreboard", "length", "words()", "--on", "pairs", "--data", str(data), "--out", str(out)]) == 0
    assert "length (blind)" in capsys.readouterr().out
    assert "it reads the text alone" in (out / "index.html").read_text()
    assert "blind" in (out / "cards" / "length.md").read_text()


# ---- who sees -----------------------------------------------------------------------------------------------------------

TEMPLATE = "{prompt}?{first}!{second}"


def sighted(folder) -> VisionPolicy:
    """A Llava with random weights whose words are those of the judge's marks."""
    asked = [Problem((Message("user", "how many red ? ! A B 1 2 yes no", images=(picture(),)),), "1")] * 300
    policy = untrained(Task("looks", asked, (), "exact_match"))
    policy.save(folder)
    return policy


@pytest.mark.parametrize("by", ["chances", "text"])
def test_a_local_vision_model_judges_what_it_sees(tmp_path, by):
    sighted(tmp_path)
    rater = load_rater(f"judge:{tmp_path}?template={TEMPLATE}&by={by}&max_new=8", "cpu", "float32")
    assert rater.sees
    one, other, plain = items(picture(0), picture(1), None)
    verdicts = rated(rater, [one, other, plain], BENCHMARK)
    assert all(v.why != UNSEEN for v in verdicts)
    if by == "chances":
        first, second, third = (v.orders[0, 1] for v in verdicts)
        assert len({round(first, 6), round(second, 6), round(third, 6)}) == 3
        # and as the model says of the pair alone
        assert rated(rater, [one], BENCHMARK)[0].orders[0, 1] == pytest.approx(first, abs=1e-5)


def test_a_judge_of_single_replies_and_a_likelihood_see_too_and_fit_large_pictures(tmp_path):
    policy = sighted(tmp_path)
    large, small = items(picture(0, 50, 70), fitted(picture(0, 50, 70), SIZE))
    for name in (f"judge:{tmp_path}?kind=scale&template={{prompt}}?{{reply}}", f"likelihood:{tmp_path}"):
        rater = load_rater(name, "cpu", "float32")
        first, second = rated(rater, [large, small], BENCHMARK)
        assert first.scores == pytest.approx(second.scores, abs=1e-5), name
        assert first.scores[0] is not None
    (asked,) = items(picture(3))
    (row_,) = policy.write(policy.read([Trajectory(Problem(asked.prompt))], [asked.prompt]), [asked.replies[0]])
    plainly = policy.score([row_])[0][row_.mask].mean()
    assert rated(load_rater(f"likelihood:{tmp_path}", "cpu", "float32"), [asked], BENCHMARK)[0].scores[0] == pytest.approx(
        plainly, abs=1e-4
    )


def test_a_vision_policy_scales_colours_as_its_preprocessor_says(tmp_path):
    policy = sighted(tmp_path)
    asked = Problem((Message("user", "how many red", images=(picture(),)),))
    before = policy.extend(policy.read([Trajectory(asked)], [asked.prompt]), Sampling(2), torch.Generator().manual_seed(0))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"image_mean": [0.1, 0.2, 0.3], "image_std": [0.2, 0.2, 0.4]}))
    scaled = VisionPolicy.load(tmp_path, "cpu", "float32")
    expected = (picture()[0, 0] / 255 - np.array([0.1, 0.2, 0.3])) / np.array([0.2, 0.2, 0.4])
    assert scaled.eye.pixels([picture()], scaled.device)[0, :, 0, 0].numpy() == pytest.approx(expected, abs=1e-5)
    assert not np.allclose(scaled.score(before)[0], policy.score(before)[0])
    scaled.save(tmp_path / "again")
    assert VisionPolicy.load(tmp_path / "again", "cpu", "float32").copy("other").eye.mean == (0.1, 0.2, 0.3)


def test_a_served_judge_is_sent_the_pictures_in_their_order_before_the_text(tmp_path):
    first, second = picture(0), picture(1)
    stored = io.BytesIO()
    Image.fromarray(second).save(stored, "JPEG")
    (item,) = items([png(first), stored.getvalue()])
    with serving(lambda body: "[[A]]") as server:
        rater = load_rater(f"judge:{server.name}?by=text")
        (verdict,) = rated(rater, [item], BENCHMARK)
    assert rater.sees
    assert verdict.orders == {(0, 1): 1.0, (1, 0): 1.0}
    for body in server.asked:
        *shown, text = body["messages"][-1]["content"]
        assert [part["type"] for part in shown] == ["image_url", "image_url"]
        sent = [part["image_url"]["url"] for part in shown]
        assert sent[0].startswith("data:image/png;base64,")
        # what is stored as JPEG is sent as it is
        assert base64.b64decode(sent[1].removeprefix("data:image/jpeg;base64,")) == stored.getvalue()
        assert text["type"] == "text"
        assert "how many red?" in text["text"]
    assert address_of(first) == address_of(Picture(png(first)))


class Counts(Rater):
    """It looks: the first colour's mean of the picture decides."""

    sees = True

    def fingerprint(self) -> str:
        return "counts"

    def judge(self, items, benchmark):
        from rewardlab.scoreboard.items import Verdict

        return [Verdict((float(np.asarray(i.pictures[0]).mean()), 0.0)) for i in items]


def test_a_rater_of_ones_own_may_look():
    verdicts = rated(Counts("mine"), items(picture(0), picture(1)), BENCHMARK)
    assert [v.scores[0] for v in verdicts] == [pytest.approx(picture(k).mean()) for k in range(2)]
    assert Marks.of(items(picture()), [{"right": 1.0}]).mean("right") == 1.0


def test_a_judge_of_verdicts_is_asked_about_every_step_with_those_before_it(tmp_path):
    said = []

    def says(body):
        *shown, text = body["messages"][-1]["content"]
        said.append((len(shown), text["text"]))
        return "[[no]]" if "[Last step]\nso 3" in text["text"] else "[[yes]]"

    asked = users("how many red?", (picture(),))
    item = Item("a", asked, ("1 and 1\nso 3", "2"), (0.0, 1.0), steps=(("1 and 1", "so 3"), ("2",)), labels=((1.0, 0.0), (1.0,)))
    with serving(says) as server:
        rater = load_rater(f"judge:{server.name}?kind=verdict&by=text")
        (verdict,) = rated(rater, [item], replace(BENCHMARK, asks="steps"))
    assert verdict.steps == ((1.0, 0.0), (1.0,))
    assert rater.asks == ("replies", "steps")
    assert {n for n, _ in said} == {1}
    assert any("[Steps before it]\n1 and 1\n\n[Last step]\nso 3" in text for _, text in said)
    # pairs and scores are no verdicts on steps
    assert load_rater(f"judge:{server.name}").asks == load_rater(f"judge:{server.name}?kind=scale").asks == ("replies",)


def test_a_local_judge_gives_chances_of_steps_and_none_where_one_does_not_fit(tmp_path):
    sighted(tmp_path)
    rater = load_rater(f"judge:{tmp_path}?kind=verdict&template={{prompt}}?{{before}}!{{reply}}", "cpu", "float32")
    short = Item("a", users("red", (picture(),)), ("1\n2",), (1.0,), steps=(("1", "2"),), labels=((1.0, 1.0),))
    long = replace(short, id="b", steps=(("1", "2 " * 300),))
    first, second = rated(rater, [short, long], replace(BENCHMARK, asks="steps"))
    assert first.steps[0] is not None
    assert all(0.0 <= chance <= 1.0 for chance in first.steps[0])
    assert second.steps == (None,)
    assert "context" in second.why


def test_a_model_that_writes_its_marks_alike_is_told_what_to_do(tmp_path):
    asked = [Problem((Message("user", "how many red", images=(picture(),)),), "1")] * 300
    untrained(Task("looks", asked, (), "exact_match")).save(tmp_path)
    rater = load_rater(f"judge:{tmp_path}?template={TEMPLATE}", "cpu", "float32")
    with pytest.raises(RewardlabError, match="by=text"):
        rated(rater, items(picture()), BENCHMARK)


def test_the_scoreboard_of_a_seeing_a_blind_and_a_silent_rater_end_to_end(tmp_path):
    sighted(tmp_path / "sees")
    checkpoint(tmp_path / "text", tokenizer(), max_position_embeddings=1024)
    data, out = tmp_path / "rows.jsonl", tmp_path / "out"
    frames = [base64.b64encode(png(picture(k))).decode() for k in range(2)]
    rows = [
        {"id": i, "video": frames[i:] or frames, "question": "how many", "chosen": "1", "rejected": "2", "dimension": "knowledge"}
        for i in range(2)
    ]
    data.write_text("".join(json.dumps(x) + "\n" for x in rows))
    seeing, text = f"judge:{tmp_path}/sees?template={TEMPLATE}", f"judge:{tmp_path}/text?template={TEMPLATE}"
    document = scoreboard([seeing, text, "length"], ["videorewardbench"], data=data, out=out, device="cpu", dtype="float32")
    entries = {name: row["videorewardbench"] for name, row in document["raters"].items()}
    assert entries[seeing]["no_verdict"] == 0.0
    assert entries[text]["no_verdict"] == 1.0
    assert entries[text]["why"] == UNSEEN
    assert [entries[name]["blind"] for name in (seeing, text, "length")] == [False, False, True]
    page = (out / "index.html").read_text()
    assert 'src="data:image/png;base64,' in page
    assert UNSEEN in page
    # kept under the pictures: the same ones are not judged again, and another one is
    kept = sum(len(file.read_text().splitlines()) for file in (tmp_path / "cache" / "scoreboard").iterdir())
    for frame, new in ((frames, 0), ([base64.b64encode(png(picture(7))).decode()], 1)):
        data.write_text(json.dumps(rows[0] | {"video": frame}))
        scoreboard([seeing], ["videorewardbench"], data=data, device="cpu", dtype="float32")
        assert sum(len(file.read_text().splitlines()) for file in (tmp_path / "cache" / "scoreboard").iterdir()) == kept + new
