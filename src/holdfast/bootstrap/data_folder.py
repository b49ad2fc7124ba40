"""The data folder: for its owner alone, as documents, keys and bills lie in it."""

import contextlib
import os
import stat
from pathlib import Path

from holdfast.core.errors import NotReadyError, StoreUnavailableError
from holdfast.settings import Settings

# Where releases before 0.2 kept data unless they were told otherwise: below whatever folder they ran in.
FORMER = Path("holdfast-data")


def make(settings: Settings, database: Path) -> None:
    """The folders of the data and of the embedded database are there, and nobody else can look into them.

    Raises NotReadyError when the data of an earlier release would be left behind, StoreUnavailableError when
    a folder cannot be made.
    """
    refuse_to_leave_behind(settings, database)
    try:
        for folder in (settings.data_dir, database.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        message = (
            f"the folder of the database cannot be made ({error}); set HOLDFAST_DATA_DIR to one that can"
        )
        raise StoreUnavailableError(message) from error
    tighten(settings, database)


def refuse_to_leave_behind(settings: Settings, database: Path) -> None:
    """Return unless the database is yet to be made while one of an earlier release lies in this folder."""
    before = FORMER.absolute()
    chosen = "data_dir" in settings.model_fields_set and settings.data_dir != settings.usual_data_dir()
    if chosen or database.exists() or database.parent != settings.data_dir or before == settings.data_dir:
        return
    if (before / "holdfast.db").exists():
        message = (
            f"data of an earlier release lies in {before}, while data now lies in "
            f"{settings.data_dir}; if it is "
            f"yours, move it there, or use it where it is with --data-dir {FORMER}"
        )
        raise NotReadyError(message, code="data_elsewhere")


def tighten(settings: Settings, database: Path | None) -> None:
    """What others could read in the data folder they can read no longer; what is not ours stays as it is."""
    close_to_others(settings.data_dir)
    with contextlib.suppress(OSError):
        for each in settings.data_dir.iterdir():
            close_to_others(each)
    if database is not None:
        for ending in ("", "-wal", "-shm"):
            close_to_others(database.with_name(database.name + ending))


def close_to_others(path: Path) -> None:
    """Nobody but the owner may use the path, if it is ours and not a link to somewhere else."""
    with contextlib.suppress(OSError):
        about = path.lstat()
        if about.st_uid == os.geteuid() and about.st_mode & 0o077 and not stat.S_ISLNK(about.st_mode):
            path.chmod(stat.S_IMODE(about.st_mode) & ~0o077)
