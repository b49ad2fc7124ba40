"""The configured providers of embeddings and answers, and their names."""

import functools
import importlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import BinaryIO
from urllib.parse import urlsplit

from holdfast.bootstrap.clients import Clients
from holdfast.core import keys
from holdfast.core.errors import BadRequestError
from holdfast.engine.kinds import Offer, Supplies
from holdfast.ledger import prices
from holdfast.ledger.traced_provider import TracedProvider
from holdfast.providers import cohere, local, local_llm, openai
from holdfast.providers import documents as document_client
from holdfast.providers.base import Provider
from holdfast.settings import Settings
from holdfast.settings.providers import ProviderSettings
from holdfast.telemetry import traces

OPENAI_URL = "https://api.openai.com/v1"
COHERE_URL = "https://api.cohere.com/v2"
DEFAULT_MODELS = {"local": local.MODEL, "openai": "text-embedding-3-small"}
DEFAULT_LLM_MODELS = {"local": local_llm.MODEL, "openai": "gpt-4o-mini"}
DEFAULT_RERANK_MODEL = "rerank-v3.5"
CONNECTIONS = 64


def supplies_of(settings: Settings) -> Supplies:
    """The providers and models available to kinds, without opening any."""
    embeds = _wire(settings, settings.embedding_provider)
    return Supplies(
        embedding=provider_name(settings, "embedding"),
        embedding_model=settings.embedding_model or DEFAULT_MODELS.get(embeds),
        llm=provider_name(settings, "llm"),
        llm_model=settings.llm_model or DEFAULT_LLM_MODELS.get(_wire(settings, settings.llm_provider)),
        llm_parameters=_parameters(settings.providers.get(settings.llm_provider)),
        embedding_offers=_offers(settings, "embedding", DEFAULT_MODELS),
        llm_offers=_offers(settings, "llm", DEFAULT_LLM_MODELS),
        rerank_offers={
            name: Offer(own.named, own.model or DEFAULT_RERANK_MODEL, _parameters(own))
            for name, own in settings.providers.items()
            if own.wire == "cohere"
        },
    )


def _offers(settings: Settings, part: str, usual: Mapping[str, str]) -> dict[str, Offer]:
    """Selectable providers for `part` by name: the configured one, every table, and the built-in one."""
    built_in = {"embedding": local.NAME, "llm": local_llm.NAME}
    offers = {"local": Offer(built_in[part], usual["local"])}
    for name, own in settings.providers.items():
        if own.wire != "openai":
            continue
        offers[name] = Offer(own.named, usual["openai"], _parameters(own))
    chosen, identity = getattr(settings, f"{part}_provider"), provider_name(settings, part)
    if identity is not None:
        own_model = getattr(settings, f"{part}_model") or usual.get(_wire(settings, chosen))
        offers[chosen] = Offer(identity, own_model, _parameters(settings.providers.get(chosen)))
    return offers


def document_services(settings: Settings) -> dict[str, str]:
    """The identities of the services that read documents, by name."""
    return {name: own.named for name, own in settings.providers.items() if own.wire == "documents"}


def _wire(settings: Settings, provider: str) -> str:
    """The type of provider that a name refers to."""
    return "openai" if provider in settings.providers else provider


def _parameters(provider: ProviderSettings | None) -> dict[str, dict[str, object]]:
    """Call parameters by model, with "" for the provider's other models."""
    if provider is None:
        return {}
    own = {name: each.parameters for name, each in provider.models.items()}
    return {name: each for name, each in {**own, "": provider.parameters}.items() if each is not None}


def prices_of(settings: Settings) -> prices.PriceTable:
    """The shipped prices, overridden by those in the settings."""
    table = {
        provider.named: prices.ProviderPrices(
            {
                model: prices.Price(*(_nano(part) for part in (each.input, each.output, each.unit)))
                for model, each in provider.prices.items()
            },
            free=provider.free,
        )
        for provider in settings.providers.values()
        if provider.free or provider.prices
    }
    if not table:
        return prices.DEFAULT
    spelled = {
        name: [
            each.free,
            {model: [p.input, p.output, *filter(None, [p.unit])] for model, p in each.models.items()},
        ]
        for name, each in table.items()
    }
    version = f"{prices.DEFAULT.version}+{keys.digest(keys.canonical(spelled))[:8]}"
    return replace(prices.DEFAULT, version=version, providers=table)


def _nano(price: Decimal) -> int:
    return prices.dollars(float(price))


def clients_of(
    settings: Settings,
    supplies: Supplies,
    watch: Callable[[Provider], Provider],
    open_file: Callable[[str], BinaryIO],
    connections: int = CONNECTIONS,
) -> Clients:
    """A client for each configured provider, by identity. `open_file` opens the file with a digest.

    `connections` is how many a client has at most.

    The default providers of embeddings and answers are opened here, so that a process with a wrong setting
    does not start; the others at their first call.
    """
    opening: dict[str, Callable[[], Provider]] = {}
    usual = [
        (part, name) for part, name in (("embedding", supplies.embedding), ("llm", supplies.llm)) if name
    ]
    for part, name in usual:
        opening.setdefault(name, functools.partial(_provider, settings, part, name, connections))
    for name, own in settings.providers.items():
        if own.wire == "documents":
            opening.setdefault(
                own.named, functools.partial(_document_service, settings, name, own, open_file)
            )
        elif own.wire != "anthropic":  # that is the gateway's own
            opening.setdefault(
                own.named, functools.partial(_named_provider, settings, name, own, connections)
            )
    opening.setdefault(local.NAME, local.LocalProvider)
    opening.setdefault(local_llm.NAME, local_llm.LocalLanguageProvider)

    def opened(identity: str) -> Provider:
        client = opening[identity]()
        # The built-in embedder makes no network calls to trace.
        return watch(TracedProvider(client) if traces.are_on() and identity != local.NAME else client)

    clients = Clients({identity: functools.partial(opened, identity) for identity in opening})
    for _, name in usual:
        clients[name]
    return clients


def provider_name(settings: Settings, part: str) -> str | None:
    """The name of the provider for `part` (`embedding`, `llm`); None if not configured.

    A server other than the provider's own is named with its host: the name is part of the content key, and
    the answers of two servers must not be confused.
    """
    provider: str | None = getattr(settings, f"{part}_provider")
    if (part, provider) == ("llm", "local"):
        return local_llm.NAME  # `local` stands for two different providers
    if provider != "openai" and provider not in settings.providers:
        return provider
    if provider in settings.providers:
        return settings.providers[provider].named
    url = getattr(settings, f"{part}_base_url")
    return "openai" if url is None else f"openai@{urlsplit(url).netloc}"


def _custom_provider(part: str, path: str) -> Provider:
    """A provider from the user's own function, which receives the name it must have."""
    module, _, name = path.partition(":")
    try:
        provider: Provider = getattr(importlib.import_module(module), name)(path)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        message = (
            f"the {part} provider {path} cannot be created ({error}); it must be a function that takes a name"
        )
        raise BadRequestError(message, code="bad_provider") from error
    if provider.name != path:
        message = f"the {part} provider {path} has the name {provider.name!r}; it must be {path!r}"
        raise BadRequestError(message, code="bad_provider")
    return provider


def _provider(settings: Settings, part: str, name: str, connections: int) -> Provider:
    if name == local.NAME:
        return local.LocalProvider()
    if name == local_llm.NAME:
        return local_llm.LocalLanguageProvider()
    if ":" in getattr(settings, f"{part}_provider"):
        return _custom_provider(part, name)
    if (own := settings.providers.get(getattr(settings, f"{part}_provider"))) is not None:
        return _named_provider(settings, part, own, connections)
    url = getattr(settings, f"{part}_base_url")
    key = getattr(settings, f"{part}_api_key")
    retention = getattr(settings, f"{part}_key_retention")
    profile = replace(
        openai.OPENAI,
        name=name,
        honours_keys=retention > 0,
        key_retention=retention,
        deadline=settings.order_deadline,
    )
    secret = key.get_secret_value() if key is not None else ""
    try:
        return openai.OpenAIProvider(url or OPENAI_URL, secret, profile, max_connections=connections)
    except ValueError as error:
        message = f"the {part} provider cannot be configured: {error}"
        raise BadRequestError(message, code="bad_provider") from error


def _named_provider(settings: Settings, part: str, own: ProviderSettings, connections: int) -> Provider:
    """The provider of a `[providers.NAME]` table."""
    reranks = own.wire == "cohere"
    usual = cohere.COHERE if reranks else openai.OPENAI
    profile = replace(
        usual,
        name=own.named,
        honours_keys=own.key_retention > 0,
        key_retention=own.key_retention,
        max_inputs=usual.max_inputs if reranks else own.max_inputs or usual.max_inputs,
        max_tokens=own.max_tokens or usual.max_tokens,
        deadline=own.deadline or (usual.deadline if reranks else settings.order_deadline),
    )
    try:
        if reranks:
            return cohere.CohereProvider((own.base_url or COHERE_URL).rstrip("/"), own.key, profile)
        url = (own.base_url or OPENAI_URL).rstrip("/")
        return openai.OpenAIProvider(url, own.key, profile, max_connections=connections)
    except ValueError as error:
        message = f"the {part} provider cannot be configured: {error}"
        raise BadRequestError(message, code="bad_provider") from error


def _document_service(
    settings: Settings, name: str, own: ProviderSettings, open_file: Callable[[str], BinaryIO]
) -> Provider:
    """The provider of a `[providers.NAME]` table that reads documents."""
    profile = replace(
        document_client.DOCUMENTS,
        name=own.named,
        honours_keys=own.key_retention > 0,
        key_retention=own.key_retention,
        deadline=own.deadline or max(settings.order_deadline, document_client.DOCUMENTS.deadline),
    )
    try:
        return document_client.DocumentProvider(
            str(own.base_url),
            own.key,
            open_file,
            profile,
            key_header=own.api_key_header or "Authorization",
            max_answer=own.max_answer or document_client.MAX_ANSWER,
        )
    except ValueError as error:
        message = f"the provider {name} cannot be configured: {error}"
        raise BadRequestError(message, code="bad_provider") from error
