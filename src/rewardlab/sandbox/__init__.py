"""The sandbox: model-written programs in isolation, with tests that they cannot cheat.

    Sandbox(Limits(seconds=5)).run_tests([ProgramUnderTest("def f(x): return 2 * x", "assert f(2) == 4")])
        ->  [Outcome(passed=True, ...)]
    Sandbox().run_programs([ProgramRun("print(input()[::-1])", "abc")])  ->  [RunOutput(stdout="cba", ...)]

For each core there is a *worker*: a process in user, mount, network, IPC and host-name namespaces of its own, whose memory holds no
text of any program or test. It forks every program into process and mount namespaces of its own, with a new folder in memory,
limits, no capabilities, and a filter of system calls. Killing a program's first process ends all that it has started.

Tests run in a second such process. They call the program's functions over a socket, on which only plain values are sent
(`inside/wire.py`); so the expected values are never in the program's process, and all that it can send back are its functions'
results. Test results go to a file that the program's process does not have.

Commands of a shell (`shell.py`) run in workers of their own, which see this machine's programs too (/bin, /usr/bin, read-only) and
whose filter lets a program start others; these get its limits, its filter and its rights, which are none. No other program of the
sandbox sees them or can start one.

Where the machine cannot isolate, nothing runs, and an error says what is missing; REWARDLAB_UNSAFE_SANDBOX=1 accepts the danger.
"""

from .sandbox import Case, Limits, Outcome, ProgramRun, ProgramUnderTest, RunOutput, Sandbox
from .workers import UNSAFE, SandboxWorkers

__all__ = ["UNSAFE", "Case", "Limits", "Outcome", "ProgramRun", "ProgramUnderTest", "RunOutput", "Sandbox", "SandboxWorkers"]
