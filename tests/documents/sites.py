"""A web server on the loopback, for tests of what is fetched."""

import http.server
import threading

from holdfast.documents import addresses as rules


class Site:
    """A server on the loopback whose pages are functions of the request."""

    def __init__(self, context=None):
        site = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                if self.path != "/robots.txt" or site.pages[self.path] is not site.no_robots:
                    site.asked.append((self.path, dict(self.headers)))
                site.pages[self.path.partition("?")[0]](self)

            do_POST = do_GET  # noqa: N815 (as the server calls it)

            def log_message(self, *_arguments):
                pass

        self.pages, self.asked = {}, []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        if context is not None:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        self.page("/robots.txt", status=404)
        self.no_robots = self.pages["/robots.txt"]
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,))
        self.thread.start()

    def page(self, path, body=b"", status=200, **headers):
        def answer(handler):
            # What is not read when a connection closes makes it fail, and the response with it.
            handler.rfile.read(int(handler.headers.get("Content-Length", "0")))
            handler.send_response(status)
            for name, value in ({"Content-Length": str(len(body))} | headers).items():
                handler.send_header(name.replace("_", "-"), value)
            handler.end_headers()
            handler.wfile.write(body)

        self.pages[path] = answer
        return self.url + path

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


def public_once(monkeypatch):
    """The first host counts as one of the public internet, the others as what they are."""
    real, calls = rules.is_public, []

    def first_is_public(address):
        calls.append(address)
        return len(calls) == 1 or real(address)

    monkeypatch.setattr(rules, "is_public", first_is_public)
