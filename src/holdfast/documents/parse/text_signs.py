"""Signs that a text is mail, JSON, XML, RTF or source code. Linear in the head of a file, which is enough."""

import json
import re

from holdfast.documents.parse.records import Format

_FIELD = re.compile(r"([!-9;-~]{1,76}):")
_KNOWN = frozenset(
    {"from", "to", "cc", "subject", "date", "reply-to", "sender", "content-type", "message-id", "received"}
    | {"mime-version", "return-path", "delivered-to", "dkim-signature", "x-mailer", "x-received"}
)
# Written by programs alone; people who copy a message into a text leave them out.
_BY_PROGRAMS = frozenset(
    {"message-id", "received", "mime-version", "return-path", "delivered-to", "dkim-signature", "x-received"}
)
_XML_NAMES = frozenset(
    {"xml", "rss", "atom", "svg", "xsd", "xsl", "xslt", "opml", "kml", "gpx", "wsdl", "plist"}
)
_JSON_NAMES = frozenset({"json", "ipynb", "jsonl", "ndjson", "geojson"})
_CODE = frozenset(
    {"py", "pyi", "pyx", "sh", "bash", "zsh", "fish", "js", "mjs", "cjs", "jsx", "ts", "tsx", "java"}
    | {"c", "h", "cc", "cpp", "cxx", "hpp", "hh", "cs", "go", "rs", "rb", "php", "swift", "kt", "kts"}
    | {"scala", "lua", "pl", "pm", "r", "jl", "sql", "ps1", "psm1", "bat", "cmd", "vue", "svelte"}
    | {"dart", "ex", "exs", "erl", "hrl", "hs", "ml", "mli", "fs", "fsx", "vb", "clj", "cljs", "lisp"}
    | {"el", "vim", "tf", "hcl", "proto", "thrift", "graphql", "gql", "gradle", "groovy", "m", "mm"}
    | {"asm", "s", "f", "f90", "for", "pas", "d", "nim", "zig", "v", "sv", "vhd", "vhdl", "css", "scss"}
    | {"sass", "less", "toml", "ini", "cfg", "conf", "properties", "env", "json5", "jsonc", "cmake"}
    | {"mk", "bzl", "tcl", "awk", "sol", "cob", "coffee", "diff", "patch"}
)
_CODE_FILES = frozenset(
    {"dockerfile", "makefile", "jenkinsfile", "vagrantfile", "rakefile", "gemfile", "procfile", "justfile"}
)


def by_content(text: str, name: str, *, whole: bool) -> Format | None:
    """The format that the text itself shows; None where only its name can tell. `whole`: it is all of it."""
    start = text.lstrip("\ufeff \t\r\n")
    if start.startswith("{\\rtf"):
        return Format.RTF
    if (start.startswith("<?xml") and "version" in start[5:40]) or (
        start.startswith("<") and extension(name) in _XML_NAMES
    ):
        return Format.XML
    if start.startswith("#!") and "/" in start.partition("\n")[0]:
        return Format.CODE
    if start[:1] in {"{", "["} and (form := _json(start, name, whole=whole)) is not None:
        return form
    return Format.EML if _is_mail(start, name) else None


def by_name(name: str) -> Format | None:
    """The format of source code and YAML, which only a name can tell."""
    ending = extension(name)
    if ending in {"yaml", "yml"}:
        return Format.YAML
    return Format.CODE if ending in (_CODE if "." in name else _CODE_FILES) else None


def extension(name: str) -> str:
    """The ending of a file name in small letters; a name without a dot is an ending itself."""
    return name.rpartition("/")[2].rpartition(".")[2].lower()


def _json(text: str, name: str, *, whole: bool) -> Format | None:
    """JSON, JSON Lines or a notebook; None if it is not valid as far as can be seen."""
    first, _newline, rest = text.partition("\n")
    rest = rest.lstrip()
    if rest[:1] in {"{", "["} and _is_container(first):
        return Format.JSONL
    is_named = extension(name) in _JSON_NAMES
    if whole:
        if not _is_container(text) and not (is_named and _seems_json(text) and _is_torn(text)):
            return None
    elif not _seems_json(text) and not is_named:
        return None
    if (
        text[0] == "{"
        and '"cell_type"' in text
        and ('"nbformat"' in text or not whole or extension(name) == "ipynb")
    ):
        return Format.NOTEBOOK
    if extension(name) == "ipynb" and '"cells"' in text:
        return Format.NOTEBOOK
    return Format.JSONL if extension(name) in {"jsonl", "ndjson"} else Format.JSON


def _is_torn(text: str) -> bool:
    """True if the last bracket is missing; other faults are those of dialects, which are text."""
    return text.rstrip()[-1:] not in {"}", "]"}


def _is_container(text: str) -> bool:
    try:
        return isinstance(json.loads(text, strict=False), dict | list)
    except (ValueError, RecursionError):
        return False


def _seems_json(text: str) -> bool:
    """True for the beginning of a long JSON text: brackets, then a quoted name with a colon, or a value."""
    inner = text.lstrip("[ \t\r\n")
    if inner.startswith("{"):
        inner = inner[1:].lstrip()
        if not inner.startswith('"'):
            return False
        end = inner.find('"', 1)
        return end > 0 and inner[end + 1 : end + 20].lstrip().startswith(":")
    return inner.startswith('"') and text.startswith("[")


def _is_mail(text: str, name: str) -> bool:
    """True if the text begins with the header of a message as programs write it."""
    names: set[str] = set()
    for number, line in enumerate(text.split("\n", 400)[:400]):
        line = line.rstrip("\r")  # noqa: PLW2901
        if not line:
            break
        field = _FIELD.match(line)
        if field is not None:
            names.add(field[1].lower())
        elif number == 0 or line[0] not in " \t":
            return False
    known = names & _KNOWN
    if extension(name) == "eml":
        return len(known) >= 2
    return len(known) >= 3 and "from" in known and bool(known & _BY_PROGRAMS)
