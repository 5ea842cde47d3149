"""Learning from pairs: which loss makes replies better by what people really meant, and how far it takes the policy."""

from rewardlab.comparisons.league import League, Member, Outcome, World
from rewardlab.evals.rewards import reward_and_kl

MERGED = {"sft_steps": 0, "density": 0.5, "alpha": 0.01}
"""Of online_merging_optimizer, whose own alpha of 1e-7 is for models of billions of weights and thousands of steps."""

league = League(
    question="Which loss makes the most of pairs of replies, of which an annotator preferred one?",
    want="to train on preferences",
    baseline="dpo",
    members=(
        Member("dpo", knob="beta", values=(0.03, 0.3)),
        Member("sft", settings={"field": "chosen"}),
        Member("ipo"),
        # two single replies are as much as a pair
        Member("kto", settings={"problems": 32}),
        Member("simpo"),
        Member("tgdpo", settings={"pairs": 1280}),
        Member("online_merging", "online_merging_optimizer", small=MERGED),
        Member("cream", settings={"problems": 16}),
    ),
    worlds=(
        World(
            "notes", "notes:noise=0.2",
            "orders in one line, judged for content, hurry and politeness; the annotator errs where two notes are nearly as good",
        ),
        World(
            "padded solutions", "preferences:writer=several,noise=0.3,longer=0.7,biased=0.75,error=0.1",
            "solutions of arithmetic by writers of several skills; near-ties are labelled nearly at random, and in seven pairs of "
            "ten the better one is padded with lines that only check", new=True,
        ),
    ),
    outcome=Outcome("reward", "higher", "true quality of replies", margin=0.03),
    needs="Your rows need the columns prompt, chosen and rejected. What decides is the mean verdict on sampled replies to held-out "
    "prompts, from 0 to 1, by a function of yours, or by `--verifier \"judge(model='openai:URL#NAME')\"`. With a column answer the "
    "usual verifier judges them: leave out `--verifier`.",
    own_flags="--verifier mine.py:quality",
    measure=reward_and_kl(n=2),
    spends=("kl", "KL from the initial policy, nats per reply"),
    learns="reward",
    settings={"problems": 32},
    chosen_by="reward",
    steps=40,
    problems=250,
    advice="**Sweep the learning rate first.** In `notes`, at three times their best rate, SimPO and TGDPO end below where "
    "they started; SFT, SimPO and CREAM did best in `padded solutions` at the lowest rate tried, where they hardly move.\n\n"
    "- **Ending higher is not making more of the same KL.** In `notes`, where the annotator errs when two notes are nearly as "
    "good, IPO ends above DPO ({notes/ipo} against {notes/dpo}), at three times DPO's rate and four times as far from the "
    "initial policy (KL 1.15 against 0.28 nats). Where both have gone 0.28, IPO stands {notes/ipo.equal} and SimPO "
    "{notes/simpo.equal} from DPO. None is shown to make more of the same KL than DPO there; those that end higher went farther. "
    "So plot quality against KL before you choose. A weaker beta did not take DPO there (0.03: 64.9%, three seeds).\n"
    "- `padded solutions`, where the annotator errs more and the better reply is mostly the longer one: DPO gains 2.5 "
    "points, and no other loss was shown to gain more. At equal KL none stands above it by what would matter (IPO "
    "{padded solutions/ipo.equal} at half of DPO's KL; TGDPO {padded solutions/tgdpo.equal} and online merging "
    "{padded solutions/online_merging.equal}, both at DPO's); SFT, SimPO and CREAM hardly left the initial policy.\n"
    "- SFT, and CREAM, which labels its own replies, are worse than DPO in both worlds. KTO reads two single replies for "
    "each pair, so that its \"equal\" in `notes` is at twice the tokens; at DPO's it reaches 59.1%.",
    first="`dpo` or `ipo`, with a sweep of `--lr`",
    left_out={
        "step_dpo": "in notes there are no steps",
        "mappo, reward_augmented_dpo, irepo": "they read scores of replies, not pairs alone",
        "t_reg": "it first teaches the policy two prompts, which takes longer than all else",
        "wrpo": "it reads a third reply, of a better writer",
        "rlhf_workflow_online": "it trains a reward model and samples its own pairs",
        "mah_dpo": "it learns two rewards at once",
    },
)  # fmt: skip
