"""`Guard`: an application's way in. It guards tasks, paid calls and writes, and needs no server of ours."""

import inspect
import os
import ssl
import threading
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from celery import Celery, current_app, shared_task

from holdfast.core import decide, keys
from holdfast.core.errors import BadRequestError
from holdfast.core.records import TENANT, Ask, Fenced, RequestResult
from holdfast.core.states import GUARDED_LANE, Loss
from holdfast.engine.kinds import Kind
from holdfast.engine.sweep import SweepRules
from holdfast.engine.work import Work
from holdfast.guard import (
    context,
    function_provider,
    money,
    outgoing,
    paid,
    serialization,
    subjects,
    transactions,
    transports,
    worker_events,
)
from holdfast.guard.django_connections import DjangoDatabase
from holdfast.guard.execution import NEVER, Execution
from holdfast.guard.outgoing import OutgoingCall
from holdfast.guard.paid_requests import PaidRequests, TransportOptions
from holdfast.guard.publishing import publish_due
from holdfast.guard.run import Run, no_run
from holdfast.guard.runtime import GuardOptions, GuardRuntime, SweepThread
from holdfast.guard.signals import FencedOut
from holdfast.guard.task import GuardedTask
from holdfast.leases.base import LeaseTerms
from holdfast.ledger.exchanges import Policy
from holdfast.ledger.prices import DEFAULT, Price, ProviderPrices
from holdfast.providers.base import Provider
from holdfast.settings import load
from holdfast.store.guarded import fencing, messages
from holdfast.store.guarded.messages import TaskMessage, Timing
from holdfast.store.protocol import losses
from holdfast.telemetry import traces


class Guard:
    """Guards the tasks of one Celery application with one database.

    `database` is a URL, `engine` an SQLAlchemy engine whose URL is used, `django` an alias of Django's
    DATABASES. Without any of them it is HOLDFAST_DATABASE_URL, and without that a SQLite file. `app` may be
    left out: tasks are then shared tasks. Nothing is opened before it is needed.
    """

    def __init__(
        self,
        app: Celery | None = None,
        *,
        database: str | None = None,
        engine: Any = None,
        django: str | None = None,
        tenant: str = "default",
        lease: float = 12.0,
        sweep: bool = True,
        sweep_interval: float = 2.0,
        history_retention: float | None = None,
        in_doubt: str = "resend",
        park_above: str | None = None,
        otel_url: str | None = None,
    ) -> None:
        """`history_retention`: the days for which ended runs are kept; None: for ever.

        `in_doubt`: a paid call whose outcome is unknown is made again (`resend`) or waits for a person
        (`park`); above the price `park_above`, like "1 USD", it always waits.

        `otel_url`: the collector that gets the traces of runs, over OTLP and HTTP (extra `otel`).
        """
        if in_doubt not in {"resend", "park"}:
            raise BadRequestError(f"in_doubt is resend or park, not {in_doubt!r:.80}", code="bad_option")
        self._policy = Policy(
            in_doubt=in_doubt, park_above=None if park_above is None else money.nanos(park_above)
        )
        # The functions that are declared as paid, with where they are defined, and their prices.
        self.paid_functions: dict[str, str] = {}
        self.function_prices: dict[str, Price] = {}
        if not TENANT.fullmatch(tenant):
            raise BadRequestError(f"tenant {tenant!r} has the wrong form", code="bad_tenant")
        self.app = app
        self._tenant = tenant
        self._database = _url(database, engine)
        self._django = None if django is None else DjangoDatabase(django)
        self._test_database: str | None = None
        self._terms = LeaseTerms(ttl=lease, renew_every=lease / 3, margin=lease / 6)
        self._rules = SweepRules(
            interval=sweep_interval,
            history_retention=None if history_retention is None else history_retention * 86_400,
        )
        self._otel_url = otel_url
        self.silence = decide.SilenceLimits()
        self.providers: dict[str, Provider] = {}
        self._origins: dict[str, str] = {}
        self._runtime: GuardRuntime | None = None
        self._opening = threading.Lock()
        # True in a process of a pool, whose parent reports its death.
        self.watched = False
        self.sweeper = SweepThread(self.runtime, lambda runtime: publish_due(runtime.db, self.tasks()))
        worker_events.follow(self, sweep=sweep)

    # Tasks.

    def task(self, key: str | Callable[..., Any] | None = None, **options: Any) -> Any:
        """A decorator that makes a guarded Celery task of a function; options are those of `app.task`.

        `key`, like report:{report_id}, says what a call is about: a call with the same key and other
        arguments replaces the one under way. Without it, calls with the same arguments are the same. `once`
        keeps a call from being done again after it succeeded: for ever, or for so many seconds.
        """
        if callable(key):
            return self._made(key, None, {})
        return lambda function: self._made(function, key, options)

    def _made(self, function: Callable[..., Any], key: str | None, options: dict[str, Any]) -> Any:
        once = options.pop("once", False)
        for name in ("acks_late", "reject_on_worker_lost"):
            if options.get(name, True) is not True:
                message = f"a guarded task needs {name}=True; leave the option out"
                raise BadRequestError(message, code="bad_option")
            options[name] = True
        base = options.pop("base", GuardedTask)
        if not issubclass(base, GuardedTask):
            base = type(f"Guarded{base.__name__}", (GuardedTask, base), {"abstract": True})
        template = None
        if key is not None:
            template = subjects.KeyTemplate(key, _parameters(function, bound=bool(options.get("bind"))))
        self._refuse_a_name_taken(function, options.get("name"))
        attributes = {"holdfast_guard": self, "holdfast_key": template, "holdfast_once": once}
        if self.app is None:
            return shared_task(base=base, **options, **attributes)(function)
        # By default Celery makes it a task of every application in the process.
        options.setdefault("shared", False)
        return self.app.task(base=base, **options, **attributes)(function)

    def _refuse_a_name_taken(self, function: Callable[..., Any], name: str | None) -> None:
        """Return unless another function has the name; Celery would silently run the first for both."""
        app = self.application()
        name = name or app.gen_task_name(function.__name__, function.__module__)
        origin = f"{function.__module__}.{function.__qualname__}"
        if self._origins.setdefault(name, origin) != origin:
            message = (
                f"two guarded tasks are called {name!r}: {self._origins[name]} and {origin}; give one a name"
            )
            raise BadRequestError(message, code="task_name_taken")

    def tasks(self) -> dict[str, GuardedTask]:
        """The guarded tasks that this process knows, by name."""
        registered = self.application().tasks
        return {
            name: task
            for name, task in registered.items()
            if isinstance(task, GuardedTask) and task.holdfast_guard is self
        }

    # Paid calls.

    def paid(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """A decorator: the function is called once for each distinct input, and its answer is kept.

        `price`, like "0.02 USD", is what a call costs. An exception leaves the call in doubt, unless it is
        one of `uncharged`. `verify` answers for a call in doubt an Answer if it was charged, None if it was
        not; it may raise InDoubt to leave the decision to a person. An answer that `accept` refuses is not
        given out again. `timeout`: the seconds after which a call that has not ended is in doubt.
        `key_argument` names the parameter that takes the idempotency key, for providers that honour one.
        """
        if function is not None:
            return paid.declared(self, function, {})
        return lambda decorated: paid.declared(self, decorated, dict(options))

    def transport(
        self,
        module: Any,
        *,
        provider: str | None = None,
        honours_keys: bool = False,
        ssl_context: ssl.SSLContext | None = None,
    ) -> Any:
        """A transport for clients of `module`, httpx2 or httpx, through which an LLM SDK pays once.

        `provider` names the provider in bills, if a proxy hides its host. `honours_keys`: it charges one
        Idempotency-Key once. `ssl_context` is for servers with certificates of their own.
        """
        options = TransportOptions(provider, honours_keys, ssl_context)
        return transports.transport(module, PaidRequests(self, options))

    # Requests.

    def requested(
        self,
        task: GuardedTask,
        call: OutgoingCall,
        message: TaskMessage,
        timing: Timing,
        *,
        using: Any = None,
    ) -> RequestResult:
        """What became of a request for a run; inside the transaction of `using`, if that is passed."""
        ask = self.ask_of(task, call)
        db = self.runtime().db
        about: dict[str, Any] = {
            "run_id": subjects.run_id(message.celery_id, task.name),
            "patience": self.silence,
            "chosen": bool(call.options.get("task_id")),
        }
        if using is None:
            return messages.request(db, ask, message, timing, **about)
        with transactions.borrowed(db, using) as tx:
            return messages.answer(tx, ask, message, timing, **about)

    def ask_of(self, task: GuardedTask, call: OutgoingCall) -> Ask:
        """The request that a call of the task makes."""
        digest = subjects.fingerprint(task.run, call.args, call.kwargs)
        if digest is None:
            stored = serialization.arguments(call.args, call.kwargs, task.serializer_of(call))
            digest = keys.digest(*stored.values())
        template, kind = task.holdfast_key, subjects.kind_of(task.name)
        subject = (
            subjects.of_arguments(digest) if template is None else template.subject(call.args, call.kwargs)
        )
        ask = Ask(
            kind=kind,
            subject=subject,
            content=digest,
            tenant=self.tenant_name(),
            lane=GUARDED_LANE,
            pipeline=f"{kind}@1",
            force=task.holdfast_once is False,
            actor="celery",
            trace=traces.carried(),
            pays=False,
        ).checked()
        return replace(ask, force=ask.force or self._is_over(ask, task.holdfast_once))

    def _is_over(self, ask: Ask, once: bool | float) -> bool:
        """True if the time is over for which a success keeps the same call from being done again."""
        if isinstance(once, bool):
            return False
        age = messages.since_success(self.runtime().db, ask)
        return age is not None and age > once

    def celery_id_of(self, run_id: str, *, using: Any = None) -> str | None:
        """Celery's id of a run, if its message is known; it may have been requested in that transaction."""
        db = self.runtime().db
        if using is None:
            return messages.celery_id(db.first, run_id)
        with transactions.borrowed(db, using) as tx:
            return messages.celery_id(tx.one, run_id)

    def stored_call(self, run_id: str) -> OutgoingCall | None:
        """The call that a run was requested with; None if its message is not there any more."""
        stored = messages.of_run(self.runtime().db, run_id)
        return None if stored is None else outgoing.call_of(stored)

    def publish_soon(self, run_id: str) -> None:
        """The sweep publishes the message of the run."""
        messages.publish_soon(self.runtime().db, run_id)

    # Executions.

    def run(self) -> Run:
        """The run of the guarded task that is being executed here; HoldfastError `no_run` if none is."""
        return Run(self.work())

    def work(self) -> Work:
        """The work of the guarded task that is being executed here."""
        work = self._executing().work
        if work is None:
            raise no_run()
        return work

    @staticmethod
    def _executing() -> Execution:
        execution = context.execution()
        if execution is None:
            raise no_run()
        return execution

    def fence(self, using: Any) -> None:
        """What the transaction of `using` writes takes effect only if this execution may still write.

        Call it last, before the commit: the rows that it locks stay locked until then. Raises FencedOut.
        `using` is an SQLAlchemy session or connection, or Django's connection, on the database of the guard.
        """
        claim = self.work().claim
        with transactions.borrowed(self.runtime().db, using) as tx:
            outcome = fencing.fence(tx, claim)
        if isinstance(outcome, Fenced):
            raise FencedOut(outcome.reason)

    def finish(self, using: Any, result: Any = None) -> Any:
        """The run of this task has succeeded with `result`, which is returned, if that transaction commits.

        What the transaction writes and the end of the run take effect together: no later execution does it
        again. It is a fence as well. Call it last, and end the task: `return guard.finish(session, result)`.
        """
        execution, work = self._executing(), self.work()
        stored = execution.finishing(result)
        with transactions.borrowed(self.runtime().db, using) as tx:
            outcome = fencing.finish(
                tx,
                work.claim,
                result=stored,
                spent=work.spent,
                said=work.unwritten_lines(),
                report_after=self._terms.ttl,
            )
        if isinstance(outcome, Fenced):
            raise FencedOut(outcome.reason)
        return result

    def tenant(self, name: str) -> AbstractContextManager[None]:
        """What is requested and paid in the block belongs to this tenant."""
        if not TENANT.fullmatch(name):
            raise BadRequestError(f"tenant {name!r:.80} has the wrong form", code="bad_tenant")
        return context.named_tenant(name)

    def scope(self, name: str) -> AbstractContextManager[None]:
        """Outside a run, answers of models are reused within this name in the block."""
        return context.named_scope(name)

    def tenant_name(self) -> str:
        """The tenant of what happens here: named by a block, that of the run, or the guard's."""
        execution = context.execution()
        running = (
            execution.work.claim.tenant if execution is not None and execution.work is not None else None
        )
        return context.tenant() or running or self._tenant

    # What the main process of a worker knows.

    def process_died(self, run_id: str) -> None:
        """The process that executed the run is dead: the run is due again, and that counts as an attempt."""
        runtime = self.runtime()
        held = messages.held(runtime.db, run_id)
        if held is None or (held.process and not runtime.engine.host.has_died(held.process)):
            return
        losses.lose(
            runtime.db,
            held.task_id,
            held.epoch,
            loss=Loss.PROCESS_DIED,
            caps=runtime.options.rules.caps,
            process=held.process,
        )

    def ran_out_of_time(self, run_id: str, seconds: float) -> None:
        """The run exceeded Celery's hard time limit and has failed."""
        message = f"it exceeded its hard time limit of {seconds:g} s"
        messages.end(self.runtime().db, run_id, code="time_limit", message=message)

    def revoked(self, run_id: str, *, expired: bool, terminated: bool = False) -> None:
        """Celery has discarded a message, or terminated the task: its run is cancelled.

        Discarding a message stops no execution that is under way.
        """
        code = "expired" if expired else "revoked"
        said = f"{code} by Celery"
        messages.end(self.runtime().db, run_id, code=code, message=said, cancelled=True, held_too=terminated)

    def is_held(self, run_id: str) -> bool:
        """True if a worker is executing the run."""
        return messages.is_held(self.runtime().db, run_id)

    # Processes.

    @property
    def lease(self) -> float:
        """Seconds after the last renewal before another worker may continue a task."""
        return self._terms.ttl

    def runtime(self) -> GuardRuntime:
        """The runtime of this process, opened when it is first needed and anew after a fork."""
        runtime = self._runtime
        if runtime is not None and runtime.pid == os.getpid():
            return runtime
        with self._opening:
            runtime = self._runtime
            if runtime is None or runtime.pid != os.getpid():
                runtime = self._runtime = GuardRuntime(self._options(), self.providers, watched=self.watched)
        return runtime

    def working_runtime(self, task: GuardedTask) -> GuardRuntime:
        """The runtime of a process that is about to execute the task: its leases are renewed."""
        runtime = self.runtime()
        kind = subjects.kind_of(task.name)
        if runtime.engine.registry.get(kind) is None:
            runtime.engine.registry.add(_kind(kind, task.time_limit))
        runtime.engine.watchdog.start()
        return runtime

    def after_fork(self) -> None:
        """This process is one of a pool, whose parent reports its death."""
        self.watched = True
        self._opening = threading.Lock()
        self._runtime = None

    def create_tables(self) -> str:
        """The tables of Holdfast are in the database and at this release; the revision."""
        from holdfast.store.base import migrate  # noqa: PLC0415 - Alembic, which nothing else needs

        return migrate.upgrade(self._options().url)

    def close(self) -> None:
        """The connections of this process are closed, and nothing is swept here any more."""
        self.sweeper.stop()
        runtime, self._runtime = self._runtime, None
        if runtime is not None and runtime.pid == os.getpid():
            runtime.close()

    def _options(self) -> GuardOptions:
        priced = {function_provider.PROVIDER: ProviderPrices(self.function_prices)}
        return GuardOptions(
            self.address(),
            self._terms,
            self._rules,
            self._policy,
            replace(DEFAULT, providers=priced),
            otel_url=self._otel_url,
        )

    def application(self) -> Celery:
        """The Celery application whose tasks are guarded: that of the guard, or the current one."""
        return self.app or current_app

    def use_database(self, url: str | None) -> None:
        """Use this database from now on, or again that of the options; for tests."""
        self.close()
        self._test_database = url

    def address(self) -> str:
        """The URL of the database, with its password."""
        if self._test_database is not None:
            return self._test_database
        if self._django is not None:
            return self._django.url.render_as_string(hide_password=False)
        return self._database or load().database


def _kind(name: str, time_limit: float | None) -> Kind:
    """The kind of a guarded task: each run is one task, and its body is that of the delivery under way."""
    limit = NEVER if time_limit is None else time_limit + 60.0
    return Kind(name=name, run=_carry_out, soft_limit=NEVER, hard_limit=limit)


def _carry_out(work: Work) -> Mapping[str, Any] | None:
    delivery = context.delivery()
    if delivery is None:
        raise AssertionError("a guarded task was claimed outside its delivery")
    return delivery.run(work)


def _parameters(function: Callable[..., Any], *, bound: bool) -> inspect.Signature:
    """The parameters that a caller of the task fills in."""
    signature = inspect.signature(function)
    if not bound:
        return signature
    return signature.replace(parameters=list(signature.parameters.values())[1:])


def _url(database: str | None, engine: Any) -> str | None:
    """The URL that was passed, by itself or with an engine; BadRequestError for both or anything else."""
    if engine is None and (database is None or isinstance(database, str)):
        return database
    url = getattr(engine, "url", None)
    if url is None or database is not None:
        message = "a guard takes database=, which is a URL, or engine=, which is an SQLAlchemy engine"
        raise BadRequestError(message, code="bad_database")
    # Without its driver, which may be one that the guard does not use.
    return str(url.set(drivername=url.get_backend_name()).render_as_string(hide_password=False))
