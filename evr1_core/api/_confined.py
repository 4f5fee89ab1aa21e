"""Runs a program where it can reach nothing: started as a script by :mod:`evr1_core.api.sandbox`, with the standard library alone.

Three processes: the launcher builds a file system of read-only mounts and an empty folder, gives up its user and enters new
namespaces; its child, process 1 of the new process namespace, gives up its capabilities; that one's child takes the limits and
becomes the program. When process 1 ends, the kernel kills whatever the program has started.
"""

from __future__ import annotations

import ctypes
import errno
import json
import math
import os
import resource
import signal
import sys
import time
from typing import Any, NoReturn

NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    *(0x00020000, 0x02000000, 0x04000000, 0x08000000),
    *(0x10000000, 0x20000000, 0x40000000),
)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT, MS_NOATIME, MS_NODIRATIME = 1, 2, 4, 8, 32, 1024, 2048
MS_BIND, MS_REC, MS_PRIVATE, MS_STRICTATIME = 4096, 16384, 1 << 18, 1 << 24
ST_RELATIME = 4096
MNT_DETACH = 2
MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE = 442, -100, 0x8000
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
SECCOMP_FILTER = 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
CAPABILITIES = 0x20080522  # version 3 of the structure
LAST_CAPABILITY = 63
INSIDE = 65534  # user and group in the sandbox
OUTSIDE = 0x40000000  # plus the process id: a user that owns nothing and shares its limit on processes with nobody
FOLDER = "/tmp"  # of the program, in its own file system
PLACES = ("/mnt", "/media", "/srv", "/tmp", "/var")  # one of them, in a copy of the mounts, is where that is built
SYSTEM = ("/bin", "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
LIBC = ctypes.CDLL(None, use_errno=True)


def main() -> None:
    """Reads the task from standard input and writes what became of it to the file descriptor in the first argument."""
    status = int(sys.argv[1])
    os.set_inheritable(status, False)  # else the program could write there what became of it
    end_with_parent()
    task = json.loads(sys.stdin.buffer.read())
    try:
        outcome = launch(task)
    except OSError as error:
        outcome = {"refused": str(error)}
    os.write(status, json.dumps(outcome).encode())


def launch(task: dict[str, Any]) -> dict[str, Any]:
    """What became of the program: its exit code or signal, or that it took too long."""
    with_user = task["mode"] == "user"
    root = os.geteuid() == 0
    user, group = (OUTSIDE + os.getpid(),) * 2 if root else (os.geteuid(), os.getegid())
    spaces = (NEWUSER if with_user else 0) | NEWPID | NEWNET | NEWIPC | NEWUTS | NEWCGROUP
    processes = os.open("/proc", os.O_PATH)  # which is gone in the new file system
    if root:  # mounts first: the interpreter may lie in a folder that only root enters
        unshare(NEWNS)
        build(task)
        if not with_user:
            unshare(spaces)
        become(user, group)
    if with_user:
        unshare(spaces if root else spaces | NEWNS)
        for name, text in (("setgroups", "deny"), ("uid_map", f"{INSIDE} {user} 1"), ("gid_map", f"{INSIDE} {group} 1")):
            put(processes, f"self/{name}", text)
        forbid_more_namespaces(processes)
    if not root:
        build(task)
    read, write = os.pipe()
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    first = os.fork()
    if first == 0:
        os.close(read)
        guarded(write, lambda: init(task, write))
    os.close(write)
    return waited(first, read, task["seconds"])


def waited(first: int, read: int, seconds: float) -> dict[str, Any]:
    """The report of process 1, which is killed after ``seconds`` and takes everything with it."""
    deadline = time.monotonic() + seconds
    late = False
    while os.waitpid(first, os.WNOHANG)[0] == 0:
        left = deadline - time.monotonic()
        if left <= 0 or (signal.sigtimedwait({signal.SIGCHLD}, left) is None and deadline <= time.monotonic()):
            late = True
            os.kill(first, signal.SIGKILL)
            os.waitpid(first, 0)
            break
    report = os.read(read, 1 << 16)
    if report and "refused" in (told := json.loads(report)):
        return dict(told)
    if late:
        return {"late": True}
    return dict(told) if report else {"code": -signal.SIGKILL}  # by the kernel, out of memory


def end_with_parent() -> None:
    """The parent waits in the thread that started this process, so that the end of that thread is the end of the parent."""
    call("prctl", LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0))


def unshare(spaces: int) -> None:
    call("unshare", LIBC.unshare(spaces))


def become(user: int, group: int) -> None:
    """Gives up root for a user that owns nothing."""
    os.setgroups([])
    os.setresgid(group, group, group)
    os.setresuid(user, user, user)
    call("prctl", LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0))  # else /proc/self stays root's
    end_with_parent()  # cleared by a change of user


def init(task: dict[str, Any], report: int) -> None:
    """Process 1: starts the program and waits for it."""
    end_with_parent()
    for name in ("source", "stdin"):
        with open(f"{FOLDER}/{name}", "w", encoding="utf-8", errors="surrogatepass") as file:
            file.write(task[name])
    drop_capabilities()
    program = os.fork()
    if program == 0:
        guarded(report, lambda: execute(task))
    call("prctl", LIBC.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0))
    while True:
        ended, status = os.wait()
        if ended == program:
            break
    os.write(report, json.dumps({"code": os.waitstatus_to_exitcode(status)}).encode())


def forbid_more_namespaces(processes: int) -> None:
    """No namespaces within this user namespace, as each would bring capabilities back; and when memory runs out, this goes first.

    Both are more than is promised: in some containers /proc is read-only.
    """
    limits = [(f"sys/user/max_{name}_namespaces", "0") for name in ("user", "mnt", "net")]
    for name, text in (*limits, ("self/oom_score_adj", "1000")):
        try:
            put(processes, name, text)
        except OSError:
            continue


def put(folder: int, name: str, text: str) -> None:
    descriptor = os.open(name, os.O_WRONLY, dir_fd=folder)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def build(task: dict[str, Any]) -> None:
    """A new root with read-only mounts of the interpreter and its libraries, and an empty writable folder."""
    prefix = task["prefix"]
    place = next(path for path in PLACES if os.path.isdir(path) and not f"{prefix}/".startswith(f"{path}/"))
    mount(None, "/", MS_REC | MS_PRIVATE)
    mount("tmpfs", place, MS_NOSUID | MS_NODEV, "tmpfs", "size=1m,mode=755")
    covered: list[str] = []
    for path in sorted({prefix, *SYSTEM, *DEVICES}, key=lambda path: (len(path), path)):
        if os.path.lexists(path) and not any(path.startswith(f"{other}/") for other in covered):
            show(path, place + path)
            covered.append(path)
    os.makedirs(place + FOLDER, exist_ok=True)
    mount("tmpfs", place + FOLDER, MS_NOSUID | MS_NODEV, "tmpfs", f"size={task['folder_size']},nr_inodes=2048,mode=1777")
    os.chdir(place)
    call("pivot_root", LIBC.syscall(PIVOT_ROOT[os.uname().machine], b".", b"."))
    call("umount", LIBC.umount2(b".", MNT_DETACH))
    os.chdir("/")
    mount(None, "/", MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)


def show(path: str, target: str) -> None:
    """Makes ``path`` visible at ``target``, read-only unless it is a device."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    mount(path, target, MS_BIND | MS_REC)
    if path not in DEVICES:
        protect(target)


def protect(target: str) -> None:
    """Makes a mount read-only, with those below it; before Linux 5.12 without those."""
    attributes = (ctypes.c_uint64 * 4)(MS_RDONLY | MS_NOSUID, 0, 0, 0)
    done = LIBC.syscall(MOUNT_SETATTR, AT_FDCWD, target.encode(), AT_RECURSIVE, attributes, ctypes.c_size_t(32))
    if done < 0 and ctypes.get_errno() == errno.ENOSYS:
        mount(None, target, MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | flags_of(target))
    else:
        call(f"mount_setattr {target}", done)


def flags_of(path: str) -> int:
    """Flags that a mount in a new user namespace must keep."""
    given = os.statvfs(path).f_flag
    kept = given & (MS_NODEV | MS_NOEXEC | MS_NOATIME | MS_NODIRATIME)
    return kept if given & (MS_NOATIME | ST_RELATIME) else kept | MS_STRICTATIME


def drop_capabilities() -> None:
    for capability in range(LAST_CAPABILITY + 1):
        LIBC.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fails behind the last one
    header, none = (ctypes.c_uint32 * 2)(CAPABILITIES, 0), (ctypes.c_uint32 * 6)()
    call("capset", LIBC.capset(header, none))
    call("prctl", LIBC.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))


def execute(task: dict[str, Any]) -> NoReturn:
    """Takes the limits and becomes the program."""
    os.setsid()
    os.chdir(FOLDER)
    os.dup2(os.open(f"{FOLDER}/stdin", os.O_RDONLY), 0)
    restrict_files()
    seconds = math.ceil(task["seconds"])
    for kind, limit in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, task["memory"]),
        (resource.RLIMIT_FSIZE, task["file_size"]),
        (resource.RLIMIT_NOFILE, task["open_files"]),
        (resource.RLIMIT_NPROC, task["processes"] + 2),  # launcher and process 1 count
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (limit, limit + 1 if kind == resource.RLIMIT_CPU else limit))
    filter_calls(bytes.fromhex(task["filter"]))
    os.execve(task["python"], [task["python"], "-I", "-B", "-X", "utf8", f"{FOLDER}/source"], {})


def landlock_version() -> int:
    """0 where the kernel has no Landlock."""
    return max(0, int(LIBC.syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1)))


def restrict_files() -> None:
    """Landlock on top, where the kernel has it: writing in the folder alone, no TCP, no signals to process 1."""
    abi = landlock_version()
    if not abi:
        return
    rights = (1 << (13 + (abi >= 2) + (abi >= 3))) - 1 | (1 << 15 if abi >= 5 else 0)
    attributes = (ctypes.c_uint64 * 3)(rights, 3, 3)
    size = 8 if abi < 4 else 16 if abi < 6 else 24
    rules = call("landlock", LIBC.syscall(LANDLOCK_CREATE, attributes, ctypes.c_size_t(size), 0))
    of_files = rights & (1 | 2 | 4 | 1 << 14 | 1 << 15)
    for path, allowed in (("/", 1 | 4 | 8), (FOLDER, rights), ("/dev/null", of_files)):
        descriptor = os.open(path, os.O_PATH)
        rule = (ctypes.c_uint32 * 3)(allowed & 0xFFFFFFFF, allowed >> 32, descriptor)
        call("landlock", LIBC.syscall(LANDLOCK_ADD, rules, 1, rule, 0))
        os.close(descriptor)
    call("landlock", LIBC.syscall(LANDLOCK_RESTRICT, rules, 0))
    os.close(rules)


def filter_calls(program: bytes) -> None:
    """Denies system calls from here on."""
    code = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]

    filled = Program(len(program) // 8, ctypes.addressof(code))
    call("seccomp", LIBC.prctl(PR_SET_SECCOMP, SECCOMP_FILTER, ctypes.byref(filled), 0, 0))


def mount(source: str | None, target: str, flags: int, kind: str | None = None, data: str | None = None) -> None:
    encoded = [None if text is None else text.encode() for text in (source, target, kind, data)]
    call(f"mount {target}", LIBC.mount(encoded[0], encoded[1], encoded[2], ctypes.c_ulong(flags), encoded[3]))


def call(what: str, result: int) -> int:
    """The result of a system call. Raises OSError that names it."""
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


def guarded(report: int, step: Any) -> NoReturn:
    """Runs the part of a forked child, which never returns into its parent's code."""
    code = 1
    try:
        step()
        code = 0
    except OSError as error:
        os.write(report, json.dumps({"refused": str(error)}).encode())
    finally:
        os._exit(code)


if __name__ == "__main__":
    main()
