"""Somebody in front of a browser, and what they were shown. Whatever leaves this machine is a failure."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import axe_playwright_python
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
# Chromium notes every refusal of the API; what the web UI makes of it is what the tests look at.
EXPECTED = (
    *(
        "400 (Bad Request)",
        "401 (Unauthorized)",
        "404 (Not Found)",
        "409 (Conflict)",
        "412 (Precondition Failed)",
    ),
    *("415 (Unsupported Media Type)", "ERR_ABORTED", "ERR_EMPTY_RESPONSE"),
    *("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED", "ERR_CONNECTION_RESET"),
)
SECONDS = 45.0


class Reader:
    """One browser window on one installation."""

    def __init__(self, browser: Browser, address: str, **look: Any) -> None:
        self.address = address
        self.context: BrowserContext = browser.new_context(viewport={"width": 1280, "height": 860}, **look)
        self.context.set_default_timeout(1000 * SECONDS)
        self.page: Page = self.context.new_page()
        self.requests: list[tuple[str, str]] = []
        self.complaints: list[str] = []
        self.context.on("request", lambda one: self.requests.append((one.method, one.url)))
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not any(word in message.text for word in EXPECTED):
            self.complaints.append(message.text)

    def open(self, path: str = "/", *, live: bool = True) -> Page:
        """The page is there, and follows the stream."""
        self.page.goto(self.address + path)
        if live:
            self.page.wait_for_selector("#live[data-state=live]")
        return self.page

    def asked(self, part: str) -> int:
        """How many requests went to an address with this in it."""
        return sum(part in urlsplit(url).path for _, url in self.requests)

    def text(self, selector: str) -> str:
        return self.page.inner_text(selector).strip()

    def shows(self, selector: str, text: str) -> None:
        """Return once the text is there; fail when it does not come."""
        self.page.wait_for_function(
            "([selector, text]) => document.querySelector(selector)?.innerText.includes(text)",
            arg=[selector, text],
        )

    def judged(self, *rules: str) -> list[str]:
        """What axe-core finds wrong with the page, by all its rules or by these."""
        # Not by a tag: the page's own rules forbid scripts that are not its own.
        self.page.evaluate(f"() => {{ {AXE}; window.axe = axe; }}")
        how = {"runOnly": list(rules)} if rules else {}
        result = self.page.evaluate("(how) => axe.run(document, how)", {**how, "resultTypes": ["violations"]})
        return [
            f"{one['id']}: {one['help']} {[node['html'][:160] for node in one['nodes']][:3]}"
            for one in result["violations"]
        ]

    def close(self) -> None:
        """The window is closed; nothing went wrong in it, and nothing left this machine."""
        self.context.close()
        assert self.complaints == []
        foreign = {urlsplit(url).hostname for _, url in self.requests} - {"127.0.0.1"}
        assert foreign <= {None}, foreign


class Api:
    """The API as a program calls it."""

    def __init__(self, address: str) -> None:
        self.address = address

    def call(self, method: str, path: str, body: Any = None) -> Any:
        sent = None if body is None else json.dumps(body).encode()
        request = Request(
            f"{self.address}/api/v1/{path}", sent, {"Content-Type": "application/json"}, method=method
        )
        with urlopen(request, timeout=SECONDS) as answer:
            return json.loads(answer.read() or b"null")

    def get(self, path: str) -> Any:
        return self.call("GET", path)

    def collection(self, name: str) -> str:
        self.call("POST", "collections", {"id": name, "title": name.capitalize()})
        return name

    def text(self, collection: str, title: str, text: str) -> str:
        """The id of a new document."""
        created = self.call("POST", f"collections/{collection}/documents", {"title": title, "text": text})
        return created["document"]["id"]

    def document(self, name: str) -> Any:
        return self.get(f"documents/{name}")
