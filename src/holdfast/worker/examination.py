"""What `holdfast doctor` looks at of Holdfast's own workers: their Celery settings, and their brokers."""

from dataclasses import replace

from holdfast.doctor import redaction
from holdfast.doctor.facts import AppFacts
from holdfast.doctor.gather import Gathered, ServerList
from holdfast.doctor.probes import celery_app
from holdfast.settings import Settings
from holdfast.worker import app, sender
from holdfast.worker.brokers import Broker


def facts(settings: Settings, *, offline: bool = False, management: str | None = None) -> Gathered:
    """The facts about the workers of this installation on each of its brokers, and about those brokers."""
    servers = ServerList()
    known = sender.published(settings)
    for broker in known:
        if broker.folder is None:
            servers.add(broker.url, "broker", broker.tls)
    if settings.redis_url is not None:
        servers.add(settings.redis_url.get_secret_value(), "leases")
    own = Gathered(tuple(_app(broker, several=len(known) > 1) for broker in known))
    return own if offline else own + servers.probed(management)


def _app(broker: Broker, *, several: bool) -> AppFacts:
    name = f"Holdfast on {broker}" if several else "Holdfast"
    known = celery_app.facts_of(app.build([broker]), name, ours=True)
    if broker.folder is not None:
        return replace(known, broker=redaction.endpoint(str(broker)))
    return known
