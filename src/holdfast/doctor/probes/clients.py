"""Clients of paid providers: in the source of the application's modules, and alive in this process.

The source is parsed, never run again. Only modules that are already loaded and lie outside of installed
packages are read.
"""

import ast
import gc
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from holdfast.doctor.facts import ClientFacts

# By the name of the class: library, its own number of retries, its own timeout in seconds.
CLIENTS = {
    "OpenAI": ("openai", 2, 600.0),
    "AsyncOpenAI": ("openai", 2, 600.0),
    "AzureOpenAI": ("openai", 2, 600.0),
    "AsyncAzureOpenAI": ("openai", 2, 600.0),
    "Anthropic": ("anthropic", 2, 600.0),
    "AsyncAnthropic": ("anthropic", 2, 600.0),
    "AnthropicBedrock": ("anthropic", 2, 600.0),
    "AnthropicVertex": ("anthropic", 2, 600.0),
    "Groq": ("groq", 2, 60.0),
    "AsyncGroq": ("groq", 2, 60.0),
    "ChatOpenAI": ("langchain_openai", 2, 600.0),
    "AzureChatOpenAI": ("langchain_openai", 2, 600.0),
    "OpenAIEmbeddings": ("langchain_openai", 2, 600.0),
    "ChatAnthropic": ("langchain_anthropic", 2, 600.0),
}
MOST_BYTES = 2 << 20


def probe(root: Path) -> tuple[ClientFacts, ...]:
    """The clients in the loaded modules below `root`, and those that are alive and not in such a source."""
    listed: list[ClientFacts] = []
    for file in _sources(root.resolve()):
        listed += _in_source(file, root.resolve())
    if not any(each.library in {"openai", "anthropic", "groq"} for each in listed):
        listed += _alive()
    return tuple(dict.fromkeys(listed))


def _sources(root: Path) -> list[Path]:
    """The files of loaded modules that lie below the folder and are not of installed packages."""
    installed = [Path(sysconfig.get_path(each)).resolve() for each in ("purelib", "platlib", "stdlib")]
    names = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    files = []
    for name in names:
        # Thousands of modules are loaded: only those that may lie there are looked up.
        if not isinstance(name, str) or not name.endswith(".py") or root.name not in name:
            continue
        file = Path(name).resolve()
        if file.is_relative_to(root) and not any(file.is_relative_to(each) for each in installed):
            files.append(file)
    return sorted(files)


def _in_source(file: Path, root: Path) -> Iterator[ClientFacts]:
    try:
        if file.stat().st_size > MOST_BYTES:
            return
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    imported = _imported(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        name = imported.get(name, name)
        library, retries, timeout = CLIENTS.get(name, ("", 0, 0.0))
        if not library or not _is_of(node.func, library, imported, tree):
            continue
        options = {each.arg: each.value for each in node.keywords if each.arg is not None}
        hidden = any(each.arg is None for each in node.keywords)
        guarded = any(
            "attr='transport'" in ast.dump(options[key])
            for key in ("http_client", "http_async_client")
            if key in options
        )
        yield ClientFacts(
            f"{file.relative_to(root)}:{node.lineno}",
            library,
            name,
            max_retries=_number(options, "max_retries", None if hidden else retries),
            timeout=_number(options, "timeout", None if hidden else timeout),
            through_guard=guarded,
        )


def _imported(tree: ast.Module) -> dict[str, str]:
    """By the name that a module uses, the name that it imported."""
    return {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def _is_of(function: ast.expr, library: str, imported: dict[str, str], tree: ast.Module) -> bool:
    """Whether the class comes from that library: by `from LIBRARY import`, or as an attribute of it."""
    if isinstance(function, ast.Attribute):
        return isinstance(function.value, ast.Name) and function.value.id == library
    sources = {
        node.module or ""
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        and any((alias.asname or alias.name) == getattr(function, "id", None) for alias in node.names)
    }
    return any(source.partition(".")[0] == library for source in sources) and bool(imported)


def _number(options: dict[str, ast.expr], name: str, usual: Any) -> Any:
    """The value of an option: a number in the source, the library's own if it is left out, else None."""
    if name not in options:
        return usual
    value = options[name]
    if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
        return value.value
    return None


def _alive() -> Iterator[ClientFacts]:
    """Clients of the providers' own libraries that this process has made."""
    for each in gc.get_objects():
        kind = type(each)
        library = str(kind.__module__).partition(".")[0]
        if kind.__name__ not in CLIENTS or library not in {"openai", "anthropic", "groq"}:
            continue
        timeout = getattr(each, "timeout", None)
        transport = getattr(getattr(each, "_client", None), "_transport", None)
        yield ClientFacts(
            "in this process",
            library,
            kind.__name__,
            max_retries=getattr(each, "max_retries", None),
            timeout=float(timeout) if isinstance(timeout, int | float) else getattr(timeout, "read", None),
            through_guard=type(transport).__module__.startswith("holdfast."),
        )
