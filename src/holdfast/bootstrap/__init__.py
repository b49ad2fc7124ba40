"""The composition root: takes `Settings`, returns a wired `Runtime`. Nothing below reads settings."""

from holdfast.bootstrap.data_folder import close_to_others
from holdfast.bootstrap.database import migrated, reached, sqlite_file
from holdfast.bootstrap.kinds import described, load_kinds, pipelines_of, quota, webhook_key
from holdfast.bootstrap.providers import prices_of, supplies_of
from holdfast.bootstrap.runtime import GARBAGE, Runtime, settle_down
from holdfast.bootstrap.services import AppServices, blobs_named, check_blobs
from holdfast.bootstrap.wiring import open_runtime
from holdfast.store.base.driver_errors import answering

__all__ = [
    "GARBAGE",
    "AppServices",
    "Runtime",
    "answering",
    "blobs_named",
    "check_blobs",
    "close_to_others",
    "described",
    "load_kinds",
    "migrated",
    "open_runtime",
    "pipelines_of",
    "prices_of",
    "quota",
    "reached",
    "settle_down",
    "sqlite_file",
    "supplies_of",
    "webhook_key",
]
