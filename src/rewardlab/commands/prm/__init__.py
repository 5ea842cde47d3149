"""Process rewards: label the steps of solutions, train step judges, evaluate them, and see what fools them.

Solutions are read in the formats of PRM800K, Math-Shepherd, ProcessBench, PRMBench, TRL, or our own, which is recognised by the
columns. Models are checkpoints of transformers: ours, and those published as Math-Shepherd, RLHFlow, Qwen2.5-Math-PRM, Skywork
and TRL's token classification; what a checkpoint does not say itself is said after its path, as in PATH?as=shepherd.
"""

HELP = "process rewards: label steps, train and evaluate step judges"
SUBCOMMANDS = ("label", "convert", "train", "eval", "stress")
