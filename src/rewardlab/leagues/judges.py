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
        Member("s2j", small={"alone": False}),
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
    "judgement_reversed; s2j also answer. Each judge is asked in its own published form there, and measured in it.",
    advice="**Begin with `trained_judge`: no way is shown to be better, at the same updates, with five seeds.** Three things help "
    "to choose. If your rows bring judgements, imitation alone (`compassjudger_2`) takes verdicts to {sums and "
    "wishes/compassjudger_2} and {next actions/compassjudger_2}, where the baseline's imitation and rewards take them to {sums and "
    "wishes/trained_judge} and {next actions/trained_judge}, for {sums and wishes/compassjudger_2.tokens} of the tokens: try that "
    "first, and see whether rewards add what they cost. If your rows bring none, `--distil 0` is as good: rewards alone end at "
    "{sums and wishes/from rewards alone} and {next actions/from rewards alone}, for {sums and wishes/from rewards alone.tokens} "
    "the tokens. And where an answer can be checked, `s2j`, paid for its own solution too, has the highest mean in both worlds "
    "({sums and wishes/s2j}, {next actions/s2j}), by less than can be told from chance. A judgement costs as many tokens in all of "
    "them. `mix_grm` is worse in both worlds: it imitates at twenty times the rate of its rewards, as its paper does, which small "
    "judges do not bear (in its own check the ratio is 3). `rrm`, which differs from rewards alone by votes, was measured without "
    "them, and trains exactly as that does.",
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
