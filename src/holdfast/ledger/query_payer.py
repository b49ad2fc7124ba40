"""A payer without a task: a caller who asks one question and waits for the answer.

The ledger works as always: looked up, intended, sent and settled, paid once. Only the fence is missing, as
the caller can overwrite nothing; instead a timeout limits how long it may take.
"""

from collections.abc import Callable

from holdfast.core.errors import MustWaitError
from holdfast.core.ports import Host
from holdfast.core.records import NO_TASK, Claim


class QueryPayer:
    """The `Holder` of a payment that belongs to no task."""

    def __init__(
        self,
        host: Host,
        tenant: str,
        collection: str | None,
        patience: float,
        *,
        key_id: str | None = None,
        reuse_scope: str | None = None,
    ) -> None:
        """`key_id` and `reuse_scope` are those of `Claim`: who is billed."""
        self._host = host
        self._until = host.clock() + patience
        self._claim = Claim(
            task_id=NO_TASK,
            run_id="",
            head_id=0,
            tenant=tenant,
            kind="query",
            subject="",
            collection=collection,
            generation=0,
            ordinal=0,
            epoch=0,
            token=host.token(),
            owner="query",
            lane="",
            priority=0,
            pipeline="",
            content="",
            options={},
            payload={},
            attempts=0,
            lease_until=0.0,
            key_id=key_id,
            reuse_scope=reuse_scope,
        )

    @property
    def claim(self) -> Claim:
        """A claim without a task; its token makes the order this caller's own."""
        return self._claim

    def check(self) -> None:
        """Return while the caller is still waiting."""
        if not self.trusted():
            raise MustWaitError("the provider took too long to answer", reason="patience", delay=1.0)

    def trusted(self) -> bool:
        """True while the caller is still waiting."""
        return self._host.clock() < self._until

    def trusted_until(self) -> float:
        """When the caller gives up, by the host's clock."""
        return self._until

    def waiting(self, waits: bool) -> None:
        """Does nothing: losses are not counted for a caller without a task."""


class StreamPayer(QueryPayer):
    """A payer who hears a streamed answer while it arrives: each piece, and where in the answer it begins.

    A piece at 0 begins the answer anew: an order in doubt was sent again.
    """

    def __init__(
        self,
        host: Host,
        tenant: str,
        collection: str | None,
        patience: float,
        on_piece: Callable[[str, int], None],
    ) -> None:
        super().__init__(host, tenant, collection, patience)
        self._on_piece = on_piece
        self._position = 0

    @property
    def has_heard(self) -> bool:
        """True if something of the answer was passed on."""
        return self._position > 0

    def hear(self, piece: str) -> None:
        """See `exchanges.StreamListener`."""
        self._on_piece(piece, self._position)
        self._position += len(piece)

    def hear_again(self) -> None:
        """See `exchanges.StreamListener`."""
        self._position = 0
