"""The Django app: tables with `migrate`, nothing to migrate for others, admin, and `manage.py holdfast`."""

import io
from decimal import Decimal

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.test import Client

from holdfast import BadRequestError, Call, Kind
from holdfast import open as open_holdfast
from holdfast.django import models, tables
from holdfast.guard.django_connections import DjangoDatabase, url_of
from holdfast.service import formatting
from tests.django.conftest import entry


@pytest.fixture
def empty_sqlite(tmp_path):
    """The alias `default` is a SQLite file that nobody has migrated."""
    connections["default"].close()
    del connections["default"]
    connections.settings = connections.configure_settings({"default": entry(f"sqlite:///{tmp_path}/app.db")})
    yield
    connections["default"].close()
    del connections["default"]


def test_migrate_makes_the_tables_and_makemigrations_has_nothing_to_say(empty_sqlite):
    """The tables are there after `migrate`; a second one changes nothing; models need no migration."""
    printed = io.StringIO()
    call_command("migrate", stdout=printed)
    assert "Holdfast: tables in default are at revision" in printed.getvalue()
    assert models.RunRow.objects.count() == 0
    again = io.StringIO()
    call_command("migrate", stdout=again)
    assert "Holdfast" not in again.getvalue()
    call_command("makemigrations", "--check", "--dry-run", verbosity=0)
    call_command("check", verbosity=0)


def test_flush_leaves_the_rows_of_holdfast(default_database, provider):
    """`flush`, with which tests of Django empty tables, deletes nothing of Holdfast."""
    call_command("migrate", verbosity=0)
    _bought(default_database, provider)
    call_command("flush", "--no-input", verbosity=0)
    assert models.RunRow.objects.count() == 1


def _bought(url, provider):
    """A run that has paid for one call."""

    def body(work):
        work.pay([Call("meter", "embeddings", "text-embedding-3-small", "ship")])

    with open_holdfast(url, kinds=[Kind("build", body)], providers={"meter": provider}) as hold:
        hold.request("build", "report:7")
        hold.run_until_idle()


@pytest.fixture
def admin_client(default_database, provider):
    call_command("migrate", verbosity=0)
    user = get_user_model().objects.create_superuser("root", password="secret")
    _bought(default_database, provider)
    client = Client()
    client.force_login(user)
    return client


def test_admin_shows_runs_orders_and_the_bill(admin_client):
    """Each has a list and a page for each row, and the title of the bill adds it up."""
    run, order, charge = (each.objects.get() for each in (models.RunRow, models.OrderRow, models.ChargeRow))
    assert charge.amount == Decimal("0.00000002")
    for name, row, text in (
        ("run", run, "report:7"),
        ("order", order, "settled"),
        ("charge", charge, "paid"),
    ):
        listed = admin_client.get(f"/admin/holdfast/{name}row/")
        assert text in listed.content.decode(), name
        assert admin_client.get(f"/admin/holdfast/{name}row/{row.pk}/change/").status_code == 200
    bill = admin_client.get("/admin/holdfast/chargerow/")
    assert bill.context_data["title"].startswith(f"{formatting.money(20)} in all")
    assert admin_client.get("/admin/holdfast/runrow/?q=report:7&status__exact=success").status_code == 200


def test_admin_changes_nothing(admin_client):
    """There is no form to add, change or delete, and the models refuse as well."""
    run = models.RunRow.objects.get()
    for address in ("add/", f"{run.pk}/delete/"):
        assert admin_client.get(f"/admin/holdfast/runrow/{address}").status_code == 403
    changed = admin_client.post(f"/admin/holdfast/runrow/{run.pk}/change/", {"subject": "x:1"})
    assert changed.status_code == 403
    with pytest.raises(models.ReadOnlyError, match="written by Holdfast alone"):
        run.save()
    with pytest.raises(models.ReadOnlyError):
        run.delete()


def test_manage_py_holdfast_is_the_command_line(default_database, provider, capsys, monkeypatch):
    """It runs a command of Holdfast on the database of the alias, and ends with its exit code."""
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", "sqlite:///elsewhere.db")
    _bought(default_database, provider)
    with pytest.raises(SystemExit) as end:
        call_command("holdfast", "why", "report:7")
    assert end.value.code == 0
    assert "report:7" in capsys.readouterr().out
    with pytest.raises(SystemExit) as end:
        call_command("holdfast", "why", "report:8")
    assert end.value.code == 5
    with pytest.raises(CommandError, match=r"settings.DATABASES has no 'other'"):
        call_command("holdfast", "--database", "other", "status")


def test_addresses_are_those_of_the_settings(default_database):
    """Host, port, user, password, socket folder and options are there; options of Django alone are not."""
    address = url_of(
        "postgresql",
        {
            "NAME": "shop",
            "USER": "me",
            "PASSWORD": "p@ss:word/",
            "HOST": "db",
            "PORT": "5433",
            "OPTIONS": {
                "sslmode": "require",
                "pool": True,
                "isolation_level": 2,
                "server_side_binding": True,
            },
        },
    )
    assert address.render_as_string(False) == "postgresql://me:p%40ss%3Aword%2F@db:5433/shop?sslmode=require"
    socket = url_of("postgresql", {"NAME": "shop", "HOST": "/run/postgresql"})
    assert socket.query == {"host": "/run/postgresql"}
    with pytest.raises(BadRequestError, match="a mysql database cannot have the tables of Holdfast"):
        url_of("mysql", {"NAME": "shop"})
    with pytest.raises(BadRequestError, match="in memory, which workers cannot share"):
        url_of("sqlite", {"NAME": "file:memorydb_default?mode=memory&cache=shared"})
    with pytest.raises(BadRequestError, match=r"settings\.DATABASES has no 'other'"):
        DjangoDatabase("other").url  # noqa: B018 - reading it is the test


def test_a_database_that_is_not_the_chosen_one_gets_no_tables(empty_sqlite, settings_of):
    """Only the alias that HOLDFAST_DATABASE names has the tables."""
    settings_of(HOLDFAST_DATABASE="other")
    call_command("migrate", verbosity=0)
    assert "holdfast_runs" not in connection.introspection.table_names()
    tables.after_migrate("other", verbosity=0)  # no such database: nothing to do, and no error


@pytest.fixture
def settings_of():
    from django.test import override_settings  # noqa: PLC0415

    changed = []

    def change(**values):
        override = override_settings(**values)
        override.enable()
        changed.append(override)

    yield change
    for override in changed:
        override.disable()
