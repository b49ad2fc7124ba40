"""The composition root: `Settings` in, a wired `Runtime` out. Nothing below here reads settings."""

from holdfast.bootstrap.data_folder import close_to_others
from holdfast.bootstrap.database import migrated, reached, sqlite_file
from holdfast.bootstrap.kinds import described, load_kinds, pipelines_of, quota, webhook_key
from holdfast.bootstrap.providers import prices_of, supplies_of
from holdfast.bootstrap.runtime import GARBAGE, Runtime, settle_down
from holdfast.bootstrap.services import (
    blobs_named,
    bundles,
    check_blobs,
    estimating,
    jobs,
    library,
    searching,
    thumbnails,
)
from holdfast.bootstrap.wiring import open_runtime

__all__ = [
    "GARBAGE",
    "Runtime",
    "blobs_named",
    "bundles",
    "check_blobs",
    "close_to_others",
    "described",
    "estimating",
    "jobs",
    "library",
    "load_kinds",
    "migrated",
    "open_runtime",
    "pipelines_of",
    "prices_of",
    "quota",
    "reached",
    "searching",
    "settle_down",
    "sqlite_file",
    "supplies_of",
    "thumbnails",
    "webhook_key",
]
