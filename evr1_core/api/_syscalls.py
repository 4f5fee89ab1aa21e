"""The system calls that a confined program is denied, as a filter for the kernel (seccomp).

Everything else may be called: the namespaces keep the program in, this takes away what would get round its limit on memory, and
parts of the kernel that no program of the standard library needs. Sources: seccomp(2), linux/bpf_common.h, linux/audit.h.
"""

from __future__ import annotations

import struct

LOAD, EQUAL, ANY_BIT, AT_LEAST, RETURN = 0x20, 0x15, 0x45, 0x35, 0x06  # of a word; jumps compare with a constant
NUMBER, MACHINE, FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data; the low half of the argument, little-endian
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
PERMISSION, NOT_THERE = 1, 38  # errno
MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
OTHER_ABI = 0x40000000  # x86-64 with 32-bit pointers
NAMESPACES = 0x7E020080  # flags of clone: user, process, network, mount, IPC, UTS, cgroup and time namespaces
CLONE = {"x86_64": 56, "aarch64": 220}
CLONE3 = 435  # its flags lie in memory, where a filter cannot look: libraries then use clone

_OF_X86_64 = {
    "memory that counts for nobody": (29, 30, 31, 240, 319),  # shmget, shmat, shmctl, mq_open, memfd_create
    "semaphores and messages": (64, 68),
    "mounts and namespaces": (155, 161, 165, 166, 272, 308),  # pivot_root, chroot, mount, umount2, unshare, setns
    "other processes": (101, 310, 311),  # ptrace, process_vm_readv, process_vm_writev
    "keys": (248, 249, 250),
    "seldom used parts of the kernel": (103, 135, 298, 303, 304, 321, 323),  # syslog, personality, perf, handles, bpf, userfaultfd
}
_OF_AARCH64 = {
    "memory that counts for nobody": (194, 195, 196, 180, 279),
    "semaphores and messages": (186, 190),
    "mounts and namespaces": (39, 40, 41, 51, 97, 268),
    "other processes": (117, 270, 271),
    "keys": (217, 218, 219),
    "seldom used parts of the kernel": (92, 116, 241, 264, 265, 280, 282),
}
_OF_ALL = {
    "rings of requests, which pass filters by": (425, 426, 427),
    "mounts": (428, 429, 430, 431, 432, 433, 442),
    "descriptors and memory": (438, 447),  # pidfd_getfd, memfd_secret
}
_BY_MACHINE = {"x86_64": _OF_X86_64, "aarch64": _OF_AARCH64}


def denied(machine: str) -> tuple[int, ...]:
    """Numbers of the calls that fail with "operation not permitted"."""
    groups = (*_BY_MACHINE[machine].values(), *_OF_ALL.values())
    return tuple(sorted(number for group in groups for number in group))


def program(machine: str) -> bytes:
    """The filter as an array of ``struct sock_filter``. Raises KeyError for another machine than x86_64 and aarch64."""
    numbers = denied(machine)
    refuse, absent, kill = (_step(RETURN, value) for value in (ERROR | PERMISSION, ERROR | NOT_THERE, KILL))
    steps = [_step(LOAD, MACHINE), _step(EQUAL, MACHINES[machine], yes=1), kill, _step(LOAD, NUMBER)]
    steps += [_step(AT_LEAST, OTHER_ABI, no=1), kill]
    for number in numbers:
        steps += [_step(EQUAL, number, no=1), refuse]
    steps += [_step(EQUAL, CLONE3, no=1), absent]
    steps += [_step(EQUAL, CLONE[machine], no=3), _step(LOAD, FIRST_ARGUMENT), _step(ANY_BIT, NAMESPACES, no=1), refuse]
    return b"".join([*steps, _step(RETURN, ALLOW)])


def _step(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    """One instruction; ``yes`` and ``no``: how many to skip."""
    return struct.pack("=HBBI", code, yes, no, value)
