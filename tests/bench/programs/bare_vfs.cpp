// SPDX-License-Identifier: Apache-2.0
// The peer of the benchmark configure-1000-bare: the minimum that sets five attributes of all VFs
// of a netdevsim port, with libmnl, a minimal netlink library. It looks up only the port's number,
// reads nothing and checks only the ACK. In the emulated host:
//   bare_vfs NETDEV VFS ROUND REPEATS
// Prints as JSON the median time of REPEATS rounds, numbered from ROUND on. Before each round it
// reads the VFs, untimed: configure_vfs reads them after each round, and an emulator is slower
// after other code has run.
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace {

constexpr std::uint32_t vfs_of_a_message = 500;  // 96 bytes each: an attribute's length has 16 bits

struct Round {
    std::uint32_t vfs = 0;
    std::uint8_t number = 0;
};

template <class T>
void put(nlmsghdr* message, std::uint16_t type, T const& value) {
    mnl_attr_put(message, type, sizeof value, &value);
}

// Same values as configure_vfs.
void put_vf(nlmsghdr* message, Round const& round, std::uint32_t vf) {
    bool const even = round.number % 2 == 0;
    auto* const info = mnl_attr_nest_start(message, IFLA_VF_INFO);
    put(message, IFLA_VF_MAC,
        ifla_vf_mac{vf,
                    {2, round.number, 0, 0, static_cast<std::uint8_t>(vf / 256),
                     static_cast<std::uint8_t>(vf % 256)}});
    put(message, IFLA_VF_VLAN, ifla_vf_vlan{vf, even ? 100U : 101U, 0});
    put(message, IFLA_VF_SPOOFCHK, ifla_vf_spoofchk{vf, even});
    put(message, IFLA_VF_RSS_QUERY_EN, ifla_vf_rss_query_en{vf, even});
    put(message, IFLA_VF_TRUST, ifla_vf_trust{vf, even});
    mnl_attr_nest_end(message, info);
}

void give_up(char const* what) {
    std::perror(what);
    std::exit(1);
}

mnl_socket* open_socket() {
    auto* const socket = mnl_socket_open(NETLINK_ROUTE);
    if (socket == nullptr || mnl_socket_bind(socket, 0, MNL_SOCKET_AUTOPID) < 0)
        give_up("bare_vfs: socket");
    return socket;
}

nlmsghdr* begin(std::span<char> memory, std::uint16_t type, int flags, int ifindex) {
    auto* const message = mnl_nlmsg_put_header(memory.data());
    message->nlmsg_type = type;
    message->nlmsg_flags = static_cast<std::uint16_t>(flags | NLM_F_REQUEST);
    message->nlmsg_seq = 1;
    ifinfomsg link{};
    link.ifi_index = ifindex;
    std::memcpy(mnl_nlmsg_put_extra_header(message, sizeof link), &link, sizeof link);
    return message;
}

// Ends the program when the kernel refuses.
void send_and_wait(mnl_socket* socket, nlmsghdr const* message, std::span<char> answer) {
    if (mnl_socket_sendto(socket, message, message->nlmsg_len) < 0) give_up("bare_vfs: send");
    auto const size = mnl_socket_recvfrom(socket, answer.data(), answer.size());
    if (size < 0 || mnl_cb_run(answer.data(), static_cast<std::size_t>(size), message->nlmsg_seq,
                               mnl_socket_get_portid(socket), nullptr, nullptr) < 0)
        give_up("bare_vfs: the kernel's answer");
}

void read_vfs(char const* netdev) {
    static std::array<char, 1 << 20> answer;
    std::array<char, 1024> memory{};
    auto* const socket = open_socket();
    auto* const message = begin(memory, RTM_GETLINK, 0, static_cast<int>(::if_nametoindex(netdev)));
    mnl_attr_put_u32(message, IFLA_EXT_MASK, RTEXT_FILTER_VF | RTEXT_FILTER_SKIP_STATS);
    send_and_wait(socket, message, answer);
    mnl_socket_close(socket);
}

void configure(char const* netdev, Round const& round) {
    static std::array<char, 65536> memory;
    std::array<char, 8192> answer;
    auto* const socket = open_socket();
    auto const ifindex = static_cast<int>(::if_nametoindex(netdev));
    for (std::uint32_t first = 0; first < round.vfs; first += vfs_of_a_message) {
        auto* const message = begin(memory, RTM_SETLINK, NLM_F_ACK, ifindex);
        auto* const list = mnl_attr_nest_start(message, IFLA_VFINFO_LIST);
        for (auto vf = first; vf < std::min(first + vfs_of_a_message, round.vfs); ++vf)
            put_vf(message, round, vf);
        mnl_attr_nest_end(message, list);
        send_and_wait(socket, message, answer);
    }
    mnl_socket_close(socket);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    Round round{static_cast<std::uint32_t>(std::atoi(argv[2])),
                static_cast<std::uint8_t>(std::atoi(argv[3]))};
    std::vector<double> seconds(static_cast<std::size_t>(std::atoi(argv[4])));
    for (auto& each : seconds) {
        read_vfs(argv[1]);
        auto const began = std::chrono::steady_clock::now();
        configure(argv[1], round);
        each = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        ++round.number;
    }
    std::ranges::sort(seconds);
    std::printf("{\"seconds\": %.6f}\n", seconds.at(seconds.size() / 2));
}
