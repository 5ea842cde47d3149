"""Words for where a member of a league stands, and the bounds that they speak of: what is told of a league reads these alone."""

INSIDE = (0.15, 0.85)
"""Where in 0 .. 1 the baseline must end, for a world to tell anything."""
ROOM = "it ends with room to differ"
"""The condition of the level at which a baseline ends."""
OFTEN = "it ends right often enough"
"""The same where it need not learn, so that it may be right always."""
DEAR = 1.25
"""Times the baseline's tokens above which a member is shown at equal tokens too."""

BASELINE, BETTER, EQUAL, WORSE, UNDECIDED = "baseline", "better", "equal", "worse", "undecided"
AT_A_COST, INERT, FAILED, UNFIT, ABSENT = "at a cost", "inert here", "failed", "unfit world", "not run"
WORDS = {
    BETTER: "it differs from the baseline in the favourable direction, by a p value corrected for the number of methods (Holm, "
    "5% a world), and all of the guard's interval is within its bound",
    AT_A_COST: "it differs in the favourable direction, but what is guarded became worse than its bound",
    EQUAL: "all of the 95% interval of the difference is smaller than what would matter; where the baseline itself gained little, "
    "this may be a method that gains nothing",
    WORSE: "it differs in the unfavourable direction by its corrected p value, however little, or nothing was gained and what is "
    "guarded became worse than its bound",
    UNDECIDED: "these runs cannot tell; it does not mean equal",
    INERT: "every number is exactly the baseline's: what the method adds was never at work here",
    FAILED: "a run failed",
    UNFIT: f"the baseline does not learn there by four standard errors, or ends where there is no room (for `league length` on "
    f"your own rows: is right less than {INSIDE[0]:.0%} of the time): nothing is said about any method",
    ABSENT: "the method was not run in this world, for the reason given there",
}
