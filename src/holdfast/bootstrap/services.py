"""The use cases over a runtime."""

from holdfast.bootstrap import kinds
from holdfast.bootstrap.runtime import Runtime
from holdfast.core.errors import NotReadyError
from holdfast.documents.fetch import FetchLimits
from holdfast.service import blob_identity
from holdfast.service.bundles import Bundles
from holdfast.service.estimates import Estimating
from holdfast.service.jobs import Jobs
from holdfast.service.library import Library
from holdfast.service.search import Searching
from holdfast.service.thumbnails import Thumbnails
from holdfast.vectors.exact import ExactIndex
from holdfast.vectors.pgvector import PgvectorIndex


def check_blobs(runtime: Runtime) -> None:
    """The blob store belongs to the database, or BadRequestError says which setting to use.

    For every process that keeps bytes, reads them or throws them away; who only looks needs none.
    """
    try:
        blob_identity.check(runtime.db, runtime.shelf, blobs_named(runtime))
    except OSError as error:
        message = f"the data folder cannot be used ({error}); set HOLDFAST_DATA_DIR to one that can"
        raise NotReadyError(message, code="data_folder") from error


def blobs_named(runtime: Runtime) -> str:
    """The blob store in words."""
    url = runtime.settings.blobs_url
    return f"the folder {runtime.settings.data_dir / 'blobs'}" if url is None else f"the bucket {url}"


def searching(runtime: Runtime) -> Searching:
    """Search over the documents of this installation."""
    inside = runtime.db.postgresql and runtime.settings.vector_index != "exact"
    vectors = PgvectorIndex(ExactIndex()) if inside else ExactIndex()
    return Searching(runtime.engine, library(runtime), vectors)


def jobs(runtime: Runtime) -> Jobs:
    """The jobs of this installation. The runtime must know their kinds."""
    private = runtime.settings.webhook_private
    return Jobs(runtime.engine, runtime.supplies, allow_private=private)


def bundles(runtime: Runtime) -> Bundles:
    """Exports and imports of this installation. The runtime must know their kinds."""
    limits = kinds.bundle_limits(runtime.settings)
    private = runtime.settings.webhook_private
    return Bundles(runtime.engine, runtime.shelf, library(runtime), limits, allow_private=private)


def library(runtime: Runtime) -> Library:
    """The documents of this installation. The runtime must know the kind `index`."""
    most, private = runtime.settings.most_bytes, runtime.settings.fetch_private
    fetching = FetchLimits(bytes=most, allow_private=private)
    chosen = kinds.choices(runtime.settings, runtime.supplies)
    quota = kinds.quota(runtime.settings)
    return Library(runtime.engine, runtime.shelf, chosen, fetching=fetching, most_bytes=most, quota=quota)


def estimating(runtime: Runtime, seconds: float | None = None) -> Estimating:
    """Estimates of what work would cost, each within so many seconds. The runtime must know `index`."""
    return Estimating(
        runtime.engine,
        library(runtime),
        kinds.choices(runtime.settings, runtime.supplies),
        runtime.shelf,
        runtime.parser,
        runtime.parsers,
        runtime.supplies,
        seconds=seconds,
    )


def thumbnails(runtime: Runtime) -> Thumbnails:
    """The pictures of first pages."""
    return Thumbnails(runtime.db, runtime.shelf, runtime.thumbnail_parsers)
