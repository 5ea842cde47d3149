"""The encyclopaedia: its questions follow from its articles, whole names are found, and its teacher errs as it is told."""

import random

from rewardlab import registry
from rewardlab.text.bm25 import index_of
from rewardlab.worlds.encyclopaedia import look_up, read_from


def problems(n=200, **settings):
    task = registry.task("encyclopaedia", test_size=n, **settings)
    return task, [task.train[i] for i in range(n)]


def test_whole_names_find_their_articles_and_parts_of_them_often_do_not():
    _, test = problems()
    lost, all_ = 0, 0
    for p in test:
        index = index_of(tuple(d["text"] for d in p.meta["facts"]))
        for d in p.meta["facts"]:
            assert index.best(d["title"]) == [d["text"]]
            if " " in d["title"]:
                lost, all_ = lost + (index.best(d["title"].split()[0]) != [d["text"]]), all_ + 1
    # of two articles with a word in common one is found
    assert 0.4 < lost / all_ < 0.7


def test_answers_follow_from_the_supporting_articles():
    _, test = problems()
    chains = 0
    for p in test:
        titles, texts = p.meta["searches"], [d["text"] for d in p.meta["supporting"]]
        assert [d["title"] for d in p.meta["supporting"]] == titles
        assert p.meta["solution"][-1] == f"Answer: {p.answer}"
        if p.meta["type"] == "comparison":
            first, second = (int(read_from(text, "year")) for text in texts)
            assert p.answer == titles[first > second]
            assert titles[1] not in texts[0]
        else:
            assert p.answer in texts[-1]
            chains += len(titles) == 2
            assert len(titles) == 1 or titles[1] in texts[0]
    assert chains > 20
    assert 0.3 < sum(p.meta["type"] == "comparison" for p in test) / len(test) < 0.5
    # held-out questions are none of these
    held_out = registry.task("encyclopaedia", test_size=200).test
    assert not {p.key for p in test} & {p.key for p in held_out}
    assert len(held_out) == 200
    assert 0.3 < sum(p.meta["type"] == "comparison" for p in held_out) / 200 < 0.5


def talks(n=300, **settings):
    task, test = problems(n, **settings)
    return [(p, task.demonstrate(p, random.Random(i))) for i, p in enumerate(test)]


def right(pairs):
    return sum(talk[-1].endswith(f"Answer: {p.answer}") for p, talk in pairs) / len(pairs)


def test_without_error_the_teacher_is_right_and_with_it_it_is_not():
    assert right(talks(error=0.0)) == 1.0
    assert 0.5 < right(talks(error=0.5)) < 0.95
    for p, talk in talks(40, error=0.5):
        for query, found in zip(talk[:-1:2], talk[1::2], strict=True):
            assert found == look_up(p.meta["facts"], query.removeprefix("Search: "))


def test_comparisons_are_made_in_one_call_as_often_as_told():
    pairs = talks(error=0.0, together=1.0)
    assert all("##" in talk[0] for p, talk in pairs if p.meta["type"] == "comparison")
    split = [("##" in talk[0]) for p, talk in pairs if p.meta["type"] == "bridge"]
    assert 0.3 < sum(split) / len(split) < 0.7
    assert right(pairs) == 1.0


def test_what_was_found_is_judged_and_searched_for_again():
    honest = talks(error=0.5, judged=True, misjudged=0.0)
    assert right(honest) == 1.0
    assert any("<judge>No</judge>\nSearch: " in text for _, talk in honest for text in talk)
    assert all(text.startswith("<judge>") for _, talk in honest for text in talk[2::2])
    assert right(talks(error=0.5, judged=True, misjudged=0.5)) < 0.97


def test_scripted_episodes_come_with_what_they_are_worth():
    task, test = problems(60, scripted=True)
    assert set(test[0].meta) | {"prompt", "answer"} == set(task.columns)
    for p in test:
        assert p.meta["fitting_score"] in (0.1, 1.1)
        assert p.meta["unfitting_score"] in (0.0, 1.0)
        assert p.meta["fitting"] == task.train[test.index(p)].meta["fitting"]
    # who looks for one of two says No of the other
    assert sum(p.meta["honest_score"] for p in test) / 60 > 0.9
    assert 0.3 < sum(p.meta["rash_score"] for p in test) / 60 < 0.8
    assert sum(p.meta["rash"][-1].endswith(p.answer) for p in test) < 60
