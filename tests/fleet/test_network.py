# SPDX-License-Identifier: Apache-2.0
"""The network of namespaces: cuts that happen, and heal."""

import os
import socket
import sys
import threading
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from network import Loopback, Network, run  # noqa: E402

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root makes network namespaces")


@pytest.fixture
def network():
    made = Network()
    yield made
    made.close()
    assert made.stem not in run("ip", "netns", "list")


def echo(server):
    """Answers one connection by what it gets, until the client closes it."""
    def serve():
        with server, server.accept()[0] as peer:
            while got := peer.recv(100):
                peer.sendall(got)
    thread = threading.Thread(target=serve)
    thread.start()
    return thread


def exchanges(connection):
    connection.sendall(b"x")
    try:
        return connection.recv(1) == b"x"
    except TimeoutError:
        return False


@pytest.mark.parametrize("ways", ["there", "back", "both"])
def test_a_cut_drops_and_heals(network, ways):
    one, other = network.join("one"), network.join("other")
    cuts = {"there": [(one, other)], "back": [(other, one)],
            "both": [(one, other), (other, one)]}[ways]
    serving = echo(other.listen(7000))
    with one.connect(other.address, 7000, 0.5) as connection:
        assert exchanges(connection)
        for cut in cuts:
            network.cut(*cut)
        assert not exchanges(connection)
        dropped = [network.heal(*cut) for cut in cuts]
        assert dropped[0] > 0
        connection.settimeout(30)  # for TCP to send it again
        assert connection.recv(1) == b"x"
    serving.join(10)


def test_a_cut_is_of_one_pair(network):
    one, other, third = (network.join(name) for name in ("one", "other", "third"))
    network.cut(one, other)
    serving = echo(other.listen(7000))
    with pytest.raises(TimeoutError):
        one.connect(other.address, 7000, 0.2)
    with third.connect(other.address, 7000, 5) as connection:
        assert exchanges(connection)
    serving.join(10)
    assert network.heal(one, other) > 0


def test_sockets_of_other_threads_and_later_ones_are_elsewhere(network):
    before = os.readlink("/proc/thread-self/ns/net")
    party = network.join("one")
    party.listen(7000).close()
    assert os.readlink("/proc/thread-self/ns/net") == before
    with pytest.raises(OSError):
        socket.create_server((party.address, 7000))


def test_loopback_parties_have_addresses_of_their_own():
    loopback = Loopback()
    one, other = loopback.join("one"), loopback.join("other")
    assert one.address != other.address
    serving = echo(one.listen(17_000))
    with other.connect(one.address, 17_000, 5) as connection:
        assert exchanges(connection)
    serving.join(10)
