"""The relay's socket: a thread for each connection, which carries one order at a time.

A worker that hangs up before the mark has dropped its order; after the mark its order is carried to its end
even if nobody listens.
"""

import contextlib
import logging
import os
import socket
import stat
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from holdfast import faults
from holdfast.core.errors import BadRequestError, HoldfastError
from holdfast.core.records import Order
from holdfast.ledger import relay_talk
from holdfast.ledger.exchanges import throttle_scope
from holdfast.ledger.relay_client import MOST_PATH, SUFFIX, MessageLines, TalkError, is_trusted
from holdfast.ledger.relay_talk import DRAINING, NO_PROVIDER, OTHER, Ended, LostOrder, NotCarried
from holdfast.relay.admission import Admission
from holdfast.relay.carrying import OrderCarrier
from holdfast.store.money.carried import OfferedOrder

# Idle workers keep their connections.
MOST_CONNECTIONS = 2000
CarryReply: TypeAlias = Ended | LostOrder | NotCarried

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Carried:
    """An order that is being carried, for all who wait for it."""

    holder: str
    waiters: list["_Connection"] = field(default_factory=list)
    is_marked: bool = False
    reply: CarryReply | None = None
    over: threading.Event = field(default_factory=threading.Event)


class RelayServer:
    """Serves the workers of this host over a Unix socket in `folder`."""

    def __init__(
        self,
        folder: Path,
        name: str,
        carrier: OrderCarrier,
        admission: Admission,
        *,
        schema: str,
        providers: Sequence[str],
    ) -> None:
        self.path = checked_path(folder, name)
        self._carrier = carrier
        self._admission = admission
        self._hello = {"protocol": relay_talk.PROTOCOL, "schema": schema, "providers": list(providers)}
        self._lock = threading.Lock()
        self._carried: dict[str, _Carried] = {}
        self._threads: dict[threading.Thread, _Connection] = {}
        self._listener: socket.socket | None = None
        self.is_draining = False

    def open(self) -> None:
        """Workers can connect. The folder is this user's alone."""
        folder = self.path.parent
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.stat()
        if facts.st_uid != os.geteuid():
            raise BadRequestError(
                f"{folder} belongs to another user; set HOLDFAST_RELAY_DIR", code="bad_relay_dir"
            )
        if stat.S_IMODE(facts.st_mode) != 0o700:
            folder.chmod(0o700)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)
        try:
            listener.bind(str(self.path))
        except OSError as error:
            raise BadRequestError(
                f"the relay cannot listen at {self.path}: {error}", code="bad_relay_dir"
            ) from error
        finally:
            os.umask(before)
        listener.listen(256)
        self._listener = listener

    def serve(self) -> None:
        """Accept connections until `drain`."""
        listener = self._listener
        while listener is not None and not self.is_draining:
            try:
                connection, _ = listener.accept()
            except OSError:
                break  # closed by `drain`
            if not is_trusted(connection) or len(self._threads) >= MOST_CONNECTIONS:
                connection.close()
                continue
            self._start(connection)

    def _start(self, connection: socket.socket) -> None:
        served = _Connection(self, MessageLines(connection))
        thread = threading.Thread(target=self._served, args=(served,), name="holdfast-relay", daemon=True)
        with self._lock:
            self._threads[thread] = served
        thread.start()

    def _served(self, connection: "_Connection") -> None:
        try:
            connection.serve(self._hello)
        except TalkError:
            pass  # the worker has hung up
        except Exception:  # the outermost loop of a connection: one that fails must not end the relay
            log.exception("a connection of the relay failed")
        finally:
            connection.lines.close()
            with self._lock:
                self._threads.pop(threading.current_thread(), None)

    def carry(self, connection: "_Connection", message: dict[str, Any]) -> CarryReply | None:
        """What became of the order; None if the worker has dropped it."""
        order_id, holder = message.get("order"), message.get("holder")
        tries = message.get("tries")
        if not isinstance(order_id, str) or not isinstance(holder, str) or type(tries) is not int:
            raise TalkError("a broken message")
        if self.is_draining:
            return NotCarried(DRAINING)
        with self._lock:
            known = self._carried.get(order_id)
            mine = _Carried(holder, [connection])
            if known is not None and known.holder == holder:
                known.waiters.append(connection)
            elif known is None:
                self._carried[order_id] = mine
        if known is not None:
            return self._joined(connection, known) if known.holder == holder else LostOrder("sent")
        reply: CarryReply | None = None
        try:
            reply = self._admitted(connection, mine, order_id, holder, min(max(tries, 0), 100))
        except HoldfastError as error:
            reply = NotCarried(OTHER, error.message)
        finally:
            with self._lock:
                self._carried.pop(order_id, None)
            mine.reply = reply
            mine.over.set()
        return reply

    def _joined(self, connection: "_Connection", known: _Carried) -> CarryReply | None:
        """Wait with the one who handed the order over first."""
        connection.say(relay_talk.line("taken"))
        if known.is_marked:
            connection.say(relay_talk.line("marked"))
        known.over.wait()
        return known.reply

    def _admitted(
        self, connection: "_Connection", mine: _Carried, order_id: str, holder: str, tries: int
    ) -> CarryReply | None:
        offer = self._carrier.offered(order_id, holder)
        if not isinstance(offer, OfferedOrder):
            return offer
        connection.say(relay_talk.line("taken"))
        faults.point("relay.taken")
        order = offer.order
        scope = throttle_scope(order.provider, order.endpoint, order.model)
        slot = self._admission.enter(order.tenant, offer.lane, offer.size, scope, connection.still_waits)
        if slot is None or isinstance(slot, NotCarried):
            return NotCarried(DRAINING) if self.is_draining else slot
        connection.order = mine
        try:
            return self._carrier.carry(offer, tries, connection)
        finally:
            connection.order = None
            self._admission.leave(slot)

    def throttled(self, order: Order, seconds: float) -> None:
        """The provider asked to slow down: nothing of the same sort is admitted meanwhile."""
        self._admission.throttle(throttle_scope(order.provider, order.endpoint, order.model), seconds)

    def drain(self) -> None:
        """No new connections and no new orders; idle connections are closed, what is marked goes on."""
        self.is_draining = True
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        self._admission.close()
        with self._lock:
            idle = [each for each in self._threads.values() if not each.is_busy]
        for connection in idle:
            connection.hang_up()

    def join(self, timeout: float) -> bool:
        """True if nothing is carried any more; waits for it until `timeout` seconds have passed."""
        for thread in list(self._threads):
            thread.join(timeout)
            if thread.is_alive():
                return False
        return True


class _Connection:
    """A worker at the other end; it is the `Waiter` of the order that it handed over."""

    def __init__(self, server: RelayServer, lines: MessageLines) -> None:
        self._server = server
        self.lines = lines
        self._saying = threading.Lock()
        self._listens = False
        self.is_busy = False
        self.order: _Carried | None = None

    def serve(self, hello: dict[str, Any]) -> None:
        """Carry one order after another until the worker hangs up."""
        self.say(relay_talk.line("hello", **hello))
        while not self._server.is_draining:
            message = self.lines.hear(None)
            if message is None or message["say"] not in {"carry", "drop"}:
                raise TalkError("an unknown message")
            if message["say"] == "drop":
                continue  # it came too late: the order has ended
            self.is_busy, self._listens = True, message.get("listens") is True
            reply = self._server.carry(self, message)
            if reply is None:
                return
            faults.point("relay.tell")
            self.say(_told(reply))
            self.is_busy = False

    def say(self, text: bytes) -> None:
        """Tell the worker; TalkError if it is gone."""
        with self._saying:
            self.lines.socket.settimeout(5.0)
            self.lines.say(text)

    def still_waits(self) -> bool:
        """See `carrying.Waiter`."""
        return not (self._server.is_draining or self.lines.has_news())

    def marked(self) -> None:
        """See `carrying.Waiter`."""
        order = self.order
        if order is not None:
            order.is_marked = True
            for waiter in list(order.waiters):
                with contextlib.suppress(TalkError):  # it died: the order is carried to its end all the same
                    waiter.say(relay_talk.line("marked"))

    def hear(self, piece: str) -> None:
        """See `carrying.Waiter`."""
        if self._listens:
            try:
                self.say(relay_talk.line("piece", text=piece))
            except TalkError:
                self._listens = False

    def hang_up(self) -> None:
        """End an idle connection."""
        with contextlib.suppress(OSError):
            self.lines.socket.shutdown(socket.SHUT_RDWR)


def _told(reply: CarryReply) -> bytes:
    if not isinstance(reply, NotCarried):
        return relay_talk.ended(reply)
    if reply.reason in {DRAINING, NO_PROVIDER}:
        return relay_talk.line(reply.reason, message=reply.message)
    return relay_talk.line("busy", reason=reply.reason, message=reply.message, after=reply.after)


def checked_path(folder: Path, name: str) -> Path:
    """The path of the socket; BadRequestError if the kernel does not take one so long."""
    path = folder / f"{name}{SUFFIX}"
    if len(os.fsencode(path)) > MOST_PATH:
        message = f"{path} is too long for a socket (at most {MOST_PATH} bytes); set HOLDFAST_RELAY_DIR"
        raise BadRequestError(message, code="bad_relay_dir")
    return path
