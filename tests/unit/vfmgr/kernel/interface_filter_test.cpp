// SPDX-License-Identifier: Apache-2.0
// Tests the filter of the host's addresses in operation.
#include "vfmgr/kernel/interface_filter.hpp"

#include <gmock/gmock.h>

#include <cstdlib>

#include "knocking.hpp"
#include "vfmgr/netlink/ip.hpp"

namespace vfmgr {
namespace {

using test::at;
using test::everywhere;
using test::ip;
using test::Knocking;
using test::move_to;
using test::other_service;
using test::raise;
using test::roce;
using test::soon;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

TEST_F(Knocking, AtAnInterfaceOnlyTheResponderIsHeard) {
    attach(untagged, "192.168.77.1", "192.168.77.9");
    EXPECT_THAT(heard("192.168.77.1", "192.168.77.1"), ElementsAre(roce, responder_echo_port));
    EXPECT_THAT(interfaces()[0].filtered, ElementsAre(ip("192.168.77.1")));
    perform(RemoveAddress{untagged, ip("192.168.77.1")});
    EXPECT_THAT(interfaces()[0].filtered, IsEmpty());
    EXPECT_THAT(read_packet_filter(soon())->addresses, IsEmpty());
}

// Another program's socket may have the interop clients' port, on all addresses.
TEST_F(Knocking, AConnectionBeginsOnlyAtItsVeryAddress) {
    perform(AddAddress{untagged, ip("192.168.77.1")});
    auto socket = NlSocket::open(NlProtocol::route).value();
    auto const near = get_netdev(socket, "near0", soon()).value().ifindex;
    ASSERT_TRUE(add_peer_route(socket, {ip("192.168.77.9"), near, ip("192.168.77.1")}, soon()));
    auto const anywhere = listening_at(everywhere(perftest_port));
    EXPECT_FALSE(connected(knock_by_tcp("192.168.77.1"), std::chrono::milliseconds(500)));
    EXPECT_TRUE(connected(knock_by_tcp("10.1.2.3"), std::chrono::seconds(10)))
        << "it has no attachment, and the host's own address on its own netdev is the host's";
    auto const responder = listening_at(at(ip("192.168.77.1"), perftest_port));
    auto const knocking = knock_by_tcp("192.168.77.1");
    ASSERT_TRUE(connected(knocking, std::chrono::seconds(10)));
    ASSERT_EQ(::send(knocking.get(), "k", 1, 0), 1);
    FileDescriptor const taken(::accept4(responder.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ASSERT_TRUE(await_readable(std::array{taken.get()}, soon()).value() == Readiness::readable);
    char what = 0;
    EXPECT_EQ(::recv(taken.get(), &what, 1, 0), 1);
    EXPECT_EQ(what, 'k');
}

TEST_F(Knocking, ADeviceOfOursReachesNothingElse) {
    auto socket = NlSocket::open(NlProtocol::route).value();
    ASSERT_TRUE(test::make_veth(socket, {"near1", "far1"}));
    move_to(socket, "far1", tenant);
    raise(socket, "near1", {"192.168.100.3"});
    auto const far = raise(*theirs, "far1", {"192.168.100.9"});
    ASSERT_TRUE(add_peer_route(*theirs, {ip("10.1.2.3"), far, ip("192.168.100.9")}, soon()));
    know(far, get_netdev(socket, "near1", soon()).value(), {"10.1.2.3", "192.168.100.3"});
    EXPECT_THAT(heard("10.1.2.3", "192.168.100.3"),
                ElementsAre(roce, responder_echo_port, other_service))
        << "Linux answers for all of its addresses everywhere";
    auto interface = get_netdev(socket, "near1", soon()).value();
    interface.kind = "vlan";
    interface.alias = "vfmgr";
    ASSERT_TRUE(filter_address(interface, ip("192.168.100.3"), soon()));
    EXPECT_THAT(heard("192.168.100.3", "192.168.100.3"), ElementsAre(roce, responder_echo_port));
    EXPECT_THAT(heard("10.1.2.3", "192.168.100.3"), IsEmpty()) << "the host's other address";
    EXPECT_THAT(read_packet_filter(soon())->interfaces, ElementsAre("near1"));
    ASSERT_TRUE(unfilter_interface("near1", soon()));
    auto const left = read_packet_filter(soon()).value();
    EXPECT_THAT(left.interfaces, IsEmpty()) << "whoever makes a device of that name gets no filter";
    EXPECT_THAT(left.addresses, IsEmpty());
    EXPECT_TRUE(unfilter_interface("near1", soon())) << "again";
}

TEST_F(Knocking, IsClosedAgainAfterSomebodyFlushedTheFilter) {
    attach(untagged, "192.168.77.1", "192.168.77.9");
    ASSERT_EQ(std::system("nft flush ruleset"), 0);
    EXPECT_THAT(interfaces()[0].filtered, IsEmpty()) << "seen";
    EXPECT_THAT(heard("192.168.77.1", "192.168.77.1"),
                ElementsAre(roce, responder_echo_port, other_service))
        << "the filter it was that closed it";
    perform(AddAddress{untagged, ip("192.168.77.1")});
    EXPECT_THAT(heard("192.168.77.1", "192.168.77.1"), ElementsAre(roce, responder_echo_port));
}

TEST(InterfaceFilter, RefusesANameThatNftWouldTakeForItsOwn) {
    Netdev interface;
    for (auto const* const name : {"near\"}", "near*", "near\\", "$near"}) {
        interface.name = name;
        EXPECT_EQ(filter_address(interface, ip("192.168.77.1"), soon()).error().problem,
                  Problem::unsupported)
            << name;
    }
}

TEST_F(Knocking, WithoutNftThereIsNoAddress) {
    std::string const path = std::getenv("PATH");
    ASSERT_EQ(::setenv("PATH", "/nowhere", 1), 0);
    auto const refused = kernel->perform(AddAddress{untagged, ip("192.168.77.1")}, soon());
    ASSERT_EQ(::setenv("PATH", path.c_str(), 1), 0);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unsupported);
    EXPECT_EQ(refused.error().remedy, "install it: apt-get install nftables");
    EXPECT_THAT(interfaces()[0].addresses, Not(Contains(ip("192.168.77.1"))));
}

}  // namespace
}  // namespace vfmgr
