"""Runs the built server for tests in Python."""

import contextlib
import subprocess
import time
import urllib.error
import urllib.request


@contextlib.contextmanager
def serving(program, model, *more, ready=True):
    """Yields the server's URL once it is ready; the server stops with the block."""
    command = [program, "serve", "--model", str(model), "--port", "0", "--quiet", *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().strip()
            while ready:
                # While the model loads, the status is 503. A dead server refuses the connection, which is another error.
                with contextlib.suppress(urllib.error.HTTPError):
                    urllib.request.urlopen(url + "/health").close()
                    break
                time.sleep(0.01)
            yield url
        finally:
            server.terminate()
