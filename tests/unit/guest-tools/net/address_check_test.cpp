// SPDX-License-Identifier: Apache-2.0
// A veth pair stands for the VF and the network; its far end answers ARP by itself.
#include "guest-tools/net/address_check.hpp"
#include "guest-tools/net/configure.hpp"
#include "tests/unit/temporary_folder.hpp"
#include "tests/unit/vfmgr/netlink/two_networks.hpp"

namespace vfmgr::guest {
namespace {

using test::soon;

IpAddress const address = IpAddress::parse("192.168.100.10").value();

class AddressCheck : public test::TwoNetworks {
  protected:
    void give(std::string const& name) { TwoNetworks::give(name, address); }
    static Result<void> checked(std::string const& ifname = "near0") {
        GuestAttachment attachment;
        attachment.address = address;
        return check_address(attachment, ifname);
    }
};

TEST_F(AddressCheck, AnAddressOfItsOwnIsSound) {
    with_veth([&] {
        give("near0");
        auto const sound = checked();
        EXPECT_TRUE(sound) << sound.error().detail;
    });
}

TEST_F(AddressCheck, AMissingAddressIsNamed) {
    with_veth([&] {
        auto const missing = checked();
        ASSERT_FALSE(missing);
        EXPECT_EQ(missing.error().problem, Problem::not_found);
        EXPECT_EQ(missing.error().detail, "near0 no longer has the address 192.168.100.10");
        EXPECT_EQ(missing.error().remedy,
                  "add it again: ip address add 192.168.100.10/24 dev near0");
        ASSERT_TRUE(test::make_veth(*socket_, {"near1", "far1"}));
        give("near1");
        EXPECT_FALSE(checked()) << "another interface has it";
    });
}

TEST_F(AddressCheck, AnotherOwnerIsNamedByItsMac) {
    with_veth([&] {
        give("near0");
        at_the_far_end([&] { give("far0"); });
        auto const taken = checked();
        ASSERT_FALSE(taken);
        EXPECT_EQ(taken.error().problem, Problem::conflict);
        EXPECT_EQ(taken.error().detail,
                  "another machine also has the address 192.168.100.10 of near0: MAC " +
                      to_string(far_mac_));
    });
}

// With arp_ignore 0 the kernel answers on every interface for all addresses of its own.
TEST_F(AddressCheck, AnotherNicOfThisMachineIsNoOtherOwner) {
    with_veth([&] {
        ASSERT_TRUE(test::make_veth(*socket_, {"near1", "far1"}));
        give("far1");
        give("near1");
        up("near1");
        up("far1");
        auto const sound = checked("near1");
        EXPECT_TRUE(sound) << sound.error().detail;
    });
}

TEST_F(AddressCheck, AnAddressThatAnotherMachineHasIsNotSetUp) {
    with_veth([&] {
        at_the_far_end([&] { give("far0"); });
        test::TemporaryFolder const folder;
        GuestAttachment expected;
        expected.address = address;
        expected.rdma = RdmaMode::none;
        auto const set_up = [&] {
            return configure(expected, netdev("near0"), StateFolder(folder.path()), soon());
        };
        auto const taken = set_up();
        ASSERT_FALSE(taken);
        EXPECT_EQ(taken.error().problem, Problem::conflict);
        EXPECT_FALSE(checked()) << "near0 has not got it";
        expected.run = "a run, which asks by itself";
        EXPECT_TRUE(set_up());
    });
}

std::vector<std::byte> reply() {
    std::vector<std::byte> packet;
    for (int const octet : {0,   1,   8,   0,  6, 4, 0, 2, 0x52, 0x54, 0, 0x11, 0x22, 0x33,
                            192, 168, 100, 10, 0, 0, 0, 0, 0,    0,    0, 0,    0,    0})
        packet.push_back(static_cast<std::byte>(octet));
    return packet;
}

TEST(ArpClaim, IsTheSendersOwn) {
    EXPECT_EQ(arp_claim(reply(), address), MacAddress::parse("52:54:00:11:22:33").value());
    EXPECT_FALSE(arp_claim(reply(), IpAddress::parse("192.168.100.11").value()));
    EXPECT_FALSE(arp_claim(reply(), IpAddress::parse("fe80::1").value()));
    auto packet = reply();
    packet.pop_back();
    EXPECT_FALSE(arp_claim(packet, address)) << "too short";
    for (std::size_t const at : {1U, 2U, 4U, 5U}) {
        packet = reply();
        packet[at] ^= std::byte{0x40};
        EXPECT_FALSE(arp_claim(packet, address)) << "octet " << at;
    }
}

}  // namespace
}  // namespace vfmgr::guest
