"""The servers behind the gateway: those of the workers, and every `[providers.NAME]` of a fitting wire."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.bootstrap.providers import OPENAI_URL, provider_name
from holdfast.providers import openai
from holdfast.settings import Settings
from holdfast.settings.providers import ProviderSettings

ANTHROPIC_URL = "https://api.anthropic.com"


@dataclass(frozen=True, slots=True)
class Upstream:
    """A server with its key. `identity` is its name in content keys, the same as for workers."""

    name: str
    identity: str
    wire: str
    base_url: str
    key: str = field(repr=False)
    key_retention: float = 0.0
    max_inputs: int = openai.OPENAI.max_inputs
    max_tokens: int = openai.OPENAI.max_tokens
    deadline: float | None = None

    def url(self, endpoint: str) -> str:
        """Where an endpoint is."""
        version = "/v1" if self.wire == "anthropic" else ""
        return f"{self.base_url}{version}/{endpoint}"

    @property
    def credentials(self) -> tuple[tuple[str, str], ...]:
        """The header with its key; none if it needs none."""
        if not self.key:
            return ()
        return (
            (("x-api-key", self.key),)
            if self.wire == "anthropic"
            else (("authorization", f"Bearer {self.key}"),)
        )


@dataclass(frozen=True, slots=True)
class Upstreams:
    """All servers by name, and those that serve a request that names none, by endpoint."""

    by_name: Mapping[str, Upstream]
    usual: Mapping[str, Upstream]


def upstreams_of(settings: Settings) -> Upstreams:
    """The servers that the gateway can reach with these settings."""
    by_name = {
        name: _named(name, own)
        for name, own in settings.providers.items()
        if own.wire in {"openai", "anthropic"}
    }
    usual: dict[str, Upstream] = {}
    for part, endpoints in (("embedding", ("embeddings",)), ("llm", ("chat/completions", "responses"))):
        server = _of_workers(settings, part, by_name) or _only(by_name, "openai")
        if server is not None:
            usual |= dict.fromkeys(endpoints, server)
    if (server := _only(by_name, "anthropic")) is not None:
        usual["messages"] = server
    return Upstreams(by_name, usual)


def _named(name: str, own: ProviderSettings) -> Upstream:
    url = ANTHROPIC_URL if own.wire == "anthropic" else OPENAI_URL
    base = (own.base_url or url).rstrip("/")
    return Upstream(
        name=name,
        identity=own.named,
        wire=own.wire,
        # As Anthropic's client library has it: without the version.
        base_url=base.removesuffix("/v1") if own.wire == "anthropic" else base,
        key=own.key,
        key_retention=own.key_retention,
        max_inputs=own.max_inputs or openai.OPENAI.max_inputs,
        max_tokens=own.max_tokens or openai.OPENAI.max_tokens,
        deadline=own.deadline,
    )


def _of_workers(settings: Settings, part: str, by_name: Mapping[str, Upstream]) -> Upstream | None:
    """The server that workers use for `part`; None if they use a model in their own process."""
    provider = getattr(settings, f"{part}_provider")
    if provider in settings.providers:
        return by_name.get(provider)
    identity = provider_name(settings, part)
    if provider != "openai" or identity is None:
        return None
    key = getattr(settings, f"{part}_api_key")
    return Upstream(
        name=provider,
        identity=identity,
        wire="openai",
        base_url=getattr(settings, f"{part}_base_url") or OPENAI_URL,
        key=key.get_secret_value() if key is not None else "",
        key_retention=getattr(settings, f"{part}_key_retention"),
    )


def _only(by_name: Mapping[str, Upstream], wire: str) -> Upstream | None:
    """The one server of this wire; None if there are several, or none."""
    fitting = [each for each in by_name.values() if each.wire == wire]
    return fitting[0] if len(fitting) == 1 else None
