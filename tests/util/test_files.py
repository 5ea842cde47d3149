"""Writing that is never half done, and plain data that comes back as it went in."""

import contextlib
import errno
import json
import os
import shutil
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from rewardlab.core import Message, Problem, Score, Term, Trajectory, Turn
from rewardlab.errors import RewardlabError
from rewardlab.util import files
from rewardlab.util.serialize import pack, unpack


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def there_and_back(value, folder):
    """Through the disk, as a checkpoint does it."""
    tensors = {}
    text = json.dumps(pack(value, tensors))
    save_file(tensors, folder / "arrays.safetensors")
    return unpack(json.loads(text), load_file(folder / "arrays.safetensors"))


def test_a_file_is_replaced_as_a_whole(tmp_path):
    path = tmp_path / "a.txt"
    files.write_text(path, "old")
    files.write_text(path, "new €")
    assert path.read_text(encoding="utf-8") == "new €"
    assert names(tmp_path) == ["a.txt"]


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError):
        files.write_text(path, "new \ud800")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def fill(folder, text, fail=False):
    with files.new_folder(folder) as new:
        (new / "deep").mkdir()
        (new / "deep" / "x").write_text(text)
        if fail:
            raise KeyboardInterrupt


def test_a_folder_appears_whole_or_not_at_all(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "made" / "a", "one", fail=True)
    assert names(tmp_path / "made") == []
    fill(tmp_path / "made" / "a", "one")
    assert names(tmp_path / "made") == ["a"]


def test_a_folder_is_replaced_and_survives_a_failure(tmp_path):
    fill(tmp_path / "a", "one")
    (tmp_path / "a" / "extra").touch()
    with pytest.raises(KeyboardInterrupt):
        fill(tmp_path / "a", "two", fail=True)
    assert names(tmp_path / "a") == ["deep", "extra"]
    fill(tmp_path / "a", "two")
    assert names(tmp_path / "a") == ["deep"]
    assert (tmp_path / "a" / "deep" / "x").read_text() == "two"
    assert names(tmp_path) == ["a"]


def test_what_killed_writers_left_is_swept_and_nothing_else(tmp_path):
    (tmp_path / ".step-000004.123.tmp").mkdir()
    (tmp_path / ".step-000004.123.tmp" / "x").touch()
    (tmp_path / ".best.9.old").mkdir()
    (tmp_path / ".config.json.77.tmp").touch()
    (tmp_path / ".notes.77.old").touch()
    kept = [".hidden", ".mine.tmp", "a.1.tmp", "best", "step-000002"]
    for name in kept:
        (tmp_path / name).touch()
    files.sweep(tmp_path)
    assert names(tmp_path) == kept
    files.sweep(tmp_path / "absent")


def test_a_folder_whose_writer_is_killed_between_two_renames_comes_back(tmp_path):
    # the former folder is out of the way, and the new one not yet in its place; an earlier kill has left an older one
    for name, text, age in ((".best.5.old", "zero", 20), (".best.9.old", "one", 10), (".best.9.tmp", "two", 0)):
        fill(tmp_path / name, text)
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    files.sweep(tmp_path)
    assert names(tmp_path) == ["best"]
    assert (tmp_path / "best" / "deep" / "x").read_text() == "one"


@pytest.mark.parametrize("new", [files.new_file, files.new_folder])
def test_temporaries_have_the_names_that_are_swept(new, tmp_path):
    with contextlib.suppress(KeyboardInterrupt), new(tmp_path / "a[1]") as temporary:
        left = temporary.name
        raise KeyboardInterrupt
    assert names(tmp_path) == []
    (tmp_path / left).touch()
    files.sweep(tmp_path)
    assert names(tmp_path) == []


@pytest.mark.parametrize(
    "value",
    [
        {"plain": [1, 2.5, True, None, "text", -0.0, 10**30], "nested": {"a": {"b": []}}},
        {1: "number", ("a", 2): "pair", None: "none", "$": {"$": "tensor", "name": "t0"}},
        (1, (2, [3, (4,)])),
        {"inf": float("inf"), "small": 5e-324, "third": 1 / 3},
    ],
)
def test_plain_data_comes_back_equal_and_of_the_same_types(value, tmp_path):
    assert repr(there_and_back(value, tmp_path)) == repr(value)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3).T,
        np.array(3.5),
        np.zeros((0, 4), np.float16),
        np.array([True, False]),
        np.arange(10, dtype=np.int32)[::3],
        np.broadcast_to(np.uint8(7), (3, 2)),
    ],
)
def test_arrays_keep_shape_dtype_and_values(array, tmp_path):
    back = there_and_back([array], tmp_path)[0]
    assert isinstance(back, np.ndarray)
    assert (back.dtype, back.shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(back, array)


@pytest.mark.parametrize("number", [np.float32(0.1), np.float64(0.1), np.int8(-3), np.bool_(True)])
def test_numbers_of_numpy_keep_their_type(number, tmp_path):
    back = there_and_back({"x": number}, tmp_path)["x"]
    assert type(back) is type(number)
    assert back == number


def test_tensors_come_back_detached(tmp_path):
    value = torch.linspace(0, 1, 6, dtype=torch.bfloat16, requires_grad=True).view(2, 3).T
    back = there_and_back({"x": value}, tmp_path)["x"]
    assert (back.dtype, back.shape, back.requires_grad) == (torch.bfloat16, (3, 2), False)
    assert torch.equal(back, value)


def test_what_was_packed_does_not_change_with_the_original(tmp_path):
    tensors, array, tensor = {}, np.zeros(3), torch.zeros(3)
    data = pack([array, tensor], tensors)
    array += 1
    tensor += 1
    assert all(float(x.sum()) == 0 for x in unpack(data, tensors))


def test_waiting_rollouts_come_back_though_they_share_their_prompt(tmp_path):
    problem = Problem((Message("user", "1+1?"),), "2", {"steps": ["1+1=2"], "level": 3})
    prompt = Turn(None, np.arange(4), text="1+1?")
    reply = Turn("policy", np.array([5, 6]), np.array([-0.5, -1.0], np.float32), None, "2", step=3)
    group = [Trajectory(problem, (prompt, reply), "end", (i,), steps=(5,)) for i in range(3)]
    score = Score(terms={"correct": Term(1.0, ((5, 0.5),), 2.0), "f1": Term(0.5, weight=None)}, constant=0.5, why="right")
    back, verdict = there_and_back({"waiting": [group], "score": score}, tmp_path).values()
    assert verdict == score
    for before, after in zip(group, back[0], strict=True):
        assert (after.problem, after.stop, after.path, after.steps) == (problem, "end", before.path, (5,))
        np.testing.assert_array_equal(after.ids, before.ids)
        np.testing.assert_array_equal(after.mask, before.mask)
        np.testing.assert_array_equal(after.column("logprobs"), before.column("logprobs"))
        assert [t.sampled for t in after.turns] == [None, None]
        assert [(t.text, t.step) for t in after.turns] == [("1+1?", -1), ("2", 3)]


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        (  # 1 - 0.5 * short + steps
            {"value": 0.5, "steps": ((2, 1.0),), "parts": {"short": Term(1.0, weight=-0.5), "steps": Term(None, ((2, 1.0),))}},
            {"value": 0.5, "constant": 1.0, "steps": ((2, 1.0),), "has_outcome": True},
        ),
        (  # a product: what it was made of weighed 0
            {"value": 2.0, "parts": {"a": Term(2.0, weight=0.0), "b": Term(1.0, weight=0.0), "a*b": Term(2.0)}, "why": "so"},
            {"value": 2.0, "constant": None, "why": "so", "has_outcome": True},
        ),
        ({"value": None, "steps": (), "parts": {"a": Term(None)}, "outcome": None}, {"value": None, "missing": True}),
        (
            {"value": 0.0, "steps": ((2, 1.0),), "parts": {"a": Term(None, ((2, 1.0),))}, "outcome": False},
            {"value": 0.0, "constant": None, "has_outcome": False},
        ),
        ({"value": 0.25, "steps": (), "parts": {}, "extracted": "7"}, {"value": 0.25, "total": 0.25, "extracted": "7"}),
    ],
    ids=str,
)
def test_scores_of_older_checkpoints_are_read(saved, expected):
    tensors = {}
    fields = {name: pack(value, tensors) for name, value in {"steps": (), **saved}.items()}
    fields["parts"]["of"] = [[k, pack(v, tensors)] for k, v in saved["parts"].items()]
    score = unpack({"$": "Score", "of": fields}, tensors)
    assert {name: getattr(score, name) for name in expected} == expected
    assert score.terms.keys() - {""} == saved["parts"].keys()


@dataclass
class Turn2:
    x: int = 1


Turn2.__name__ = "Turn"


@pytest.mark.parametrize("bad", [{1, 2}, object(), lambda: 0, Turn2(), np.array(["a"]), b"bytes"])
def test_what_cannot_be_saved_is_named_with_its_place(bad):
    with pytest.raises(RewardlabError, match=r"memory\['seen'\]\[1\] holds an? "):
        pack({"seen": [0, bad]}, {})


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o002, 0o664)])
def test_weights_have_the_mode_of_any_other_new_file(umask, mode, tmp_path):
    before = os.umask(umask)
    try:
        with files.new_folder(tmp_path / "model") as new:
            (new / "deep").mkdir()
            save_file({"x": torch.zeros(3)}, new / "deep" / "model.safetensors")
        with files.new_file(tmp_path / "one.safetensors") as new:
            save_file({"x": torch.zeros(3)}, new)
    finally:
        os.umask(before)
    for path in (tmp_path / "model" / "deep" / "model.safetensors", tmp_path / "one.safetensors"):
        assert path.stat().st_mode & 0o777 == mode
        assert load_file(path)["x"].shape == (3,)


def test_errors_of_the_system_are_said_with_what_to_do_and_others_pass():
    with pytest.raises(RewardlabError, match="cannot write runs/x: your disk quota is used up; free some space"):  # noqa: SIM117
        with files.disk_errors("runs/x"):
            raise OSError(errno.EDQUOT, "Disk quota exceeded")
    with pytest.raises(RewardlabError, match="cannot write runs/x: the disk is full; free some space"):  # noqa: SIM117
        with files.disk_errors("runs/x"):
            raise Exception("No space left on device (os error 28)")  # as safetensors does, without a number
    with pytest.raises(ZeroDivisionError), files.disk_errors("runs/x"):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "problem",
    [
        OSError(errno.ENOSPC, "No space left on device"), Exception("No space left on device (os error 28)"),
        shutil.Error([("a", "b", "[Errno 28] No space left on device: 'a' -> 'b'")]),
    ],
)  # fmt: skip
def test_a_folder_for_which_the_disk_is_too_small_is_told_in_words(problem, tmp_path):
    with pytest.raises(RewardlabError, match=r"cannot write .*model: the disk is full; free some space"):  # noqa: SIM117
        with files.new_folder(tmp_path / "model"):
            raise problem
    with pytest.raises(FileNotFoundError), files.new_folder(tmp_path / "model"):
        (tmp_path / "nothing").read_text()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("n", "text"), [(512, "512 B"), (2048, "2.0 KiB"), (3.5 * 2**20, "3.5 MiB"), (5000 * 2**30, "5000.0 GiB")])
def test_sizes_are_readable(n, text):
    assert files.size(n) == text


def test_a_page_takes_the_place_of_pages_alone(tmp_path):
    for name in ("page.html", "page.HTM", "data.jsonl"):
        files.check_page(tmp_path / name)
    (tmp_path / "page.html").write_text("<html>")
    files.check_page(tmp_path / "page.html")
    (tmp_path / "data.jsonl").touch()
    files.check_page(tmp_path / "data.jsonl")
    (tmp_path / "data.jsonl").write_text("{}")
    with pytest.raises(RewardlabError, match=r"data.jsonl exists, and would be replaced by an HTML page: .* ends in .html"):
        files.check_page(tmp_path / "data.jsonl")


def test_results_are_written_over_those_of_an_earlier_call_alone(tmp_path):
    names = ("board.json", "index.html")
    files.results_folder(tmp_path / "new", names, "rows")
    for taken, text in (("board.json", '{"other": 1}'), ("board.json", "no json"), ("index.html", "<p>mine")):
        (folder := tmp_path / f"{taken}{len(text)}").mkdir()
        (folder / taken).write_text(text)
        with pytest.raises(RewardlabError, match=f"{taken} exists, and would be overwritten: choose another folder"):
            files.results_folder(folder, names, "rows")
    (tmp_path / "new" / "board.json").write_text('{"rows": []}')
    (tmp_path / "new" / "index.html").write_text("<p>ours")
    files.results_folder(tmp_path / "new", names, "rows")
