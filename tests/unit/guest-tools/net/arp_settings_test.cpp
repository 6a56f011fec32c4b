// SPDX-License-Identifier: Apache-2.0
// Two NICs of one machine on one network: what each sends by ARP. A veth is a NIC and its wire.
#include "guest-tools/net/address_check.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include <thread>

#include "api/os/descriptor.hpp"
#include "guest-tools/net/address_check.hpp"
#include "tests/unit/temporary_folder.hpp"
#include "tests/unit/vfmgr/netlink/two_nics.hpp"

namespace vfmgr::guest {
namespace {

using testing::HasSubstr;

class Arp : public test::TwoNics {
  protected:
    // Returns which NIC claims the address on this wire; empty when none does.
    std::string who_answers(std::string const& wire, IpAddress const& address) {
        auto const free = check_unclaimed(address, netdev(wire), {});
        return free ? std::string() : free.error().detail;
    }
    std::string mac(std::string const& name) { return to_string(*netdev(name).mac); }
    void set_as_for_a_vf(std::string const& name) {
        ASSERT_TRUE(write_arp_settings("/proc", name, arp_settings_of_vf));
    }
};

TEST_F(Arp, OnlyTheNicThatHasTheAddressAnswers) {
    with_two_nics([&] {
        EXPECT_THAT(who_answers("far0", first_address), HasSubstr(mac("near0")));
        EXPECT_THAT(who_answers("far1", first_address), HasSubstr(mac("near1")))
            << "the kernel's default: the wrong NIC answers, too";
        set_as_for_a_vf("near0");
        set_as_for_a_vf("near1");
        EXPECT_THAT(who_answers("far0", first_address), HasSubstr(mac("near0")));
        EXPECT_EQ(who_answers("far1", first_address), "");
        EXPECT_THAT(who_answers("far1", second_address), HasSubstr(mac("near1")));
    });
}

// Checks the sender address in `nic`'s ARP query when a packet from `from` must leave by it.
bool asks_as(std::string const& nic, int wire, IpAddress const& from, IpAddress const& sender) {
    FileDescriptor const seen(::socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_ARP)));
    sockaddr_ll where{};
    where.sll_family = AF_PACKET;
    where.sll_protocol = htons(ETH_P_ARP);
    where.sll_ifindex = wire;
    EXPECT_EQ(::bind(seen.get(), reinterpret_cast<sockaddr const*>(&where), sizeof where), 0);
    timeval const limit{2, 0};
    ::setsockopt(seen.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    FileDescriptor const out(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ::setsockopt(out.get(), SOL_SOCKET, SO_BINDTODEVICE, nic.c_str(),
                 static_cast<socklen_t>(nic.size()));
    sockaddr_in name{};
    name.sin_family = AF_INET;
    std::memcpy(&name.sin_addr, from.octets.data(), 4);
    EXPECT_EQ(::bind(out.get(), reinterpret_cast<sockaddr const*>(&name), sizeof name), 0);
    auto const peer = IpAddress::parse("192.168.100.77").value();
    std::memcpy(&name.sin_addr, peer.octets.data(), 4);
    name.sin_port = htons(9);
    ::sendto(out.get(), "x", 1, 0, reinterpret_cast<sockaddr const*>(&name), sizeof name);
    std::array<std::byte, 256> room{};
    auto const got = ::recv(seen.get(), room.data(), room.size(), 0);
    return got > 0 &&
           arp_claim(std::span(room).first(static_cast<std::size_t>(got)), sender).has_value();
}

TEST_F(Arp, ANicAsksWithAnAddressOfItsOwn) {
    with_two_nics([&] {
        auto const wire = netdev("far1").ifindex;
        EXPECT_TRUE(asks_as("near1", wire, first_address, first_address)) << "the default";
    });
    with_two_nics([&] {
        auto const wire = netdev("far1").ifindex;
        set_as_for_a_vf("near1");
        EXPECT_TRUE(asks_as("near1", wire, first_address, second_address));
    });
}

TEST_F(Arp, TheOldValuesAreReadAndRestored) {
    with_two_nics([&] {
        auto const before = read_arp_settings("/proc", "near0");
        ASSERT_TRUE(before);
        set_as_for_a_vf("near0");
        EXPECT_EQ(read_arp_settings("/proc", "near0"), arp_settings_of_vf);
        EXPECT_NE(*before, arp_settings_of_vf);
        ASSERT_TRUE(write_arp_settings("/proc", "near0", *before));
        EXPECT_EQ(read_arp_settings("/proc", "near0"), *before);
    });
}

TEST(ArpSettings, ANetdevThatIsNotThere) {
    test::TemporaryFolder const proc;
    EXPECT_TRUE(write_arp_settings(proc.path(), "gone0", arp_settings_of_vf));
    auto const found = read_arp_settings(proc.path(), "gone0");
    ASSERT_FALSE(found);
    EXPECT_THAT(found.error().detail, HasSubstr("/sys/net/ipv4/conf/gone0/arp_announce"));
    EXPECT_THAT(found.error().remedy, HasSubstr("root"));
}

}  // namespace
}  // namespace vfmgr::guest
