// SPDX-License-Identifier: Apache-2.0
// A PF with seven VFs, of which sysfs has number 2: a host tree made by the test, in which a veth
// of the test's network stands for the PF's interface near0. Owned by the test.
#pragma once

#include "tests/unit/vfmgr/kernel/host_tree.hpp"
#include "tests/unit/vfmgr/netlink/network_namespace.hpp"

namespace vfmgr::test {

struct VethPf : HostTree {
    static constexpr auto pf = "0000:01:00.0";

    VethPf() {
        EXPECT_TRUE(make_veth(socket, {"near0", "far0"}));
        add_pf(pf, 7);
        add_vf(pf, 2, "0000:01:10.4");
        bind(pf, "igb");
    }
    NlSocket socket = NlSocket::open(NlProtocol::route).value();
};

}  // namespace vfmgr::test
