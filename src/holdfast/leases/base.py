"""What a lease is, and why it is not a fence.

A lease says who *should* be working on a task, so that two workers seldom do the same work and a dead one is
noticed within seconds. It is held on a server, expires by that server's clock, and belongs to one token.

It never grants the right to write. Between "my lease is good" and the write that follows, a process can be
frozen for any length of time: by the kernel, a debugger, a virtual machine migration, a full disk. The lease
expires meanwhile, another worker takes over, and the frozen one continues in the middle of its next line. No
check before a write can close that gap, however late it is made. The fence closes it
(`store.protocol.tasks.hold`): generation, epoch and token are tested on locked rows, in the transaction of
the write.

So if leases fail, by a lost renewal, a server that lost its memory or a clock that jumps, work may be done
twice or late; nothing wrong is written. Three rules keep even that rare:

- The holder stops trusting the lease before the server ends it: `LeaseTerms.trusted_until` counts from when
  the claim or renewal was *sent*, less a margin, on a local clock that never jumps.
- A renewal never acquires. Once a lease has expired, was released or went to another, its token is invalid
  for good; otherwise a thawed worker could take back a task that was given to another.
- Renewing and closing name the token: nobody can extend or end the lease of another.
"""

from dataclasses import dataclass
from typing import Protocol

from holdfast.core.errors import BadRequestError, HoldfastError
from holdfast.core.records import Claim


class LeaseBackendError(HoldfastError):
    """The lease backend did not respond. Whether the lease was renewed is unknown.

    The holder may continue until the trust of its last *confirmed* claim or renewal ends, and no longer.
    """

    code = "lease_backend_unavailable"


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """How long a lease lasts, how often it is renewed, and how much earlier its holder stops trusting it."""

    ttl: float
    renew_every: float
    margin: float

    def __post_init__(self) -> None:
        if not 0 < self.renew_every * 2 < self.ttl:
            message = (
                f"a lease of {self.ttl:g} s cannot be renewed every {self.renew_every:g} s; "
                "renew it more than twice per ttl, so that one lost renewal does not lose the lease"
            )
            raise BadRequestError(message, code="bad_lease_terms")
        if not 0 < self.margin < self.ttl:
            message = (
                f"a lease of {self.ttl:g} s cannot have a margin of {self.margin:g} s; "
                "use more than 0 and less than its time"
            )
            raise BadRequestError(message, code="bad_lease_terms")

    def trusted_until(self, sent_at: float) -> float:
        """When to stop trusting a lease whose claim or renewal was sent at `sent_at`, by the same clock.

        The server started counting after `sent_at`, so its lease is longer than this by at least the margin.
        """
        return sent_at + self.ttl - self.margin


DATABASE_TERMS = LeaseTerms(ttl=12.0, renew_every=4.0, margin=2.0)
REDIS_TERMS = LeaseTerms(ttl=120.0, renew_every=30.0, margin=10.0)


class Leases(Protocol):
    """A lease backend. The claim itself is always made in the database; this keeps it alive.

    Every method raises LeaseBackendError if the backend does not respond.
    """

    terms: LeaseTerms
    kept_in_database: bool
    """True if a renewal moves `lease_until` of the task row, so that the row alone shows who is alive."""

    def open(self, claim: Claim) -> bool:
        """True if the lease runs under the claim's token; False if a newer claim of the task has it.

        Call it once, after the claim has committed. Repeating it after a lost response is harmless.
        """
        ...

    def renew(self, claim: Claim) -> bool:
        """True if the lease now runs for the whole ttl; False if it is gone, which is final."""
        ...

    def close(self, claim: Claim) -> None:
        """The lease of this claim is over; other leases are untouched.

        Call it after the transition that releases the task, so that the row never looks abandoned.
        """
        ...

    def alive(self, pairs: list[tuple[int, str]]) -> set[int]:
        """The task ids among these (task id, token) whose lease is alive under that token."""
        ...
