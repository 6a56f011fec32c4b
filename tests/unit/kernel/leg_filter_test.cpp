// SPDX-License-Identifier: Apache-2.0
// The filter at work: a tenant's machine, which is a namespace of its own, knocks at the host's.
#include "vfmgr/kernel/leg_filter.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>

#include "api/types/guest.hpp"
#include "api/types/stock.hpp"
#include "host_tree.hpp"
#include "vfmgr/kernel/host_leg.hpp"
#include "vfmgr/kernel/linux_kernel.hpp"
#include "vfmgr/netlink/address.hpp"
#include "vfmgr/netlink/neighbour.hpp"
#include "vfmgr/netlink/route.hpp"

namespace vfmgr {
namespace {

using test::pci;
using test::soon;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

constexpr std::uint16_t roce = 4791;
constexpr std::uint16_t other_service = 9000;

IpAddress ip(std::string const& text) {
    return IpAddress::parse(text).value();
}

FileDescriptor this_network() {
    return FileDescriptor(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
}
void enter(FileDescriptor const& network) {
    ASSERT_EQ(::setns(network.get(), CLONE_NEWNET), 0) << std::strerror(errno);
}

sockaddr_in at(IpAddress const& address, std::uint16_t port) {
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_port = htons(port);
    std::memcpy(&where.sin_addr, address.octets.data(), sizeof where.sin_addr);
    return where;
}

FileDescriptor udp_socket() {
    return FileDescriptor(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

void move_to(NlSocket& socket, std::string const& netdev, FileDescriptor const& network) {
    NlRequest request(RTM_NEWLINK, 0);
    ifinfomsg header{};
    header.ifi_index = get_netdev(socket, netdev, soon()).value().ifindex;
    request.header(header).put(IFLA_NET_NS_FD, static_cast<std::uint32_t>(network.get()));
    ASSERT_TRUE(socket.tell(request, "RTM_NEWLINK netns", soon()).value().ok());
}

// Up, with the addresses given; returns its index.
int raise(NlSocket& socket, std::string const& netdev, std::vector<std::string> const& addresses) {
    auto const ifindex = get_netdev(socket, netdev, soon()).value().ifindex;
    EXPECT_TRUE(change_netdev(socket, netdev, {ifindex, true, {}}, soon()));
    for (auto const& each : addresses)
        EXPECT_TRUE(add_address(socket, {ifindex, ip(each), 24}, soon()));
    return ifindex;
}

// The host has the PF near0 with an address of its own, 10.1.2.3, and listens on every address; the
// tenant is at the other end, and at that of near1, which stands for a VLAN device of vfmgr's: not
// every kernel that tests run on has those.
class Knocking : public test::Networked {
  protected:
    void SetUp() override {
        Networked::SetUp();
        if (IsSkipped()) return;
        stay_on_one_cpu();
        host = this_network();
        ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
        tenant = this_network();
        theirs.emplace(NlSocket::open(NlProtocol::route).value());
        knocker = udp_socket();
        enter(host);
        auto ours = NlSocket::open(NlProtocol::route).value();
        ASSERT_TRUE(test::make_veth(ours, {"near0", "far0"}));
        move_to(ours, "far0", tenant);
        raise(ours, "near0", {"10.1.2.3"});
        auto const far = raise(*theirs, "far0", {"192.168.77.9", "10.1.2.9"});
        know(far, get_netdev(ours, "near0", soon()).value(), {"10.1.2.3", "192.168.77.1"});
        tree.add_pf("0000:01:00.0", 7);
        tree.write(tree.device("0000:01:00.0") / "net/near0/dev_port", "0\n");
        kernel.emplace(tree.roots());
        for (auto const port : {roce, responder_echo_port, other_service}) {
            auto const everywhere = at(IpAddress{}, port);
            ports[port] = udp_socket();
            ASSERT_EQ(::bind(ports[port].get(), reinterpret_cast<sockaddr const*>(&everywhere),
                             sizeof everywhere),
                      0);
        }
    }
    void TearDown() override {
        ::sched_setaffinity(0, sizeof before, &before);
        Networked::TearDown();
    }
    // So that the tenant asks for no address: a datagram that waits for an answer is overtaken.
    void know(int far, Netdev const& near, std::vector<std::string> const& addresses) {
        for (auto const& each : addresses)
            ASSERT_TRUE(replace_neighbour(*theirs, {far, ip(each), near.mac.value()}, soon()));
    }
    // A veth's packets wait in a queue of the CPU that sent them: those of two overtake each other.
    void stay_on_one_cpu() {
        ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
        cpu_set_t this_one{};
        CPU_SET(::sched_getcpu(), &this_one);
        ASSERT_EQ(::sched_setaffinity(0, sizeof this_one, &this_one), 0);
    }
    // The host's address on the leg, and the tenant's there.
    void lend(LegId const& leg, std::string const& own, std::string const& tenants) {
        auto const mac = get_netdev(*theirs, "far0", soon()).value().mac.value();
        perform(AddAddress{leg, ip(own)});
        perform(AddPeer{leg, ip(tenants), mac, ip(own)});
    }
    void perform(KernelStep const& step) {
        auto const done = kernel->perform(step, soon());
        ASSERT_TRUE(done) << done.error().detail;
    }
    [[nodiscard]] std::vector<LegState> legs() {
        return kernel->observe(pf).value().pfs.at(pf).legs;
    }
    // At which of the host's ports the tenant's datagrams to `address` arrive. `last` is where one
    // does in any case: what was sent before it has arrived by then, or never will.
    [[nodiscard]] std::vector<int> heard(std::string const& address, std::string const& last) {
        for (auto const& [port, unused] : ports) send(address, port, 'k');
        send(last, roce, 'l');
        std::vector<int> all;
        while (true) {
            auto const ready = await_readable(std::array{ports[roce].get()}, soon());
            EXPECT_EQ(ready.value(), Readiness::readable) << "not even at " << last;
            if (*ready != Readiness::readable) return all;
            char what = 0;
            EXPECT_EQ(::recv(ports[roce].get(), &what, 1, 0), 1);
            if (what == 'l') break;
            all.push_back(roce);
        }
        for (auto const port : {responder_echo_port, other_service}) {
            char what = 0;
            if (::recv(ports[port].get(), &what, 1, 0) == 1) all.push_back(port);
        }
        return all;
    }

    // Shared with a socket on all addresses, as long as both allow it.
    static FileDescriptor listening_at(IpAddress const& address) {
        FileDescriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        int const yes = 1;
        ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
        auto const where = at(address, perftest_port);
        EXPECT_EQ(::bind(made.get(), reinterpret_cast<sockaddr const*>(&where), sizeof where), 0);
        EXPECT_EQ(::listen(made.get(), 4), 0);
        return made;
    }
    [[nodiscard]] FileDescriptor knock_by_tcp(std::string const& address) const {
        enter(tenant);
        FileDescriptor made(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        enter(host);
        auto const where = at(ip(address), perftest_port);
        EXPECT_EQ(::connect(made.get(), reinterpret_cast<sockaddr const*>(&where), sizeof where),
                  -1);
        EXPECT_EQ(errno, EINPROGRESS);
        return made;
    }
    static bool connected(FileDescriptor const& knocking, std::chrono::milliseconds time) {
        pollfd ready{knocking.get(), POLLOUT, 0};
        if (::poll(&ready, 1, static_cast<int>(time.count())) != 1) return false;
        int failed = 0;
        socklen_t size = sizeof failed;
        ::getsockopt(knocking.get(), SOL_SOCKET, SO_ERROR, &failed, &size);
        return failed == 0;
    }

    PciAddress const pf = pci("0000:01:00.0");
    LegId const untagged{pf, {}};
    test::HostTree tree;
    std::optional<LinuxKernel> kernel;
    FileDescriptor host;
    FileDescriptor tenant;
    std::optional<NlSocket> theirs;

  private:
    void send(std::string const& address, std::uint16_t port, char what) {
        auto const where = at(ip(address), port);
        EXPECT_EQ(::sendto(knocker.get(), &what, 1, 0, reinterpret_cast<sockaddr const*>(&where),
                           sizeof where),
                  1)
            << std::strerror(errno);
    }
    cpu_set_t before{};
    FileDescriptor knocker;
    std::map<std::uint16_t, FileDescriptor> ports;
};

TEST_F(Knocking, AtALegOnlyTheResponderIsHeard) {
    lend(untagged, "192.168.77.1", "192.168.77.9");
    EXPECT_THAT(heard("192.168.77.1", "192.168.77.1"), ElementsAre(roce, responder_echo_port));
    EXPECT_THAT(heard("10.1.2.3", "192.168.77.1"),
                ElementsAre(roce, responder_echo_port, other_service))
        << "the host's own address on its own netdev is the host's";
    EXPECT_THAT(legs()[0].filtered, ElementsAre(ip("192.168.77.1")));
    perform(RemoveAddress{untagged, ip("192.168.77.1")});
    EXPECT_THAT(legs()[0].filtered, IsEmpty());
    EXPECT_THAT(read_packet_filter(soon())->addresses, IsEmpty());
}

// Another program's socket may have the port of stock clients, on all addresses.
TEST_F(Knocking, AConnectionBeginsOnlyAtItsVeryAddress) {
    lend(untagged, "192.168.77.1", "192.168.77.9");
    auto const everywhere = listening_at(IpAddress{});
    EXPECT_FALSE(connected(knock_by_tcp("192.168.77.1"), std::chrono::milliseconds(500)));
    EXPECT_TRUE(connected(knock_by_tcp("10.1.2.3"), std::chrono::seconds(10)))
        << "the host's own address on its own netdev is the host's";
    auto const responder = listening_at(ip("192.168.77.1"));
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
    auto leg = get_netdev(socket, "near1", soon()).value();
    leg.kind = "vlan";
    leg.alias = "vfmgr";
    ASSERT_TRUE(filter_address(leg, ip("192.168.100.3"), soon()));
    EXPECT_THAT(heard("192.168.100.3", "192.168.100.3"), ElementsAre(roce, responder_echo_port));
    EXPECT_THAT(heard("10.1.2.3", "192.168.100.3"), IsEmpty()) << "the host's other address";
    EXPECT_THAT(read_packet_filter(soon())->legs, ElementsAre("near1"));
    ASSERT_TRUE(unfilter_leg("near1", soon()));
    auto const left = read_packet_filter(soon()).value();
    EXPECT_THAT(left.legs, IsEmpty()) << "whoever makes a device of that name gets no filter";
    EXPECT_THAT(left.addresses, IsEmpty());
    EXPECT_TRUE(unfilter_leg("near1", soon())) << "again";
}

TEST_F(Knocking, IsClosedAgainAfterSomebodyFlushedTheFilter) {
    lend(untagged, "192.168.77.1", "192.168.77.9");
    ASSERT_EQ(std::system("nft flush ruleset"), 0);
    EXPECT_THAT(legs()[0].filtered, IsEmpty()) << "seen";
    EXPECT_THAT(heard("192.168.77.1", "192.168.77.1"),
                ElementsAre(roce, responder_echo_port, other_service))
        << "the filter it was that closed it";
    perform(AddAddress{untagged, ip("192.168.77.1")});
    EXPECT_THAT(heard("192.168.77.1", "192.168.77.1"), ElementsAre(roce, responder_echo_port));
}

TEST(LegFilter, RefusesANameThatNftWouldTakeForItsOwn) {
    Netdev leg;
    for (auto const* const name : {"near\"}", "near*", "near\\", "$near"}) {
        leg.name = name;
        EXPECT_EQ(filter_address(leg, ip("192.168.77.1"), soon()).error().problem,
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
    EXPECT_THAT(legs()[0].addresses, Not(Contains(ip("192.168.77.1"))));
}

}  // namespace
}  // namespace vfmgr
