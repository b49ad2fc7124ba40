"""Names for processes by which others on the same machine can tell whether one has died.

A name holds the boot of the machine, the namespace of process ids, the id and when the process began, in the
kernel's ticks since boot. Whoever shares boot and namespace can ask the kernel for that id: if there is
none, or one that began at another time, the process named has died. Others cannot tell, and say so.

Why a process that has died sends no more (G5): its last instruction has been carried out, and its name will
never be given again, for a later process with the same id began at a later tick. What it wrote to a socket
before may still be on its way; that is why its order is *in doubt* and not void. A process that is stopped
(SIGSTOP), traced, swapped out or in an uninterruptible wait is still in the table of processes: it has not
died, and is never said to have.

Not covered: two machines that were resumed from one snapshot share a boot and may share ids. Then only leases
tell who is alive, and the price of a mistake is an order that is sent twice.
"""

import functools
import os
from pathlib import Path

_PROC = Path("/proc")
# Of /proc/PID/stat after the name of the program: its state, the number of its threads, when it began.
_STATE, _THREADS, _STARTED = 0, 17, 19
_GONE = frozenset("ZX")


def name_of(pid: int) -> str:
    """The name of the process with this id; "" where none can be made, and then nobody can tell of it."""
    return name(pid, began(pid))


def name(pid: int, ticks: int) -> str:
    """The name of the process with this id that began at this tick."""
    return f"{where}/{pid}/{ticks}" if (where := _here()) and ticks else ""


def began(pid: int) -> int:
    """When the process began, in ticks since boot; 0 when the kernel does not say."""
    facts = _facts(pid)
    return int(facts[_STARTED]) if facts else 0


def has_died(name: str) -> bool:
    """True when the process of this name provably runs no more; False also when that cannot be known here."""
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
        pass  # it is there, and another user's
    facts = _facts(pid)
    if not facts:
        return False
    # The first thread of a process may end before the others: then it is a zombie with company.
    return facts[_STARTED] != rest or (facts[_STATE] in _GONE and facts[_THREADS] in {"0", "1"})


def _here() -> str:
    """The boot of this machine and the namespace of our process ids; "" where the kernel does not say."""
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
    """What the kernel says of a process, from its state on; empty when it says nothing."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    facts = stat.rpartition(")")[2].split()
    return facts if len(facts) > _STARTED else []
