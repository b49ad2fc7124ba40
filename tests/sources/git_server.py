"""A Git server on the loopback: Git's own, behind the web server of the other tests."""

import os
import subprocess


class Repository:
    """A bare repository on disk, written with Git's own commands and served under `/r.git`."""

    def __init__(self, folder, site):
        self.folder = folder / "r.git"
        self.url = f"{site.url}/r.git"
        self._git("init", "-q", "--bare", "-b", "main", str(self.folder), cwd=folder)
        for path in ("/r.git/info/refs", "/r.git/git-upload-pack"):
            site.pages[path] = self.answer

    def _git(self, *arguments, data=b"", cwd=None):
        names = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        process = subprocess.run(
            ["git", *arguments],
            input=data,
            cwd=cwd or self.folder,
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", **names},
            capture_output=True,
            check=True,
        )
        return process.stdout.strip().decode()

    def blob(self, data):
        return self._git("hash-object", "-w", "--stdin", data=data)

    def tree(self, entries):
        """A tree of (mode, name, id), however odd the names are."""
        data = b"".join(f"{mode} {name}\0".encode() + bytes.fromhex(child) for mode, name, child in entries)
        return self._git("hash-object", "-t", "tree", "--literally", "-w", "--stdin", data=data)

    def files(self, files):
        """A tree of paths and their contents."""
        lines = "".join(f"100644 {self.blob(data)}\t{path}\n" for path, data in files.items())
        self._git("read-tree", "--empty")
        self._git("update-index", "--add", "--index-info", data=lines.encode())
        return self._git("write-tree")

    def commit(self, tree, branch="main"):
        commit = self._git("commit-tree", tree, "-m", "x")
        self._git("update-ref", f"refs/heads/{branch}", commit)
        return commit

    def tag(self, name, commit):
        self._git("tag", "-a", name, commit, "-m", "x")

    def answer(self, handler):
        """What Git itself answers."""
        path, _, query = handler.path.partition("?")
        body = handler.rfile.read(int(handler.headers.get("Content-Length", "0")))
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.folder.parent),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": handler.command,
            "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
        }
        command = ["git", "-c", "safe.directory=*", "http-backend"]
        process = subprocess.run(command, input=body, env=environment, capture_output=True, check=True)
        head, _, content = process.stdout.partition(b"\r\n\r\n")
        lines = [line.partition(": ")[::2] for line in head.decode().split("\r\n")]
        handler.send_response(int(dict(lines).get("Status", "200").split()[0]))
        for name, value in lines:
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(content)
