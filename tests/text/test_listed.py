"""Numbers of steps in the spellings of models."""

from __future__ import annotations

import random
import time

import pytest

from rewardlab.text.listed import listed_numbers

ONE = ("{}", "step {}", "Step {}", "#{}", "**{}**", "no. {}", "`{}`", "Step {} (7+5 is 12, not 13)", "${}$")
BETWEEN = (", ", "; ", " and ", ", and ", " & ", ",")
AFTER = ("", ".", " (all use line 77)", ", because 7+5 is 12", " are wrong: 7+5=12, not 13")
BULLETS = ("- {}", "* {}", "• Step {}: 7+5 is 12", "- **Step {}** (line 77 too)", "  - {}. The sum 7+5 is 12")


def test_a_list_of_any_numbers_in_any_spelling_is_those_numbers():
    rng = random.Random(0)
    for _ in range(400):
        numbers = sorted(rng.sample(range(1, 40), rng.randint(1, 5)))
        said = [rng.choice(ONE).format(n) for n in numbers]
        line = "".join(x + rng.choice(BETWEEN) for x in said[:-1]) + said[-1] + rng.choice(AFTER)
        for text in (line, f" {line}", f"\n{line}", f"[{line}", f"steps {line}"):
            assert listed_numbers(text) == set(numbers), text
        bullets = "\n".join(rng.choice(BULLETS).format(n) for n in numbers)
        for text in (f"\n{bullets}", f"\n\n{bullets}\n\nSo 78 is the answer.", f"**\n{bullets}"):
            assert listed_numbers(text) == set(numbers), text
        counted = "\n".join(f"{k}. Step {n}: 7+5 is 12" for k, n in enumerate(numbers, 1))
        own = "\n".join(f"{n}. 7+5 is 12" for n in numbers)
        assert listed_numbers(f"\n{counted}") == listed_numbers(f"\n{own}") == set(numbers)


@pytest.mark.parametrize("word", ["-", "–", " to ", " - ", "..", " through "])
def test_ranges_stand_for_their_numbers(word):
    assert listed_numbers(f" 2{word}4, 7") == {2, 3, 4, 7}
    assert listed_numbers(f" steps 2{word}4 and 7 (see 9)") == {2, 3, 4, 7}


@pytest.mark.parametrize(
    "text",
    [
        "none", "None.", "**none**", "None. All 4 steps are right.", "none of the 5 steps is wrong", "none (steps 1-3 are right)",
        "No step is wrong, 5 was checked twice.", "no wrong steps", "nothing", "N/A", "[]", "[ ]", "{}", "(none)", "-", "zero", "∅",
        "There are none.", "all steps are correct", "All 4 of the steps are right", "\nnone", "\n- none", "'none'",
    ],
)  # fmt: skip
def test_none_in_its_spellings(text):
    assert listed_numbers(text) == set()
    assert listed_numbers(f" {text}") == set()


@pytest.mark.parametrize(
    "text", ["", " ", "\n", "perhaps", "7+5=13", "12-5=7", "2.5", "all of them", "All 4 steps", "no idea", "step"]
)
def test_what_names_no_step_is_not_read(text):
    assert listed_numbers(text) is None


def test_what_is_added_to_a_list_does_not_count():
    assert listed_numbers(" 2; step 3 is right") == {2}
    assert listed_numbers(" none except 3") == {3}
    assert listed_numbers(" 2\n- 5 is the sum of line 7") == {2}
    assert listed_numbers("\n- Step 2\n- The others, 1 and 3, are right") == {2}
    assert listed_numbers(" 2 - the sum 7+5 is 12") == {2}
    assert listed_numbers(" 3 of the 5 steps") == {3}


def test_hostile_lists_are_read_at_once():
    start = time.process_time()
    for piece in ("2,", "(", "\n- 2", " ", "step ", "2-", "all of ", "*", "[ ", "_", "#", "2 ( ", "2 (3) "):
        listed_numbers(piece * 5000)
    assert time.process_time() - start < 2
