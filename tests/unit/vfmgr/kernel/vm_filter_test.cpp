// SPDX-License-Identifier: Apache-2.0
// The filter of a VM's traffic, at work on the host's interfaces: the PF near0 has addresses of the
// host's own, and a tenant may use any address it likes.
#include <gmock/gmock.h>
#include <linux/if_arp.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>

#include <algorithm>
#include <cstdlib>

#include "knocking.hpp"
#include "vfmgr/kernel/interface_filter.hpp"
#include "vfmgr/netlink/ip.hpp"

namespace vfmgr {
namespace {

using test::enter;
using test::ip;
using test::make_veth;
using test::move_to;
using test::other_service;
using test::raise;
using test::roce;
using test::soon;
using testing::ElementsAre;
using testing::IsEmpty;

struct Octets {
    std::string bytes;
    template <std::size_t Size>
    Octets& add(std::array<std::uint8_t, Size> const& octets, std::size_t count = Size) {
        bytes.append(reinterpret_cast<char const*>(octets.data()), count);
        return *this;
    }
    Octets& add(Octets const& other) {
        bytes += other.bytes;
        return *this;
    }
    Octets& add16(std::uint16_t value) {
        bytes.push_back(static_cast<char>(value >> 8U));
        bytes.push_back(static_cast<char>(value & 0xffU));
        return *this;
    }
};

// The internet checksum (RFC 1071) of an even number of octets.
std::uint16_t checksum(Octets const& octets) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < octets.bytes.size(); i += 2)
        sum += static_cast<std::uint32_t>(static_cast<std::uint8_t>(octets.bytes[i])) << 8U |
               static_cast<std::uint8_t>(octets.bytes[i + 1]);
    while (sum >> 16U) sum = (sum & 0xffffU) + (sum >> 16U);
    return static_cast<std::uint16_t>(~sum);
}

class VmFilter : public test::Knocking {
  protected:
    // Puts the tenant's frame on the wire as it is.
    void put_on_wire(Octets const& frame) {
        enter(tenant);
        FileDescriptor const wire(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
        enter(host);
        sockaddr_ll where{};
        where.sll_family = AF_PACKET;
        where.sll_ifindex = get_netdev(*theirs, "far0", soon()).value().ifindex;
        ASSERT_EQ(::sendto(wire.get(), frame.bytes.data(), frame.bytes.size(), 0,
                           reinterpret_cast<sockaddr const*>(&where), sizeof where),
                  std::ssize(frame.bytes))
            << std::strerror(errno);
    }
    [[nodiscard]] MacAddress hosts_mac() {
        return get_netdev(*ours, "near0", soon()).value().mac.value();
    }
    [[nodiscard]] Octets frame(std::uint16_t type) {
        return Octets().add(hosts_mac().octets).add(tenants_mac().octets).add16(type);
    }
    // From the tenant's MAC to the host's.
    [[nodiscard]] Octets arp(std::uint16_t operation, std::string const& sender,
                             std::string const& target) {
        auto packet = frame(ETH_P_ARP);
        packet.add16(1).add16(ETH_P_IP).add16(0x0604).add16(operation);
        packet.add(tenants_mac().octets).add(ip(sender).octets, 4);
        return packet.add(hosts_mac().octets).add(ip(target).octets, 4);
    }
    // Sends the tenant's probe for `address` (RFC 5227); returns the socket that its answer
    // reaches.
    [[nodiscard]] FileDescriptor probe(std::string const& address) {
        enter(tenant);
        FileDescriptor answers(
            ::socket(AF_PACKET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ARP)));
        enter(host);
        put_on_wire(arp(ARPOP_REQUEST, "0.0.0.0", address));
        return answers;
    }
    // Returns whether one of the packets that have arrived is the host's answer.
    [[nodiscard]] bool is_answered(FileDescriptor const& answers, std::string const& address) {
        Octets expected;
        expected.add16(1).add16(ETH_P_IP).add16(0x0604).add16(ARPOP_REPLY);
        expected.add(hosts_mac().octets).add(ip(address).octets, 4);
        std::array<char, 64> packet{};
        for (ssize_t got = 0; got >= 0;
             got = ::recv(answers.get(), packet.data(), packet.size(), 0))
            if (std::string_view(packet.data(), static_cast<std::size_t>(got))
                    .starts_with(expected.bytes))
                return true;
        return false;
    }
    // Two octets by UDP from the tenant's address to the responder's.
    [[nodiscard]] Octets tagged_knock(std::uint16_t vlan, std::uint16_t port) {
        auto const header = [&](std::uint16_t sum) {
            Octets packet;
            packet.add16(0x4500).add16(30).add16(0).add16(0).add16(0x4011).add16(sum);
            return packet.add(ip("192.168.77.9").octets, 4).add(ip("192.168.77.1").octets, 4);
        };
        return frame(ETH_P_8021Q)
            .add16(vlan)
            .add16(ETH_P_IP)
            .add(header(checksum(header(0))))
            .add16(31337)
            .add16(port)
            .add16(10)
            .add16(0)
            .add16(0x6b6b);
    }
    // "`address` is at my MAC", by a neighbour advertisement with override set, `from` to `to`.
    [[nodiscard]] Octets advertisement(std::string const& address, std::string const& from,
                                       std::string const& to) {
        auto const told = [&](std::uint16_t sum) {
            Octets message;
            message.add16(0x8800).add16(sum).add16(0x2000).add16(0).add(ip(address).octets);
            return message.add16(0x0201).add(tenants_mac().octets);
        };
        Octets pseudo;
        pseudo.add(ip(from).octets).add(ip(to).octets).add16(0).add16(32).add16(0).add16(58);
        return frame(ETH_P_IPV6)
            .add16(0x6000)
            .add16(0)
            .add16(32)
            .add16(0x3aff)
            .add(ip(from).octets)
            .add(ip(to).octets)
            .add(told(checksum(pseudo.add(told(0)))));
    }
    [[nodiscard]] std::optional<MacAddress> known(std::string const& address) {
        auto const all = list_neighbours(*ours, soon()).value();
        for (auto const& each : all)
            if (each.address == ip(address)) return each.mac;
        return std::nullopt;
    }
    // Adds it as a neighbour that the host has talked to: any answer may replace it.
    void know_router(std::string const& address, MacAddress const& mac) {
        NlRequest request(RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
        ndmsg header{};
        header.ndm_family = ip(address).family == IpAddress::Family::v4 ? AF_INET : AF_INET6;
        header.ndm_ifindex = get_netdev(*ours, "near0", soon()).value().ifindex;
        header.ndm_state = NUD_STALE;
        request.header(header)
            .put_ip(NDA_DST, ip(address))
            .put_bytes(NDA_LLADDR, bytes_of(mac.octets));
        ASSERT_TRUE(ours->request(request, "RTM_NEWNEIGH", soon()).value().ok());
    }
    // Returns whether the host takes the tenant for `router`, whose MAC it knew, after several such
    // claims. `last` is one of the host's addresses: when it is reached, everything sent before has
    // arrived.
    [[nodiscard]] bool believed(std::string const& router, Octets const& claim,
                                std::string const& last) {
        know_router(router, MacAddress{{0x02, 0, 0, 0, 0, 1}});
        for (int times = 0; times < 20; ++times) {
            put_on_wire(claim);
            EXPECT_THAT(heard(last, last), testing::Contains(roce));
            if (known(router) == tenants_mac()) return true;
        }
        return false;
    }
    void SetUp() override {
        Knocking::SetUp();
        if (!IsSkipped()) ours.emplace(NlSocket::open(NlProtocol::route).value());
    }
    [[nodiscard]] bool closed() { return !interfaces().at(0).closed.empty(); }

    std::optional<NlSocket> ours;
};

TEST_F(VmFilter, TheHostsOtherAddressesAreClosed) {
    for (auto const& [own, vm, other] : {std::array{"192.168.77.1", "192.168.77.9", "10.1.2.3"},
                                         std::array{"fd00:77::1", "fd00:77::9", "fd00:10::3"}}) {
        EXPECT_THAT(heard(other, other), ElementsAre(roce, responder_echo_port, other_service))
            << "before: " << other;
        attach(untagged, own, vm);
        EXPECT_TRUE(closed());
        EXPECT_THAT(heard(other, own), IsEmpty()) << other;
        EXPECT_THAT(heard(own, own), ElementsAre(roce, responder_echo_port));
        perform(RemovePeer{untagged, ip(vm)});
        perform(RemoveAddress{untagged, ip(own)});
        EXPECT_THAT(heard(other, other), ElementsAre(roce, responder_echo_port, other_service))
            << "after the attachment: " << other;
        auto const left = read_packet_filter(soon()).value();
        EXPECT_THAT(left.vms, IsEmpty());
        EXPECT_FALSE(left.rules.contains(
            "netdev interface" + std::to_string(get_netdev(*ours, "near0", soon())->ifindex)));
    }
}

// The host may serve others at an address that it had before: their access is unchanged.
TEST_F(VmFilter, AnAddressThatWasThereBeforeIsClosedToTheVmOnly) {
    perform(AddPeer{untagged, ip("10.1.2.9"), tenants_mac(), ip("10.1.2.3")});
    EXPECT_THAT(heard("10.1.2.3", "10.1.2.3"), ElementsAre(roce, responder_echo_port));
    auto const far = get_netdev(*theirs, "far0", soon()).value();
    NlRequest another(RTM_NEWLINK, 0);
    ifinfomsg header{};
    header.ifi_index = far.ifindex;
    another.header(header).put_bytes(IFLA_ADDRESS,
                                     bytes_of(MacAddress{{0x02, 0, 0, 0, 0, 0x77}}.octets));
    ASSERT_TRUE(theirs->request(another, "RTM_NEWLINK", soon()).value().ok());
    know(far.ifindex, get_netdev(*ours, "near0", soon()).value(), {"10.1.2.3"});
    EXPECT_THAT(heard("10.1.2.3", "10.1.2.3"),
                ElementsAre(roce, responder_echo_port, other_service))
        << "another machine on the wire, at the host's own address";
}

TEST_F(VmFilter, NothingIsForwarded) {
    std::ofstream("/proc/sys/net/ipv4/ip_forward") << "1";
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
    auto const beyond = test::this_network();
    auto const server = test::udp_socket();
    auto const where = test::everywhere(other_service);
    ASSERT_EQ(::bind(server.get(), reinterpret_cast<sockaddr const*>(&where), sizeof where), 0);
    auto over_there = NlSocket::open(NlProtocol::route).value();
    enter(host);
    ASSERT_TRUE(make_veth(*ours, {"near2", "far2"}));
    move_to(*ours, "far2", beyond);
    raise(*ours, "near2", {"10.9.9.1"});
    auto const far2 = raise(over_there, "far2", {"10.9.9.9"});
    auto const near2 = get_netdev(*ours, "near2", soon()).value();
    auto const far2_mac = get_netdev(over_there, "far2", soon()).value().mac.value();
    ASSERT_TRUE(replace_neighbour(*ours, {near2.ifindex, ip("10.9.9.9"), far2_mac}, soon()));
    ASSERT_TRUE(replace_neighbour(over_there, {far2, ip("10.9.9.1"), near2.mac.value()}, soon()));
    auto const far0 = get_netdev(*theirs, "far0", soon()).value().ifindex;
    ASSERT_TRUE(add_peer_route(*theirs, {ip("10.9.9.9"), far0, ip("10.1.2.9")}, soon()));
    know(far0, get_netdev(*ours, "near0", soon()).value(), {"10.9.9.9"});
    // Two rounds: the first round's packets have left the host when the last of the second arrives.
    auto const arrives = [&] {
        for (int round = 0; round < 2; ++round)
            EXPECT_THAT(heard("10.9.9.9", "192.168.77.1"), IsEmpty()) << "it is not the host";
        char what = 0;
        int count = 0;
        while (::recv(server.get(), &what, 1, MSG_DONTWAIT) == 1) ++count;
        return count > 0;
    };
    perform(AddAddress{untagged, ip("192.168.77.1")});
    EXPECT_TRUE(arrives()) << "a router";
    perform(AddPeer{untagged, ip("192.168.77.9"), tenants_mac(), ip("192.168.77.1")});
    EXPECT_FALSE(arrives());
}

// Otherwise the VM would get the host's traffic to its router from then on.
TEST_F(VmFilter, NobodysAddressIsClaimed) {
    // It would keep a learned neighbour for that long.
    std::ofstream("/proc/sys/net/ipv4/neigh/near0/locktime") << "0";
    auto const claim = arp(ARPOP_REPLY, "10.1.2.1", "10.1.2.3");
    perform(AddAddress{untagged, ip("192.168.77.1")});
    EXPECT_TRUE(believed("10.1.2.1", claim, "192.168.77.1")) << "as Linux takes it";
    perform(AddPeer{untagged, ip("192.168.77.9"), tenants_mac(), ip("192.168.77.1")});
    EXPECT_FALSE(believed("10.1.2.1", claim, "192.168.77.1"));
}

// vf-guest asks who else has the VM's address. A host that has it, too, is not reached otherwise,
// and nothing would show why.
TEST_F(VmFilter, AProbeForItsOwnAddressIsAnswered) {
    auto const answered = [&](std::string const& address) {
        auto const answers = probe(address);
        // What was sent before has arrived by then.
        EXPECT_THAT(heard("192.168.77.1", "192.168.77.1"), testing::Contains(roce));
        return is_answered(answers, address);
    };
    perform(AddAddress{untagged, ip("192.168.77.1")});
    EXPECT_TRUE(answered("10.1.2.3")) << "as Linux takes it";
    perform(AddPeer{untagged, ip("192.168.77.9"), tenants_mac(), ip("192.168.77.1")});
    EXPECT_FALSE(answered("10.1.2.3")) << "the host's other addresses are closed";
    EXPECT_FALSE(answered("192.168.77.9")) << "nobody else has it";
    // From now on the host ignores what comes from that address.
    raise(*ours, "near0", {"192.168.77.9"});
    auto const answers = probe("192.168.77.9");
    EXPECT_EQ(await_readable(std::array{answers.get()}, soon()).value(), Readiness::readable);
    EXPECT_TRUE(is_answered(answers, "192.168.77.9"));
}

// The same by IPv6, where it may advertise from its own address.
TEST_F(VmFilter, NobodysAddressIsAdvertised) {
    auto const claim = advertisement("fd00:77::5", "fd00:77::9", "fd00:77::1");
    perform(AddAddress{untagged, ip("fd00:77::1")});
    // Another VM's. Linux also needs some moments after it has an address to receive there.
    MacAddress const second{{0x02, 0, 0, 0, 0, 0x66}};
    perform(AddPeer{untagged, ip("fd00:77::8"), second, ip("fd00:77::1")});
    EXPECT_TRUE(believed("fd00:77::5", claim, "fd00:77::1")) << "as Linux takes it";
    perform(AddPeer{untagged, ip("fd00:77::9"), tenants_mac(), ip("fd00:77::1")});
    EXPECT_FALSE(believed("fd00:77::5", claim, "fd00:77::1"));
}

// Linux also strips a tag of no configured VLAN, and goes on as if there were none.
TEST_F(VmFilter, ATagOfItsOwnIsClosed) {
    auto const arrives = [&] {
        put_on_wire(tagged_knock(0, roce));
        return heard("10.1.2.99", "192.168.77.1");
    };
    perform(AddAddress{untagged, ip("192.168.77.1")});
    EXPECT_THAT(arrives(), ElementsAre(roce)) << "as Linux takes it";
    perform(AddPeer{untagged, ip("192.168.77.9"), tenants_mac(), ip("192.168.77.1")});
    EXPECT_THAT(arrives(), IsEmpty());
}

// And passes the rest to the host's VLAN device, where the responder's address is not closed.
TEST_F(VmFilter, NoVlanIsReachedByATagOfItsOwn) {
    auto const near0 = get_netdev(*ours, "near0", soon()).value().ifindex;
    if (auto const made = add_vlan_netdev(*ours, {near0, 200, "near0.200"}, soon()); !made)
        GTEST_SKIP() << "this kernel has no VLAN devices: " << made.error().detail;
    raise(*ours, "near0.200", {"10.200.0.1"});
    for (auto const* const which : {"all", "near0.200"})
        std::ofstream("/proc/sys/net/ipv4/conf/" + std::string(which) + "/rp_filter") << "0";
    auto const arrives = [&] {
        put_on_wire(tagged_knock(200, other_service));
        return heard("10.1.2.99", "192.168.77.1");
    };
    perform(AddAddress{untagged, ip("192.168.77.1")});
    EXPECT_THAT(arrives(), ElementsAre(other_service)) << "as Linux takes it";
    perform(AddPeer{untagged, ip("192.168.77.9"), tenants_mac(), ip("192.168.77.1")});
    EXPECT_THAT(arrives(), IsEmpty());
}

// The tenant resolves by itself here, as a VM does.
TEST_F(VmFilter, TheRespondersMacIsToldToWhoAsks) {
    auto const far0 = get_netdev(*theirs, "far0", soon()).value().ifindex;
    for (auto const& [own, vm] :
         {std::pair{"192.168.77.1", "192.168.77.9"}, std::pair{"fd00:77::1", "fd00:77::9"}}) {
        attach(untagged, own, vm);
        ASSERT_TRUE(remove_neighbour(*theirs, ip(own), far0, soon()));
        EXPECT_THAT(heard(own, own), testing::Contains(roce)) << own;
    }
}

// Its link-local address is not derived from its MAC, as NetworkManager does it.
TEST_F(VmFilter, TheRespondersMacIsToldToWhoeverHasAStablePrivacyAddress) {
    auto const far0 = get_netdev(*theirs, "far0", soon()).value().ifindex;
    auto const all = list_addresses(*theirs, soon()).value();
    for (auto const& each : all) {
        if (each.ifindex != far0 || !to_string(each.address).starts_with("fe80:")) continue;
        ASSERT_TRUE(remove_address(*theirs, each, soon()));
    }
    ASSERT_TRUE(add_address(*theirs, {far0, ip("fe80::1234:5678:9abc:def0"), 64}, soon()));
    attach(untagged, "fd00:77::1", "fd00:77::9");
    ASSERT_TRUE(remove_neighbour(*theirs, ip("fd00:77::1"), far0, soon()));
    EXPECT_THAT(heard("fd00:77::1", "fd00:77::1"), testing::Contains(roce));
}

TEST_F(VmFilter, WhateverSomebodyFlushedIsSeenAndClosedAgain) {
    AddPeer const peer{untagged, ip("192.168.77.9"), tenants_mac(), ip("192.168.77.1")};
    for (auto const* const flush :
         {"flush ruleset", "add table inet vfmgr '{ flags dormant; }'",
          "add table netdev vfmgr '{ flags dormant; }'", "delete table netdev vfmgr",
          "flush chain inet vfmgr input", "flush chain inet vfmgr responder",
          "flush chain netdev vfmgr vm", "flush set netdev vfmgr vms",
          "flush set netdev vfmgr talks4", "flush set inet vfmgr vms"}) {
        perform(AddAddress{untagged, ip("192.168.77.1")});
        perform(peer);
        EXPECT_TRUE(closed()) << "before " << flush;
        ASSERT_EQ(std::system(("nft " + std::string(flush)).c_str()), 0);
        EXPECT_FALSE(closed()) << flush;
    }
    perform(AddAddress{untagged, ip("192.168.77.1")});
    perform(peer);
    EXPECT_THAT(heard("10.1.2.3", "192.168.77.1"), IsEmpty());
    EXPECT_THAT(heard("192.168.77.1", "192.168.77.1"), ElementsAre(roce, responder_echo_port));
}

TEST_F(VmFilter, TwoVmsOnOneInterfaceGoOneByOne) {
    attach(untagged, "192.168.77.1", "192.168.77.9");
    MacAddress const second{{0x02, 0, 0, 0, 0, 0x66}};
    perform(AddPeer{untagged, ip("192.168.77.8"), second, ip("192.168.77.1")});
    EXPECT_EQ(read_packet_filter(soon())->vms.size(), 2U);
    perform(RemovePeer{untagged, ip("192.168.77.8")});
    EXPECT_TRUE(closed());
    EXPECT_THAT(
        read_packet_filter(soon())->vms,
        ElementsAre(FilteredVm{"near0", tenants_mac(), ip("192.168.77.9"), ip("192.168.77.1")}));
}

// Its address was reassigned to another VM.
TEST_F(VmFilter, AnotherMacAtTheAddressReplacesTheFirst) {
    attach(untagged, "192.168.77.1", "192.168.77.9");
    MacAddress const second{{0x02, 0, 0, 0, 0, 0x66}};
    perform(AddPeer{untagged, ip("192.168.77.9"), second, ip("192.168.77.1")});
    EXPECT_THAT(read_packet_filter(soon())->vms,
                ElementsAre(FilteredVm{"near0", second, ip("192.168.77.9"), ip("192.168.77.1")}));
}

}  // namespace
}  // namespace vfmgr
