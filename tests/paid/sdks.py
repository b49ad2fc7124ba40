"""The client libraries of providers as released, each with one way to ask: a prompt in, a text out."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import requires
from typing import Any

import anthropic
import cohere
import groq
import httpx
import httpx2
import openai
from mistralai.client import Mistral

from holdfast import Guard
from holdfast.testing.meter import Meter

KEY = "sk-secret-key-of-the-application"


def flavour(package: str) -> Any:
    """What the clients of the installed release stand on: httpx2, or httpx as older ones do."""
    needs = [each for each in requires(package) or () if "extra" not in each]
    return httpx2 if any(each.startswith("httpx2") for each in needs) else httpx


OF_OPENAI, OF_ANTHROPIC, OF_MISTRAL = (flavour(name) for name in ("openai", "anthropic", "mistralai"))


@dataclass(frozen=True)
class Sdk:
    """One library, synchronous or not, whole or streamed; `ask(guard, meter, prompt)` answers the text."""

    name: str
    ask: Callable[..., str]
    rate_limited: type[Exception]


def _messages(prompt: str) -> list[Any]:
    return [{"role": "user", "content": prompt}]


def openai_client(guard: Guard, meter: Meter, module: Any = OF_OPENAI, **options: Any) -> openai.OpenAI:
    http = module.Client(transport=guard.transport(module, **_transport(options)))
    return openai.OpenAI(base_url=meter.base_url, api_key=KEY, http_client=http, **options)


def openai_async(guard: Guard, meter: Meter, module: Any = OF_OPENAI, **options: Any) -> openai.AsyncOpenAI:
    http = module.AsyncClient(transport=guard.transport(module, **_transport(options)))
    return openai.AsyncOpenAI(base_url=meter.base_url, api_key=KEY, http_client=http, **options)


def anthropic_client(guard: Guard, meter: Meter, **options: Any) -> anthropic.Anthropic:
    http = OF_ANTHROPIC.Client(transport=guard.transport(OF_ANTHROPIC, **_transport(options)))
    return anthropic.Anthropic(base_url=meter.url, api_key=KEY, http_client=http, **options)


def anthropic_async(guard: Guard, meter: Meter, **options: Any) -> anthropic.AsyncAnthropic:
    http = OF_ANTHROPIC.AsyncClient(transport=guard.transport(OF_ANTHROPIC, **_transport(options)))
    return anthropic.AsyncAnthropic(base_url=meter.url, api_key=KEY, http_client=http, **options)


def _transport(options: dict[str, Any]) -> dict[str, Any]:
    return {
        name: options.pop(name) for name in ("provider", "honours_keys", "ssl_context") if name in options
    }


def _openai(guard: Guard, meter: Meter, prompt: str, **options: Any) -> str:
    with openai_client(guard, meter, **options) as client:
        answer = client.chat.completions.create(model="gpt-4o-mini", messages=_messages(prompt))
    return str(answer.choices[0].message.content)


def _openai_httpx(guard: Guard, meter: Meter, prompt: str, **options: Any) -> str:
    return _openai(guard, meter, prompt, module=httpx, **options)


def _openai_responses(guard: Guard, meter: Meter, prompt: str, **options: Any) -> str:
    with openai_client(guard, meter, **options) as client:
        return client.responses.create(model="gpt-4o-mini", input=prompt).output_text


def _openai_stream(guard: Guard, meter: Meter, prompt: str, **options: Any) -> str:
    with openai_client(guard, meter, **options) as client:
        chunks = client.chat.completions.create(
            model="gpt-4o-mini",
            messages=_messages(prompt),
            stream=True,
            stream_options={"include_usage": True},
        )
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def _openai_responses_stream(guard: Guard, meter: Meter, prompt: str, **options: Any) -> str:
    with openai_client(guard, meter, **options) as client:
        events = client.responses.create(model="gpt-4o-mini", input=prompt, stream=True)
        return "".join(event.delta for event in events if event.type == "response.output_text.delta")


def _openai_async(guard: Guard, meter: Meter, prompt: str, **options: Any) -> str:
    async def ask() -> str:
        async with openai_async(guard, meter, **options) as client:
            answer = await client.chat.completions.create(model="gpt-4o-mini", messages=_messages(prompt))
        return str(answer.choices[0].message.content)

    return asyncio.run(ask())


def _openai_async_stream(guard: Guard, meter: Meter, prompt: str, **options: Any) -> str:
    async def ask() -> str:
        async with openai_async(guard, meter, **options) as client:
            chunks = await client.chat.completions.create(
                model="gpt-4o-mini", messages=_messages(prompt), stream=True
            )
            return "".join([c.choices[0].delta.content or "" async for c in chunks if c.choices])

    return asyncio.run(ask())


def _anthropic(guard: Guard, meter: Meter, prompt: str, **options: Any) -> str:
    with anthropic_client(guard, meter, **options) as client:
        answer = client.messages.create(model="claude-haiku-4-5", max_tokens=100, messages=_messages(prompt))
    return answer.content[0].text


def _anthropic_stream(guard: Guard, meter: Meter, prompt: str, **options: Any) -> str:
    with (
        anthropic_client(guard, meter, **options) as client,
        client.messages.stream(
            model="claude-haiku-4-5", max_tokens=100, messages=_messages(prompt)
        ) as stream,
    ):
        return "".join(stream.text_stream)


def _anthropic_async(guard: Guard, meter: Meter, prompt: str, **options: Any) -> str:
    async def ask() -> str:
        async with anthropic_async(guard, meter, **options) as client:
            answer = await client.messages.create(
                model="claude-haiku-4-5", max_tokens=100, messages=_messages(prompt)
            )
        return str(answer.content[0].text)

    return asyncio.run(ask())


def _anthropic_async_stream(guard: Guard, meter: Meter, prompt: str, **options: Any) -> str:
    async def ask() -> str:
        async with (
            anthropic_async(guard, meter, **options) as client,
            client.messages.stream(
                model="claude-haiku-4-5", max_tokens=100, messages=_messages(prompt)
            ) as stream,
        ):
            return "".join([text async for text in stream.text_stream])

    return asyncio.run(ask())


def _mistral(guard: Guard, meter: Meter, prompt: str) -> str:
    with OF_MISTRAL.Client(transport=guard.transport(OF_MISTRAL)) as http:
        client = Mistral(api_key=KEY, server_url=meter.url, client=http)
        answer = client.chat.complete(model="mistral-small", messages=_messages(prompt))
    return str(answer.choices[0].message.content)


def _mistral_async(guard: Guard, meter: Meter, prompt: str) -> str:
    async def ask() -> str:
        async with OF_MISTRAL.AsyncClient(transport=guard.transport(OF_MISTRAL)) as http:
            client = Mistral(api_key=KEY, server_url=meter.url, async_client=http)
            answer = await client.chat.complete_async(model="mistral-small", messages=_messages(prompt))
        return str(answer.choices[0].message.content)

    return asyncio.run(ask())


def _cohere(guard: Guard, meter: Meter, prompt: str) -> str:
    with httpx.Client(transport=guard.transport(httpx)) as http:
        client = cohere.ClientV2(api_key=KEY, base_url=meter.url, httpx_client=http)
        answer = client.chat(model="command-r", messages=_messages(prompt))
    return str(answer.message.content[0].text)


def _cohere_stream(guard: Guard, meter: Meter, prompt: str) -> str:
    with httpx.Client(transport=guard.transport(httpx)) as http:
        client = cohere.ClientV2(api_key=KEY, base_url=meter.url, httpx_client=http)
        events = client.chat_stream(model="command-r", messages=_messages(prompt))
        return "".join(each.delta.message.content.text for each in events if each.type == "content-delta")


def _groq(guard: Guard, meter: Meter, prompt: str, **options: Any) -> str:
    http = httpx.Client(transport=guard.transport(httpx))
    with groq.Groq(api_key=KEY, base_url=meter.url, http_client=http, **options) as client:
        answer = client.chat.completions.create(model="llama-3", messages=_messages(prompt))
    return str(answer.choices[0].message.content)


def _groq_async(guard: Guard, meter: Meter, prompt: str, **options: Any) -> str:
    async def ask() -> str:
        http = httpx.AsyncClient(transport=guard.transport(httpx))
        async with groq.AsyncGroq(api_key=KEY, base_url=meter.url, http_client=http, **options) as client:
            answer = await client.chat.completions.create(model="llama-3", messages=_messages(prompt))
        return str(answer.choices[0].message.content)

    return asyncio.run(ask())


OPENAI = (
    Sdk("openai", _openai, openai.RateLimitError),
    Sdk("openai-async", _openai_async, openai.RateLimitError),
    Sdk("openai-stream", _openai_stream, openai.RateLimitError),
)
ANTHROPIC = (
    Sdk("anthropic", _anthropic, anthropic.RateLimitError),
    Sdk("anthropic-async", _anthropic_async, anthropic.RateLimitError),
    Sdk("anthropic-stream", _anthropic_stream, anthropic.RateLimitError),
)
ALL = (
    *OPENAI,
    *ANTHROPIC,
    Sdk("openai-httpx", _openai_httpx, openai.RateLimitError),
    Sdk("openai-async-stream", _openai_async_stream, openai.RateLimitError),
    Sdk("openai-responses", _openai_responses, openai.RateLimitError),
    Sdk("openai-responses-stream", _openai_responses_stream, openai.RateLimitError),
    Sdk("anthropic-async-stream", _anthropic_async_stream, anthropic.RateLimitError),
    Sdk("mistral", _mistral, Exception),
    Sdk("mistral-async", _mistral_async, Exception),
    Sdk("cohere", _cohere, Exception),
    Sdk("cohere-stream", _cohere_stream, Exception),
    Sdk("groq", _groq, groq.RateLimitError),
    Sdk("groq-async", _groq_async, groq.RateLimitError),
)
