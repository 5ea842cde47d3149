"""Work on a file of problems, replies or pairs: measure, filter, pair, compare, mix and order its rows.

Each reads JSON lines, .csv or .parquet (- is stdin), and writes to --out in the form of its name (- is stdout, as JSON lines);
--out may be the input. Rows that are left out, and broken lines, go to another file with the reason: OUT.dropped.jsonl unless
--dropped names one. Exit code: 0, or 1 if lines were broken.
"""

HELP = "measure, filter, pair, compare, mix and order rows of data"
SUBCOMMANDS = (
    "pass-rate", "contamination", "filter", "pairs", "dedupe", "mix", "curriculum", "learning", "diverse", "clique", "keychain",
    "ramp", "salient", "openers", "strength", "calibrate", "template", "tests", "code-traces", "terminals", "benchmark",
)  # fmt: skip
