"""The one container of services, for the API, the web UI and the command line alike."""

from collections.abc import Callable

from holdfast.bootstrap import kinds
from holdfast.bootstrap.examination import Examination
from holdfast.bootstrap.providers import document_services
from holdfast.bootstrap.runtime import Runtime
from holdfast.core.errors import NotReadyError
from holdfast.doctor.gather import Gathered
from holdfast.documents.fetch import FetchLimits
from holdfast.kinds.flows.index_steps import FlowSetup
from holdfast.service import blob_identity
from holdfast.service.access import Access
from holdfast.service.actions import Actions, Deliveries
from holdfast.service.ask import Asking
from holdfast.service.billing import Billing
from holdfast.service.collections import Collections
from holdfast.service.document_reading import DocumentReading
from holdfast.service.document_views import Viewing
from holdfast.service.documents import Documents
from holdfast.service.edits import Edits
from holdfast.service.estimates import Estimating
from holdfast.service.flow_trials import FlowTrials
from holdfast.service.flows import Flows
from holdfast.service.folder import Folders
from holdfast.service.gateway_reports import GatewayReports
from holdfast.service.graphs import Graphs
from holdfast.service.history import History
from holdfast.service.idempotency import IdempotencyKeys
from holdfast.service.jobs import Jobs
from holdfast.service.journal import Journal
from holdfast.service.keeping import Keeping
from holdfast.service.mind_maps import MindMaps
from holdfast.service.operations import Depths, Operations
from holdfast.service.originals import Originals
from holdfast.service.quotas import Quotas
from holdfast.service.search import Searching
from holdfast.service.sources import Sources
from holdfast.service.subject_work import SubjectWork
from holdfast.service.thumbnails import Thumbnails
from holdfast.service.transfer import Transfer
from holdfast.service.trees import Trees
from holdfast.vectors.exact import ExactIndex
from holdfast.vectors.pgvector import PgvectorIndex


def check_blobs(runtime: Runtime) -> None:
    """The blob store belongs to the database, or BadRequestError says which setting to use.

    For every process that keeps bytes, reads them or throws them away; who only looks needs none.
    """
    try:
        blob_identity.check(runtime.db, runtime.shelf, blobs_named(runtime))
    except OSError as error:
        message = f"the data folder cannot be used ({error}); set HOLDFAST_DATA_DIR to a writable folder"
        raise NotReadyError(message, code="data_folder") from error


def blobs_named(runtime: Runtime) -> str:
    """The blob store in words."""
    url = runtime.settings.blobs_url
    return f"the folder {runtime.settings.data_dir / 'blobs'}" if url is None else f"the bucket {url}"


class AppServices:
    """The use cases over a runtime: everything that the API, the web UI and the command line read or write.

    Those that ask for work need a runtime that knows its kind. `depths` asks the brokers, and `brokers`
    examines them; by default there is none to ask.
    """

    def __init__(
        self, runtime: Runtime, depths: Depths = tuple, brokers: Callable[[], Gathered] = Gathered
    ) -> None:
        settings, db, engine, shelf = runtime.settings, runtime.db, runtime.engine, runtime.shelf
        self.runtime = runtime
        self.settings = settings
        self._defaults = kinds.choices(settings, runtime.supplies)
        quota, most, private = kinds.quota(settings), settings.most_bytes, settings.webhook_private
        self.documents = Documents(
            engine,
            shelf,
            self._defaults,
            fetching=FetchLimits(bytes=most, allow_private=settings.fetch_private),
            most_bytes=most,
            quota=quota,
        )
        self.sources = Sources(engine, kinds.source_limits(settings))
        rerankers = runtime.supplies.rerank_offers
        self.flows = Flows(engine, FlowSetup(runtime.supplies, runtime.functions, settings.parsers))
        self.collections = Collections(
            engine, self._defaults, self.documents, self.sources, rerankers, self.flows
        )
        self.transfer = Transfer(
            engine,
            shelf,
            self.collections,
            self.documents,
            kinds.bundle_limits(settings),
            allow_private=private,
            quota=quota,
        )
        self.edits = Edits(engine, self.documents, self.collections, quota)
        self.folders = Folders(db, self.documents)
        inside = db.postgresql and settings.vector_index != "exact"
        vectors = PgvectorIndex(ExactIndex()) if inside else ExactIndex()
        self.graphs = Graphs(engine)
        catalogues = self.graphs.catalogues
        self.search = Searching(engine, self.collections, vectors, rerankers, catalogues)
        self.ask = Asking(engine, self.search, runtime.supplies)

        self.trees = Trees(engine)
        self.mind_maps = MindMaps(engine)
        self.views = Viewing(db, engine.registry.phase_shares)
        self.history = History(db)
        self.work = SubjectWork(engine)
        self.journal = Journal(db, engine.registry.phase_shares)
        self.jobs = Jobs(engine, runtime.supplies, allow_private=private)
        self.keeps = Keeping(engine, self.collections, self.jobs)
        self.actions = Actions(
            engine,
            kinds.webhook_key(settings),
            allow_private=private,
            supplies=runtime.supplies,
        )
        self.deliveries = Deliveries(engine)
        self.thumbnails = Thumbnails(db, shelf, runtime.thumbnail_parsers)
        self.originals = Originals(db, shelf, runtime.thumbnail_parsers)
        self.billing = Billing(engine)
        self.gateway_reports = GatewayReports(db)
        self.quotas = Quotas(db, quota)
        self.operations = Operations(db, depths)
        self.examination = Examination(settings, db, brokers)
        self.access = Access(db)
        self.idempotency = IdempotencyKeys(db)

    def flow_trials(self, seconds: float | None = None) -> FlowTrials:
        """Dry runs of flows, whose document is read within so many seconds."""
        runtime = self.runtime
        reading = DocumentReading(runtime.db, runtime.shelf, runtime.parsers, seconds)
        return FlowTrials(runtime.engine, self.flows, self.collections, reading)

    def estimates(self, seconds: float | None = None) -> Estimating:
        """Estimates of what work would cost, each within so many seconds."""
        runtime = self.runtime
        return Estimating(
            runtime.engine,
            self.collections,
            self.documents,
            self._defaults,
            runtime.shelf,
            runtime.parser,
            runtime.parsers,
            runtime.supplies,
            services=document_services(runtime.settings),
            flows=self.flows,
            seconds=seconds,
        )
