// SPDX-License-Identifier: Apache-2.0
// One end of two streams of numbered packets, one in each direction, for the scenario upgrade:
//   numbered LOCAL PEER PORT MILLISECONDS
// Sends PEER a UDP packet each so many milliseconds, and notes which of the peer's never came. At
// each SIGUSR1 it prints one line of JSON: what it has sent, the number that it expects next, the
// numbers below that which are missing, and for how long nothing came at most since the last line.
// It goes on until SIGTERM. A packet that the kernel does not take is sent again, under its number.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/signalfd.h>
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <set>

#include "api/os/descriptor.hpp"
#include "api/os/socket_address.hpp"
#include "api/types/text.hpp"

namespace {

using namespace vfmgr;
using Steady = std::chrono::steady_clock;

constexpr int buffer_bytes = 4 << 20;      // for a program that the emulator stops for some time
constexpr std::size_t packet_bytes = 256;  // with the number in the first eight

class Received {
  public:
    void take(std::uint64_t number) {
        auto const now = Steady::now();
        silence_ = std::max(silence_, now - last_);
        last_ = now;
        if (!next_) next_ = number;  // the peer began before this end
        for (; *next_ < number; ++*next_) missing_.insert(*next_);
        if (number == *next_)
            ++*next_;
        else
            missing_.erase(number);
    }
    [[nodiscard]] std::string line(std::uint64_t sent) {
        auto const silence = std::max(silence_, Steady::now() - last_);
        silence_ = {};
        return fmt::format(R"({{"sent": {}, "next": {}, "missing": [{}], "silence_ms": {}}})", sent,
                           next_.value_or(0), fmt::join(missing_, ", "),
                           std::chrono::duration_cast<std::chrono::milliseconds>(silence).count());
    }

  private:
    std::optional<std::uint64_t> next_;
    std::set<std::uint64_t> missing_;
    Steady::time_point last_ = Steady::now();
    Steady::duration silence_{};
};

FileDescriptor make_socket(IpAddress const& local, std::uint16_t port) {
    FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUFFORCE, &buffer_bytes, sizeof buffer_bytes);
    auto const address = SocketAddress::of(local, port);
    return ::bind(socket.get(), address.get(), address.length) == 0 ? std::move(socket)
                                                                    : FileDescriptor();
}

void receive_all(int socket, Received& received) {
    std::array<char, packet_bytes> packet{};
    while (::recv(socket, packet.data(), packet.size(), 0) == static_cast<ssize_t>(packet.size())) {
        std::uint64_t number = 0;
        std::memcpy(&number, packet.data(), sizeof number);
        received.take(number);
    }
}

bool send_one(int socket, SocketAddress const& peer, std::uint64_t number) {
    std::array<char, packet_bytes> packet{};
    std::memcpy(packet.data(), &number, sizeof number);
    return ::sendto(socket, packet.data(), packet.size(), 0, peer.get(), peer.length) > 0;
}

void exchange(int socket, int signals, SocketAddress const& peer, std::chrono::milliseconds every) {
    Received received;
    std::uint64_t sent = 0;
    auto due = Steady::now();
    while (true) {
        std::array const waiting{socket, signals};
        if (!await_readable(waiting, due)) return;
        receive_all(socket, received);
        signalfd_siginfo signal{};
        if (::read(signals, &signal, sizeof signal) == sizeof signal) {
            if (signal.ssi_signo != SIGUSR1) return;
            fmt::print("{}\n", received.line(sent));
            std::fflush(stdout);
        }
        if (auto const now = Steady::now(); now >= due) {
            if (send_one(socket, peer, sent)) ++sent;
            due = now + every;
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 5) return 2;
    auto const local = IpAddress::parse(argv[1]);
    auto const peer = IpAddress::parse(argv[2]);
    auto const port = parse_digits(argv[3], {.max = 65535});
    auto const every = parse_digits(argv[4], {.max = 60'000});
    if (!local || !peer || !port || !every) return 2;
    sigset_t mask;
    sigemptyset(&mask);
    for (int const signal : {SIGUSR1, SIGTERM}) sigaddset(&mask, signal);
    ::sigprocmask(SIG_BLOCK, &mask, nullptr);
    FileDescriptor const signals(::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK));
    auto const socket = make_socket(*local, static_cast<std::uint16_t>(*port));
    if (!signals || !socket) {
        std::perror("numbered");
        return 1;
    }
    exchange(socket.get(), signals.get(),
             SocketAddress::of(*peer, static_cast<std::uint16_t>(*port)),
             std::chrono::milliseconds(*every));
    return 0;
}
