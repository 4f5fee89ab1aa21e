"""Programs that try to get out, to last for ever, or to eat everything; as root and as another user."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from evr1_core.api import ConfigError, _syscalls, sandbox
from evr1_core.api.sandbox import SCRIPT, NotConfinedError, Sandbox

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
BOX = Sandbox(seconds=20.0)
IMPATIENT = Sandbox(seconds=1.5)


@pytest.fixture(autouse=True, scope="module")
def _confined() -> None:
    try:
        sandbox.mode()
    except NotConfinedError as error:
        pytest.skip(str(error))


def printed(source: str, stdin: str = "", box: Sandbox = BOX) -> str:
    run = box.run(source, stdin)
    assert run.status == "ok", run
    return run.stdout.strip()


def test_output_and_input() -> None:
    run = BOX.run("import sys; print(sys.stdin.read()); print('no', file=sys.stderr)", "é\ud83d 1")
    assert (run.status, run.stderr) == ("ok", "no\n")
    assert run.stdout.startswith("é")


@pytest.mark.parametrize(
    ("source", "status"),
    [("exit(3)", "error"), ("1 / 0", "error"), ("(", "error"), ("", "ok"), ("import os; os.abort()", "killed"), ("\x00", "error")],
)
def test_how_it_ended(source: str, status: str) -> None:
    assert BOX.run(source).status == status


def test_nothing_of_the_owner_is_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SECRET_KEY", "sesame")
    secret = tmp_path / "secret"
    secret.write_text("sesame")
    secret.chmod(0o666)
    with secret.open() as held:
        os.set_inheritable(held.fileno(), True)
        source = f"""
import json, os
def tried(action):
    try:
        return repr(action())
    except OSError as error:
        return type(error).__name__
print(json.dumps({{
    "environment": sorted(os.environ),
    "users": tried(lambda: open("/etc/passwd").read()),
    "shadow": tried(lambda: open("/etc/shadow").read()),
    "processes": tried(lambda: os.listdir("/proc")),
    "secret": tried(lambda: open({str(secret)!r}).read()),
    "descriptor": tried(lambda: os.read({held.fileno()}, 9)),
    "user": os.getuid(),
    "become root": tried(lambda: os.setuid(0)),
    "folder": os.listdir("."),
}}))
"""
        seen = json.loads(printed(source))
    assert set(seen["environment"]) <= {"LC_CTYPE"}
    assert seen["users"] == seen["shadow"] == seen["processes"] == seen["secret"] == "FileNotFoundError"
    assert seen["descriptor"] == "OSError"
    assert seen["user"] != 0
    assert seen["become root"] in ("OSError", "PermissionError")  # there is no such user; or it is not allowed
    assert sorted(seen["folder"]) == ["source", "stdin"]


def test_writes_in_its_own_folder_alone(tmp_path: Path) -> None:
    source = f"""
import os, sys
def writes(path):
    try:
        open(path, "w").write("x")
        return True
    except OSError:
        return False
folders = ["/", "/etc", "/usr/lib", "/dev", "/root", "/home", sys.prefix, os.path.dirname(os.__file__), {str(tmp_path)!r}]
print([folder for folder in folders if writes(folder + "/intruder")], writes("mine"), writes("/dev/null"))
"""
    assert printed(source) == "[] True True"
    assert list(tmp_path.iterdir()) == []
    assert not any(Path(folder, "intruder").exists() for folder in ("/", "/etc", "/usr/lib", "/dev", sys.base_prefix))


def test_each_run_begins_with_an_empty_folder() -> None:
    BOX.run("open('left', 'w').write('x')")
    assert printed("import os; print(os.path.exists('left'))") == "False"


@pytest.mark.parametrize(
    "attempt",
    [
        "socket.create_connection(('127.0.0.1', PORT), 2)",
        "socket.create_connection(('192.0.2.1', 80), 2)",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('192.0.2.1', 53))",
        "socket.socket(socket.AF_INET6, socket.SOCK_STREAM).connect(('::1', PORT))",
        "socket.socket(socket.AF_UNIX).connect('NAME')",
        "socket.getaddrinfo('localhost.example', 80)",
    ],
)
def test_no_network(attempt: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        name = f"\0evr1-test-{os.getpid()}"
        abstract.bind(name)
        abstract.listen()
        attempt = attempt.replace("PORT", str(server.getsockname()[1])).replace("'NAME'", repr(name))
        server.settimeout(0.05)
        run = BOX.run(f"import socket\n{attempt}\nprint('out')")
        assert run.status == "error"
        assert "rror: [Errno" in run.stderr
        with pytest.raises(TimeoutError):
            server.accept()


def test_cannot_kill_its_owner() -> None:
    source = f"""
import os, signal
for victim in (os.getppid(), 1, {os.getpid()}, {os.getppid()}, -1):
    try:
        os.kill(victim, signal.SIGKILL)
    except OSError:
        pass
print("tried")
"""
    run = BOX.run(source)
    assert run.status in ("ok", "killed")  # without Landlock, -1 reaches the program itself
    assert printed("print(1)") == "1"


@pytest.mark.slow
@pytest.mark.parametrize("source", ["while True: pass", "import time; time.sleep(99)", "'a' * 10**9 and 9 ** 9 ** 9"])
def test_endless_programs_end(source: str) -> None:
    start = time.monotonic()
    run = IMPATIENT.run(source)
    assert run.status in ("time", "error", "killed")
    assert time.monotonic() - start < 10.0


def test_what_ignores_signals_and_hides_ends_too() -> None:
    source = """
import os, signal, time
for number in range(1, 65):
    try:
        signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
if os.fork() == 0:
    os.setsid()
    while True:
        time.sleep(0.01)
print("left a child", flush=True)
"""
    run = BOX.run(source)
    assert (run.status, run.stdout) == ("ok", "left a child\n")
    assert _leftovers() == []


@pytest.mark.slow
def test_fork_bomb() -> None:
    before = len(os.listdir("/proc"))
    source = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    most = []

    thread = threading.Thread(target=lambda: most.append(IMPATIENT.run(source)))
    thread.start()
    peak = 0
    while thread.is_alive():
        peak = max(peak, len(_leftovers()))
        time.sleep(0.02)
    thread.join()
    assert most[0].status == "time"
    assert peak <= IMPATIENT.processes + 2
    assert _leftovers() == []
    assert len(os.listdir("/proc")) < before + 50


def _leftovers() -> list[str]:
    """Programs of sandboxes that run at this moment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if b"/tmp/source" in (folder / "cmdline").read_bytes():
                found.append(folder.name)
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_memory_is_limited() -> None:
    run = BOX.run("x = bytearray(10 * 2**30)")
    assert run.status == "error"
    assert "MemoryError" in run.stderr
    assert BOX.run("x = []\nwhile True: x.append(bytearray(2**20))").status in ("error", "killed")


@pytest.mark.parametrize(
    "source",
    [
        "open('big', 'wb').write(bytes(64 * 2**20))",
        "for i in range(99): open(f'{i}', 'wb').write(bytes(2**20))",
        "for i in range(99_999): open(f'{i}', 'wb')",
        "import sys; sys.stdout.write('x' * 64 * 2**20)",
        "files = [open('source') for _ in range(999)]",
    ],
)
def test_files_are_limited(source: str) -> None:
    run = BOX.run(source)
    assert run.status in ("error", "killed")
    assert len(run.stdout) <= sandbox.LONGEST_OUTPUT


def test_no_namespaces_and_no_mounts_within() -> None:
    source = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print([libc.unshare(flag) for flag in (0x20000, 0x40000000, 0x20000000)])
print(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None), libc.chroot(b"/tmp"))
"""
    assert printed(source) == "[-1, -1, -1]\n-1 -1"


def test_refuses_where_nothing_is_enforced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_launched", lambda *_: {"refused": "unshare: Operation not permitted"})
    sandbox.mode.cache_clear()
    try:
        with pytest.raises(NotConfinedError, match=r"cannot be confined here \(unshare: Operation not permitted\), so none is run"):
            BOX.run("print(1)")
        with pytest.raises(ConfigError, match=r"^rewards\.code\.options\.execute: programs cannot be confined"):
            BOX.check("rewards.code.options.execute")
    finally:
        sandbox.mode.cache_clear()


def test_refuses_when_a_program_reaches_something(monkeypatch: pytest.MonkeyPatch) -> None:
    def unconfined(task: bytes, limit: float, out, err) -> dict[str, int]:
        subprocess.run([sys.executable, "-I", "-c", json.loads(task)["source"]], stdout=out, stderr=err, check=True)
        return {"code": 0}

    monkeypatch.setattr(sandbox, "_launched", unconfined)
    sandbox.mode.cache_clear()
    try:
        with pytest.raises(NotConfinedError, match=r"still reaches.* files"):
            BOX.run("print(1)")
    finally:
        sandbox.mode.cache_clear()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_as_root_without_user_namespaces() -> None:
    run = BOX._run("import os; print(os.getuid(), os.getpid(), os.path.exists('/etc/passwd'))", "", "root")
    assert run.status == "ok", run
    user, process, found = run.stdout.split()
    assert int(user) > 65534
    assert (int(process) < 9, found) == (True, "False")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become somebody else")
def test_as_a_user_without_privileges() -> None:
    python = shutil.which("python3", path="/usr/bin")
    if python is None:
        pytest.skip("needs an interpreter that every user may run")
    task = {
        **{"mode": "user", "source": "import os; print(os.getuid(), os.path.exists('/etc/passwd'))", "stdin": "", "seconds": 20},
        **{"memory": 2**29, "processes": 8, "open_files": 64, "file_size": 2**20, "folder_size": 2**20},
        **{"python": os.path.realpath(python), "prefix": "/usr", "filter": _syscalls.program(os.uname().machine).hex()},
    }
    read, write = os.pipe()
    done = subprocess.run(
        [python, "-I", "-S", "-c", "import sys; exec(sys.argv[2])", str(write), SCRIPT.read_text("utf-8")],
        pass_fds=(write,),
        input=json.dumps(task).encode(),
        capture_output=True,
        user=1234,
        group=1234,
        extra_groups=[],
        cwd="/",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    os.close(write)
    with os.fdopen(read) as report:
        assert (done.stdout.decode(), report.read()) == ("65534 False\n", '{"code": 0}')


def test_a_program_cannot_say_how_it_ended() -> None:
    source = """
import os
for descriptor in range(3, 64):
    try:
        os.write(descriptor, b'{"code": 0}')
    except OSError:
        pass
os._exit(7)
"""
    assert BOX.run(source).status == "error"
    assert BOX.run(source.replace("os._exit(7)", "os._exit(0)")).status == "ok"


def test_memory_that_no_process_holds_is_denied() -> None:
    source = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
def error(result):
    return 0 if result >= 0 else ctypes.get_errno()
print(error(libc.shmget(0, 1 << 20, 0o1600)), error(libc.mq_open(b"/q", 0o102, 0o600, None)), error(libc.msgget(0, 0o1600)))
try:
    os.memfd_create("memory")
except OSError as failed:
    print(failed.errno)
"""
    assert printed(source).split() == ["1"] * 4


@pytest.mark.parametrize(
    "call",
    [
        "libc.unshare(0x10000000)",
        "libc.ptrace(0, 0, 0, 0)",
        "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
        "libc.chroot(b'/tmp')",
        "libc.syscall(425, 1, ctypes.create_string_buffer(120))",  # io_uring_setup
        "libc.syscall(clone, 0x10000000 | 17, 0, 0, 0, 0)",  # into a new user namespace
        "libc.personality(0x40000)",
    ],
)
def test_denied_calls(call: str) -> None:
    source = f"""
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
clone = {{"x86_64": 56, "aarch64": 220}}[platform.machine()]
result = {call}
print(result, ctypes.get_errno())
"""
    assert printed(source) == "-1 1"


def test_threads_and_children_still_work() -> None:
    source = """
import os, subprocess, sys, threading
thread = threading.Thread(target=print, args=("thread",))
thread.start()
thread.join()
child = os.fork()
if child == 0:
    os._exit(3)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert printed(source).split() == ["thread", "3"]


def test_the_filter_allows_what_it_does_not_name() -> None:
    for machine in ("x86_64", "aarch64"):
        for number in range(500):
            expected = _syscalls.ERROR | (_syscalls.NOT_THERE if number == _syscalls.CLONE3 else _syscalls.PERMISSION)
            refused = number in _syscalls.denied(machine) or number == _syscalls.CLONE3
            assert filtered(machine, number) == (expected if refused else _syscalls.ALLOW)
        clone = _syscalls.CLONE[machine]
        assert filtered(machine, clone, 17) == _syscalls.ALLOW
        assert filtered(machine, clone, 0x10000000 | 17) == _syscalls.ERROR | _syscalls.PERMISSION
    assert filtered("x86_64", 0x40000000 + 29) == _syscalls.KILL
    assert filtered("x86_64", 29, machine=0x40000003) == _syscalls.KILL  # 32-bit calls have other numbers


def filtered(name: str, number: int, argument: int = 0, machine: int | None = None) -> int:
    """What the filter says to a call, by a small interpreter of its instructions."""
    code = _syscalls.program(name)
    words = {_syscalls.NUMBER: number, _syscalls.MACHINE: machine or _syscalls.MACHINES[name], _syscalls.FIRST_ARGUMENT: argument}
    value = position = 0
    while True:
        kind, yes, no, constant = struct.unpack_from("=HBBI", code, 8 * position)
        position += 1
        if kind == _syscalls.LOAD:
            value = words[constant]
        elif kind == _syscalls.RETURN:
            return int(constant)
        else:
            tests = {_syscalls.EQUAL: value == constant, _syscalls.ANY_BIT: value & constant, _syscalls.AT_LEAST: value >= constant}
            position += yes if tests[kind] else no


@pytest.mark.parametrize("how", ["user", "root"])
def test_a_program_ends_with_its_owner(how: str) -> None:
    if how == "root" and os.geteuid() != 0:
        pytest.skip("needs root")
    source = (
        "from evr1_core.api.sandbox import Sandbox\n"
        f"Sandbox(seconds=60.0)._run('import time\\nwhile True: time.sleep(0.01)', '', {how!r})\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", source])
    deadline = time.monotonic() + 20
    while not (started := offspring(owner.pid)) or len(started) < 3:  # launcher, first process, program
        assert time.monotonic() < deadline
        time.sleep(0.05)
    owner.kill()
    owner.wait()
    while any(Path(f"/proc/{process}").exists() for process in started):
        assert time.monotonic() < deadline + 10, "the program outlived its owner"
        time.sleep(0.05)


def offspring(process: int) -> list[int]:
    """Children, and theirs."""
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == process:
            found += [int(folder.name), *offspring(int(folder.name))]
    return found
