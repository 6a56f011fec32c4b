// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/kept_setup.hpp"

#include <gmock/gmock.h>

namespace vfmgr::guest {
namespace {

using testing::HasSubstr;
using testing::Not;

GuestAttachment attached_vf() {
    GuestAttachment attachment;
    attachment.attachment = "3f9c2b1d";
    attachment.mac = MacAddress::parse("52:54:00:11:22:33").value();
    attachment.address = IpAddress::parse("192.168.100.10").value();
    attachment.prefix_length = 24;
    attachment.mtu = 9000;
    return attachment;
}

TEST(NetworkFiles, ForNetworkd) {
    EXPECT_EQ(networkd_text(attached_vf()),
              R"(# Written by vf-guest for attachment 3f9c2b1d; it is removed with it.
[Match]
MACAddress=52:54:00:11:22:33
Type=ether
Driver=!virtio_net

[Link]
MTUBytes=9000
RequiredForOnline=no

[Network]
Address=192.168.100.10/24
LinkLocalAddressing=no
IPv6AcceptRA=no
ConfigureWithoutCarrier=yes
KeepConfiguration=static

[Route]
Destination=192.168.100.0/24
Scope=link
PreferredSource=192.168.100.10
Table=3232261130

[RoutingPolicyRule]
From=192.168.100.10/32
Table=3232261130
Priority=30118
)");
}

TEST(NetworkFiles, ForNetworkManager) {
    EXPECT_EQ(network_manager_text(attached_vf()),
              R"(# Written by vf-guest for attachment 3f9c2b1d; it is removed with it.
[connection]
id=vf-guest-3f9c2b1d
type=ethernet
autoconnect-priority=100

[ethernet]
mac-address=52:54:00:11:22:33
mtu=9000

[ipv4]
method=manual
address1=192.168.100.10/24
never-default=true
route1=192.168.100.0/24
route1_options=table=3232261130
routing-rule1=priority 30118 from 192.168.100.10 table 3232261130

[ipv6]
method=disabled
)");
}

TEST(NetworkFiles, ForIPv6) {
    auto attachment = attached_vf();
    attachment.address = IpAddress::parse("2001:db8::11").value();
    attachment.prefix_length = 64;
    auto const networkd = networkd_text(attachment);
    EXPECT_THAT(networkd, HasSubstr("\nAddress=2001:db8::11/64\nLinkLocalAddressing=ipv6\n"));
    EXPECT_THAT(networkd, HasSubstr("\nDestination=2001:db8::/64\nPreferredSource="));
    EXPECT_THAT(networkd, HasSubstr("\nFrom=2001:db8::11/128\n"));
    auto const manager = network_manager_text(attachment);
    EXPECT_THAT(manager, HasSubstr("[ipv6]\nmethod=manual\naddress1=2001:db8::11/64\n"));
    EXPECT_THAT(manager, HasSubstr("[ipv4]\nmethod=disabled\n"));
}

}  // namespace
}  // namespace vfmgr::guest
