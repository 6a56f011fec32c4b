// SPDX-License-Identifier: Apache-2.0
// near0 and near1, two NICs with an address each of one network, whose wires end in far0 and far1.
// Owned by the test; on a thread of its own, since other tests of the program need their network.
#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "tests/unit/vfmgr/netlink/network_namespace.hpp"
#include "vfmgr/netlink/ip.hpp"

namespace vfmgr::test {

class TwoNics : public NeedsNetworks {
  protected:
    IpAddress const first_address = IpAddress::parse("192.168.100.10").value();
    IpAddress const second_address = IpAddress::parse("192.168.100.11").value();

    void with_two_nics(std::function<void()> const& body) {
        with_two_wires([&] {
            give("near0", first_address);
            give("near1", second_address);
            body();
        });
    }
    // Runs `body` with no addresses, and near0 and near1 down.
    void with_two_wires(std::function<void()> const& body) {
        std::thread([&] {
            ASSERT_EQ(::unshare(CLONE_NEWNET), 0) << std::strerror(errno);
            socket_.emplace(NlSocket::open(NlProtocol::route).value());
            up("lo");
            for (auto const* number : {"0", "1"}) {
                ASSERT_TRUE(make_veth(*socket_,
                                      {std::string("near") + number, std::string("far") + number}));
                up(std::string("far") + number);
            }
            body();
        }).join();
    }
    void give(std::string const& name, IpAddress const& address) {
        up(name);
        ASSERT_TRUE(add_address(*socket_, {netdev(name).ifindex, address, 24}, soon()));
    }
    void up(std::string const& name) {
        ASSERT_TRUE(change_netdev(*socket_, name, {netdev(name).ifindex, true, {}}, soon()));
    }
    Netdev netdev(std::string const& name) { return get_netdev(*socket_, name, soon()).value(); }

    std::optional<NlSocket> socket_;
};

}  // namespace vfmgr::test
