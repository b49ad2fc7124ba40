"""Locks that prove a death: a process holds one for as long as it lives, and the kernel frees it at its end.

Obtaining the lock of the same file proves that its holder has ended, in whatever way, also across
containers that share the folder, where process ids prove nothing. The file is the same only if device and
inode are: another file under its name proves nothing, and neither does a missing one.
"""

import fcntl
import os
from pathlib import Path

from holdfast.core.ports import Lock
from holdfast.store.money.relays import LockFile


class HeldLock:
    """A lock that this process holds until it ends or closes it."""

    def __init__(self, path: Path) -> None:
        """Create the file, which must not exist, and lock it."""
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        facts = os.fstat(self._descriptor)
        self.file = LockFile(str(path), str(facts.st_dev), str(facts.st_ino))

    def release(self) -> None:
        """The lock is free, as after the end of the process; its file stays as the proof."""
        os.close(self._descriptor)


def is_free(lock: Lock) -> bool:
    """True if the holder of this lock has provably ended; False also if that cannot be known here."""
    return _is_unlocked(lock.path, (lock.device, lock.inode))


def is_unlocked(path: Path) -> bool:
    """True if nobody holds the lock of the file that is there now."""
    return _is_unlocked(str(path), None)


def _is_unlocked(path: str, file: tuple[str, str] | None) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        facts = os.fstat(descriptor)
        if file is not None and (str(facts.st_dev), str(facts.st_ino)) != file:
            return False
        # Shared, so that two who ask at the same moment do not take each other for the holder.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
