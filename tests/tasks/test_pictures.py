"""Rows that show pictures: in a column, or in the parts of their messages, in the forms of other libraries."""

import base64
import io

import numpy as np
import pytest

from rewardlab import registry
from rewardlab.data.pictures import Picture, base64_of, png
from rewardlab.errors import RewardlabError
from tests.helpers.seen import lines, pixels, saved

ADDRESS = "data:image/png;base64," + base64_of(pixels(1))
STORED = {"bytes": png(pixels(1)), "path": None}
NAMED = {"type": "image", "image": "1.png"}
ASKED = {"type": "text", "text": "what is it ?"}
SAID = {"role": "assistant", "content": "a cup"}


def shown(*parts):
    return [{"role": "user", "content": list(parts)}]


@pytest.fixture
def folder(tmp_path):
    saved(tmp_path, 3)
    return tmp_path


def problems(source, **options):
    task = registry.task(source, **options)
    return [*task.train.problems, *task.test]


def by_answer(source, **options):
    return {p.answer: p for p in problems(source, **options)}


def arrays(message):
    return [np.asarray(image).tolist() for image in message.images]


OTHER = {"prompt": "and this ?", "image": "0.png", "answer": "other"}


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ({"prompt": "what is it ?", "image": "1.png"}, "what is it ?"),
        ({"prompt": "what is it ?", "images": ["1.png"]}, "what is it ?"),
        ({"prompt": "<image> what is it ?", "images": ["1.png"]}, "<image> what is it ?"),
        ({"prompt": "what is it ?", "image": ADDRESS}, "what is it ?"),
        ({"prompt": "what is it ?", "image": base64_of(pixels(1))}, "what is it ?"),
        ({"prompt": "what is it ?", "image": {"bytes": None, "path": "1.png"}}, "what is it ?"),
        ({"prompt": [{"role": "user", "content": "it is <image>"}], "images": ["1.png"]}, "it is <image>"),
        ({"prompt": shown({"type": "image"}, ASKED), "images": ["1.png"]}, "<image>what is it ?"),
        ({"prompt": shown(ASKED, {"type": "image", "text": None}), "image": "1.png"}, "what is it ?<image>"),
        ({"prompt": shown(NAMED, ASKED)}, "<image>what is it ?"),
        # the column says the same again
        ({"prompt": shown(NAMED, ASKED), "image": "1.png"}, "<image>what is it ?"),
        ({"prompt": shown({"image": "file://1.png"}, {"text": "what is it ?"})}, "<image>what is it ?"),
        ({"prompt": shown({"type": "image_url", "image_url": {"url": ADDRESS}}, ASKED)}, "<image>what is it ?"),
        ({"prompt": shown({"type": "input_image", "image_url": ADDRESS}, ASKED)}, "<image>what is it ?"),
        ({"prompt": shown({"type": "image", "source": {"data": base64_of(pixels(1))}}, ASKED)}, "<image>what is it ?"),
        # other libraries' names for the prompt
        ({"messages": shown({"type": "image"}, ASKED), "images": ["1.png"]}, "<image>what is it ?"),
        ({"conversations": [{"from": "human", "value": "<image>what is it ?"}], "image": "1.png"}, "<image>what is it ?"),
    ],
)  # fmt: skip
def test_a_row_shows_its_picture_in_every_form(folder, row, text):
    rows = [row | {"answer": "this"}, {name: OTHER["prompt"] for name in row if name in ("messages", "conversations")} | OTHER]
    found = by_answer(lines(folder / "rows.jsonl", rows))["this"]
    (message,) = found.prompt
    assert (message.text, arrays(message)) == (text, [pixels(1).tolist()])
    # encoded, and nowhere else: not among what rewards get as plain data
    assert isinstance(message.images[0], Picture)
    assert not {"image", "images"} & found.meta.keys()


@pytest.mark.parametrize("suffix", ["json", "csv", "parquet"])
def test_pictures_in_tables_and_lists(folder, suffix):
    import json

    rows = [{"prompt": f"<image> and <image> {k} ?", "images": [f"{k}.png", "0.png"], "answer": str(k)} for k in range(3)]
    path = folder / f"rows.{suffix}"
    if suffix == "parquet":
        import pyarrow
        from pyarrow import parquet

        stored = [
            row | {"images": [{"bytes": (folder / name).read_bytes(), "path": name} for name in row["images"]]} for row in rows
        ]
        parquet.write_table(pyarrow.Table.from_pylist(stored), path)
    elif suffix == "csv":
        import csv

        with path.open("w") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(row | {"images": json.dumps(row["images"])} for row in rows)
    else:
        path.write_text(json.dumps(rows))
    found = by_answer(str(path))
    for k in range(3):
        assert arrays(found[str(k)].prompt[0]) == [pixels(k).tolist(), pixels(0).tolist()]


def in_memory():
    from PIL import Image

    rows = [{"prompt": f"{k} ?", "answer": k} for k in range(3)]
    yield "Pillow", [row | {"image": Image.fromarray(pixels(row["answer"]))} for row in rows]
    yield "arrays", [row | {"image": pixels(row["answer"])} for row in rows]
    yield "lists of bytes", [row | {"images": [png(pixels(row["answer"]))]} for row in rows]
    yield (
        "parts",
        [
            row | {"prompt": shown({"type": "image", "image": Image.fromarray(pixels(row["answer"]))}, ASKED | {"image": None})}
            for row in rows
        ],
    )


@pytest.mark.parametrize("rows", [pytest.param(rows, id=name) for name, rows in in_memory()])
def test_pictures_of_rows_in_python(rows):
    found = by_answer(rows)
    assert [arrays(found[k].prompt[0]) for k in range(3)] == [[pixels(k).tolist()] for k in range(3)]


def test_a_dataset_is_read_without_decoding_its_pictures(tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features({
        "prompt": datasets.Value("string"), "answer": datasets.Value("int64"), "images": datasets.List(datasets.Image()),
    })  # fmt: skip
    rows = {
        "prompt": [f"{k} <image> ?" for k in range(3)], "answer": list(range(3)),
        "images": [[{"bytes": png(pixels(k)), "path": None}] for k in range(3)],
    }  # fmt: skip
    dataset = datasets.Dataset.from_dict(rows, features=features)
    dataset.save_to_disk(str(tmp_path / "saved"))
    monkeypatch.setattr(datasets.Image, "decode_example", lambda *_: pytest.fail("a picture was decoded"))
    for source in (dataset, str(tmp_path / "saved")):
        found = by_answer(source)
        assert [arrays(found[k].prompt[0]) for k in range(3)] == [[pixels(k).tolist()] for k in range(3)]
        assert found[1].prompt[0].images[0].data == png(pixels(1))


def test_a_data_frame_with_pictures(folder):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"prompt": ["0 ?", "1 ?"], "image": [{"bytes": png(pixels(k))} for k in range(2)], "answer": [0, 1]})
    found = by_answer(frame)
    assert arrays(found[1].prompt[0]) == [pixels(1).tolist()]


def test_several_pictures_stand_at_their_marks_in_their_messages(folder):
    said = [
        {"role": "user", "content": "<image> is a ."},
        {"role": "assistant", "content": "yes"},
        {"role": "user", "content": "<image><image> ?"},
    ]
    rows = [{"prompt": said, "images": ["2.png", "0.png", "1.png"], "answer": "this"}, OTHER]
    prompt = by_answer(lines(folder / "rows.jsonl", rows), system="look")["this"].prompt
    assert [[m.role, arrays(m)] for m in prompt] == [
        ["system", []], ["user", [pixels(2).tolist()]], ["assistant", []], ["user", [pixels(0).tolist(), pixels(1).tolist()]],
    ]  # fmt: skip
    # without a mark the last message of the user shows them
    plain = [{**m, "content": m["content"].replace("<image>", "")} for m in said]
    prompt = by_answer(lines(folder / "rows.jsonl", [rows[0] | {"prompt": plain}, OTHER]))["this"].prompt
    assert [len(m.images) for m in prompt] == [0, 0, 3]


def test_the_same_words_below_other_pictures_are_other_problems(folder):
    rows = [{"prompt": "what is it ?", "image": f"{k}.png", "answer": k} for k in range(3)]
    task = registry.task(lines(folder / "rows.jsonl", rows))
    assert len({p.key for p in problems(str(folder / "rows.jsonl"))}) == 3
    assert (len(task.train.problems), len(task.test)) == (2, 1)
    assert "3 of them show pictures" in task.about
    # and the split stays as it is where a picture is stored in another way
    stored = [row | {"image": base64_of(pixels(row["answer"]))} for row in rows]
    assert [p.key for p in registry.task(lines(folder / "stored.jsonl", stored)).test] == [p.key for p in task.test]


def test_a_mark_without_any_picture_stays_text(folder):
    rows = [{"prompt": "what does <image> do in HTML ?", "answer": "this"}, OTHER, {"prompt": "no ?", "images": [], "answer": "no"}]
    found = by_answer(lines(folder / "rows.jsonl", rows))
    assert (found["this"].question, found["this"].prompt[0].images) == ("what does <image> do in HTML ?", ())
    assert found["no"].prompt[0].images == ()


@pytest.mark.parametrize("text", ["python:3.11-slim", "swebench/sweb.eval.x86_64.django-1", "a cat on a mat"])
def test_a_text_that_names_no_picture_is_a_column_as_any(folder, text):
    """As that of a container for a task of code, beside a prompt that shows nothing."""
    lines(folder / "rows.jsonl", [{"prompt": "what is it ?", "image": text, "answer": "3"}, OTHER])
    found = by_answer(folder / "rows.jsonl")
    assert found["3"].prompt[0].images == ()
    assert found["3"].meta["image"] == text
    assert len(found["other"].prompt[0].images) == 1
    assert "image" not in found["other"].meta
    # where it was asked for, or the prompt has a place for it, it is meant
    with pytest.raises(RewardlabError, match="there is no picture"):
        problems(folder / "rows.jsonl", image_column="image")
    lines(folder / "rows.jsonl", [{"prompt": "<image> what is it ?", "image": text, "answer": "3"}, OTHER])
    with pytest.raises(RewardlabError, match="there is no picture"):
        problems(folder / "rows.jsonl")


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"image": "4.png"}, r"line 2, column image: there is no picture .*4\.png \(--image-folder .*; --image-column"),
        ({"image": "broken.png"}, r"line 2, column image: .*broken\.png can be read as no picture"),
        ({"image": "https://x/y.png"}, "line 2, column image: .*is an address: save it to a file"),
        ({"prompt": "<image> <image> ?", "image": "1.png"}, "line 2: .* has 2 marks <image>, and the row 1 picture: write a mark"),
        ({"prompt": "<image> ?", "images": ["1.png", "2.png"]}, "line 2: the prompt has 1 marks <image>, and the row 2 pictures"),
        ({"prompt": shown({"type": "image"}, ASKED)}, "line 2: the messages have a place for 1 picture, and there is no column"),
        ({"prompt": shown({"type": "image"}, ASKED), "images": ["1.png", "2.png"]}, "line 2: .*for 1 picture, and the column .* 2"),
        ({"prompt": shown(NAMED, ASKED), "image": "2.png"}, "line 2: the messages hold 1 pictures, and the column image 1 others"),
        ({"image": "1.png", "images": ["2.png"]}, "line 2: the columns image and images hold different pictures"),
        ({"prompt": shown({"type": "video", "video": "a.mp4"}, ASKED)}, "line 2: .*has no text"),
        (
            {"messages": [*shown(ASKED), SAID, *shown({"type": "image"}), SAID], "images": ["1.png"]},
            "line 2: a picture is shown after the first reply",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_shown_is_said_with_its_place(folder, row, says):
    (folder / "broken.png").write_bytes(png(pixels(1))[:40])
    row = ({} if "messages" in row else {"prompt": "this ?"}) | {"answer": "this"} | row
    first = {"messages": [*shown(ASKED), SAID], "image": "0.png", "answer": "other"} if "messages" in row else OTHER
    with pytest.raises(RewardlabError, match=says):
        problems(lines(folder / "rows.jsonl", [first, row]))


def test_pictures_of_another_column_and_folder(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("rows")
    rows = [{"prompt": f"{k} ?", "photo": f"{k}.png", "image": "https://x/y.png", "answer": k} for k in range(3)]
    source = lines(elsewhere / "rows.jsonl", rows)
    found = by_answer(source, image_column="photo", image_folder=str(folder))
    assert [arrays(found[k].prompt[0]) for k in range(3)] == [[pixels(k).tolist()] for k in range(3)]
    # then `image` is a column like any other
    assert found[0].meta["image"] == "https://x/y.png"
    assert by_answer(source, image_column="none")[0].prompt[0].images == ()
    with pytest.raises(RewardlabError, match=r"there is no folder .*nowhere of pictures"):
        problems(source, image_column="photo", image_folder=str(folder / "nowhere"))
    with pytest.raises(RewardlabError, match="no row has a picture in the column 'foto'"):
        problems(source, image_column="foto")


def test_pairs_and_replies_to_pictures(folder):
    sides = {"chosen": "a cup", "rejected": "a dog"}
    said = {side: {"role": "assistant", "content": text} for side, text in sides.items()}
    whole = [{s: [*shown({"type": "image", "image": f"{k}.png"}, ASKED), said[s]] for s in sides} for k in range(2)]
    column = [
        {"images": [f"{k}.png"], **{s: [*shown({"type": "image"}, ASKED), *row[s][1:]] for s in sides}}
        for k, row in enumerate(whole)
    ]
    plain = [{"prompt": "what is it ?", "image": f"{k}.png", **sides} for k in range(2)]
    for rows in (whole, column, plain):
        found = problems(lines(folder / "rows.jsonl", rows))
        assert {str(arrays(p.prompt[-1])) for p in found} == {str([pixels(k).tolist()]) for k in range(2)}
        assert [(p.meta["chosen"], p.meta["rejected"]) for p in found] == [("a cup", "a dog")] * 2
    other = [whole[0], whole[1] | {"rejected": whole[0]["rejected"]}]
    with pytest.raises(RewardlabError, match="line 2: the conversations of this row show different pictures"):
        problems(lines(folder / "rows.jsonl", other))


def test_a_picture_is_turned_as_its_camera_noted():
    from PIL import Image

    image = Image.fromarray(pixels(1, (4, 6)))
    exif = image.getexif()
    exif[0x0112] = 6
    file = io.BytesIO()
    image.save(file, "PNG", exif=exif)
    opened = Image.open(io.BytesIO(file.getvalue()))
    rows = [
        {"prompt": "0 ?", "image": opened, "answer": 0},
        {"prompt": "1 ?", "image": base64.b64encode(file.getvalue()).decode(), "answer": 1},
    ]
    found = by_answer(rows)
    assert arrays(found[0].prompt[0]) == arrays(found[1].prompt[0])
    assert found[0].prompt[0].images[0].shape == (6, 4, 3)


def test_a_problem_is_keyed_by_its_pictures_without_decoding_them(folder, monkeypatch):
    lines(folder / "rows.jsonl", [{"prompt": "this ?", "image": f"{k}.png", "answer": str(k)} for k in range(3)])
    found, again = problems(folder / "rows.jsonl"), problems(folder / "rows.jsonl")
    monkeypatch.setattr(Picture, "pixels", lambda self: pytest.fail("it was decoded"))
    assert len({p.key for p in found}) == 3
    assert {p.key for p in found} == {p.key for p in again}
