"""What a relay is made of, and how the workers of this host reach it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

from holdfast.bootstrap import blob_stores, data_folder, duties, providers, user_code
from holdfast.bootstrap.clients import Clients
from holdfast.bootstrap.database import reached, sqlite_file
from holdfast.core.errors import SchemaError
from holdfast.documents.blobs import Blobs
from holdfast.ledger import watched_provider
from holdfast.ledger.exchanges import Policy
from holdfast.ledger.prices import PriceTable
from holdfast.ledger.relay_client import RelayClient
from holdfast.settings import Settings
from holdfast.store.base import revisions
from holdfast.store.base.database import Database
from holdfast.store.features import open_database
from holdfast.telemetry import traces

# Marks and outcomes are short transactions: few connections serve hundreds of orders.
CONNECTIONS = 8


def folder_of(settings: Settings) -> Path:
    """The folder of the socket and the locks of this host's relays."""
    return settings.relay_dir or settings.data_dir / "relay"


def is_useful(settings: Settings) -> bool:
    """True if there is a provider whose orders a relay could carry: one outside this process."""
    configured = {settings.embedding_provider, settings.llm_provider} - {"local"}
    return settings.relay != "off" and bool(configured or settings.providers)


def client_of(settings: Settings) -> RelayClient | None:
    """What hands orders to the relay of this host; None if the settings say that nothing is relayed."""
    return None if settings.relay == "off" else RelayClient(folder_of(settings), revisions.known())


@dataclass(frozen=True, slots=True)
class RelayParts:
    """The components of a relay."""

    settings: Settings
    db: Database
    watch: Database
    providers: Clients
    prices: PriceTable
    policy: Policy
    folder: Path
    schema: str
    blobs: Blobs

    def close(self) -> None:
        """Close every connection."""
        self.providers.close()
        self.blobs.close()
        self.watch.close()
        self.db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_relay(settings: Settings) -> RelayParts:
    """The parts of a relay, on a database that is at the revision this code knows."""
    traces.begin(settings.otel_url)
    user_code.make_importable(settings)
    url = settings.database
    if (file := sqlite_file(url)) is not None and not file.exists():
        raise SchemaError(f"there is no database at {file} yet; run: holdfast migrate")
    data_folder.tighten(settings, file)
    db = open_database(url, pool_size=CONNECTIONS, prepare=settings.database_prepare)
    reached(lambda: revisions.check(db.engine))
    watch = open_database(url, pool_size=1, prepare=settings.database_prepare, patience=2.0)
    blobs = blob_stores.blobs_of(settings)
    clients = providers.clients_of(
        settings,
        providers.supplies_of(settings),
        lambda client: watched_provider.watched(client, db),
        lambda digest: blobs.path(digest).open("rb"),
        settings.relay_slots,
    )
    return RelayParts(
        settings,
        db,
        watch,
        clients,
        providers.prices_of(settings),
        duties.policy(settings),
        folder_of(settings),
        revisions.known(),
        blobs,
    )
