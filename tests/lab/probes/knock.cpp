// SPDX-License-Identifier: Apache-2.0
// Sends a VM's host frames of its own making; the scenario hostile-guest runs it in the VM:
//   knock IFNAME HOST_MAC FROM TO VLAN PORT…   a UDP datagram and a TCP SYN from port 31337 to each
//                                              port of address TO; VLAN 0: untagged
//   knock IFNAME HOST_MAC claim ADDRESS        "ADDRESS is at my MAC", by ARP
// The host counts what arrives. Exits with 0 if everything was sent.
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstdio>
#include <cstring>
#include <string>

#include "api/os/descriptor.hpp"
#include "api/types/addresses.hpp"

namespace {

using namespace vfmgr;

constexpr std::uint16_t from_port = 31337;

struct Bytes {
    std::string octets;
    Bytes& u8(unsigned value) {
        octets.push_back(static_cast<char>(value));
        return *this;
    }
    Bytes& u16(unsigned value) { return u8(value >> 8U).u8(value & 0xffU); }
    Bytes& u32(unsigned value) { return u16(value >> 16U).u16(value & 0xffffU); }
    Bytes& mac(MacAddress const& mac) {
        for (auto const octet : mac.octets) u8(octet);
        return *this;
    }
    Bytes& ip(IpAddress const& address) {
        for (unsigned i = 0; i < address.bits() / 8; ++i) u8(address.octets[i]);
        return *this;
    }
    Bytes& add(Bytes const& other) {
        octets += other.octets;
        return *this;
    }
    void set16(std::size_t at, std::uint16_t value) {
        octets[at] = static_cast<char>(value >> 8U);
        octets[at + 1] = static_cast<char>(value & 0xffU);
    }
};

// The internet's checksum (RFC 1071).
std::uint16_t checksum(Bytes const& bytes) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < bytes.octets.size(); ++i) {
        auto const octet = static_cast<std::uint8_t>(bytes.octets[i]);
        sum += i % 2 == 0 ? static_cast<std::uint32_t>(octet) << 8U : octet;
    }
    while (sum >> 16U) sum = (sum & 0xffffU) + (sum >> 16U);
    return static_cast<std::uint16_t>(~sum);
}

struct Path {
    IpAddress from, to;
    [[nodiscard]] bool v4() const { return to.family == IpAddress::Family::v4; }
};

// UDP with one byte, or a TCP SYN.
Bytes segment(Path const& path, unsigned protocol, unsigned port) {
    Bytes bytes;
    bytes.u16(from_port).u16(port);
    if (protocol == IPPROTO_UDP)
        bytes.u16(9).u16(0).u8('k');
    else
        bytes.u32(1).u32(0).u8(0x50).u8(0x02).u16(1024).u16(0).u16(0);
    Bytes pseudo;
    pseudo.ip(path.from).ip(path.to);
    auto const length = static_cast<unsigned>(bytes.octets.size());
    if (path.v4())
        pseudo.u8(0).u8(protocol).u16(length);
    else
        pseudo.u32(length).u32(protocol);
    bytes.set16(protocol == IPPROTO_UDP ? 6 : 16, checksum(pseudo.add(bytes)));
    return bytes;
}

Bytes packet(Path const& path, unsigned protocol, unsigned port) {
    auto const inside = segment(path, protocol, port);
    auto const length = static_cast<unsigned>(inside.octets.size());
    Bytes bytes;
    if (path.v4()) {
        bytes.u16(0x4500).u16(20 + length).u32(0).u8(64).u8(protocol).u16(0);
        bytes.ip(path.from).ip(path.to);
        bytes.set16(10, checksum(bytes));
    } else {
        bytes.u32(0x60000000).u16(length).u8(protocol).u8(64).ip(path.from).ip(path.to);
    }
    return bytes.add(inside);
}

class Wire {
  public:
    Wire(char const* ifname, MacAddress const& host)
        : socket_(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0)), host_(host) {
        ifreq request{};
        std::strncpy(request.ifr_name, ifname, IFNAMSIZ - 1);
        if (::ioctl(socket_.get(), SIOCGIFHWADDR, &request) == 0)
            std::memcpy(own_.octets.data(), request.ifr_hwaddr.sa_data, own_.octets.size());
        ifindex_ = static_cast<int>(::if_nametoindex(ifname));
    }
    [[nodiscard]] bool send(unsigned vlan, unsigned type, Bytes const& inside) const {
        Bytes frame;
        frame.mac(host_).mac(own_);
        if (vlan != 0) frame.u16(ETHERTYPE_VLAN).u16(vlan);
        frame.u16(type).add(inside);
        sockaddr_ll where{};
        where.sll_family = AF_PACKET;
        where.sll_ifindex = ifindex_;
        return ::sendto(socket_.get(), frame.octets.data(), frame.octets.size(), 0,
                        reinterpret_cast<sockaddr const*>(&where),
                        sizeof where) == std::ssize(frame.octets);
    }
    [[nodiscard]] bool claim(IpAddress const& address) const {
        Bytes arp;
        arp.u16(1).u16(ETHERTYPE_IP).u16(0x0604).u16(ARPOP_REPLY);
        arp.mac(own_).ip(address).mac(host_).ip(address);
        return send(0, ETHERTYPE_ARP, arp);
    }

  private:
    FileDescriptor socket_;
    MacAddress host_, own_;
    int ifindex_ = 0;
};

bool knock(Wire const& wire, char** arguments, int count) {
    Path const path{IpAddress::parse(arguments[0]).value(), IpAddress::parse(arguments[1]).value()};
    auto const vlan = static_cast<unsigned>(std::stoul(arguments[2]));
    bool all = true;
    for (int i = 3; i < count; ++i)
        for (unsigned const protocol : {IPPROTO_UDP, IPPROTO_TCP})
            all = wire.send(
                      vlan, path.v4() ? ETHERTYPE_IP : ETHERTYPE_IPV6,
                      packet(path, protocol, static_cast<unsigned>(std::stoul(arguments[i])))) &&
                  all;
    return all;
}

}  // namespace

int main(int count, char** arguments) {
    auto const host = vfmgr::MacAddress::parse(count > 4 ? arguments[2] : "");
    if (!host) {
        std::fputs("knock: see the comment in knock.cpp\n", stderr);
        return 2;
    }
    Wire const wire(arguments[1], *host);
    if (std::string(arguments[3]) == "claim")
        return wire.claim(IpAddress::parse(arguments[4]).value()) ? 0 : 1;
    return count > 6 && knock(wire, arguments + 3, count - 3) ? 0 : 1;
}
