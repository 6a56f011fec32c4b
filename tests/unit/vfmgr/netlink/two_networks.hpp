// SPDX-License-Identifier: Apache-2.0
// A veth pair between two networks made by the test: this machine's and the far end's, which
// answers ARP by itself. Owned by the test.
#pragma once

#include <fcntl.h>

#include <functional>
#include <optional>
#include <thread>

#include "api/os/descriptor.hpp"
#include "tests/unit/vfmgr/netlink/network_namespace.hpp"
#include "vfmgr/netlink/ip.hpp"

namespace vfmgr::test {

// On a thread of its own: other tests of this program need the loopback device of their network.
class TwoNetworks : public NeedsNetworks {
  protected:
    // Runs `body` with near0 and far0, each in a network of its own.
    void with_veth(std::function<void()> const& body) {
        std::thread([&] {
            far_ = new_network();
            ASSERT_EQ(::unshare(CLONE_NEWNET), 0) << std::strerror(errno);
            socket_.emplace(NlSocket::open(NlProtocol::route).value());
            ASSERT_TRUE(make_veth(*socket_, {"near0", "far0"}));
            far_mac_ = *netdev("far0").mac;
            move_far();
            up("near0");
            body();
        }).join();
    }
    static FileDescriptor new_network() {
        FileDescriptor made;
        std::thread([&] {
            ASSERT_EQ(::unshare(CLONE_NEWNET), 0) << std::strerror(errno);
            made = FileDescriptor(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
        }).join();
        return made;
    }
    void move_far() {
        ifinfomsg header{};
        header.ifi_index = netdev("far0").ifindex;
        NlRequest request(RTM_NEWLINK, 0);
        request.header(header).put<std::int32_t>(IFLA_NET_NS_FD, far_.get());
        ASSERT_TRUE(socket_->request(request, "RTM_NEWLINK", soon()).value().ok());
        at_the_far_end([&] { up("far0"); });
    }
    void at_the_far_end(std::function<void()> const& body) {
        std::thread([&] {
            ASSERT_EQ(::setns(far_.get(), CLONE_NEWNET), 0) << std::strerror(errno);
            socket_.swap(other_);
            socket_.emplace(NlSocket::open(NlProtocol::route).value());
            body();
            socket_.swap(other_);
        }).join();
    }
    void up(std::string const& name) {
        ASSERT_TRUE(change_netdev(*socket_, name, {netdev(name).ifindex, true, {}}, soon()));
    }
    Netdev netdev(std::string const& name) { return get_netdev(*socket_, name, soon()).value(); }
    void give(std::string const& name, IpAddress const& address) {
        ASSERT_TRUE(add_address(*socket_, {netdev(name).ifindex, address, 24}, soon()));
    }

    MacAddress far_mac_;

    std::optional<NlSocket> socket_, other_;  // of the thread's network; of the other one
    FileDescriptor far_;
};

}  // namespace vfmgr::test
