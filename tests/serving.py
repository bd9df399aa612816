"""A server of the built program, for tests in Python."""

import contextlib
import subprocess
import time
import urllib.error
import urllib.request


@contextlib.contextmanager
def serving(program, model, *more, ready=True):
    """Its address, once it is ready; it ends with the block."""
    command = [program, "serve", "--model", str(model), "--port", "0", "--quiet", *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().strip()
            while ready:
                # 503 while it loads; a server that is gone refuses the connection, which is no such error.
                with contextlib.suppress(urllib.error.HTTPError):
                    urllib.request.urlopen(url + "/health").close()
                    break
                time.sleep(0.01)
            yield url
        finally:
            server.terminate()
