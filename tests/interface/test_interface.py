"""What `/openapi.json` promises, asked in a thousand ways by schemathesis: `cargo xtask test --real` runs it with the
program's path.

Whatever a schema allows is answered as the document says, and whatever it forbids is refused.
"""

import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from serving import serving  # noqa: E402

MODEL = HERE.parents[1] / "fixtures/models/tiny-tales/base"


def main():
    program, *more = sys.argv[1:]
    with serving(program, MODEL, "--max-tokens", "20") as url:
        asking = [Path(sys.executable).with_name("schemathesis"), "--config-file", HERE / "schemathesis.toml", "run",
                  url + "/openapi.json", "--seed", "1", "--max-examples", "30", "--request-timeout", "30",
                  "--no-color", *more]
        # It keeps notes where it runs.
        with tempfile.TemporaryDirectory() as folder:
            code = subprocess.run(asking, check=False, cwd=folder).returncode
        with urllib.request.urlopen(url + "/metrics") as figures:
            assert b"mlxcel_active 0" in figures.read(), "a slot is still taken"
    sys.exit(code)


if __name__ == "__main__":
    main()
