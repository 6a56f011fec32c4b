# SPDX-License-Identifier: Apache-2.0
"""vfctl reaches the host that it is told to, by address or name, and sends tokens nowhere else."""

import hashlib
import json
import socket
import ssl

import pytest
from live_daemon import Daemon
from vfctl import environment, run

PF = "0000:01:00.0"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0"}]}


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


@pytest.fixture(scope="module")
def port():
    return free_port()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory, port):
    tls = f'[listen.tls]\nenabled = true\naddress = "127.0.0.1"\nport = {port}\n'
    started = Daemon(tmp_path_factory.mktemp("hosts"), HOST, tls)
    yield started
    started.end()


@pytest.fixture(scope="module")
def address(port):
    return f"https://127.0.0.1:{port}"


@pytest.fixture(scope="module")
def fingerprint(daemon, port):
    pem = ssl.get_server_certificate(("127.0.0.1", port))
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()


@pytest.fixture(scope="module")
def token(daemon):
    """A file that only its owner reads, as vfctl itself writes it."""
    file = daemon.folder / "token"
    made = run("--host", f"unix:{daemon.socket}", "token", "create", "--role", "viewer",
               env=environment(daemon.folder))
    file.touch(mode=0o600)
    file.write_text(made.stdout)
    return file


@pytest.fixture
def home(tmp_path, address, fingerprint, token):
    """A home with a context for the daemon, and one whose host has another certificate."""
    (tmp_path / "vfmgr").mkdir()
    (tmp_path / "vfmgr/contexts.toml").write_text(
        f'# mine\n[contexts.lab]\naddress = "{address}"\nfingerprint = "{fingerprint}"\n'
        f'token_file = "{token}"\n\n[contexts.false]\naddress = "{address}"\n'
        f'fingerprint = "{"0" * 64}"\ntoken_file = "{token}"\n')
    return tmp_path


def names(home, *words, **more):
    return run(*words, "pf", "list", "-o", "name", env=environment(home, **more)).stdout


def test_a_host_is_named_by_option_environment_and_context(home, daemon, address, fingerprint,
                                                          token):
    local = f"unix:{daemon.socket}"
    known = {"VFMGR_FINGERPRINT": fingerprint, "VFMGR_TOKEN_FILE": str(token)}
    for words, more in ((["--host", local], {}), (["--host", str(daemon.socket)], {}),
                        (["--socket", str(daemon.socket)], {}), (["--host", "lab"], {}),
                        ([], {"VFMGR_HOST": local}), ([], {"VFMGR_HOST": "lab"}),
                        ([], {"VFMGR_SOCKET": str(daemon.socket)}),
                        (["--url", address], known), ([], {"VFMGR_URL": address, **known}),
                        (["--host", "lab"], {"VFMGR_HOST": "unix:/nonexistent"})):
        assert names(home, *words, **more) == PF + "\n", (words, more)
    run("--host", "lab", "pf", "list", env=environment(home, VFMGR_HOST="x", VFMGR_TOKEN_FILE="/x"))


def test_a_context_is_used_until_another_is(home):
    refused = run("context", "use", "moon", env=environment(home), status=2)
    assert "there is no context 'moon'" in refused.stderr and "lab" in refused.stderr
    run("context", "use", "lab", env=environment(home))
    assert names(home) == PF + "\n"
    text = (home / "vfmgr/contexts.toml").read_text()
    assert text.startswith('current = "lab"\n# mine\n[contexts.lab]\n')
    shown = json.loads(run("context", "show", "-j", env=environment(home)).stdout)
    assert shown["context"] == "lab" and shown["token_file"], shown
    listed = json.loads(run("-j", "context", "list", env=environment(home)).stdout)["items"]
    assert {one["context"]: one["current"] for one in listed} == {
        "false": False, "fleet": False, "lab": True, "local": False}
    for name in run("context", "list", "-o", "name", env=environment(home)).stdout.split():
        run("context", "use", name, env=environment(home))
    assert "local" in run("context", "show", env=environment(home)).stdout


def test_a_wrong_certificate_gets_no_request(home, daemon):
    refused = run("--host", "false", "pf", "list", env=environment(home), status=6)
    assert "fingerprint" in refused.stderr
    without = run("--host", "lab", "--fingerprint", "1" * 64, "pf", "list",
                  env=environment(home), status=6)
    assert "1" * 64 in without.stderr, "an option overrides the context"


def test_a_contexts_token_goes_to_its_own_host_only(home, address, fingerprint):
    run("context", "use", "lab", env=environment(home))
    refused = run("--host", address, "--fingerprint", fingerprint, "pf", "list",
                  env=environment(home), status=5)
    assert refused.stdout == ""


def test_a_token_that_everybody_reads_is_reported(home, token, tmp_path):
    open_to_all = tmp_path / "open"
    open_to_all.write_text(token.read_text())
    open_to_all.chmod(0o644)
    words = ["--host", "lab", "--token-file", open_to_all]
    warned = run(*words, "pf", "list", env=environment(home))
    assert warned.stderr.count("every user of this machine can read the token") == 1
    assert f"chmod o= {open_to_all}" in warned.stderr
    open_to_all.chmod(0o640)
    assert run(*words, "pf", "list", env=environment(home)).stderr == ""


def test_a_file_with_a_fault_is_named_with_its_line(home):
    with (home / "vfmgr/contexts.toml").open("a") as file:
        file.write('[contexts.new]\naddress = "https://new"\ntoken = "secret"\n')
    for words in (["pf", "list"], ["--host", "lab", "pf", "list"], ["context", "list"]):
        refused = run(*words, env=environment(home), status=2)
        assert "contexts.toml:13: contexts.new.token is not known" in refused.stderr
        assert "secret" not in refused.stderr
    run("--host", "unix:/nonexistent", "pf", "list", env=environment(home), status=6)
