"""Where the files of documents are."""

from holdfast.documents import blobs_s3
from holdfast.documents.blobs import Blobs, LocalBlobs
from holdfast.documents.parse.records import MIB
from holdfast.settings import Settings


def blobs_of(settings: Settings) -> Blobs:
    """The folder or the bucket of the settings."""
    if settings.blobs_url is None:
        return LocalBlobs(settings.data_dir / "blobs")
    keys = settings.blobs_access_key, settings.blobs_secret_key
    given = [None if key is None else key.get_secret_value() for key in keys]
    where = blobs_s3.place(settings.blobs_url, *given)
    return blobs_s3.S3Blobs(where, settings.data_dir / "blob-cache", settings.blobs_cache * MIB)
