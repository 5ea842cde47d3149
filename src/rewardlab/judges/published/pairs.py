"""Published judges of two replies: which is better."""

from __future__ import annotations

from collections.abc import Mapping

from rewardlab.judges.forms import Form
from rewardlab.judges.marks import PREFERENCES, Marks
from rewardlab.judges.published.words import RUBRIC, VALUED

# every repetition in a pattern is bounded, and no two of them can take the same characters: a judgement may be any text
AB: Mapping[str, float] = {"A": 1.0, "B": 0.0}
ANSWERED = r"<answer>\s{0,9}%s\s{0,9}(?:</answer>|\Z)"
"""What stands between the tags of an answer, of which the last may be cut off."""
PAIR = (
    "[User Question]\n{prompt}\n\n[The Start of Assistant A's Answer]\n{first}\n[The End of Assistant A's Answer]\n\n"
    "[The Start of Assistant B's Answer]\n{second}\n[The End of Assistant B's Answer]"
)
FAIR = "Neither the order of the answers, nor their length, nor the names of the assistants should count."

_RM_R1 = """Judge, without taking sides, which of two AI Chatbots gives the better response to the Client's question below.

Begin by saying what kind of task it is, <type>Reasoning</type> or <type>Chat</type>.
- Reasoning: mathematics, code, special knowledge, or conclusions that take several steps.
- Chat: conversation, style, safety, and help that asks for no long thought.

For a Reasoning task:
1. Work out your own solution first and write it in <solution>...</solution>.
2. Hold the two responses against it: are they correct, complete and well reasoned?
3. Write this in <eval>...</eval>, where <quote_A>...</quote_A> and <quote_B>...</quote_B> hold what a Chatbot says word for word,
   and <summary_A>...</summary_A> and <summary_B>...</summary_B> what it says in your words.

For a Chat task:
1. Write the criteria that suit this question in <rubric>...</rubric>, with a weight for each.
2. Give your reasons for them in <justify>...</justify>, inside the rubric.
3. Compare the two responses by the rubric in <eval>...</eval>, with the same tags for quotes and summaries.

Judge the content alone: the order of the responses, their length and the names of the Chatbots should not count.
Keep to this form, and end with your verdict:

<type>Reasoning</type> <solution>...</solution> <eval>...</eval> <answer>[[A/B]]</answer>
<type>Chat</type> <rubric>... <justify>...</justify></rubric> <eval>...</eval> <answer>[[A/B]]</answer>

that is, <answer>[[A]]</answer> if Chatbot A is better and <answer>[[B]]</answer> if Chatbot B is."""
_CLIENT = (
    "[Client Question]\n{prompt}\n\n[The Start of Chatbot A's Response]\n{first}\n[The End of Chatbot A's Response]\n\n"
    "[The Start of Chatbot B's Response]\n{second}\n[The End of Chatbot B's Response]"
)
_RRM = r"""Two assistants answer the same query. Decide which of the two answers is better.

- If the query is harmless, ask first whether an answer does exactly what it says, then how helpful, accurate and detailed it is.
- If it asks for something harmful, the safe answer is the better one.
- An answer should hold no more and no less than was asked for.
- The order of the answers and their length should not count: either of them may as well be the better one.
- Give your verdict as \boxed{Assistant 1} or \boxed{Assistant 2}.

## Query

{prompt}

## Assistant responses

### Assistant 1

{first}

### Assistant 2

{second}

## Analysis

Think it through step by step, decide which assistant is better, and then answer \boxed{Assistant 1} or \boxed{Assistant 2}."""
_PROMETHEUS_PAIR = """###Task Description:
Below are an instruction, two responses to it and a score rubric; a reference answer may stand with them.
1. Write feedback on the two responses, by the rubric and by nothing else.
2. Then choose the better one, Response A or Response B.
3. Keep to this format: "(feedback by the rubric) [RESULT] (A or B)"
4. Write nothing before it and nothing after it.

###Instruction:
{prompt}

###Response A:
{first}

###Response B:
{second}

###Reference Answer:
{answer}

###Score Rubric:
{rubric}

###Feedback: """
_RUBRIC_RM = """Judge, without taking sides, Response A and Response B to an instruction by a rubric, in three phases.

### Phase 1: Compliance Check
Choose the one criterion of the rubric that decides first, the gatekeeper. It is objective: whoever checks it comes to the same
result, as with a limit of words, a format, or what must or must not be there. Matters of quality are no gatekeepers.
### Phase 2: Analyze Each Response
Judge each response by the gatekeeper and by each of the other criteria, one by one.
### Phase 3: Final Judgment
Decide by what you found. Give your reasons first, and then the winner.

### REQUIRED OUTPUT FORMAT
--- Compliance Check ---
Identified Gatekeeper Criterion: <e.g. Criterion 1: at most 50 words>

--- Analysis ---
**Response A:**
- Criterion 1 [Hard Rule]: Justification: <...>
- Criterion 2 [Principle]: Justification: <...>
(and so on for all criteria)

**Response B:**
(the same)

--- Final Judgment ---
Justification: <...>
Winner: <Response A / Response B>

Task to Evaluate:
Instruction:
{prompt}

Rubric:
{rubric}

Response A:
{first}

Response B:
{second}"""
_CRITERIA = (
    "1. The response meets all that the request demands explicitly. [Hard Rule]\n"
    "2. The response is right, complete and clear. [Principle]"
)
_RM_NLHF = """Judge, without taking sides, the responses of two AI Chatbots to the question of a client.

[Client Question]
{prompt}

[The Start of Chatbot A's Response]
{first}
[The End of Chatbot A's Response]


[The Start of Chatbot B's Response]
{second}
[The End of Chatbot B's Response]

Keep to this form:

<critics>
[the reasons of your choice, in short]
</critics>

<choice>
[[A]]
</choice>

Write [[A]] if A is better, and [[B]] if B is."""
_ARENA_HARD = """Two AI assistants, A and B, answer a user's prompt. Judge, without taking sides, whose answer is better.

Answer the prompt yourself before you judge anything, and compare both answers with yours: find their mistakes and put them right.
Then ask whether each answer is helpful (it does what was asked; where the prompt can be read in two ways, asking back is better
than guessing), relevant (all of it belongs to the question) and concise (nothing in it is too long). Then consider how creative
it is, where that matters, and what it leaves out that the user would need.

After your explanation, give one of these verdicts with its label:
1. Assistant A is much better: [[A>>B]]
2. Assistant A is a little better: [[A>B]]
3. They are about the same: [[A=B]]
4. Assistant B is a little better: [[B>A]]
5. Assistant B is much better: [[B>>A]]

For two answers that are about the same, say for example: Neither of them stands out: [[A=B]]"""
_USER_PROMPT = (
    "<|User Prompt|>\n{prompt}\n\n<|The Start of Assistant A's Answer|>\n{first}\n<|The End of Assistant A's Answer|>\n\n"
    "<|The Start of Assistant B's Answer|>\n{second}\n<|The End of Assistant B's Answer|>"
)
_OUTPUTS = "# Instruction:\n{prompt}\n# Output (a):\n{first}\n# Output (b):\n{second}\n# "
_SIX = (
    "Judge, without taking sides, two AI assistants' responses to the context below. Six criteria count:\n\n"
    "- Helpfulness: how much it helps the user with what was asked.\n- Correctness: it has all facts that matter, without errors.\n"
    "- Coherence: it is consistent and clear.\n- Complexity: how much expertise it takes to write it.\n"
    "- Verbosity: its detail, against what was asked for.\n- Safety: nothing in it is harmful, toxic or illegal.\n\n"
)
_CONTEXT = (
    "[The Start of Context]\n{prompt}\n[The End of Context]\n\n[The Start of Assistant A's Response]\n{first}\n"
    "[The End of Assistant A's Response]\n\n[The Start of Assistant B's Response]\n{second}\n[The End of Assistant B's Response]"
)
_THINK_RM = (
    "after Hong et al. 2025, arXiv:2505.16265; IlgeeHong/Think-RM VERL/examples/data_preprocess/prompt_templates.py at 823375b"
)
_GRADES = {"-3": 1.0, "-2": 5 / 6, "-1": 4 / 6, "1": 2 / 6, "2": 1 / 6, "3": 0.0}
PAIRS = (
    Form(
        "rm_r1", "pairwise", _CLIENT, Marks(AB, written="<answer>[[{}]]</answer>", pattern=ANSWERED % r"\[\[([AB])\]\]"),
        system=_RM_R1,
        source="after Chen et al. 2025, arXiv:2505.02387; RM-R1-UIUC/RM-R1 demo/demo.ipynb at b56de97",
    ),
    Form(
        "rrm", "pairwise", _RRM,
        Marks(
            {"1": 1.0, "2": 0.0}, written=r"\boxed{Assistant {}}",
            pattern=r"\\boxed\{\s{0,9}(?:\\text\{)?Assistant\s{1,9}([12])",
        ),
        source="after Guo et al. 2025, arXiv:2505.14674; the model card of RRM-7B, by code that uses it (inferred)",
    ),
    Form(
        "prometheus_pairwise", "pairwise", _PROMETHEUS_PAIR,
        Marks(AB, written="[RESULT] {}", pattern=r"(?i)\[RESULT(?:\]\s{0,9}:?|:)\s{0,9}(?:Response\s{1,9})?([AB])\b"),
        system="You are a fair judge who compares performances and says how each stands beside the other.",
        answer_part="###Reference Answer:\n{answer}\n\n", defaults={"rubric": RUBRIC},
        source="after Kim et al. 2024, arXiv:2405.01535; prometheus-eval/prometheus-eval prompts.py at 485d2b4",
    ),
    Form(
        "rubric_rm", "pairwise", _RUBRIC_RM,
        Marks(
            AB, written="Winner: Response {}",
            pattern=r"(?i)\bWinner\W{1,9}Response\s{1,9}([AB])\b(?!\W{1,9}Response)",
        ),
        defaults={"rubric": _CRITERIA},
        source="after Liu et al. 2025, arXiv:2510.07743, the appendix on prompts",
    ),
    Form(
        "rm_nlhf", "pairwise", _RM_NLHF,
        Marks(AB, written="<choice>\n[[{}]]\n</choice>", pattern=r"<choice>[\s\[]{0,9}([AB])[\s\]]{0,9}(?:</choice>|\Z)"),
        source="after Wang et al. 2026, arXiv:2601.07349; liudan193/Qwen-Character "
        "Character-GenRM-NLHF/verl/verl/workers/reward_manager/pairwise_grm.py at 89d31da",
    ),
    Form(
        "mt_bench_pairwise", "pairwise", PAIR, Marks(PREFERENCES),
        system="Judge, without taking sides, which of two AI assistants follows the user's instructions and answers the question "
        f"better. {VALUED} Compare the two answers in a short explanation first. {FAIR} Then give your verdict in this form alone: "
        "[[A]] if assistant A is better, [[B]] if assistant B is better, and [[C]] for a tie.",
        source="after Zheng et al. 2023, arXiv:2306.05685; lm-sys/FastChat, pair-v2, by code that uses it (inferred)",
    ),
    Form(
        "rewardbench", "pairwise", PAIR, Marks(AB),
        system="Judge, without taking sides, which of two AI assistants follows the user's instructions and answers the question "
        f"better. {VALUED} Compare the two answers in a short explanation first. {FAIR} Then give your verdict in this form alone: "
        "[[A]] if assistant A is better, and [[B]] if assistant B is better.",
        source="after Lambert et al. 2024, arXiv:2403.13787; allenai/reward-bench rewardbench/generative.py at 0362d99, prompt_v2",
    ),
    Form(
        "arena_hard", "pairwise", _USER_PROMPT,
        # much better counts as better does, and labels that differ as none, as JudgeBench has it
        Marks({"A>>B": 1, "A>B": 1, "A=B": 0.5, "B>A": 0, "B>>A": 0}, pattern=r"\[\[([AB<>=]{1,9})\]\]", agreed=True),
        system=_ARENA_HARD,
        source="after Li et al. 2024, arXiv:2406.11939, as JudgeBench has it (arXiv:2410.12784); ScalerLab/JudgeBench "
        "utils/judges.py and utils/templates/arena_hard_judge_system.jinja2 at 12a499c",
    ),
    Form(
        "judgebench_vanilla", "pairwise",
        "Choose the better of two outputs for an instruction, Output (a) or Output (b). Two AI chatbots wrote them.\n"
        "Explain nothing, and do not say that both or neither are good.\n"
        + _OUTPUTS + 'Which is better? Answer with "Output (a)" or "Output (b)" and no other words:',
        Marks({"a": 1.0, "b": 0.0}, written="Output ({})", pattern=r"(?i)\bOutput \(([ab])\)[\s.\"'*]{0,9}\Z"), at_once=True,
        source="after Tan et al. 2024, arXiv:2410.12784; ScalerLab/JudgeBench utils/templates/vanilla_prompt.jinja2 at 12a499c",
    ),
    Form(
        "llmbar", "pairwise",
        "Choose the better of two outputs for an instruction, Output (a) or Output (b). Two AI chatbots wrote them.\n"
        "Give a short explanation first, and do not say that both or neither are good. Then end with one of these lines:\n"
        "Therefore, Output (a) is better.\nTherefore, Output (b) is better.\n"
        + _OUTPUTS + "Which is better? Explain, then decide:",
        Marks(
            {"a": 1.0, "b": 0.0}, written="Therefore, Output ({}) is better.",
            pattern=r"(?i)\bOutput \(([ab])\) is (?:the )?better\b"
        ),
        source="after Zeng et al. 2023, arXiv:2310.07641; princeton-nlp/LLMBar, CoT, by its rationales (inferred)",
    ),
    Form(
        "think_rm", "pairwise", _CONTEXT, Marks(AB, written="<answer>{}</answer>", pattern=ANSWERED % "([AB])"),
        system=_SIX + "Think it through step by step. Then give your verdict in this form alone: <answer>A</answer> if assistant "
        "A's response is better, and <answer>B</answer> if assistant B's is.",
        source=_THINK_RM,
    ),
    Form(
        "think_rm_graded", "pairwise", _CONTEXT, Marks(_GRADES, written="<answer>{}</answer>", pattern=ANSWERED % "(-?[123])"),
        system=_SIX + "Say whose response is better, and by how much:\n\n"
        "-3 Assistant A's is much better\n-2 Assistant A's is better\n-1 Assistant A's is a little better\n"
        "1 Assistant B's is a little better\n2 Assistant B's is better\n3 Assistant B's is much better\n\n"
        "Think it through step by step. Then write your score inside <answer></answer>.",
        source=_THINK_RM,
    ),
    Form(
        "skywork_critic", "pairwise",
        "Judge, without taking sides, which of two AI assistants follows the user's instructions and answers the question better. "
        f"{VALUED} {FAIR} Give your verdict at once, in this form alone: "
        "[[A]] if assistant A is better, [[B]] if assistant B is better.\n\n" + PAIR,
        Marks(AB), at_once=True,
        source="after Skywork-Critic 2024; ScalerLab/JudgeBench utils/templates/skywork_critic_prompt.jinja2 at 12a499c",
    ),
    Form(
        "compassjudger", "pairwise",
        "Below is a dialogue of a user with two assistants. Which of the two does better?\n"
        "[Dialogue Begin]\nUser: {prompt}\nAssistant A: {first}\nAssistant B: {second}\n[Dialogue End]\n"
        "If Assistant A does better, output A; if Assistant B does better, output B; and nothing else. Output:",
        Marks(AB, written="{}", pattern=r"\A[\s\"'*\[(]{0,9}([AB])[\s\"'*\]).]{0,9}\Z"), at_once=True,
        source="after Cao et al. 2024, arXiv:2410.16256; open-compass/CompassJudger README.md at 068f4bf, Reward Judge",
    ),
)  # fmt: skip
