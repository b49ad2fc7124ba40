"""Checks that the extras needed by the settings are installed.

Libraries notice late, each in its own way: Celery fails at the first message to a Redis broker.
"""

import importlib.util

from holdfast.extras import MissingExtraError
from holdfast.settings import PREFIX, Settings

REDIS = ("redis://", "rediss://")


def check(settings: Settings) -> None:
    """Raise MissingExtraError if a driver needed by the settings is not installed."""
    brokers = [url.get_secret_value() for url in (settings.broker_url, *settings.broker_urls)]
    needed = (
        ("BROKER_URL", "redis", "redis", any(url.startswith(REDIS) for url in brokers)),
        ("LEASE_BACKEND", "redis", "redis", settings.lease_backend == "redis"),
        ("DATABASE_URL", "psycopg", "postgres", settings.database_url.get_secret_value()[:8] == "postgres"),
        ("BLOBS_URL", "botocore", "s3", settings.blobs_url is not None),
        ("OTEL_URL", "opentelemetry", "otel", settings.otel_url is not None),
    )
    for name, module, extra, is_needed in needed:
        if is_needed and importlib.util.find_spec(module) is None:
            raise MissingExtraError(extra, f"{PREFIX}{name}")
