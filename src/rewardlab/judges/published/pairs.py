"""Published judges of two replies: which is better."""

from __future__ import annotations

from collections.abc import Mapping

from rewardlab.judges.forms import Form
from rewardlab.judges.marks import PREFERENCES, Marks
from rewardlab.judges.published import pair_texts as asks
from rewardlab.judges.published.words import RUBRIC, VALUED

# every repetition in a pattern is bounded, and no two of them can take the same characters: a judgement may be any text
AB: Mapping[str, float] = {"A": 1.0, "B": 0.0}
ANSWERED = r"<answer>\s{0,9}%s\s{0,9}(?:</answer>|\Z)"
"""What stands between the tags of an answer, of which the last may be cut off."""
_THINK_RM = (
    "after Hong et al. 2025, arXiv:2505.16265; IlgeeHong/Think-RM VERL/examples/data_preprocess/prompt_templates.py at 823375b"
)
_GRADES = {"-3": 1.0, "-2": 5 / 6, "-1": 4 / 6, "1": 2 / 6, "2": 1 / 6, "3": 0.0}
PAIRS = (
    Form(
        "rm_r1", "pairwise", asks.CLIENT, Marks(AB, written="<answer>[[{}]]</answer>", pattern=ANSWERED % r"\[\[([AB])\]\]"),
        system=asks.RM_R1,
        source="after Chen et al. 2025, arXiv:2505.02387; RM-R1-UIUC/RM-R1 demo/demo.ipynb at b56de97",
    ),
    Form(
        "rrm", "pairwise", asks.RRM,
        Marks(
            {"1": 1.0, "2": 0.0}, written=r"\boxed{Assistant {}}",
            pattern=r"\\boxed\{\s{0,9}(?:\\text\{)?Assistant\s{1,9}([12])",
        ),
        source="after Guo et al. 2025, arXiv:2505.14674; the model card of RRM-7B, by code that uses it (inferred)",
    ),
    Form(
        "prometheus_pairwise", "pairwise", asks.PROMETHEUS,
        Marks(AB, written="[RESULT] {}", pattern=r"(?i)\[RESULT(?:\]\s{0,9}:?|:)\s{0,9}(?:Response\s{1,9})?([AB])\b"),
        system="You are a fair judge who compares performances and says how each stands beside the other.",
        answer_part="###Reference Answer:\n{answer}\n\n", defaults={"rubric": RUBRIC},
        source="after Kim et al. 2024, arXiv:2405.01535; prometheus-eval/prometheus-eval prompts.py at 485d2b4",
    ),
    Form(
        "rubric_rm", "pairwise", asks.RUBRIC_RM,
        Marks(
            AB, written="Winner: Response {}",
            pattern=r"(?i)\bWinner\W{1,9}Response\s{1,9}([AB])\b(?!\W{1,9}Response)",
        ),
        defaults={"rubric": asks.CRITERIA},
        source="after Liu et al. 2025, arXiv:2510.07743, the appendix on prompts",
    ),
    Form(
        "rm_nlhf", "pairwise", asks.RM_NLHF,
        Marks(AB, written="<choice>\n[[{}]]\n</choice>", pattern=r"<choice>[\s\[]{0,9}([AB])[\s\]]{0,9}(?:</choice>|\Z)"),
        source="after Wang et al. 2026, arXiv:2601.07349; liudan193/Qwen-Character "
        "Character-GenRM-NLHF/verl/verl/workers/reward_manager/pairwise_grm.py at 89d31da",
    ),
    Form(
        "mt_bench_pairwise", "pairwise", asks.PAIR, Marks(PREFERENCES),
        system=f"{asks.COMPARE} [[A]] if assistant A is better, [[B]] if assistant B is better, and [[C]] for a tie.",
        source="after Zheng et al. 2023, arXiv:2306.05685; lm-sys/FastChat, pair-v2, by code that uses it (inferred)",
    ),
    Form(
        "rewardbench", "pairwise", asks.PAIR, Marks(AB),
        system=f"{asks.COMPARE} [[A]] if assistant A is better, and [[B]] if assistant B is better.",
        source="after Lambert et al. 2024, arXiv:2403.13787; allenai/reward-bench rewardbench/generative.py at 0362d99, prompt_v2",
    ),
    Form(
        "arena_hard", "pairwise", asks.USER_PROMPT,
        # much better counts as better does, and labels that differ as none, as JudgeBench has it
        Marks({"A>>B": 1, "A>B": 1, "A=B": 0.5, "B>A": 0, "B>>A": 0}, pattern=r"\[\[([AB<>=]{1,9})\]\]", agreed=True),
        system=asks.ARENA_HARD,
        source="after Li et al. 2024, arXiv:2406.11939, as JudgeBench has it (arXiv:2410.12784); ScalerLab/JudgeBench "
        "utils/judges.py and utils/templates/arena_hard_judge_system.jinja2 at 12a499c",
    ),
    Form(
        "judgebench_vanilla", "pairwise",
        "Choose the better of two outputs for an instruction, Output (a) or Output (b). Two AI chatbots wrote them.\n"
        "Explain nothing, and do not say that both or neither are good.\n"
        + asks.OUTPUTS + 'Which is better? Answer with "Output (a)" or "Output (b)" and no other words:',
        Marks({"a": 1.0, "b": 0.0}, written="Output ({})", pattern=r"(?i)\bOutput \(([ab])\)[\s.\"'*]{0,9}\Z"), at_once=True,
        source="after Tan et al. 2024, arXiv:2410.12784; ScalerLab/JudgeBench utils/templates/vanilla_prompt.jinja2 at 12a499c",
    ),
    Form(
        "llmbar", "pairwise",
        "Choose the better of two outputs for an instruction, Output (a) or Output (b). Two AI chatbots wrote them.\n"
        "Give a short explanation first, and do not say that both or neither are good. Then end with one of these lines:\n"
        "Therefore, Output (a) is better.\nTherefore, Output (b) is better.\n"
        + asks.OUTPUTS + "Which is better? Explain, then decide:",
        Marks(
            {"a": 1.0, "b": 0.0}, written="Therefore, Output ({}) is better.",
            pattern=r"(?i)\bOutput \(([ab])\) is (?:the )?better\b"
        ),
        source="after Zeng et al. 2023, arXiv:2310.07641; princeton-nlp/LLMBar, CoT, by its rationales (inferred)",
    ),
    Form(
        "think_rm", "pairwise", asks.CONTEXT, Marks(AB, written="<answer>{}</answer>", pattern=ANSWERED % "([AB])"),
        system=asks.SIX + "Think it through step by step. Then give your verdict in this form alone: <answer>A</answer> if "
        "assistant A's response is better, and <answer>B</answer> if assistant B's is.",
        source=_THINK_RM,
    ),
    Form(
        "think_rm_graded", "pairwise", asks.CONTEXT, Marks(_GRADES, written="<answer>{}</answer>", pattern=ANSWERED % "(-?[123])"),
        system=asks.SIX + "Say whose response is better, and by how much:\n\n"
        "-3 Assistant A's is much better\n-2 Assistant A's is better\n-1 Assistant A's is a little better\n"
        "1 Assistant B's is a little better\n2 Assistant B's is better\n3 Assistant B's is much better\n\n"
        "Think it through step by step. Then write your score inside <answer></answer>.",
        source=_THINK_RM,
    ),
    Form(
        "skywork_critic", "pairwise",
        f"{asks.WHICH} {VALUED} {asks.FAIR} Give your verdict at once, in this form alone: "
        "[[A]] if assistant A is better, [[B]] if assistant B is better.\n\n" + asks.PAIR,
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
