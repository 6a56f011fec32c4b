# SPDX-License-Identifier: Apache-2.0
"""The real vfmgrd on fakes serves the web console's files: to whom, which, and of which version."""

import os

import pytest
from remote import Remote, served

INDEX, SCRIPT = "<!doctype html><title>vfmgr</title>", "console.log(1);" * 1000


@pytest.fixture
def daemon(tmp_path, authority):
    web = tmp_path / "web"
    with served(tmp_path / "daemon", {}, authority, {"alice": "admin"},
                f'[console]\nfolder = "{web}"\n') as started:
        started.web = web
        yield started


def install(daemon, script="app-AAAAAAAA.js"):
    """As a package manager does: each file by a rename."""
    daemon.web.mkdir(exist_ok=True)
    for name, text in ((script, SCRIPT), ("index.html", INDEX + script)):
        draft = daemon.web / f"{name}.new"
        draft.write_text(text)
        os.rename(draft, daemon.web / name)


def test_the_console_is_served_to_whoever_comes(daemon, authority):
    install(daemon)
    stranger, alice = Remote(daemon), Remote(daemon, authority.issue("alice"))
    nobody = Remote(daemon, authority.issue("nobody"))
    for answer in (stranger.ask("GET", "/"), alice.ask("GET", "/index.html"),
                   nobody.ask("GET", "/"), daemon.ask("GET", "/")[0]):
        assert (answer.status, answer.body) == (200, INDEX + "app-AAAAAAAA.js")
        assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-cache"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    script = stranger.ask("GET", "/app-AAAAAAAA.js")
    assert script.body == SCRIPT and "immutable" in script.headers["Cache-Control"]
    head = stranger.ask("HEAD", "/")
    assert (head.status, head.text) == (200, b"")
    assert stranger.ask("GET", "/", If_None_Match=answer.headers["ETag"]).status == 304
    linked = {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}
    assert stranger.ask("GET", "/", **linked).status == 200, "a link leads here"
    assert stranger.ask("GET", "/app-AAAAAAAA.js", Sec_Fetch_Site="cross-site").status == 403
    assert alice.status("POST", "/") == 405
    assert stranger.status() == 401 and alice.status(path="/v1") == 200


def test_nothing_but_the_bundle_is_served(daemon):
    install(daemon)
    (daemon.web / "link.txt").symlink_to(daemon.folder / "vfmgr.toml")
    (daemon.web / "below").mkdir()
    (daemon.web / "below/a.js").write_text("1")
    for path in ("/link.txt", "/../daemon/vfmgr.toml", "/%2e%2e/daemon/vfmgr.toml", "/..",
                 "/%2e%2e%2fdaemon", "//index.html", "/below/a.js", "/index.html/", "/./index.html",
                 "/index.html%00.js", "/etc/passwd"):
        answer = daemon.ask("GET", path)[0]
        assert answer.status in (400, 404), (path, answer)


def test_the_package_is_named_installed_and_upgraded_without_a_restart(daemon):
    answer, problem = daemon.ask("GET", "/")
    assert answer.status == 404 and "apt-get install vfmgr-web" in problem["remedy"]
    install(daemon)
    assert daemon.ask("GET", "/")[1] == INDEX + "app-AAAAAAAA.js"
    install(daemon, "app-BBBBBBBB.js")
    (daemon.web / "app-AAAAAAAA.js").unlink()
    assert daemon.ask("GET", "/")[1] == INDEX + "app-BBBBBBBB.js"
    assert daemon.ask("GET", "/app-BBBBBBBB.js")[0].status == 200
    assert daemon.ask("GET", "/app-AAAAAAAA.js")[0].status == 404
