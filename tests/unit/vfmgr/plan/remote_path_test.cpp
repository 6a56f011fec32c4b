// SPDX-License-Identifier: Apache-2.0
// When a test's path is reported as the wire.
#include "vfmgr/plan/links.hpp"

#include <gtest/gtest.h>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

HostView host_with_vf(std::optional<MacAddress> const& mac) {
    HostView host;
    host.kernel.pfs[example::pf_address] = example::pf(2);
    host.kernel.pfs[example::pf_address].vfs[1].settings.mac = mac;
    return host;
}

auto const of_no_vf = MacAddress::parse("52:54:00:c0:00:02").value();

TEST(RemotePath, IsTheWireWhenTheMacIsNobodysHere) {
    EXPECT_EQ(path_to(of_no_vf, host_with_vf(example::mac(7))), TestPath::wire);
    EXPECT_EQ(path_to(of_no_vf, host_with_vf(MacAddress{})), TestPath::wire);
}

TEST(RemotePath, IsInternalWhenTheMacIsAPfsOrAVfs) {
    auto const host = host_with_vf(example::mac(7));
    EXPECT_EQ(path_to(example::mac(7), host), TestPath::internal_switch);
    EXPECT_EQ(path_to(host.kernel.pfs.begin()->second.info.mac, host), TestPath::internal_switch);
}

TEST(RemotePath, IsNotKnownWithoutAMac) {
    EXPECT_EQ(path_to(std::nullopt, host_with_vf(example::mac(7))), std::nullopt);
    EXPECT_EQ(path_to(MacAddress{}, host_with_vf(example::mac(7))), std::nullopt);
    EXPECT_EQ(path_to(of_no_vf, host_with_vf(std::nullopt)), std::nullopt)
        << "the driver does not report that VF's";
}

}  // namespace
}  // namespace vfmgr
