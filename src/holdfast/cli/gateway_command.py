"""`holdfast gateway`: the gateway on a port of its own."""

from holdfast import bootstrap
from holdfast.api import app
from holdfast.cli import api_command, context, ports


def serve(host: str | None, port: int | None) -> None:
    """The gateway was served until SIGINT or SIGTERM; calls under way are heard to their end."""
    loaded = context.loaded()
    host = loaded.host if host is None else host
    with bootstrap.open_runtime(
        loaded, owner="gateway", connections=loaded.api_connections, patience=api_command.PATIENCE
    ) as runtime:
        api_command.refuse_strangers(runtime, host, "gateway")
        listening = ports.bound(host, loaded.gateway_port if port is None else port)
        api_command.run(app.build_gateway(runtime), loaded, listening, "gateway")
