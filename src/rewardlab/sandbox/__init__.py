"""The sandbox: programs written by a model, run where they can do no harm, and tests that they cannot cheat.

    Sandbox(Limits(seconds=5)).run_tests([Checked("def f(x): return 2 * x", "assert f(2) == 4")])  ->  [Outcome(passed=True, ...)]
    Sandbox().run_programs([Played("print(input()[::-1])", "abc")])                               ->  [Printed(stdout="cba", ...)]

For each core there is a *lane*: a process in user, mount, network, IPC and host-name namespaces of its own, which holds no text of
any program or test. From it every program is forked into process and mount namespaces of its own, with a new folder in memory,
limits, no capabilities, and a filter of calls to the kernel. Killing a program's first process ends all that it has started.

Tests run in a second such process. They call the program's functions over a socket, on which only plain values cross
(`inside/wire.py`); so what is expected is never in the program's process, and what it says can only ever be what its functions
return. Findings go to a file that it does not have.

Where the machine cannot isolate, nothing runs, and an error says what is missing; REWARDLAB_UNSAFE_SANDBOX=1 accepts the danger.
"""

from .lanes import UNSAFE, Lanes
from .sandbox import Case, Checked, Limits, Outcome, Played, Printed, Sandbox

__all__ = ["UNSAFE", "Case", "Checked", "Lanes", "Limits", "Outcome", "Played", "Printed", "Sandbox"]
