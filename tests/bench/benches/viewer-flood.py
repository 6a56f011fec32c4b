# SPDX-License-Identifier: Apache-2.0
"""An operator's latency while a viewer sends writes as fast as the daemon answers.

Both connect over TLS with tokens, each from its own address; the daemon is the real one, on fakes.
The operator sends a request every 20 ms: it reads the PFs or the operations, or makes a dry run.
The peer is the same without the flood, directly before. The viewer's writes are denied; they have
paths of the maximum length and use as many connections as one address may have.
"""

import contextlib
import json
import multiprocessing
import sqlite3
import tempfile
import threading
import time
from pathlib import Path

from figures import Figures
from on_fakes import PF, Daemon, TlsConnection

NEEDS_LAB = False
SECONDS = 300  # of flood, in total
ROUNDS = 6
QUIET_PART = 1 / 3
RATIO_MAX = 2.0
STORE_MIB_MAX = 64
CONNECTIONS = 32
PAUSE = 0.02
WRITES = (("DELETE", "/v1/attachments/" + "x" * 15_000), ("POST", "/v1/attachments"),
          ("PUT", f"/v1/pfs/{PF}/spec"))
LOOKS = (("GET", "/v1/pfs", None), ("GET", "/v1/operations", None),
         ("GET", "/v1/attachments", None),
         ("POST", "/v1/attachments?dry_run=true", json.dumps({"vm": "vm1", "pf": PF})))


def fire(port, token, stop, answered):
    connection = None
    for number in range(1_000_000_000):
        if stop.is_set():
            return
        try:
            connection = connection or TlsConnection(port, "127.0.0.3")
            status = connection.ask(token, *WRITES[number % len(WRITES)], "{}")
            with answered.get_lock():
                answered[0 if status == 403 else 1 if status == 429 else 2] += 1
        except OSError:
            connection = None


def flood(port, token, stop, answered):
    """Runs in its own process, to keep its work out of the operator's latency."""
    threads = [threading.Thread(target=fire, args=(port, token, stop, answered))
               for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@contextlib.contextmanager
def flooded(port, token, answered):
    """Waits for the flood's end even if the operator's requests fail."""
    stop = multiprocessing.Event()
    attack = multiprocessing.Process(target=flood, args=(port, token, stop, answered))
    attack.start()
    try:
        yield
    finally:
        stop.set()
        attack.join()


def p99_ms(connection, token, seconds):
    """Returns the p99 of an operator who sends one request after the other."""
    times, until, number = [], time.monotonic() + seconds, 0
    while time.monotonic() < until:
        method, path, body = LOOKS[number % len(LOOKS)]
        number += 1
        begin = time.monotonic()
        status = connection.ask(token, method, path, body)
        times.append((time.monotonic() - begin) * 1000)
        assert status == 200, f"{method} {path} of the operator: {status}"
        time.sleep(PAUSE)
    return sorted(times)[len(times) * 99 // 100]


def audited(store, who):
    with sqlite3.connect(store) as database:
        return database.execute("SELECT coalesce(sum(requests), 0), count(*) FROM audit "
                                "WHERE who = ?", (who,)).fetchone()


def run(lab, seconds=SECONDS):
    lab.expect("rounds", "denied", "too many")
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(Path(folder))
        daemon.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": 2})
        operator, viewer = daemon.token("operator"), daemon.token("viewer")
        who = "token:" + next(token["id"] for token in daemon.ask("GET", "/v1/tokens")[1]["items"]
                              if token["role"] == "viewer")
        connection = TlsConnection(daemon.port, "127.0.0.2")
        p99_ms(connection, operator, 1)  # warms up: the first requests are slower
        figures = Figures(lab, "viewer-flood", "ms", "p99 of an operator's requests in the flood",
                          "the same without it", ratio_max=RATIO_MAX)
        answered = multiprocessing.Array("q", 3)
        each = seconds / ROUNDS
        for _ in range(ROUNDS):
            quiet = p99_ms(connection, operator, each * QUIET_PART)
            with flooded(daemon.port, viewer, answered):
                figures.round(p99_ms(connection, operator, each), quiet)
        lab.check(daemon.runs(), "the daemon is there")
        daemon.end()  # fails unless the daemon exits with 0
        judge_audit(lab, daemon.store, who, answered[:])
        figures.report()


def judge_audit(lab, store, who, answered):
    denied, too_many, others = answered
    lab.count("denied", denied)
    lab.count("too many", too_many)
    lab.check_equal(others, 0, "answers that are neither 403 nor 429")
    mib = sum(path.stat().st_size for path in store.parent.glob("vfmgr.db*")) / (1 << 20)
    requests, rows = audited(store, who)
    lab.step(f"{denied} denied and {too_many} answered 429; the audit has {requests} of them in "
             f"{rows} rows, the store {mib:.1f} MiB")
    lab.check(mib < STORE_MIB_MAX, f"the store has {mib:.1f} MiB, less than {STORE_MIB_MAX} wanted")
    lab.check_equal(requests, denied + too_many, "requests in the audit")
