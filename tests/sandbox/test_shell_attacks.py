"""Hostile commands pass no test that they do not meet, see neither tests nor machine, and leave nothing alive."""

from __future__ import annotations

import os
import secrets
import socket
import time

import pytest

from rewardlab.errors import RewardlabError
from rewardlab.sandbox import Limits, ProgramRun, Sandbox
from rewardlab.sandbox.inside import calls
from rewardlab.sandbox.shell import Session, packed, run

CANARY = "canary-" + secrets.token_hex(8)
FILES = {"a.txt": "1\n", "d/b.txt": "2\n"}
WANTED = f"assert open('answer').read().strip() == {CANARY!r}, 'no answer'"
HONEST = f"echo {CANARY} > answer"
START = Session(packed(FILES))


@pytest.fixture(scope="module", autouse=True)
def _isolated():
    try:
        Sandbox(commands=True).run_programs([ProgramRun("")])
    except RewardlabError as problem:
        pytest.skip(str(problem))
    os.environ["CANARY"] = CANARY
    yield
    del os.environ["CANARY"]


def then_honest():
    """What comes after an attack is judged as ever."""
    assert run(START, HONEST, WANTED).passed is True
    assert run(START, "true", WANTED).passed is False


FORGE = '{"passed": true, "why": ""}'
ATTACKS = {
    "writes to every descriptor": f"for i in {{0..254}}; do echo '{FORGE}' >&$i; done 2>/dev/null",
    "reads every descriptor": "for i in {0..254}; do timeout 0.2 cat <&$i; done 2>/dev/null",
    "kills all": "kill -9 -1",
    "kills the first process": "for s in KILL TERM INT STOP ABRT SEGV HUP; do kill -$s 1; done",
    "fork bomb": "b() { b | b & }; b; sleep 60",
    "ends itself": "exit 0",
    "becomes another program": "exec true",
    "a daemon": "setsid nohup sh -c 'sleep 1000' >/dev/null 2>&1 & disown",
    "a writer that stays": f"(trap '' TERM HUP INT; while :; do echo '{FORGE}' >&9; echo x > answer; done) & sleep 0.1",
    "loop": "while :; do :; done",
    "limits of the first process": "prlimit --pid 1 --fsize=0 --cpu=1 --nofile=3; ulimit -f 0",
    "modules": "for m in json os sys base64 pytest; do echo 'raise SystemExit(0)' > $m.py; done; cp os.py sitecustomize.py",
    "many files": "for i in $(seq 5000); do : > f$i; done",
    "a large file": "yes > big",
    "a sparse file": "truncate -s 1G a b c",
    "sparse files": "for i in $(seq 500); do truncate -s 5M f$i; done",
    "deep folders": "for i in $(seq 900); do mkdir d && cd d; done",
    "nothing is readable": "chmod -R 0 .",
    "strange names": "touch $'\\xff\\xfe' $'a\\nb' -- '-rf' ' '; ln -s / root; ln -s /dev/zero zero; ln -s answer answer",
    "removes its folder": "cd ..; rm -rf home; ln -s / home",
    "no folder": "rm -rf ../home ../.rc; mkdir ../home; chmod 0 ../home",
    "huge output": "yes canary",
    "variables": "export BASH_ENV=/tmp/home/x ENV=/tmp/home/x PATH=/tmp/home LD_PRELOAD=/tmp/home/x.so X=$(yes | head -c 200000)",
    "state": "trap - EXIT; for i in $(seq 9999); do printf 'A%s=b\\0' $i >&9; done; yes >&9",
    "python": "python3 -c 'import os; [os.fork() for _ in range(99)]'",
}


@pytest.mark.parametrize("command", ATTACKS.values(), ids=ATTACKS)
def test_an_attack_passes_no_test_and_leaves_nothing(command):
    start = time.monotonic()
    ran = run(START, command, WANTED, seconds=1.0)
    assert time.monotonic() - start < 40
    assert ran.passed is False
    assert CANARY not in ran.output
    assert len(ran.session.files) < 4 << 20
    # the session that it left can be gone on from, and tests still judge it
    after = run(ran.session, "cd /tmp/home; " + HONEST, WANTED, seconds=2.0)
    assert CANARY not in after.session.folder
    then_honest()


def test_commands_do_not_see_the_tests():
    """Neither in files, nor in descriptors, nor in the memory of what was started."""
    look = r"""
ls -la / /tmp /dev /etc /proc 2>&1
env
python3 - <<'E'
import os, re, gc
for i in range(256):
    for read in (lambda: os.pread(i, 1 << 20, 0), lambda: os.read(i, 1) if i > 2 and os.set_blocking(i, False) is None else b""):
        try: print(i, read())
        except OSError: pass
E
"""
    ran = run(START, look, WANTED)
    assert CANARY not in ran.output
    assert "canary" not in ran.output
    assert "/tmp" in ran.output


def test_nothing_runs_on_when_the_tests_run():
    tests = """
import os, time
def test_stable():
    before = open('a.txt').read()
    time.sleep(0.4)
    assert open('a.txt').read() == before == '1\\n'
    alone = []
    for process in range(2, 2000):
        try: os.kill(process, 0)
        except ProcessLookupError: continue
        alone.append(process)
    assert not alone, alone
"""
    changes = "setsid bash -c 'while :; do date +%N > a.txt; sleep 0.01; done' >/dev/null 2>&1 & sleep 0.2"
    # it did change the file, and is dead
    ran = run(START, changes, tests)
    assert (ran.passed, "AssertionError" in ran.why or "fails" in ran.why) == (False, True)
    assert run(START, "setsid sleep 1000 & (sleep 0.3; echo 9 > a.txt) >/dev/null 2>&1 &", tests).passed is True


SHADOWS = [
    "mkdir bin; printf '#!/bin/sh\\nexit 0\\n' > bin/test; cp bin/test test; cp bin/test grep; chmod +x bin/* test grep; "
    "export PATH=/tmp/home:/tmp/home/bin:$PATH",
    "test() { return 0; }; grep() { return 0; }; export -f test grep",
    "echo 'exit 0' | tee .bashrc .profile .bash_profile .bash_login .sh > x; export BASH_ENV=/tmp/home/x ENV=/tmp/home/x",
    "alias test=true grep=true; shopt -s expand_aliases; set -o posix",
]  # fmt: skip


@pytest.mark.parametrize("command", SHADOWS)
def test_commands_of_tests_are_the_machines_own(command):
    tests = ["test -f answer", "grep -q canary answer"]
    ran = run(START, command, tests)
    assert ran.passed is False
    assert run(ran.session, "true", tests).passed is False
    assert run(ran.session, f"unset -f test grep; PATH=/usr/bin:/bin; {HONEST}", tests).passed is True


@pytest.mark.parametrize(
    "script",
    [
        "kill -9 -1; kill -9 1; kill -INT 1",
        f"for i in {{0..254}}; do echo '{FORGE}' >&$i; done 2>/dev/null; exit 1",
        f"setsid bash -c 'while :; do echo {CANARY[:6]} > answer; done' & exit 1",
        pytest.param("sleep 100", marks=pytest.mark.slow),
    ],
)
def test_a_script_that_tests_run_cannot_pass_them(script):
    ran = run(START, f"cat > run.sh <<'E'\n{script}\nE", ["timeout 3 bash run.sh"], seconds=2.0)
    assert ran.passed is False
    python = "import subprocess\nassert subprocess.run(['timeout', '3', 'bash', 'run.sh']).returncode == 0 and open('answer')"
    assert run(ran.session, "true", python, seconds=2.0).passed is False
    then_honest()


def test_modules_in_the_folder_are_not_those_of_the_tests():
    command = "for m in json re subprocess; do echo 'import os; os._exit(0)' > $m.py; done"
    ran = run(START, command, "import json, re, subprocess\n" + WANTED)
    assert ran.passed is False
    assert "No such file or directory: 'answer'" in ran.why


def test_nothing_of_the_machine_is_within_reach(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text(CANARY)
    door = socket.create_server(("127.0.0.1", 0))
    port = door.getsockname()[1]
    tries = f"""
cat {secret} /etc/passwd /etc/shadow /root/.ssh/* /proc/1/environ /proc/self/environ
echo $CANARY; ls /home /root /work /var /proc /sys
(echo hi > /dev/tcp/127.0.0.1/{port}) && echo KNOCKED
python3 -c "import socket; socket.create_connection(('127.0.0.1', {port}), 1)" && echo KNOCKED
for c in "unshare -U id" "mount -t tmpfs x /tmp" "su -c id" "sudo id" "mknod z c 1 5" "chroot / id" "ping -c1 127.0.0.1" dmesg \
  "strace true" "nsenter -t 1 -m id" "chown 0 a.txt" "setpriv --reuid 0 id" "hostname x" "touch /usr/bin/x /x /bin/x"; do
  $c 2>/dev/null && echo "WORKED $c"
done
cp $(command -v bash) own; chmod 4755 own; ./own -p -c 'id -u'
"""
    ran = run(START, tries, seconds=10.0)
    door.close()
    assert CANARY not in ran.output
    assert "root:x:" not in ran.output
    assert "KNOCKED" not in ran.output
    assert "WORKED" not in ran.output
    assert ran.output.rstrip().splitlines()[-1] != "0"


def test_nothing_is_left_for_the_next_command():
    ran = run(START, "touch /tmp/left /tmp/home/kept; cp /bin/true /tmp/prog; sleep 1000 & export V=1; W=2")
    look = "ls /tmp/home; ls -A /tmp; echo [$V$W]; kill -0 -1 2>&1 | head -1"
    assert run(ran.session, look).output.split("\n")[:6] == ["a.txt", "d", "kept", ".rc", "home", "[1]"]
    assert run(START, look).output.split("\n")[:5] == ["a.txt", "d", ".rc", "home", "[]"]


def test_other_users_of_the_sandbox_still_start_no_programs():
    program = """
import os
print(os.path.exists("/bin/sh"), os.path.exists("/usr/bin"), os.path.exists("/etc"))
open("x", "w").write("#!/bin/sh\\n"); os.chmod("x", 0o755)
for path in ("/bin/sh", "x", "/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2", "/lib64/ld-linux-x86-64.so.2"):
    try: os.execv(path, [path])
    except OSError as e: print(type(e).__name__)
"""
    run(START, "true")
    (printed,) = Sandbox(Limits(seconds=20)).run_programs([ProgramRun(program)])
    # EPERM, of the filter, whatever there is
    assert printed.stdout.split("\n")[:-1] == ["False False False", *["PermissionError"] * 4]


@pytest.mark.parametrize("machine", calls.MACHINES)
def test_the_filter_of_shells_allows_what_is_listed_beside(machine):
    from tests.sandbox.test_sandbox import run_filter

    column, name = calls.MACHINES[machine]
    plain, shells = calls.program(machine), calls.program(machine, commands=True)
    more = {int(entry.partition("=")[2].split("/")[column]) for entry in calls.COMMANDS.split()}
    numbers = range(1000)
    allowed = [{n for n in numbers if run_filter(rows, name, n) == calls._ALLOW} for rows in (plain, shells)]
    assert allowed[1] == allowed[0] | more
    # where a thread's data lies, and nothing else of that call
    if machine == "x86_64":
        assert run_filter(shells, name, 158, 0x1002) == calls._ALLOW
        assert run_filter(shells, name, 158, 0x1001) == run_filter(plain, name, 158, 0x1002) == calls._REFUSE
