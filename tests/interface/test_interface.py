"""What `/openapi.json` promises, asked in a thousand ways by schemathesis: `cargo xtask test --real` runs it with the
program's path.

Whatever a schema allows is answered as the document says, and whatever it forbids is refused.
"""

import contextlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODEL = HERE.parents[1] / "fixtures/models/tiny-tales/base"


def main():
    program, *more = sys.argv[1:]
    command = [program, "serve", "--model", str(MODEL), "--port", "0", "--quiet", "--max-tokens", "20"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            url = server.stdout.readline().strip()
            while True:
                with contextlib.suppress(urllib.error.HTTPError):
                    urllib.request.urlopen(url + "/health").close()
                    break
                time.sleep(0.01)
            asking = [Path(sys.executable).with_name("schemathesis"), "--config-file", HERE / "schemathesis.toml", "run",
                      url + "/openapi.json", "--seed", "1", "--max-examples", "30", "--request-timeout", "30",
                      "--no-color", *more]
            # It keeps notes where it runs.
            with tempfile.TemporaryDirectory() as folder:
                code = subprocess.run(asking, check=False, cwd=folder).returncode
            with urllib.request.urlopen(url + "/metrics") as figures:
                assert b"mlxcel_active 0" in figures.read(), "a slot is still taken"
        finally:
            server.terminate()
    sys.exit(code)


if __name__ == "__main__":
    main()
