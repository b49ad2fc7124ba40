"""The paid calls that parsers would make, for estimates."""

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path

from holdfast.core.errors import BadRequestError, HoldfastError, WorkError
from holdfast.documents.parse.parser import Parser
from holdfast.kinds import index, paid_parsing
from holdfast.ledger.pay import Call


class ParseCalls:
    """What parsers would pay for."""

    def __init__(self, services: Mapping[str, str]) -> None:
        """`services` are the paid services that parsers may ask, by name, and their identities."""
        self._services = services

    def of_text(self, parser: Parser, text: str, chosen: index.Choices, seconds: float | None) -> list[Call]:
        """The call that is made before this text is read, were it uploaded: one, or none."""
        with tempfile.NamedTemporaryFile() as file:
            file.write(text.encode("utf-8", "replace"))
            file.flush()
            return self.of_file(parser, Path(file.name), "", chosen, seconds=seconds)

    def of_file(
        self,
        parser: Parser,
        path: Path,
        name: str,
        chosen: index.Choices,
        *,
        digest: str | None = None,
        seconds: float | None = None,
    ) -> list[Call]:
        """The call that is made before this file is read: one, or none.

        BadRequestError `no_provider` if it names a provider that is not set up. A file that cannot be
        opened, and so would fail before it is paid for, has none.
        """
        try:
            request = parser.paid_request(path, name, seconds, parsers=chosen.parsers)
        except WorkError as error:
            if error.code in {"parse_timeout", "parser_unfit"}:
                raise
            return []
        if request is None:
            return []
        if digest is None:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        try:
            return [paid_parsing.call(request, digest, self._services)]
        except HoldfastError as error:
            raise BadRequestError(error.message, code=error.code) from error
