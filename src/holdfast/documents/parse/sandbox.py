"""What the parsing process may not do, by the means of the kernel it runs on.

A parser of a foreign file may have a flaw that lets the file run code. Then this decides what the code can
do: nothing beyond the one document that it was handed open. Every measure is taken alone, so that a system
that knows one of them less still has the others, and `confine` says which are in force:

* hard limits on memory, open files, the size of files and core dumps, which cannot be raised again;
* no privilege can be gained by starting a program (`no_new_privs`);
* files: only the code of the parsers can be opened, to be read (Landlock, Linux 5.13);
* system calls: no network, no other program or process, no change of its own confinement (seccomp, on x86_64
  and aarch64); where there is no seccomp, a network namespace of its own, with nothing in it.

macOS has none of these but the limits.
"""

import contextlib
import ctypes
import importlib.util
import os
import platform
import resource
import struct
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from holdfast.documents.parse import system_calls
from holdfast.documents.parse.records import ParseLimits

MOST_WORDS = 64 * 1024
MOST_FILES = 64
_PR_SET_NO_NEW_PRIVS = 38
_PR_SET_SECCOMP = 22
_long = ctypes.c_long
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
# Landlock: the numbers of its calls are the same on every architecture.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_RULE_PATH_BENEATH = 1
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
# Rights to files that each version of it knows; rights to the network and signals are seccomp's here.
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
# Shared libraries, and the fonts that a PDF does not bring along.
_SYSTEM = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/dev/urandom"),
    *("/dev/null", "/usr/share/fonts", "/usr/local/share/fonts"),
)
# What is read from a folder of modules that is none of the interpreter's own: it may hold anything else, too.
_PARSERS = (
    *("holdfast", "selectolax", "pypdfium2", "pypdfium2_raw", "docx", "pptx", "lxml", "PIL", "pillow.libs"),
    *("python_calamine", "charset_normalizer", "xlsxwriter", "typing_extensions.py", "lxml.libs"),
)


def confine(limits: ParseLimits) -> tuple[str, ...]:
    """This process is confined as far as the system allows; the measures in force, in plain words."""
    measures = ["an empty environment", *_hard_limits(limits)]
    if sys.platform != "linux":
        return tuple(measures)
    libc = ctypes.CDLL(None, use_errno=True)
    for name in _PARSERS:
        # What a folder holds is remembered, because folders of strangers cannot be listed afterwards.
        importlib.util.find_spec(name.partition(".")[0])
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
        measures.append("no new privileges")
        if _restrict_files(libc, _code()):
            measures.append("no file but the document and the parsers' code (Landlock)")
        if _filter_calls(libc):
            measures.append("no network, no other process (seccomp)")
        elif _leave_network(libc):
            measures.append("no network (a namespace of its own)")
    return tuple(measures)


def _hard_limits(limits: ParseLimits) -> list[str]:
    bounds = (
        (resource.RLIMIT_CORE, 0, "no core dumps"),
        (resource.RLIMIT_FSIZE, MOST_WORDS, "hardly a file to write"),  # its last words
        (resource.RLIMIT_NOFILE, MOST_FILES, "few open files"),
        (resource.RLIMIT_AS, limits.memory, "a limit of memory"),
    )
    return [name for what, most, name in bounds if bound(what, most)]


def bound(what: int, most: int) -> bool:
    """True when a limit of this process is `most`, or the lower one that was set for it, and stays so."""
    _soft, hard = resource.getrlimit(what)
    least = most if hard == resource.RLIM_INFINITY else min(most, hard)
    try:
        resource.setrlimit(what, (least, least))
    except (ValueError, OSError):  # macOS knows some limits and refuses to set them
        return False
    return True


def _code() -> Iterable[str]:
    """What must be readable for parsers to be loaded when they are first needed."""
    own = tuple(os.path.realpath(prefix) + os.sep for prefix in (sys.prefix, sys.base_prefix))
    for entry in sys.path:
        if os.path.realpath(entry).startswith(own) or Path(entry).name in {"site-packages", "dist-packages"}:
            yield entry
        else:
            yield from (str(Path(entry, name)) for name in _PARSERS)
    yield from _SYSTEM


def _restrict_files(libc: ctypes.CDLL, readable: Iterable[str]) -> bool:
    """True when only what is beneath these paths can be opened from now on, and only to be read."""
    version = libc.syscall(_long(_CREATE_RULESET), None, _long(0), _long(1))
    if version < 1:
        return False
    rights = struct.pack("=Q", _RIGHTS[min(version, max(_RIGHTS))])
    ruleset = libc.syscall(_long(_CREATE_RULESET), rights, _long(len(rights)), _long(0))
    if ruleset < 0:
        return False
    try:
        for path in readable:
            with contextlib.suppress(OSError):
                _allow(libc, ruleset, path)
        return bool(libc.syscall(_long(_RESTRICT_SELF), _long(ruleset), _long(0)) == 0)
    finally:
        os.close(ruleset)


def _allow(libc: ctypes.CDLL, ruleset: int, path: str) -> None:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rights = _READ_FILE | (_READ_DIR if Path(path).is_dir() else 0)
        rule = struct.pack("=Qi", rights, place)
        libc.syscall(_long(_ADD_RULE), _long(ruleset), _long(_RULE_PATH_BENEATH), rule, _long(0))
    finally:
        os.close(place)


def _filter_calls(libc: ctypes.CDLL) -> bool:
    """True when the kernel refuses every call that a parser has no use for."""
    calls = system_calls.OF.get(platform.machine())
    if calls is None:
        return False
    program = b"".join(struct.pack("=HBBI", *step) for step in _program(calls))
    steps = ctypes.create_string_buffer(program)

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    whole = Filter(len(program) // 8, ctypes.addressof(steps))
    return bool(libc.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(whole), 0, 0) == 0)


def _program(calls: system_calls.Calls) -> Sequence[tuple[int, int, int, int]]:
    """The filter, in the kernel's own little language: operation, jump if true, jump if false, operand."""
    load, equal, at_least, give = 0x20, 0x15, 0x35, 0x06
    allow, refuse, unknown = 0x7FFF0000, 0x00050000 | 1, 0x00050000 | 38  # EPERM, ENOSYS
    steps = [
        (load, 0, 0, 4),
        (equal, 1, 0, calls.architecture),
        (give, 0, 0, refuse),
        (load, 0, 0, 0),
        (at_least, 0, 1, 0x40000000),  # another numbering of the same calls
        (give, 0, 0, refuse),
    ]
    for number in calls.refused:
        steps += [(equal, 0, 1, number), (give, 0, 0, refuse)]
    for number in calls.unknown:
        steps += [(equal, 0, 1, number), (give, 0, 0, unknown)]
    # Only about itself: another's limits, and signals to another, are none of its business.
    for number in calls.own:
        steps += [(equal, 0, 5, number), (load, 0, 0, 16)]
        steps += [(equal, 2, 0, 0), (equal, 1, 0, os.getpid()), (give, 0, 0, refuse), (give, 0, 0, allow)]
    return [*steps, (give, 0, 0, allow)]


def _leave_network(libc: ctypes.CDLL) -> bool:
    """True when this process is in a network of its own that leads nowhere."""
    flags = _CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWUSER | _CLONE_NEWNET
    return bool(libc.unshare(flags) == 0)
