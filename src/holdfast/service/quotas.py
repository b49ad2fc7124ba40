"""Quotas: how many documents and bytes tenants store, and may store."""

from holdfast.core.errors import BadRequestError
from holdfast.core.records import TENANT
from holdfast.store.base.database import Database
from holdfast.store.library import quotas
from holdfast.store.library.quotas import UNLIMITED, Quota, Usage


class Quotas:
    """The quotas of an installation; `default` holds for a tenant that has none of its own."""

    def __init__(self, db: Database, default: Quota) -> None:
        self._db = db
        self._default = default

    def usage(self, tenant: str) -> Usage:
        """What the tenant holds and may hold."""
        return quotas.usage(self._db, tenant, self._default)

    def every(self) -> list[Usage]:
        """The same of all who have ever held something, or have a limit."""
        return quotas.every(self._db, self._default)

    def check_room(self, tenant: str, actor: str, size: int) -> None:
        """Return if so many bytes more fit; otherwise QuotaExceededError, which the journal has."""
        with quotas.noting(self._db, tenant, actor):
            self.usage(tenant).check(bytes_=size)

    def change(self, tenant: str, *, documents: int | None, size: int | None, remove: bool) -> Usage:
        """The tenant has these limits; one that is None stays as it was, with `remove` it is the default."""
        if not TENANT.fullmatch(tenant):
            raise BadRequestError(f"{tenant!r:.80} is not a valid tenant name", code="bad_tenant")
        before = UNLIMITED if remove else quotas.limits(self._db, tenant)
        own = Quota(
            before.documents if documents is None else documents, before.bytes if size is None else size
        )
        quotas.set_limits(self._db, tenant, own)
        return self.usage(tenant)
