// SPDX-License-Identifier: Apache-2.0
// Runs over vsock_loopback, which shares its connection code with vhost_vsock and a VM's
// virtio_vsock (net/vmw_vsock/virtio_transport_common.c). Where the kernel has none, the lab's host
// has it: tests/lab/lab run vsock.
#include <unistd.h>
// linux/vm_sockets.h needs struct sockaddr declared before it.
#include <linux/vm_sockets.h>

#include <thread>

#include "api/os/socket_address.hpp"
#include "tests/unit/api/http/harness.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t port = 18471;

// Binding to the loopback CID succeeds exactly when the kernel has vsock_loopback: nothing is sent.
bool vsock_loopback() {
    FileDescriptor const fd(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_vm address{};
    address.svm_family = AF_VSOCK;
    address.svm_cid = VMADDR_CID_LOCAL;
    address.svm_port = VMADDR_PORT_ANY;
    return ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

// As systemd hands it to vfmgr-guestd.
InheritedListen listening(SourcePort source = SourcePort::any) {
    FileDescriptor fd(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto const address = SocketAddress::of_vsock(VMADDR_CID_ANY, port);
    EXPECT_EQ(::bind(fd.get(), address.get(), address.length), 0);
    EXPECT_EQ(::listen(fd.get(), SOMAXCONN), 0);
    return {fd.release(), source};
}

class Vsock : public ::testing::Test {
  protected:
    void SetUp() override {
        if (!vsock_loopback()) GTEST_SKIP() << "this kernel has no vsock_loopback";
    }
};

TEST_F(Vsock, TellsCidAndPortAndCutsACid) {
    std::mutex mutex;
    std::vector<Peer> seen;
    std::vector<Respond> kept;
    Counter parked;
    Server server{Limits{}};
    ASSERT_TRUE(server.listen(listening(), [&](Request request, Respond respond) {
        std::lock_guard const lock(mutex);
        seen.push_back(request.peer);
        if (request.path != "/keep") return echo(std::move(request), std::move(respond));
        kept.push_back(std::move(respond));
        parked.add();
    }));
    server.start();
    Client const client(VsockTarget{.cid = VMADDR_CID_LOCAL, .port = port});
    auto const response = client.send(get("/v"), 20s);
    ASSERT_TRUE(response) << response.error().detail;
    EXPECT_EQ(response->body, "GET /v");
    EXPECT_EQ(std::get<VsockPeer>(seen.at(0)).cid, static_cast<unsigned>(VMADDR_CID_LOCAL));
    EXPECT_GE(std::get<VsockPeer>(seen.at(0)).port, 1024u);
    if (::geteuid() == 0) {
        Client const root(VsockTarget{VMADDR_CID_LOCAL, port, SourcePort::privileged});
        ASSERT_TRUE(root.send(get("/v"), 20s));
        EXPECT_LT(std::get<VsockPeer>(seen.at(1)).port, 1024u);
    }
    std::thread cutter([&] {
        EXPECT_TRUE(parked.reaches(1));
        auto const has = [](std::uint32_t cid) {
            return [cid](Peer const& peer, Presence const&) {
                return std::get<VsockPeer>(peer).cid == cid;
            };
        };
        server.cut(has(77));
        server.cut(has(VMADDR_CID_LOCAL));
    });
    auto const cut = client.send(get("/keep"), 20s);
    cutter.join();
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().problem, Problem::unavailable);
}

TEST_F(Vsock, UnprivilegedPortsTakeNoPlaces) {
    if (::geteuid() != 0) GTEST_SKIP() << "privileged ports are root's";
    Server server{Limits{.connections_max = 2, .connections_per_peer_max = 2}};
    ASSERT_TRUE(server.listen(listening(SourcePort::privileged), echo));
    server.start();
    Client const nobody(VsockTarget{.cid = VMADDR_CID_LOCAL, .port = port});
    for (int i = 0; i < 4; ++i) {
        auto const refused = nobody.send(get("/"), 20s);
        EXPECT_TRUE(!refused || refused->status == 403);
    }
    Client const root(VsockTarget{VMADDR_CID_LOCAL, port, SourcePort::privileged});
    auto const served = root.send(get("/"), 20s);
    ASSERT_TRUE(served) << served.error().detail;
    EXPECT_EQ(served->status, 200);
}

// A source port reused at once meets the reset of its last connection.
TEST_F(Vsock, QuickRequestsFromPrivilegedPortsAreAllAnswered) {
    if (::geteuid() != 0) GTEST_SKIP() << "privileged ports are root's";
    constexpr int requests = 300;
    Server server{Limits{}};
    ASSERT_TRUE(server.listen(listening(), echo));
    server.start();
    auto const ask_often = [] {
        Client const client(VsockTarget{VMADDR_CID_LOCAL, port, SourcePort::privileged});
        for (int i = 0; i < requests; ++i) {
            auto const response = client.send(get("/quick"), 20s);
            ASSERT_TRUE(response) << "request " << i << ": " << response.error().detail;
            ASSERT_EQ(response->status, 200);
        }
    };
    std::thread beside(ask_often);
    ask_often();
    beside.join();
}

TEST_F(Vsock, AWaitingPeerThatLeavesGivesItsPlaceBack) {
    std::mutex mutex;
    std::vector<Respond> kept;
    Counter parked;
    Server server{Limits{.connections_per_peer_max = 1}};
    ASSERT_TRUE(server.listen(listening(), [&](Request request, Respond respond) {
        if (request.path != "/keep") return echo(std::move(request), std::move(respond));
        std::lock_guard const lock(mutex);
        kept.push_back(std::move(respond));
        parked.add();
    }));
    server.start();
    FileDescriptor waiting(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_vm address{};
    address.svm_family = AF_VSOCK;
    address.svm_cid = VMADDR_CID_LOCAL;
    address.svm_port = port;
    ASSERT_EQ(::connect(waiting.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    std::string_view const request = "GET /keep HTTP/1.1\r\nHost: a\r\n\r\n";
    ASSERT_EQ(::send(waiting.get(), request.data(), request.size(), 0), std::ssize(request));
    ASSERT_TRUE(parked.reaches(1));
    Client const client(VsockTarget{.cid = VMADDR_CID_LOCAL, .port = port});
    EXPECT_EQ(client.send(get("/"), 20s)->status, 503);
    waiting.reset();
    // The kernel notifies the server at some later time.
    auto const until = std::chrono::steady_clock::now() + 20s;
    int status = 503;
    while (status == 503 && std::chrono::steady_clock::now() < until)
        status = client.send(get("/"), 20s).value_or(Response{.status = 503}).status;
    EXPECT_EQ(status, 200);
}

}  // namespace
}  // namespace vfmgr::http
