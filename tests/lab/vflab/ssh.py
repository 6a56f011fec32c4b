# SPDX-License-Identifier: Apache-2.0
"""Calls ssh with the lab's own configuration, and nothing of the user's."""

CONFIGURATION = """\
Host host
    HostName 127.0.0.1
    Port {port}
    User root
    IdentityFile {key}
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    GlobalKnownHostsFile /dev/null
    LogLevel ERROR
    BatchMode yes
    ControlPath {folder}/ssh.sock
    ControlMaster no
    ConnectTimeout 60
    ServerAliveInterval 30
    ServerAliveCountMax 10
"""


def write_configuration(folder, port, key):
    text = CONFIGURATION.format(port=port, key=key, folder=folder)
    (folder / "ssh.conf").write_text(text)


def master_command(folder):
    """Opens the shared connection; ssh's local command signals our reader that it is up."""
    return ["ssh", "-F", f"{folder}/ssh.conf", "-M", "-N", "-o", "ControlMaster=yes",
            "-o", "PermitLocalCommand=yes", "-o", "LocalCommand=echo connected", "host"]


def command(folder, *arguments):
    return ["ssh", "-F", f"{folder}/ssh.conf", *arguments]


def copy_command(folder, source, target):
    return ["scp", "-q", "-r", "-p", "-F", f"{folder}/ssh.conf", source, target]
