"""The sandbox of the parser process, enforced by the kernel.

A parser of untrusted files may have a flaw that lets a file run code. The sandbox limits such code to the one
open document. The measures are independent, so that a system without one of them still has the others, and
`confine` returns those in force:

* hard limits on memory, open files, the size of files and core dumps, which cannot be raised again;
* no privileges can be gained by starting a program (`no_new_privs`);
* files: only the parsers' code can be opened, read-only (Landlock, Linux 5.13);
* system calls: no network, no other program or process, no change of its own confinement (seccomp, on x86_64
  and aarch64); without seccomp, an empty network namespace.

macOS has only the limits.
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

from holdfast.documents.parse import ocr_languages, system_calls
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
# File rights known to each Landlock version; network and signals are left to seccomp.
_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
# Shared libraries, fonts that a PDF does not embed, and languages to recognise.
_SYSTEM = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/dev/urandom"),
    *("/dev/null", "/usr/share/fonts", "/usr/local/share/fonts", *ocr_languages.FOLDERS),
)
# Files readable in module folders that are not the interpreter's own, which may hold anything else, too.
_PARSERS = (
    *("holdfast", "selectolax", "pypdfium2", "pypdfium2_raw", "docx", "pptx", "lxml", "PIL", "pillow.libs"),
    *("python_calamine", "charset_normalizer", "xlsxwriter", "typing_extensions.py", "lxml.libs"),
    *("striprtf", "oxmsg", "olefile", "tesserocr", "tesserocr.libs", "dulwich"),
)


def confine(limits: ParseLimits) -> tuple[str, ...]:
    """Confine this process as far as the system allows; returns the measures in force, in plain words."""
    measures = ["an empty environment", *_hard_limits(limits)]
    if sys.platform != "linux":
        return tuple(measures)
    libc = ctypes.CDLL(None, use_errno=True)
    for name in _PARSERS:
        # Folder contents are cached, because folders of other packages cannot be listed afterwards.
        importlib.util.find_spec(name.partition(".")[0])
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
        measures.append("no new privileges")
        if _restrict_files(libc, _code()):
            measures.append("no file but the document and the parsers' code (Landlock)")
        if _filter_calls(libc):
            measures.append("no network, no other process (seccomp)")
        elif _leave_network(libc):
            measures.append("no network (an empty namespace)")
    return tuple(measures)


def _hard_limits(limits: ParseLimits) -> list[str]:
    bounds = (
        (resource.RLIMIT_CORE, 0, "no core dumps"),
        (resource.RLIMIT_FSIZE, MOST_WORDS, "tiny output files"),  # its last words
        (resource.RLIMIT_NOFILE, MOST_FILES, "few open files"),
        (resource.RLIMIT_AS, limits.memory, "a memory limit"),
    )
    return [name for what, most, name in bounds if bound(what, most)]


def bound(what: int, most: int) -> bool:
    """Set a hard limit to `most`, or a lower existing one; True if it is in force."""
    _soft, hard = resource.getrlimit(what)
    least = most if hard == resource.RLIM_INFINITY else min(most, hard)
    try:
        resource.setrlimit(what, (least, least))
    except (ValueError, OSError):  # macOS refuses to set some limits
        return False
    return True


def _code() -> Iterable[str]:
    """Paths that must be readable to load parsers later."""
    own = tuple(os.path.realpath(prefix) + os.sep for prefix in (sys.prefix, sys.base_prefix))
    for entry in sys.path:
        if os.path.realpath(entry).startswith(own) or Path(entry).name in {"site-packages", "dist-packages"}:
            yield entry
        else:
            yield from (str(Path(entry, name)) for name in _PARSERS)
    yield from _SYSTEM


def _restrict_files(libc: ctypes.CDLL, readable: Iterable[str]) -> bool:
    """Allow opening only files below these paths, read-only; True if in force."""
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
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rights = _READ_FILE | (_READ_DIR if Path(path).is_dir() else 0)
        rule = struct.pack("=Qi", rights, descriptor)
        libc.syscall(_long(_ADD_RULE), _long(ruleset), _long(_RULE_PATH_BENEATH), rule, _long(0))
    finally:
        os.close(descriptor)


def _filter_calls(libc: ctypes.CDLL) -> bool:
    """Make the kernel refuse system calls that parsers do not need; True if in force."""
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
    """The filter as BPF: operation, jump if true, jump if false, operand."""
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
    # Only for itself: not for limits of, or signals to, other processes.
    for number in calls.own:
        steps += [(equal, 0, 5, number), (load, 0, 0, 16)]
        steps += [(equal, 2, 0, 0), (equal, 1, 0, os.getpid()), (give, 0, 0, refuse), (give, 0, 0, allow)]
    return [*steps, (give, 0, 0, allow)]


def _leave_network(libc: ctypes.CDLL) -> bool:
    """Move this process to an empty network namespace; True if in force."""
    flags = _CLONE_NEWNET if os.geteuid() == 0 else _CLONE_NEWUSER | _CLONE_NEWNET
    return bool(libc.unshare(flags) == 0)
