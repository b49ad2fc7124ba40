"""What is known about an application, its servers and its machines. Records only: probes fill them in.

A fact that could not be had is None, and the checks that need it say so. No record holds a password or a key:
URLs pass through `redaction` before they get here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

DEFAULT_VISIBILITY_TIMEOUT = 3600.0
"""Seconds after which Redis delivers an unacknowledged message again, if the application sets nothing."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A broker, a result backend or a database, as its URL names it; `shown` is the URL without secrets."""

    kind: str
    """redis, rabbitmq, filesystem, memory, postgresql, sqlite, rpc, or the scheme of any other URL."""
    shown: str
    host: str = ""
    port: int | None = None
    name: str = ""
    """Database number, virtual host or database name."""
    default_credentials: bool = False
    """User and password are those that the server is shipped with."""
    no_password: bool = False
    local: bool = True
    """Only this machine is named: loopback, a socket or a file."""

    @property
    def server(self) -> tuple[str, str, int | None]:
        """What two endpoints on the same server have in common."""
        return self.kind, self.host, self.port


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """One Celery task with its effective options, those of the application filled in."""

    name: str
    guarded: bool = False
    """Its calls are runs of Holdfast: delivering its message again does not run it again."""
    acks_late: bool = False
    reject_on_worker_lost: bool = False
    retry_on_worker_lost: bool = False
    acks_on_timeout: bool = True
    ignore_result: bool = False
    time_limit: float | None = None
    soft_time_limit: float | None = None
    retry_delay: float | None = None
    """The longest delay before a retry that its options allow; None if it never retries by itself."""
    lock: str | None = None
    """celery-once, celery-singleton or celery-heimdall."""
    lock_expiry: float | None = None
    """Seconds until its lock ends by itself; None: never."""


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """A queue as the application declares it, or as the server has it."""

    name: str
    type: str = "classic"
    durable: bool = True
    auto_delete: bool = False
    exclusive: bool = False
    arguments: Mapping[str, object] = field(default_factory=dict)
    """Arguments and those of the policy that is in force, under the names of arguments."""

    @property
    def dead_letters(self) -> bool:
        """What is dropped goes somewhere."""
        return bool(self.arguments.get("x-dead-letter-exchange") is not None)


@dataclass(frozen=True, slots=True)
class AppFacts:
    """A Celery application: its settings in effect, and its tasks."""

    name: str
    ours: bool = False
    """It is that of Holdfast's own workers, whose messages are only wake-ups."""
    broker: Endpoint = Endpoint("unknown", "unknown")
    result_backend: Endpoint | None = None
    tasks: tuple[TaskFacts, ...] = ()
    queues: tuple[QueueFacts, ...] = ()
    defaults: TaskFacts = TaskFacts("any task")
    """The options of a task that sets none itself."""
    prefetch_multiplier: int = 4
    concurrency: int | None = None
    cancels_on_connection_loss: bool = False
    soft_shutdown_timeout: float = 0.0
    deduplicates_successful: bool = False
    result_expires: float | None = 86_400.0
    connection_max_retries: float | None = 100
    """None: the worker never gives up."""
    pool: str = "prefork"
    beat_entries: int = 0
    beat_scheduler: str = ""
    visibility_timeout: float | None = None
    """Set for the broker; None if it is left at the default."""
    result_visibility_timeout: float | None = None
    socket_timeout: float | None = None
    socket_keepalive: bool = False
    health_check_interval: float | None = None
    """None: kombu's own."""
    restore_seconds: float = 100.0
    """How many seconds pass between two looks at unacknowledged messages."""
    confirms_publish: bool = False
    delivery_mode: int = 2
    heartbeat: float | None = 120.0
    detects_quorum_queues: bool = True
    lock_server: Endpoint | None = None
    """Where the locks of celery-once and its peers are."""

    @property
    def examined(self) -> tuple[TaskFacts, ...]:
        """Its tasks; where none is known, one with the options that tasks have by default."""
        return self.tasks or (self.defaults,)

    @property
    def all_guarded(self) -> bool:
        """A message that is lost or delivered twice harms none of its tasks."""
        return self.ours or (bool(self.tasks) and all(task.guarded for task in self.tasks))

    @property
    def visibility(self) -> float:
        """Seconds after which an unacknowledged message is delivered again, on Redis."""
        return DEFAULT_VISIBILITY_TIMEOUT if self.visibility_timeout is None else self.visibility_timeout


@dataclass(frozen=True, slots=True)
class RedisFacts:
    """A Redis server; `used_as` says for what: broker, results, locks, leases."""

    endpoint: Endpoint
    used_as: tuple[str, ...] = ("broker",)
    error: str | None = None
    """Why it could not be examined."""
    version: str | None = None
    maxmemory: int | None = None
    maxmemory_policy: str | None = None
    used_memory: int | None = None
    append_only: bool | None = None
    snapshots: bool | None = None
    replicas: int | None = None
    min_replicas_to_write: int | None = None
    timeout: int | None = None
    clock_difference: float | None = None
    """Seconds by which this machine's clock is ahead of the server's."""
    unacknowledged: int | None = None
    consumers: int | None = None
    """Connections that wait for messages."""
    other_keys: int | None = None
    """Keys of the broker's database that are neither queues nor results."""
    password_needed: bool | None = None


@dataclass(frozen=True, slots=True)
class RabbitFacts:
    """A RabbitMQ broker. `queues` is None if its management interface could not be asked."""

    endpoint: Endpoint
    error: str | None = None
    management_error: str | None = None
    version: str | None = None
    consumer_timeout: float | None = None
    """Seconds; None: that of its version."""
    queues: tuple[QueueFacts, ...] | None = None
    memory_alarm: bool | None = None
    disk_alarm: bool | None = None


@dataclass(frozen=True, slots=True)
class DatabaseFacts:
    """A database that holds what was paid."""

    endpoint: Endpoint
    of: str = "Holdfast"
    error: str | None = None
    version: str | None = None
    fsync: bool | None = None
    synchronous_commit: str | None = None
    full_page_writes: bool | None = None
    pooler: str | None = None
    """None: not known; none, session or transaction."""
    session_features: tuple[str, ...] = ()
    """What the settings use that lives in a session of the database."""
    revision: str | None = None
    needed_revision: str | None = None
    clock_difference: float | None = None
    lease: float | None = None
    sqlite_synchronous: str | None = None
    file_system: str | None = None
    network_file_system: bool | None = None


@dataclass(frozen=True, slots=True)
class ClientFacts:
    """A client of a provider in the application's code, or a live one in its process."""

    where: str
    """A file and line, or "in this process"."""
    library: str
    call: str
    max_retries: int | None = None
    """None: it could not be told."""
    timeout: float | None = None
    through_guard: bool = False
    """Its requests go through Holdfast, which answers a second one from the ledger."""


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """This machine or container."""

    memory_limit: int | None = None
    file_limit: int | None = None
    disk_free: int | None = None
    disk_total: int | None = None
    disk_folder: str = ""
    beats: int | None = None
    """Processes of celery beat on this machine."""
    pools: tuple[str, ...] = ()
    """Pools that celery workers on this machine were started with."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model that is configured to be paid for, and whether its price is known."""

    provider: str
    model: str
    priced: bool


@dataclass(frozen=True, slots=True)
class InstallationFacts:
    """An installation of Holdfast: the settings, and what its database says of its workers."""

    embedded_broker: bool = False
    sqlite: bool = False
    local_blobs: bool = True
    hosts: tuple[str, ...] = ()
    """Machines on which workers were seen within a day, this one included."""
    ocr: str = "auto"
    ocr_installed: bool = True
    ocr_missing: tuple[str, ...] = ()
    models: tuple[ModelFacts, ...] = ()
    budgets: int | None = None
    max_run_cost: bool = False
    lease_ttl: float = 12.0
    order_deadline: float = 60.0
    drain_timeout: float = 25.0
    concurrency: int = 2
    parse_memory: int = 512
    listens_elsewhere: bool = False
    has_keys: bool | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """What only a person knows: the options of the command line."""

    longest_task: float | None = None
    longest_delay: float | None = None
    grace_period: float | None = None
    liveness: str | None = None
    beats: int | None = None
    pool: str | None = None
    consumer_timeout: float | None = None
    supervised: bool | None = None
    apps_on_broker: int | None = None
    may_repeat: tuple[str, ...] = ()
    """Patterns of the names of tasks that may run twice without harm."""
    may_be_lost: tuple[str, ...] = ()
    """Patterns of the names of tasks whose loss does no harm."""


@dataclass(frozen=True, slots=True)
class DoctorFacts:
    """Everything that the checks look at."""

    apps: tuple[AppFacts, ...] = ()
    redis: tuple[RedisFacts, ...] = ()
    rabbitmq: tuple[RabbitFacts, ...] = ()
    databases: tuple[DatabaseFacts, ...] = ()
    clients: tuple[ClientFacts, ...] = ()
    installation: InstallationFacts | None = None
    machine: MachineFacts = MachineFacts()
    declared: Declared = Declared()
    versions: Mapping[str, str] = field(default_factory=dict)
    """Installed packages."""
    offline: bool = False
    """No server was asked."""
    notes: tuple[str, ...] = ()
    """What could not be gathered, one sentence each."""
