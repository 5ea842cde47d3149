"""Published judges of one reply: a score, or a verdict."""

from __future__ import annotations

from rewardlab.judges.forms import Form
from rewardlab.judges.marks import Marks
from rewardlab.judges.published.words import RUBRIC, VALUED

REFERENCE = "###Reference Answer (Score 5):\n{answer}\n\n"
_PROMETHEUS = """###Task Description:
Below are an instruction, a response to evaluate and a score rubric; a reference answer that deserves a 5 may stand with them.
1. Write feedback on the response, by the rubric and by nothing else.
2. Then write its score, an integer from 1 to 5, as the rubric describes it.
3. Keep to this format: "(feedback by the rubric) [RESULT] (an integer number between 1 and 5)"
4. Write nothing before it and nothing after it.

###The instruction to evaluate:
{prompt}

###Response to evaluate:
{reply}

###Reference Answer (Score 5):
{answer}

###Score Rubrics:
{rubric}

###Feedback: """
_MASTER_RM = """Say whether the final answer of a solution process, which may be incomplete, is the reference answer to a problem.
The reference answer may be the letter of an option, a number, an expression, or a list where several things were asked.
**It may be in Chinese or in any other language: judge it alike in all of them.**

What to do:
- Compare the end of the solution process with the reference answer.
- Where they **match exactly**, say **YES**.
- Where they **do not match**, say **NO**.
- A solution process that is unclear, incomplete or ambiguous counts as wrong: say **NO**.

Say **'YES'** or **'NO'** alone, without any other word, sign or reason.

---

**Question:**
{prompt}

**Solution Process (Final Step Only):**
{reply}

**Reference Answer:**
{answer}

**Output:**
"""
_KEY = "[The Start of Reference Answer]\n{answer}\n[The End of Reference Answer]\n\n"
SINGLE = (
    Form(
        "prometheus", "scale", _PROMETHEUS,
        Marks(
            low=1, high=5, written="[RESULT] {}",
            pattern=r"(?i)(?:\[(?:RESULT|SCORE)\]:?|\b(?:Result|Score):|\bscore of)[\s(\[]{0,9}(\d{1,4})(?!\d|\.\d)",
        ),
        system="You are a fair judge whose feedback is clear, objective and bound to the given standard alone.",
        answer_part=REFERENCE, defaults={"rubric": RUBRIC},
        source="after Kim et al. 2024, arXiv:2405.01535; prometheus-eval/prometheus-eval prompts.py at 485d2b4, parser.py "
        "at a6938ea; M-Prometheus (arXiv:2504.04953) writes the same marks",
    ),
    Form(
        "mt_bench", "scale",
        f"[Instruction]\nJudge, without taking sides, the answer of an AI assistant to the question below. {VALUED} "
        "Where a reference answer is given, compare with it and find the mistakes. Give a short explanation first. "
        "Then rate the answer from 1 to 10 in this form alone: [[rating]], for example: Rating: [[5]].\n\n"
        "[Question]\n{prompt}\n\n" + _KEY + "[The Start of Assistant's Answer]\n{reply}\n[The End of Assistant's Answer]",
        Marks(low=1, high=10), answer_part=_KEY,
        source="after Zheng et al. 2023, arXiv:2306.05685; lm-sys/FastChat, single-v1, by code that uses it (inferred)",
    ),
    Form(
        "rewardbench2_ratings", "scale",
        "### Task Description\nJudge, without taking sides, the response of an AI assistant to the query below.\n\nNotes:\n"
        f"1- {VALUED}\n2- Give a short explanation first.\n"
        "3- Then rate the response from 1 to 10. Write the rating as a bare number, without markdown, and nothing after it.\n\n"
        "[Query]\n{prompt}\n\n[Response]\n{reply}\n\n[Your judgement]",
        Marks(low=1, high=10, written="{}", pattern=r"(?<![\d./])(\d{1,4}(?:\.\d{1,4})?)(?:\s?/\s?10)?[\s.*]{0,9}\Z"),
        source="after Malik et al. 2025, arXiv:2506.01937; allenai/reward-bench rewardbench/generative_v2.py at 22d19c5",
    ),
    Form(
        "master_rm", "verdict", _MASTER_RM,
        Marks({"YES": 1.0, "NO": 0.0}, written="{}", pattern=r"(?i)\A[\s'\"*]{0,6}(YES|NO)\b"),
        system="You are a helpful assistant.", answer_part="**Reference Answer:**\n{answer}\n\n", at_once=True,
        source="after Zhao et al. 2025, arXiv:2507.08794, Table 7, and the card of sarosavo/Master-RM: the prompt of the judge of "
        "Su et al. 2025, arXiv:2503.23829, on whose data it was trained",
    ),
)  # fmt: skip
