// SPDX-License-Identifier: Apache-2.0
// The peer of the bench configure-1000-bare: the least that sets five attributes of all VFs of a
// netdevsim port. One socket, messages put together by hand, nothing read and nothing checked. In
// the emulated host:
//   bare_vfs NETDEV VFS ROUND REPEATS
// Prints as JSON what it took: the median of so many rounds with numbers from ROUND on.
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

namespace {

constexpr std::uint32_t vfs_of_a_message =
    500;  // 96 octets each: an attribute's length has 16 bits

struct Round {
    std::uint32_t vfs = 0;
    std::uint8_t number = 0;
};

struct Message {
    std::vector<std::byte> bytes;

    template <class T>
    void add(T const& object) {
        auto const view = std::as_bytes(std::span(&object, 1));
        bytes.insert(bytes.end(), view.begin(), view.end());
        bytes.resize((bytes.size() + 3) / 4 * 4);
    }
    std::size_t begin(int type) {
        auto const at = bytes.size();
        add(nlattr{0, static_cast<std::uint16_t>(type)});
        return at;
    }
    void end(std::size_t at) {
        auto const length = static_cast<std::uint16_t>(bytes.size() - at);
        std::memcpy(bytes.data() + at, &length, sizeof length);
    }
    template <class T>
    void put(int type, T const& value) {
        auto const at = begin(type);
        add(value);
        end(at);
    }
};

// The values of configure_vfs.
void put_vf(Message& message, Round const& round, std::uint32_t vf) {
    bool const even = round.number % 2 == 0;
    auto const info = message.begin(IFLA_VF_INFO);
    message.put(IFLA_VF_MAC,
                ifla_vf_mac{vf,
                            {2, round.number, 0, 0, static_cast<std::uint8_t>(vf / 256),
                             static_cast<std::uint8_t>(vf % 256)}});
    message.put(IFLA_VF_VLAN, ifla_vf_vlan{vf, even ? 100U : 101U, 0});
    message.put(IFLA_VF_SPOOFCHK, ifla_vf_spoofchk{vf, even});
    message.put(IFLA_VF_RSS_QUERY_EN, ifla_vf_rss_query_en{vf, even});
    message.put(IFLA_VF_TRUST, ifla_vf_trust{vf, even});
    message.end(info);
}

void send_and_wait(int fd, Message const& message) {
    struct {
        nlmsghdr header;
        nlmsgerr error;
        char more[1024];
    } answer{};
    if (::send(fd, message.bytes.data(), message.bytes.size(), 0) == std::ssize(message.bytes) &&
        ::recv(fd, &answer, sizeof answer, 0) > 0 && answer.error.error == 0)
        return;
    std::fprintf(stderr, "bare_vfs: the kernel said %d\n", answer.error.error);
    std::exit(1);
}

void configure(char const* netdev, Round const& round) {
    ifinfomsg link{};
    link.ifi_index = static_cast<int>(::if_nametoindex(netdev));
    int const fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    for (std::uint32_t first = 0; first < round.vfs; first += vfs_of_a_message) {
        Message message;
        message.add(nlmsghdr{0, RTM_SETLINK, NLM_F_REQUEST | NLM_F_ACK, 1, 0});
        message.add(link);
        auto const list = message.begin(IFLA_VFINFO_LIST);
        for (auto vf = first; vf < std::min(first + vfs_of_a_message, round.vfs); ++vf)
            put_vf(message, round, vf);
        message.end(list);
        auto const size = static_cast<std::uint32_t>(message.bytes.size());
        std::memcpy(message.bytes.data(), &size, sizeof size);
        send_and_wait(fd, message);
    }
    ::close(fd);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    Round round{static_cast<std::uint32_t>(std::atoi(argv[2])),
                static_cast<std::uint8_t>(std::atoi(argv[3]))};
    std::vector<double> seconds(static_cast<std::size_t>(std::atoi(argv[4])));
    for (auto& each : seconds) {
        auto const began = std::chrono::steady_clock::now();
        configure(argv[1], round);
        each = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
        ++round.number;
    }
    std::ranges::sort(seconds);
    std::printf("{\"seconds\": %.6f}\n", seconds.at(seconds.size() / 2));
}
