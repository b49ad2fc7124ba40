"""The properties of a file of any format, read from its beginning or from the member that has them.

They are an extra: a file whose properties are damaged is read without them. PDFs are read in `pdf`, where the
file is open anyway.
"""

import email.parser
import email.policy
import email.utils
import importlib
import struct
import zlib
from collections.abc import Callable, Mapping
from datetime import datetime
from email.message import EmailMessage
from types import MappingProxyType
from typing import Any
from xml.etree.ElementTree import ParseError

from holdfast.core.errors import WorkError
from holdfast.documents.parse import (
    front_matter,
    html,
    json_records,
    mail,
    office_properties,
    properties,
    texts,
)
from holdfast.documents.parse.records import ARCHIVES, IMAGES, MIB, Format, ParseLimits
from holdfast.documents.parse.source import Readable

_BEGINNING = 256 * 1024
_MOST_HEADERS = 256 * 1024
_MOST_PEOPLE = 100
_FLAWS = (WorkError, ParseError, ValueError, KeyError, TypeError, IndexError, AttributeError, LookupError)
_DAMAGED = (OSError, SyntaxError, EOFError, RecursionError, StopIteration, struct.error, zlib.error)


def read(path: Readable, document_format: Format, limits: ParseLimits) -> dict[str, Any]:
    """What the file says about itself, within bounds; empty where it says nothing, or nothing readable."""
    reader = _reader(document_format)
    if reader is None:
        return {}
    try:
        return properties.bounded(properties.merged(reader(path, document_format, limits)))
    except (*_FLAWS, *_DAMAGED):
        return {}


_Reader = Callable[[Readable, Format, ParseLimits], Mapping[str, Any]]


def _reader(document_format: Format) -> _Reader | None:
    if document_format in ARCHIVES:
        return lambda path, form, _limits: office_properties.read(path, form)
    return _exif if document_format in IMAGES else _READERS.get(document_format)


def _markdown(path: Readable, _form: Format, _limits: ParseLimits) -> Mapping[str, Any]:
    return front_matter.split(texts.beginning(path))[0]


def _html(path: Readable, _form: Format, _limits: ParseLimits) -> Mapping[str, Any]:
    with path.open("rb") as file:
        return html.properties_of(file.read(_BEGINNING))


def _notebook(path: Readable, _form: Format, limits: ParseLimits) -> Mapping[str, Any]:
    notebook = json_records.loads(texts.load(path, min(limits.text_bytes, 16 * MIB)))
    about = notebook.get("metadata") or {}
    authors = [
        each.get("name", "") if isinstance(each, dict) else str(each) for each in about.get("authors") or ()
    ]
    code = (about.get("language_info") or {}).get("name") or (about.get("kernelspec") or {}).get("language")
    return {
        "title": about.get("title"),
        "author": properties.one_or_all(authors),
        "keywords": about.get("keywords") or about.get("tags"),
        "code_language": code,
    }


def _eml(path: Readable, _form: Format, _limits: ParseLimits) -> Mapping[str, Any]:
    with path.open("rb") as file:
        head = file.read(_MOST_HEADERS)
    message = email.parser.BytesHeaderParser(policy=email.policy.default).parsebytes(head)
    assert isinstance(message, EmailMessage)  # noqa: S101 (what this policy makes)
    return mail_properties(lambda name: mail.header(message, name))


def _msg(path: Readable, _form: Format, _limits: ParseLimits) -> Mapping[str, Any]:
    import oxmsg  # noqa: PLC0415 (not every message is one of Outlook)

    with path.open("rb") as file:
        message = oxmsg.Message.load(file)
    headers = {name.casefold(): str(value) for name, value in message.message_headers.items()}
    known = mail_properties(lambda name: headers.get(name.casefold(), ""))
    sent = message.sent_date
    others = {
        "subject": message.subject,
        "author": message.sender,
        "to": properties.one_or_all(each.email_address or "" for each in message.recipients),
        "date": properties.moment(sent) if sent is not None else None,
    }
    return properties.merged(known, others)


def mail_properties(header: Callable[[str], str]) -> dict[str, Any]:
    """The properties in the headers of a message: people by their e-mail, the date in UTC."""
    people = {name: _people(header(name)) for name in ("From", "To", "Cc")}
    mailboxes = {
        name.lower(): properties.one_or_all(mailbox.casefold() for _name, mailbox in some)
        for name, some in people.items()
    }
    return {
        "subject": header("Subject"),
        "author": properties.one_or_all(name for name, _mailbox in people["From"]),
        **mailboxes,
        "date": _mail_date(header("Date")),
        "message_id": header("Message-ID"),
        "in_reply_to": header("In-Reply-To"),
    }


def _people(header: str) -> list[tuple[str, str]]:
    """Name and mailbox of each person in a header; none where it is nested too deeply."""
    try:
        return email.utils.getaddresses([header])[:_MOST_PEOPLE]
    except RecursionError:
        return []


def _mail_date(text: str) -> str | None:
    if not text.strip():
        return None
    try:
        return properties.moment(email.utils.parsedate_to_datetime(text[:200]))
    except (ValueError, TypeError):
        return None


# Tags of EXIF: when a picture was taken, what it shows and by whom. Its place, its camera and its owner's
# serial numbers are left out: they say more about the photographer than about the document.
_EXIF = MappingProxyType({0x010E: "description", 0x013B: "author", 0x8298: "copyright"})
_TAKEN, _CHANGED, _DETAILS = 0x9003, 0x0132, 0x8769


def _exif(path: Readable, document_format: Format, _limits: ParseLimits) -> Mapping[str, Any]:
    images = importlib.import_module("holdfast.documents.parse.images")  # loads Pillow
    with images.opened(path, document_format) as image:
        tags = image.getexif()
        details = tags.get_ifd(_DETAILS)
    named = {name: str(tags[tag]) for tag, name in _EXIF.items() if tags.get(tag)}
    times = {"created": _exif_time(details.get(_TAKEN)), "modified": _exif_time(tags.get(_CHANGED))}
    return {**named, **times}


def _exif_time(text: object) -> str | None:
    try:
        taken = datetime.strptime(str(text)[:19], "%Y:%m:%d %H:%M:%S")  # noqa: DTZ007 (EXIF has no zone)
    except ValueError:
        return None
    return properties.moment(taken)


_READERS: Mapping[Format, _Reader] = MappingProxyType(
    {
        Format.MARKDOWN: _markdown,
        Format.HTML: _html,
        Format.NOTEBOOK: _notebook,
        Format.EML: _eml,
        Format.MSG: _msg,
    }
)
