"""Names for processes by which others on the same machine can tell whether one has died.

A name holds the boot id of the machine, the pid namespace, the pid and the start time of the process, in the
kernel's ticks since boot. A process with the same boot and namespace can ask the kernel for that pid: if
there is none, or it started at another time, the named process has died. Others cannot tell, and say so.

Why a dead process sends no more (G5): its last instruction has been executed, and its name is never reused,
as a later process with the same pid starts at a later tick. What it wrote to a socket before may still be on
its way; that is why its order is *in doubt* and not void. A process that is stopped (SIGSTOP), traced,
swapped out or in an uninterruptible wait is still in the process table: it has not died, and is never
reported dead.

Not covered: two machines resumed from one snapshot share a boot id and may share pids. Then only leases tell
who is alive, and the price of a mistake is an order that is sent twice.
"""

import functools
import os
from pathlib import Path

_PROC = Path("/proc")
# Fields of /proc/PID/stat after the program name: state, number of threads, start time.
_STATE, _THREADS, _STARTED = 0, 17, 19
_GONE = frozenset("ZX")


def name_of(pid: int) -> str:
    """The name of the process with this pid; "" if it cannot be made, and then nobody can tell about it."""
    return name(pid, began(pid))


def name(pid: int, ticks: int) -> str:
    """The name of the process with this pid and start tick."""
    return f"{where}/{pid}/{ticks}" if (where := _here()) and ticks else ""


def began(pid: int) -> int:
    """When the process started, in ticks since boot; 0 if unknown."""
    facts = _facts(pid)
    return int(facts[_STARTED]) if facts else 0


def has_died(name: str) -> bool:
    """True if the process of this name has provably ended; False also if that cannot be known here."""
    where, _, rest = name.rpartition("/")
    where, _, number = where.rpartition("/")
    if not where or where != _here() or not number.isdigit():
        return False
    pid = int(number)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it exists and belongs to another user
    facts = _facts(pid)
    if not facts:
        return False
    # The first thread of a process may end before the others: then it is a zombie with live threads.
    return facts[_STARTED] != rest or (facts[_STATE] in _GONE and facts[_THREADS] in {"0", "1"})


def _here() -> str:
    """The boot id of this machine and our pid namespace; "" if unknown."""
    return _place_of(os.getpid())


@functools.lru_cache(maxsize=1)
def _place_of(_pid: int) -> str:
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        namespace = str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return ""
    return f"{boot}/{namespace}" if boot and namespace else ""


def _facts(pid: int) -> list[str]:
    """The kernel's fields of a process, starting with its state; empty if unknown."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    facts = stat.rpartition(")")[2].split()
    return facts if len(facts) > _STARTED else []
