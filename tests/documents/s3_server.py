"""A server that speaks S3, on a port of this machine."""

import contextlib
import os
from collections.abc import Iterator

from moto.server import ThreadedMotoServer

from holdfast.documents import blobs_s3
from holdfast.documents.blobs_s3 import BucketLocation


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Its address, while it runs."""
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        yield "http://{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()


def made(endpoint: str, prefix: str = "some/prefix/") -> BucketLocation:
    """A fresh bucket of the server."""
    position = BucketLocation(f"b{os.urandom(6).hex()}", prefix, endpoint, None, "key", "secret")
    client = blobs_s3._client(position)
    client.create_bucket(Bucket=position.bucket)
    client.close()
    return position
