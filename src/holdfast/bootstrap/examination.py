"""What `holdfast doctor` looks at of an installation: its settings, database, money and machine."""

import logging
import platform
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from holdfast import extras
from holdfast.bootstrap.providers import document_services, prices_of, supplies_of
from holdfast.core.errors import HoldfastError
from holdfast.doctor import catalogue, gather
from holdfast.doctor.facts import Declared, InstallationFacts, ModelFacts
from holdfast.doctor.gather import Gathered
from holdfast.doctor.probes import databases
from holdfast.documents.parse import ocr_languages
from holdfast.ledger.prices import FREE
from holdfast.settings import Settings
from holdfast.store.base.database import Database
from holdfast.store.base.driver_errors import answering
from holdfast.store.money import budgets
from holdfast.store.protocol import workers

log = logging.getLogger(__name__)

# Probing asks every server: a page that is looked at, or a scrape, does so at most this often.
EVERY = 300.0


def installation(settings: Settings, db: Database | None) -> InstallationFacts:
    """The facts about the installation; those of its database only if that is open."""
    hosts, limits = _stored(db) if db is not None else ((platform.node(),), None)
    languages = settings.ocr_languages
    return InstallationFacts(
        embedded_broker=any(url.get_secret_value().startswith("filesystem") for url in settings.broker_urls),
        sqlite=settings.database.startswith("sqlite"),
        local_blobs=settings.blobs_url is None,
        hosts=hosts,
        ocr=settings.ocr,
        ocr_installed=extras.is_installed("ocr"),
        ocr_missing=tuple(ocr_languages.missing_languages(f"{languages}+{ocr_languages.ORIENTATION}")),
        models=_models(settings),
        budgets=limits,
        max_run_cost=settings.max_run_cost is not None,
        lease_ttl=settings.lease_ttl,
        order_deadline=settings.order_deadline,
        drain_timeout=settings.drain_timeout,
        concurrency=settings.worker_concurrency,
        parse_memory=settings.parse_memory,
    )


def _stored(db: Database) -> tuple[tuple[str, ...], int | None]:
    """The machines with workers, this one included, and the number of budgets."""
    with answering("the database returned an error ({})"):
        hosts = {platform.node(), *(each.host for each in workers.known(db))}
        return tuple(sorted(hosts)), len(budgets.every(db))


def _models(settings: Settings) -> tuple[ModelFacts, ...]:
    """The models that cost something, or may."""
    supplies, table = supplies_of(settings), prices_of(settings)
    chosen = [(supplies.embedding, supplies.embedding_model), (supplies.llm, supplies.llm_model)]
    chosen += [(offer.identity, offer.model) for offer in supplies.rerank_offers.values()]
    services = set(document_services(settings).values())
    models = []
    for provider, model in dict.fromkeys(chosen):
        if provider is None or model is None or provider in services:
            continue
        price = table.price(model, provider)
        if price != FREE:
            models.append(ModelFacts(provider, model, priced=price is not None))
    return tuple(models)


def database(settings: Settings) -> Gathered:
    """The facts about the database of the settings."""
    features = []
    if settings.database_prepare:
        features.append("HOLDFAST_DATABASE_PREPARE")
    if settings.database_schema is not None:
        features.append("HOLDFAST_DATABASE_SCHEMA")
    known = databases.probe(settings.database, lease=settings.lease_ttl, session_features=tuple(features))
    return Gathered(databases=(known,))


class Examination:
    """What the doctor says of the installation that this process belongs to, examined now and then.

    The one who asks never waits for a server: the examination runs in a thread of its own, and until it has
    ended the last report is the answer, None before the first. `brokers` gathers what workers know.
    """

    def __init__(
        self,
        settings: Settings,
        db: Database,
        brokers: Callable[[], Gathered] = Gathered,
        every: float = EVERY,
    ) -> None:
        self._settings = settings
        self._db = db
        self._brokers = brokers
        self._every = every
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked_at: float | None = None
        self._report: catalogue.DoctorReport | None = None

    def report(self, patience: float = 0.0) -> catalogue.DoctorReport | None:
        """The last report; a new one is begun if it is old. The first is waited for, for so many seconds."""
        with self._lock:
            due = self._asked_at is None or time.monotonic() - self._asked_at > self._every
            if due and (self._thread is None or not self._thread.is_alive()):
                self._asked_at = time.monotonic()
                self._thread = threading.Thread(target=self._run, name="holdfast-doctor", daemon=True)
                self._thread.start()
            first = self._thread if self._report is None else None
        if first is not None:
            first.join(patience)
        return self._report

    def _run(self) -> None:
        try:
            self.examine()
        except Exception:  # outermost loop of a thread: the next look tries again
            log.exception("the examination of this installation failed; it is tried again")

    def examine(self) -> catalogue.DoctorReport:
        """The report of an examination that is made now."""
        gathered = self._brokers() + database(self._settings)
        try:
            own = installation(self._settings, self._db)
        except HoldfastError:
            own = installation(self._settings, None)
        facts = gather.assembled(gathered, Declared(), own, folder=self._settings.data_dir)
        # Of Celery's own processes on this machine nothing is known to belong to this installation.
        report = catalogue.examine(replace(facts, machine=replace(facts.machine, beats=None, pools=())))
        self._report = report
        return report
