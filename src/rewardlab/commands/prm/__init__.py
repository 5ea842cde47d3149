"""Process rewards, which judge the steps of a solution and not only its end.

Label the steps of solutions, and write labels in the formats that others read.
"""

HELP = "process rewards: labels for the steps of solutions"
SUBCOMMANDS = ("label", "convert")
