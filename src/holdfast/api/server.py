"""The HTTP server: it reports ready once it listens, and stops within seconds despite open streams."""

import socket
from types import FrameType

import uvicorn
from anyio import to_thread

from holdfast.api import connections, http_headers
from holdfast.api.access import is_loopback
from holdfast.api.app import Built
from holdfast.core.errors import NotReadyError

GRACE = 5
BACKLOG = 512
# Seconds for which a server that ends waits for calls of the gateway.
DRAIN = 20.0


class ApiServer(uvicorn.Server):
    """Ends the event streams first: it would wait for them otherwise."""

    def __init__(self, built: Built) -> None:
        config = uvicorn.Config(
            built.gate,
            http=connections.bounded(http_headers.within(built.gate.pause), built.gate.pause, built.clients),
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            # Anyone could claim to be this machine by setting X-Forwarded-For.
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE,
        )
        super().__init__(config)
        if built.counting is not None:
            built.counting.connected = lambda: len(self.server_state.connections)
        self._feed = built.feed
        self._gateway = built.gateway
        self._threads = built.threads

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve, with as many threads as are of use: one interpreter runs them in turn, and more of them than
        wait for the database at a time cost it the time to change from one to another.
        """
        to_thread.current_default_thread_limiter().total_tokens = self._threads
        await super().startup(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve nobody any more; calls of the gateway are heard to their end, so that none is in doubt."""
        await super().shutdown(sockets)
        if self._gateway is not None:
            await to_thread.run_sync(self._gateway.close, DRAIN)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end, on a signal."""
        self._end_streams()
        super().handle_exit(sig, frame)

    def end(self) -> None:
        """Begin to end."""
        self._end_streams()
        self.should_exit = True

    def _end_streams(self) -> None:
        if self._feed is not None:
            self._feed.close()


def is_local(host: str) -> bool:
    """True when only this machine can reach what is bound to `host`."""
    try:
        candidates = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError:
        return False
    return bool(host) and all(is_loopback(str(address[4][0])) for address in candidates)


def bound(host: str, port: int) -> socket.socket:
    """A listening socket; NotReadyError says why there is none."""
    try:
        candidates = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, socket_type, protocol, _, address = candidates[0]
        listener = socket.socket(family, socket_type, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        message = f"cannot listen on {host} port {port} ({error.strerror}); choose another with --port"
        raise NotReadyError(message, code="port_in_use") from error
    return listener
