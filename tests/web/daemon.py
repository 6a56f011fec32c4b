#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""daemon.py: the real vfmgrd on fakes, for the console's tests: serves build/web/bundle over TLS.

Reads lines of JSON. The first has the host, as tests/contract/fake_host.hpp describes it, and the
names of clients with certificates: {"host": {…}, "clients": {"alice": "admin"}}. Each later one is
{"happen": {…}}, a change to the host; {"daemon": "end" or "start"}; or {"issue": "alice"}. Each is
answered by one line: {"done": what it made} or {"failed": why}. Ends with its standard input."""

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/contract"))

from certificates import Authority  # noqa: E402
from remote import served  # noqa: E402

BUNDLE = ROOT / "build/web/bundle"


def say(**what):
    print(json.dumps(what), flush=True)


def made(daemon, authority, name, value):
    """Does what one line says."""
    if name == "happen":
        return daemon.happen(**value)
    if name == "daemon":
        return daemon.end() if value == "end" else daemon.start()
    if name == "issue":
        certificate, key = authority.issue(value)
        return {"certificate": certificate, "key": key}
    raise ValueError(f"no such line: {name}")


def main():
    first = json.loads(sys.stdin.readline())
    with tempfile.TemporaryDirectory(prefix="vfmgr-web-") as folder:
        folder = Path(folder)
        (folder / "ca").mkdir()
        authority = Authority(folder / "ca")
        # Pages are opened and reloaded faster than a person does it.
        more = f'[console]\nfolder = "{BUNDLE}"\n[limits]\nchanges_burst = 2000\n'
        with served(folder / "daemon", first["host"], authority, first.get("clients", {}),
                    more) as daemon:
            answer, token = daemon.ask("POST", "/v1/tokens", {"role": "admin"})
            assert answer.status == 201, token
            say(done={"url": f"https://127.0.0.1:{daemon.port}", "token": token["token"]})
            for line in sys.stdin:
                (name, value), = json.loads(line).items()
                try:
                    say(done=made(daemon, authority, name, value))
                except (AssertionError, ValueError, OSError) as failed:
                    say(failed=f"{name}: {failed}")
            if daemon.process.poll() is not None:
                daemon.start()  # for served(), which ends it


if __name__ == "__main__":
    main()
