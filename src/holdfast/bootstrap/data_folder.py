"""The data folder, private to its owner because it holds documents, keys and bills."""

import contextlib
import os
import stat
from pathlib import Path

from holdfast.core.errors import NotReadyError, StoreUnavailableError
from holdfast.settings import Settings

# The default data folder of releases before 0.2, relative to the current folder.
FORMER = Path("holdfast-data")


def make(settings: Settings, database: Path) -> None:
    """Create the folders for the data and the embedded database, private to the owner.

    Raises NotReadyError if the data of an earlier release would be left behind, StoreUnavailableError if a
    folder cannot be created.
    """
    refuse_to_leave_behind(settings, database)
    try:
        for folder in (settings.data_dir, database.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        message = f"cannot create the database folder ({error}); set HOLDFAST_DATA_DIR to a writable folder"
        raise StoreUnavailableError(message) from error
    tighten(settings, database)


def refuse_to_leave_behind(settings: Settings, database: Path) -> None:
    """Raise NotReadyError if there is no database yet but the current folder has an earlier release's."""
    before = FORMER.absolute()
    chosen = "data_dir" in settings.model_fields_set and settings.data_dir != settings.usual_data_dir()
    if chosen or database.exists() or database.parent != settings.data_dir or before == settings.data_dir:
        return
    if (before / "holdfast.db").exists():
        message = (
            f"found data of an earlier release in {before}; the data folder is now {settings.data_dir}; "
            f"if the data is yours, move it there, or use it in place with --data-dir {FORMER}"
        )
        raise NotReadyError(message, code="data_elsewhere")


def tighten(settings: Settings, database: Path | None) -> None:
    """Make the data folder and its files private; files of other users are not changed."""
    close_to_others(settings.data_dir)
    with contextlib.suppress(OSError):
        for each in settings.data_dir.iterdir():
            close_to_others(each)
    if database is not None:
        for ending in ("", "-wal", "-shm"):
            close_to_others(database.with_name(database.name + ending))


def close_to_others(path: Path) -> None:
    """Make the path accessible only to its owner, if that is us and it is not a symlink."""
    with contextlib.suppress(OSError):
        about = path.lstat()
        if about.st_uid == os.geteuid() and about.st_mode & 0o077 and not stat.S_ISLNK(about.st_mode):
            path.chmod(stat.S_IMODE(about.st_mode) & ~0o077)
