# SPDX-License-Identifier: Apache-2.0
"""Large answers of the real vfmgrd on fakes are compressed for clients that take them so."""

import gzip
import json
import subprocess

import pytest
from live_daemon import Daemon, UnixConnection

PF, VFS = "0000:01:00.0", 64
VM = "11111111-1111-1111-1111-111111111111"
HOST = {"pfs": [{"model": "igb", "pci": PF, "ifname": "enp1s0", "total_vfs": VFS}],
        "vms": [{"name": "vm1", "uuid": VM}]}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    started = Daemon(tmp_path_factory.mktemp("compression"), HOST)
    started.do("PUT", f"/v1/pfs/{PF}/spec", {"mode": "manage", "num_vfs": VFS})
    yield started
    started.end()


@pytest.fixture(scope="module")
def blue(daemon):
    """Returns a token of a tenant whose VM has a VF. Only the last test wants it: that QEMU holds
    the VF is published a moment after the attach, and the others compare one list twice."""
    for path, body in (("/v1/pools/all", {"select": {"pfs": [PF]}}),
                       ("/v1/tenants/blue", {"vms": [VM], "pools": ["all"]})):
        assert daemon.call("PUT", path, body).status == 200
    daemon.do("POST", "/v1/attachments", {"vm": VM, "pf": PF})
    return daemon.call("POST", "/v1/tokens", {"role": "viewer", "tenant": "blue"}).body["token"]


def got(daemon, path, **headers):
    """Returns an answer as it was sent."""
    connection = UnixConnection(daemon.socket)
    connection.request("GET", path, headers={name.replace("_", "-"): value
                                             for name, value in headers.items()})
    answer = connection.getresponse()
    answer.content = answer.read()
    connection.close()
    return answer


def test_curl_gets_the_same_list_either_way(daemon):
    def curl(*words):
        return subprocess.run(["curl", "-sS", "--fail", "--unix-socket", daemon.socket, *words,
                               "http://localhost/v1/vfs"], check=True, capture_output=True).stdout
    assert curl("--compressed") == curl() and len(json.loads(curl())["items"]) == VFS


def test_a_large_answer_is_compressed_if_the_client_takes_it(daemon):
    plain, coded = got(daemon, "/v1/vfs"), got(daemon, "/v1/vfs", Accept_Encoding="br, gzip")
    assert (plain.headers["Content-Encoding"], coded.headers["Content-Encoding"]) == (None, "gzip")
    assert plain.headers["Vary"] == coded.headers["Vary"] == "Accept-Encoding"
    assert gzip.decompress(coded.content) == plain.content
    assert len(coded.content) < len(plain.content) / 5
    assert got(daemon, "/v1/vfs", Accept_Encoding="gzip;q=0").content == plain.content


def test_each_coding_has_its_own_etag(daemon):
    plain, coded = got(daemon, "/v1/vfs"), got(daemon, "/v1/vfs", Accept_Encoding="gzip")
    assert plain.headers["ETag"] != coded.headers["ETag"]
    for first, accepts in ((plain, "identity"), (coded, "gzip")):
        same = got(daemon, "/v1/vfs", Accept_Encoding=accepts, If_None_Match=first.headers["ETag"])
        assert (same.status, same.content) == (304, b"")
        assert same.headers["ETag"] == first.headers["ETag"]
    other = got(daemon, "/v1/vfs", If_None_Match=coded.headers["ETag"])
    assert (other.status, other.content) == (200, plain.content)


def test_a_small_answer_is_not_compressed(daemon):
    answer = got(daemon, f"/v1/pfs/{PF}/vfs/3", Accept_Encoding="gzip")
    assert answer.headers["Content-Encoding"] is answer.headers["Vary"] is None
    assert json.loads(answer.content)["index"] == 3


@pytest.mark.parametrize("accepts", ["identity", "gzip"])
def test_a_tenant_gets_its_own_list(daemon, blue, accepts):
    bearer = "Bearer " + blue
    for _ in range(2):
        all_of_them = got(daemon, "/v1/vfs", Accept_Encoding=accepts)
        own = got(daemon, "/v1/vfs", Accept_Encoding=accepts, Authorization=bearer)
        assert all_of_them.headers["ETag"] != own.headers["ETag"]
        items = json.loads(own.content)["items"]
        assert [item["vm"] for item in items] == ["vm1"]
