"""Judges that write, trained on pairs: which training makes verdicts right, in either order of the replies, and at what length.

A judgement names what it checks and ends in a verdict. The rows bring judgements by a teacher who is not always right; held out,
each pair is judged in both orders by one judgement each. What a judgement costs is shown beside.
"""

from rewardlab.comparisons.league import Guard, League, Member, Outcome, World

FORM = "{prompt}\nA: {first}\nB: {second}"
OF_DUELS = {"form": FORM, "unit": r"([a-z]+) [+-] [+-]", "solution": r"=(\d+) A [+-]"}
OF_ACTIONS = {"form": FORM, "unit": r"[AB] (near|far|trap)", "solution": r"A (near|far)"}
"""How a small judge is asked, and how what it names and what it works out are found in what it writes."""

league = League(
    question="Which way to train a judge on pairs makes its verdicts right most often?",
    want="to train a judge that writes",
    baseline="trained_judge",
    members=(
        # imitation and then rewards, of which the others change something
        Member("trained_judge"),
        Member("from rewards alone", "trained_judge", settings={"distil": 0}),
        # nobody is asked again: small judges have not learnt to read what they are told then
        Member("rm_r1", small={"again": ""}),
        Member("rrm", "rrm_reward_reasoning", settings={"votes": 1}),
        Member("think_rm"),
        Member("compassjudger_2"),
        # a solution is asked for within the judgement alone
        Member("s2j", small={"alone": False}, columns=("answer",)),
        Member("mix_grm", small={"breadth_form": "", "depth_form": "", "tags": ("+", "=")}),
    ),
    worlds=(
        World(
            "sums and wishes", "taught_duels",
            "pairs of answers to sums, where one must calculate, and of notes with wishes, where one must look; a teacher names "
            "four wishes in five and slips in one result in twenty", settings=OF_DUELS, starts=5,
        ),
        World(
            "next actions", "crossings",
            "pairs of actions on a grid with traps; the teacher prefers what is direct, and sees four traps in five",
            settings=OF_ACTIONS, starts=5, new=True,
        ),
    ),
    outcome=Outcome("judged", "higher", "right verdicts on held-out pairs, each pair in both orders", margin=0.03),
    guard=Guard("consistent", at_least=-0.05, says="pairs on which both orders agree"),
    measure=None,
    learns="judged",
    settings={"problems": 16, "n": 8, "distil": 20},
    steps=60,
    rates=(3e-5, 1e-4, 3e-4),
    chosen_by="judged",
    problems=200,
    pairs=5,
    answers=False,
    costs={"judgement_tokens": "tokens of a judgement"},
    needs="Your rows need the columns prompt, chosen and rejected, and, where judgements are to be imitated, judgement or "
    "judgement_reversed. s2j trains only on rows that have an answer. On your rows each "
    "judge is asked and measured in its own published form.",
    advice="**At the same updates, with five seeds, no way is shown to be better than `trained_judge`.**\n\n"
    "- Your rows bring judgements: try imitation alone first (`compassjudger_2`). It costs {sums and "
    "wishes/compassjudger_2.tokens} of the tokens and takes verdicts to {sums and wishes/compassjudger_2} (worse than the "
    "baseline's {sums and wishes/trained_judge}) and {next actions/compassjudger_2} (undecided against {next "
    "actions/trained_judge}). Then see whether rewards add what they cost.\n"
    "- Your rows bring none: `trained_judge` without `--distil` learns from rewards alone. It was not shown to be worse "
    "({sums and wishes/from rewards alone.effect} and {next actions/from rewards alone.effect}, both undecided), for {sums "
    "and wishes/from rewards alone.tokens} the tokens. In the comparison the baseline imitates judgements in its first 20 "
    "updates (`--distil 20`).\n"
    "- Your rows have `answer`: `s2j`, which is also paid for its own solution and trains only on such rows, has the highest "
    "mean in both worlds ({sums and wishes/s2j}, equal, and {next actions/s2j}, undecided).\n"
    "- `mix_grm` is worse in both worlds: it imitates at twenty times the rate of its rewards, as its paper does. In its own "
    "check the ratio is 3.\n"
    "- `rrm` differs from rewards alone by votes. Here it has one vote, and so the same numbers.",
    left_out={
        "br_rm": "it judges in two turns, and the small judges of these worlds were taught one",
        "openrubrics, rewardanything, prometheus, m_prometheus, mr3": "they read or write rubrics, which these pairs have not",
        "deepseek_grm_spct": "it scores any number of replies at once, and votes",
        "webarbiter": "its check was made among next actions; it imitates and then reinforces, as the baseline does",
        "spark, rl_tango, mirror_critique, libra_rm, ctrl_critic": "they judge or criticise solutions that have a gold answer",
        "rm_nlhf, trm_thinking_supervised_rm": "they read what people wrote about replies or sentences",
        "rlac, rlcf_checklists, writing_zero_brpo, self_judge_jsft, extrans": "they train a policy",
    },
)  # fmt: skip
