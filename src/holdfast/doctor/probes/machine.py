"""This machine: limits of the container, disk, and Celery processes that run here."""

import resource
import shutil
from pathlib import Path

from holdfast.doctor.facts import MachineFacts

CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
# A limit that means none: cgroup version 1 writes the largest number of pages.
NO_LIMIT = 1 << 60
POOLS = ("prefork", "gevent", "eventlet", "solo", "threads")


def probe(
    folder: Path | None = None, *, proc: Path = Path("/proc"), cgroups: tuple[str, ...] = CGROUPS
) -> MachineFacts:
    """The facts about this machine; `folder` is where data is stored."""
    pools, beats = _celery_processes(proc)
    free, total, shown = _disk(folder)
    return MachineFacts(
        memory_limit=_memory_limit(cgroups),
        file_limit=_file_limit(),
        disk_free=free,
        disk_total=total,
        disk_folder=shown,
        beats=beats,
        pools=pools,
    )


def _disk(folder: Path | None) -> tuple[int | None, int | None, str]:
    if folder is None:
        return None, None, ""
    nearest = next((each for each in (folder, *folder.parents) if each.exists()), None)
    if nearest is None:
        return None, None, ""
    usage = shutil.disk_usage(nearest)
    return usage.free, usage.total, str(folder)


def _memory_limit(files: tuple[str, ...]) -> int | None:
    for name in files:
        try:
            written = Path(name).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        return int(written) if written.isdigit() and int(written) < NO_LIMIT else None
    return None


def _file_limit() -> int | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def _celery_processes(proc: Path) -> tuple[tuple[str, ...], int | None]:
    """The pools of Celery workers that run here, and the number of beats; None where that is not told.

    Of a command line only these words are looked at: it may hold a password.
    """
    pools: dict[str, None] = {}
    beats, seen = 0, False
    for folder in proc.iterdir() if proc.is_dir() else ():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        seen = True
        program = next((n for n, word in enumerate(words[:4]) if Path(word).name == "celery"), None)
        if program is None:
            continue
        rest = words[program + 1 :]
        beats += "beat" in rest
        if "worker" in rest:
            pools.update(dict.fromkeys(_pools(rest)))
            beats += bool({"-B", "--beat"} & set(rest))
    return tuple(pools), beats if seen and beats else None


def _pools(words: list[str]) -> list[str]:
    chosen = []
    for number, word in enumerate(words):
        name, _, value = word.partition("=")
        if name in {"-P", "--pool"}:
            chosen.append(value or "".join(words[number + 1 : number + 2]))
    return [pool for pool in chosen if pool in POOLS]
