"""Process rewards: label the steps of solutions, and write labels in the formats that others read."""

HELP = "process rewards: labels for the steps of solutions"
SUBCOMMANDS = ("label", "convert")
