"""The flows that collections name, read once: a version never changes."""

import threading
from collections import OrderedDict

from holdfast.core.errors import BadRequestError, NotFoundError
from holdfast.kinds.flows import checker
from holdfast.kinds.flows.steps import Flow
from holdfast.store.base.database import Database
from holdfast.store.library import flows as store
from holdfast.store.library.flows import StoredFlow

MOST_KEPT = 50
MOST_ID = 80


def is_version(text: str) -> bool:
    """True for what may stand behind the @ of a flow."""
    return text.isascii() and text.isdecimal() and len(text) <= 7


def split_id(flow_id: str) -> tuple[str, int]:
    """Name and version of a flow as options name it; BadRequestError for any other text."""
    name, at, version = flow_id.partition("@")
    if not at or not checker.is_flow_name(name) or not is_version(version):
        message = f"flow must be the name and version of a flow, like contracts@3, not {flow_id!r:.80}"
        raise BadRequestError(message, code="bad_option")
    return name, int(version)


def of_stored(stored: StoredFlow) -> Flow:
    """The flow that was applied with this source."""
    return checker.read(stored.source, stored.files)


class FlowLibrary:
    """The flows of an installation, as one process sees them."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self._kept: OrderedDict[tuple[str, str], Flow] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, tenant: str, flow_id: str) -> Flow | None:
        """The flow, or None."""
        key = tenant, flow_id
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        stored = store.one(self.db, tenant, *split_id(flow_id))
        if stored is None:
            return None
        flow = of_stored(stored)
        with self._lock:
            self._kept[key] = flow
            while len(self._kept) > MOST_KEPT:
                self._kept.popitem(last=False)
        return flow

    def get(self, tenant: str, flow_id: str) -> Flow:
        """The flow; NotFoundError, which names the newest version, if there is none."""
        flow = self.find(tenant, flow_id)
        if flow is None:
            name = split_id(flow_id)[0]
            newest = store.latest(self.db, tenant, name)
            hint = f"; the newest version is {name}@{newest}" if newest is not None else ""
            message = f"there is no flow {flow_id!r}{hint}; apply it with: holdfast flow apply FILE"
            raise NotFoundError(message, code="unknown_flow")
        return flow
