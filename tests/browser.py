"""A headless Chromium for tests: what a page becomes, what its console says, what it asks the network for."""

import shutil
import socket
import subprocess
import threading

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
    "--disable-component-update", "--disable-default-apps", "--disable-sync", "--disable-extensions",
    "--disable-dev-shm-usage", "--enable-logging=stderr", "--hide-scrollbars",
)  # fmt: skip


def find_browser():
    """The path of a Chromium; skips without one."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip("no Chromium is installed (Debian: apt install chromium)")
    return found


class Proxy:
    """A proxy that answers nothing and keeps the first line of every request."""

    def __init__(self):
        self.asked = []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(5)
                try:
                    self.asked.append(connection.recv(2000).split(b"\r\n")[0].decode("latin-1"))
                except OSError:
                    self.asked.append("a connection")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


def open_page(path, folder):
    """The document as the browser has it, the lines of its console, and what it asked the network for."""
    with Proxy() as proxy:
        options = (
            f"--user-data-dir={folder}/profile", f"--proxy-server=127.0.0.1:{proxy.port}",
            "--proxy-bypass-list=<-loopback>", "--dump-dom",
        )  # fmt: skip
        done = subprocess.run(
            [find_browser(), *QUIET, *options, f"file://{path}"],
            capture_output=True,
            text=True,
            timeout=90,
            check=True,
        )
        asked = [line for line in proxy.asked if not any(own in line for own in OWN)]
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line], asked


# What this browser asks for of its own accord, whatever the page.
OWN = ("google.com", "googleapis.com", "gstatic.com", "gvt1.com")
