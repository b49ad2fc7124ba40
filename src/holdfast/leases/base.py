"""What a lease is, and why it is not a fence.

A lease says who *should* be working on a task, so that two workers seldom do the same work and a dead one is
noticed within seconds. It is kept by a server, runs out by that server's clock, and belongs to one token.

It never grants the right to write. Between "my lease is good" and the write that follows, a process can be
frozen for any length of time: by the kernel, a debugger, a virtual machine that is moved, a full disk. The
lease runs out meanwhile, another worker takes over, and the frozen one wakes in the middle of its next line.
No check made before a write can close that gap, however late it is made. What closes it is the fence
(`store.protocol.tasks.hold`): generation, epoch and token tested on locked rows, in the transaction of the
write.

So if leases fail, by a lost renewal, a server that lost its memory or a clock that jumps, work may be done
twice or late; nothing wrong is written. Three rules keep even that rare:

- The holder stops believing before the server stops granting: `Terms.trusted_until` counts from when the
  claim or renewal was *sent*, less a margin, on a local clock that never jumps.
- A renewal never acquires. Once a lease has run out, was let go of or went to another, its token is dead
  for good; otherwise a thawed worker could take back a task that another has been given.
- Renewing and closing name the token: nobody can prolong or end a lease that is not theirs.
"""

from dataclasses import dataclass
from typing import Protocol

from holdfast.core.errors import BadRequestError, HoldfastError
from holdfast.core.records import Claim


class LeaseBackendError(HoldfastError):
    """The keeper of leases did not answer. Whether the lease was renewed is unknown.

    The holder may go on until the trust of its last *answered* claim or renewal ends, and no longer.
    """

    code = "lease_backend_unavailable"


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """How long a lease lasts, how often it is renewed, and how much sooner its holder stops believing."""

    ttl: float
    renew_every: float
    margin: float

    def __post_init__(self) -> None:
        if not 0 < self.renew_every * 2 < self.ttl:
            message = (
                f"a lease of {self.ttl:g} s cannot be renewed every {self.renew_every:g} s; "
                "renew it more than twice in its time, so that one lost renewal is no lost lease"
            )
            raise BadRequestError(message, code="bad_lease_terms")
        if not 0 < self.margin < self.ttl:
            message = (
                f"a lease of {self.ttl:g} s cannot have a margin of {self.margin:g} s; "
                "use more than 0 and less than its time"
            )
            raise BadRequestError(message, code="bad_lease_terms")

    def trusted_until(self, sent_at: float) -> float:
        """When to stop believing in a lease whose claim or renewal was sent at `sent_at`, by the same clock.

        The server began to count after `sent_at`, so it grants for longer than this, by the margin at least.
        """
        return sent_at + self.ttl - self.margin


DATABASE_TERMS = LeaseTerms(ttl=12.0, renew_every=4.0, margin=2.0)
REDIS_TERMS = LeaseTerms(ttl=120.0, renew_every=30.0, margin=10.0)


class Leases(Protocol):
    """A keeper of leases. The claim itself is always made in the database; this keeps it alive.

    Every method raises LeaseBackendError when the keeper does not answer.
    """

    terms: LeaseTerms
    kept_in_database: bool
    """True when a renewal moves `lease_until` of the task row, so that the row alone tells who is alive."""

    def open(self, claim: Claim) -> bool:
        """True when the lease runs under the claim's token; False when a newer claim of the task has it.

        Call it once, after the claim has committed. Calling it again after a lost answer is harmless.
        """
        ...

    def renew(self, claim: Claim) -> bool:
        """True when the lease now runs for the whole ttl; False when it is gone, which is final."""
        ...

    def close(self, claim: Claim) -> None:
        """The lease of this very claim is over; anybody else's is untouched.

        Call it after the transition that lets go of the task, so that the row never looks abandoned.
        """
        ...

    def alive(self, pairs: list[tuple[int, str]]) -> set[int]:
        """The task ids among these (task id, token) whose lease lives under that very token."""
        ...
