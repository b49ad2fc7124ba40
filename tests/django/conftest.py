"""A Django project in this process, whose database is that of the test."""

from collections.abc import Iterator
from typing import Any

import django
import pytest
from django.conf import settings
from django.db import connections
from sqlalchemy import make_url

from tests.guard.application import GuardedApp

ORDERS = "CREATE TABLE orders (id integer PRIMARY KEY, state text NOT NULL DEFAULT 'new')"


def pytest_configure() -> None:
    """Django is set up once; each test then has a database of its own under the alias `default`."""
    configure()


def configure() -> None:
    """Django is set up in this process."""
    if not settings.configured:
        settings.configure(
            SECRET_KEY="for tests",
            INSTALLED_APPS=[
                "django.contrib.auth",
                "django.contrib.contenttypes",
                "django.contrib.sessions",
                "django.contrib.messages",
                "django.contrib.admin",
                "holdfast.django",
            ],
            DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "never-opened"}},
            ROOT_URLCONF="tests.django.urls",
            ALLOWED_HOSTS=["testserver"],
            MIDDLEWARE=[
                "django.contrib.sessions.middleware.SessionMiddleware",
                "django.contrib.auth.middleware.AuthenticationMiddleware",
                "django.contrib.messages.middleware.MessageMiddleware",
            ],
            TEMPLATES=[
                {
                    "BACKEND": "django.template.backends.django.DjangoTemplates",
                    "APP_DIRS": True,
                    "OPTIONS": {
                        "context_processors": [
                            "django.template.context_processors.request",
                            "django.contrib.auth.context_processors.auth",
                            "django.contrib.messages.context_processors.messages",
                        ]
                    },
                }
            ],
            USE_TZ=True,
        )
        django.setup()


def entry(url: str) -> dict[str, Any]:
    """An entry of DATABASES for a URL."""
    address = make_url(url)
    if address.get_backend_name() == "sqlite":
        return {"ENGINE": "django.db.backends.sqlite3", "NAME": address.database, "OPTIONS": {"timeout": 20}}
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": address.database,
        "USER": address.username or "",
        "PASSWORD": address.password or "",
        "HOST": address.host or "",
        "PORT": address.port or "",
    }


@pytest.fixture
def default_database(database_url: str) -> Iterator[str]:
    """The alias `default` is a database with a table of orders, beside those of Holdfast."""
    configure()
    _forget()
    connections.settings = connections.configure_settings({"default": entry(database_url)})
    with connections["default"].cursor() as cursor:
        cursor.execute(ORDERS)
    yield database_url
    with connections["default"].cursor() as cursor:
        cursor.execute("DROP TABLE orders")  # so that the next test needs no new database
    _forget()


def _forget() -> None:
    """The connection of this thread is closed, and the next one is to the database of its own test."""
    connections["default"].close()
    del connections["default"]


@pytest.fixture
def application(default_database: str) -> Iterator[GuardedApp]:
    """An application whose guard finds its database in Django's settings."""
    created = GuardedApp(None, django="default")
    yield created
    created.close()
