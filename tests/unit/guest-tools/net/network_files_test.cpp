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

// IPoIB's address begins with what changes at each boot: only the GUID at its end is the VF's.
TEST(NetworkFiles, OfAnInfiniBandVfNameItsGuid) {
    auto attachment = attached_vf();
    attachment.mac.reset();
    attachment.guid = Guid{0x0202'c9ff'fe11'0002};
    EXPECT_EQ(udev_text(attachment),
              "# Written by vf-guest for attachment 3f9c2b1d; it is removed with it.\n"
              "SUBSYSTEM==\"net\", ACTION!=\"remove\", ATTR{type}==\"32\", "
              "ATTR{address}==\"*:02:02:c9:ff:fe:11:00:02\", TEST!=\"parent\", "
              "ENV{VF_GUEST_ATTACHMENT}=\"3f9c2b1d\"\n");
    EXPECT_THAT(networkd_text(attachment),
                HasSubstr("[Match]\nType=infiniband\nProperty=VF_GUEST_ATTACHMENT=3f9c2b1d\n\n"));
    auto const manager = network_manager_text(attachment);
    EXPECT_THAT(manager, HasSubstr("\ntype=infiniband\n"));
    EXPECT_THAT(manager, HasSubstr("[infiniband]\n"
                                   "mac-address=80:00:00:00:fe:80:00:00:00:00:00:00:"
                                   "02:02:c9:ff:fe:11:00:02\nmtu=9000\n"
                                   "transport-mode=datagram\n"));
    for (auto const& text : {networkd_text(attachment), manager})
        EXPECT_THAT(text, Not(testing::AnyOf(HasSubstr("MACAddress"), HasSubstr("ethernet"))));
    EXPECT_EQ(udev_text(attached_vf()), "");
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
