// SPDX-License-Identifier: Apache-2.0
// A tenant's machine, a network namespace of its own, probes the host's. Owned by the test; its
// thread switches between them.
#pragma once

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <fstream>

#include "api/types/guest.hpp"
#include "api/types/rdma.hpp"
#include "host_tree.hpp"
#include "vfmgr/kernel/linux_kernel.hpp"
#include "vfmgr/netlink/ip.hpp"

namespace vfmgr::test {

inline constexpr std::uint16_t roce = 4791;
inline constexpr std::uint16_t other_service = 9000;

inline FileDescriptor this_network() {
    return FileDescriptor(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
}
inline void enter(FileDescriptor const& network) {
    ASSERT_EQ(::setns(network.get(), CLONE_NEWNET), 0) << std::strerror(errno);
}

// For sockets of both families.
inline sockaddr_in6 at(IpAddress const& address, std::uint16_t port) {
    sockaddr_in6 where{};
    where.sin6_family = AF_INET6;
    where.sin6_port = htons(port);
    auto const gid = address.gid();  // ::ffff:a.b.c.d, as sockets have it, too
    std::memcpy(&where.sin6_addr, gid.data(), gid.size());
    return where;
}
inline sockaddr_in6 everywhere(std::uint16_t port) {
    return at({IpAddress::Family::v6, {}}, port);
}

// Makes IPv6 addresses of devices created later in this network usable at once.
inline void expect_no_duplicates() {
    for (auto const* const which : {"all", "default"})
        std::ofstream("/proc/sys/net/ipv6/conf/" + std::string(which) + "/accept_dad") << "0";
}

inline FileDescriptor udp_socket() {
    return FileDescriptor(::socket(AF_INET6, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

inline void move_to(NlSocket& socket, std::string const& netdev, FileDescriptor const& network) {
    NlRequest request(RTM_NEWLINK, 0);
    ifinfomsg header{};
    header.ifi_index = get_netdev(socket, netdev, soon()).value().ifindex;
    request.header(header).put(IFLA_NET_NS_FD, static_cast<std::uint32_t>(network.get()));
    ASSERT_TRUE(socket.request(request, "RTM_NEWLINK netns", soon()).value().ok());
}

// Sets it up, with the addresses given; returns its index.
inline int raise(NlSocket& socket, std::string const& netdev,
                 std::vector<std::string> const& addresses) {
    auto const ifindex = get_netdev(socket, netdev, soon()).value().ifindex;
    EXPECT_TRUE(change_netdev(socket, netdev, {ifindex, true, {}}, soon()));
    for (auto const& each : addresses) {
        std::uint8_t const length = ip(each).family == IpAddress::Family::v4 ? 24 : 64;
        EXPECT_TRUE(add_address(socket, {ifindex, ip(each), length}, soon()));
    }
    return ifindex;
}

// The host has the PF near0 with its own addresses, 10.1.2.3 and fd00:10::3, and listens on every
// address; the tenant is at the other end.
class Knocking : public Networked {
  protected:
    void SetUp() override {
        Networked::SetUp();
        if (IsSkipped()) return;
        stay_on_one_cpu();
        host = this_network();
        expect_no_duplicates();
        ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
        tenant = this_network();
        expect_no_duplicates();
        theirs.emplace(NlSocket::open(NlProtocol::route).value());
        knocker = udp_socket();
        enter(host);
        auto ours = NlSocket::open(NlProtocol::route).value();
        ASSERT_TRUE(make_veth(ours, {"near0", "far0"}));
        move_to(ours, "far0", tenant);
        raise(ours, "near0", {"10.1.2.3", "fd00:10::3"});
        auto const far =
            raise(*theirs, "far0", {"192.168.77.9", "10.1.2.9", "fd00:77::9", "fd00:10::9"});
        know(far, get_netdev(ours, "near0", soon()).value(),
             {"10.1.2.3", "192.168.77.1", "fd00:10::3", "fd00:77::1"});
        tree.add_pf("0000:01:00.0", 7);
        tree.write(tree.device("0000:01:00.0") / "net/near0/dev_port", "0\n");
        kernel.emplace(tree.roots());
        for (auto const port : {roce, responder_echo_port, other_service}) {
            auto const where = everywhere(port);
            ports[port] = udp_socket();
            ASSERT_EQ(
                ::bind(ports[port].get(), reinterpret_cast<sockaddr const*>(&where), sizeof where),
                0);
        }
    }
    void TearDown() override {
        ::sched_setaffinity(0, sizeof before, &before);
        Networked::TearDown();
    }
    // Spares the tenant address resolution: a datagram that waits for an answer is overtaken.
    void know(int far, Netdev const& near, std::vector<std::string> const& addresses) {
        for (auto const& each : addresses)
            ASSERT_TRUE(replace_neighbour(*theirs, {far, ip(each), near.mac.value()}, soon()));
    }
    // A veth's packets wait in the sending CPU's queue: packets of two CPUs overtake each other.
    void stay_on_one_cpu() {
        ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
        cpu_set_t this_one{};
        CPU_SET(::sched_getcpu(), &this_one);
        ASSERT_EQ(::sched_setaffinity(0, sizeof this_one, &this_one), 0);
    }
    [[nodiscard]] MacAddress tenants_mac() {
        return get_netdev(*theirs, "far0", soon()).value().mac.value();
    }
    // Adds the host's address on the interface, and the tenant's there.
    void attach(InterfaceId const& interface, std::string const& own, std::string const& tenants) {
        perform(AddAddress{interface, ip(own)});
        perform(AddPeer{interface, ip(tenants), tenants_mac(), ip(own)});
    }
    void perform(KernelStep const& step) {
        auto const done = kernel->perform(step, soon());
        ASSERT_TRUE(done) << done.error().detail;
    }
    [[nodiscard]] std::vector<HostInterface> interfaces() {
        return kernel->observe(pf).value().pfs.at(pf).interfaces;
    }
    // Returns the host's ports where the tenant's datagrams to `address` arrive. One arrives at
    // `last` in any case: what was sent before it has arrived by then, or never will.
    [[nodiscard]] std::vector<int> heard(std::string const& address, std::string const& last) {
        for (auto const& [port, unused] : ports) send(address, port, 'k');
        send(last, roce, 'l');
        std::vector<int> all;
        while (true) {
            auto const ready = await_readable(std::array{ports[roce].get()}, soon());
            EXPECT_EQ(ready.value(), Readiness::readable) << "not even at " << last;
            if (*ready != Readiness::readable) return {-1};
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

    // Shares it with a socket on all addresses, as long as both allow it.
    static FileDescriptor listening_at(sockaddr_in6 const& where) {
        FileDescriptor made(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0));
        int const yes = 1;
        ::setsockopt(made.get(), SOL_SOCKET, SO_REUSEPORT, &yes, sizeof yes);
        EXPECT_EQ(::bind(made.get(), reinterpret_cast<sockaddr const*>(&where), sizeof where), 0);
        EXPECT_EQ(::listen(made.get(), 4), 0);
        return made;
    }
    [[nodiscard]] FileDescriptor knock_by_tcp(std::string const& address) const {
        enter(tenant);
        FileDescriptor made(::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
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
    InterfaceId const untagged{pf, {}};
    HostTree tree;
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

}  // namespace vfmgr::test
