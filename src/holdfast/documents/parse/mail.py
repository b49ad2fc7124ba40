"""E-mail, as EML (RFC 5322) or Outlook's MSG: subject, sender, recipients and date, then the body.

The plain text is taken, or the HTML where there is no other. Attachments are named, and read by `containers`.
"""

import email.message
import email.policy
import functools
from collections.abc import Callable, Iterable, Iterator
from email.errors import MessageError

from holdfast.core.errors import WorkError
from holdfast.core.text import plain
from holdfast.documents.parse import html, texts
from holdfast.documents.parse.records import Page, ParseLimits, Role, TextBlock
from holdfast.documents.parse.source import Readable

_SHOWN = ("From", "To", "Cc", "Date")
_LONGEST_HEADER = 4000


def read_eml(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:
    """The subject and the one page of a message."""
    return pages_of(parsed_eml(texts.content(path, limits.text_bytes)))


def pages_of(message: email.message.EmailMessage) -> tuple[str | None, list[Page]]:
    """The subject and the one page of a parsed message."""
    fields = {name: header(message, name) for name in _SHOWN}
    names = (
        [part.get_filename() or "" for part in message.iter_attachments()] if message.is_multipart() else []
    )
    return _page(header(message, "Subject"), fields, _body(message), names)


def parsed_eml(data: bytes) -> email.message.EmailMessage:
    """The message; `broken_file` if its parts are nested too deeply or it cannot be read."""
    try:
        message = email.message_from_bytes(data, policy=email.policy.default)
    except (MessageError, ValueError, LookupError, RecursionError) as error:
        raise WorkError(f"the message is damaged ({error}); upload it again", code="broken_file") from error
    if not isinstance(message, email.message.EmailMessage):
        raise WorkError("the message is damaged; upload it again", code="broken_file")
    return message


def header(message: email.message.EmailMessage, name: str) -> str:
    """The values of a header, decoded; as it is written if it cannot be decoded."""
    try:
        return ", ".join(" ".join(str(value).split()) for value in message.get_all(name, []))[
            :_LONGEST_HEADER
        ]
    except (ValueError, LookupError, IndexError, AttributeError):  # flaws of the library in damaged headers
        raw = (value for key, value in message.raw_items() if key.lower() == name.lower())
        return ", ".join(" ".join(str(value).split()) for value in raw)[:_LONGEST_HEADER]


def _body(message: email.message.EmailMessage) -> Iterable[TextBlock]:
    """The blocks of the body: of the plain text, or of the HTML where the plain text is missing or empty."""
    for form in ("plain", "html"):
        part = message.get_body((form,))
        if part is None:
            continue
        text = _content(part)
        blocks = html.text_blocks(text)[1] if form == "html" else texts.plain_pages(text)[0].blocks
        if blocks:
            return blocks
    return ()


def _content(part: email.message.MIMEPart) -> str:
    """The decoded text of a part; an unknown or wrong encoding is no reason to lose it."""
    try:
        text = str(part.get_content())
    except (LookupError, ValueError, UnicodeError):
        payload = part.get_payload(decode=True)
        text = payload.decode("utf-8", "replace") if isinstance(payload, bytes) else ""
    return plain(text).replace("\r\n", "\n").replace("\f", "\n")


def read_msg(path: Readable, limits: ParseLimits) -> tuple[str | None, list[Page]]:  # noqa: ARG001 (as every reader)
    """The subject and the one page of a message of Outlook."""
    import oxmsg  # noqa: PLC0415 (not every message is one of Outlook)

    with path.open("rb") as file:
        message = oxmsg.Message.load(file)
    headers = {name.title(): value for name, value in message.message_headers.items()}
    people = ", ".join(
        f"{each.name} <{each.email_address}>" if each.name != each.email_address else each.name
        for each in message.recipients
    )
    sent = message.sent_date
    fields = {
        "From": message.sender or "",
        "To": headers.get("To") or people,
        "Cc": headers.get("Cc", ""),
        "Date": headers.get("Date") or (sent.isoformat(sep=" ") if sent is not None else ""),
    }
    blocks = texts.plain_pages(plain(message.body or "").replace("\r\n", "\n").replace("\f", "\n"))[0].blocks
    if not blocks and (body := message.html_body):
        blocks = html.text_blocks(plain(body))[1]
    return _page(message.subject, fields, blocks, [each.file_name or "" for each in message.attachments])


def _page(
    subject: str, fields: dict[str, str], body: Iterable[TextBlock], attachments: Iterable[str]
) -> tuple[str | None, list[Page]]:
    title = plain(" ".join(subject.split()))
    blocks = [TextBlock(Role.HEADING, title, 1)] if title else []
    head = "\n".join(_head(fields, attachments))
    if head:
        blocks.append(TextBlock(Role.PARAGRAPH, plain(head)))
    return title or None, [Page(1, (*blocks, *body))]


def _head(fields: dict[str, str], attachments: Iterable[str]) -> Iterator[str]:
    for name, value in fields.items():
        if value.strip():
            yield f"{name}: {' '.join(value.split())[:_LONGEST_HEADER]}"
    names = ", ".join(" ".join(name.split()) for name in attachments if name.strip())
    if names:
        yield f"Attachments: {names[:_LONGEST_HEADER]}"


def attachments(message: email.message.EmailMessage) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """The names of the attached files and messages, and how to read them; pictures of the body are none."""
    bodies = {id(message.get_body((form,))) for form in ("plain", "html")}
    waiting: list[email.message.Message] = [message]
    while waiting:
        part = waiting.pop()
        if part.get_content_type() == "message/rfc822":
            yield _forwarded(part)
        elif part.is_multipart():
            inner = part.get_payload()
            parts = inner if isinstance(inner, list) else []
            waiting.extend(each for each in reversed(parts) if isinstance(each, email.message.Message))
        elif id(part) not in bodies and _is_attached(part):
            yield part.get_filename() or "attachment", functools.partial(_payload, part)


def _is_attached(part: email.message.Message) -> bool:
    attached = part.get_content_disposition() == "attachment"
    return attached or (bool(part.get_filename()) and part.get_content_maintype() != "image")


def _payload(part: email.message.Message) -> bytes:
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _forwarded(part: email.message.Message) -> tuple[str, Callable[[], bytes]]:
    inner = part.get_payload(0) if part.is_multipart() else None
    if not isinstance(inner, email.message.EmailMessage):
        return "message.eml", functools.partial(_payload, part)
    return f"{header(inner, 'Subject')[:100] or 'message'}.eml", inner.as_bytes


def msg_attachments(path: Readable) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """As `attachments`, of a message of Outlook; those that are only referred to are left out."""
    import oxmsg  # noqa: PLC0415 (as above)

    with path.open("rb") as file:
        message = oxmsg.Message.load(file)
    for each in message.attachments:
        data = each.file_bytes
        if data:
            yield each.file_name or "attachment", functools.partial(bytes, data)
