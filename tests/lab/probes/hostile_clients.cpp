// SPDX-License-Identifier: Apache-2.0
// hostile_clients HOST OWN COUNT: opens COUNT hostile connections from OWN to the host's interop
// servers: silent, slow, malformed, cut off, changed by a byte, with another GID, or with a queue
// pair that guesses memory keys. Prints the number of each kind as JSON.
#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cstdio>
#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "api/os/socket_address.hpp"
#include "api/types/rdma.hpp"
#include "vfmgr/proof/interop/lines.hpp"
#include "vfmgr/proof/interop/tcp_stream.hpp"
#include "vfmgr/rdma/memory.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace {

using namespace vfmgr;
using namespace vfmgr::interop;
using namespace std::string_literals;
using Steady = std::chrono::steady_clock;

constexpr std::size_t kept_open = 40;  // more than the host keeps for one guest
constexpr auto answer_time = std::chrono::milliseconds(50);
constexpr auto guess_time = std::chrono::seconds(5);
auto const opening = "6.06"s + std::string(12, '\0') + "\0\0\x10\0\0\0\0\x40"s + "5\0"s;

std::mt19937_64& dice() {
    static std::mt19937_64 made(std::random_device{}());
    return made;
}
std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(dice());
}

struct Enemy {
    IpAddress host, own;
    verify::Endpoint endpoint;
    std::deque<TcpStream> open{};  // oldest first
    std::map<std::string, std::uint64_t> done{};

    Result<TcpStream> call() {
        FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        auto const where = SocketAddress::of(host, perftest_port);
        if (::connect(socket.get(), where.get(), where.length) == 0)
            return TcpStream(std::move(socket));
        Error error{Problem::unavailable, "no connection", ""};
        error.causes.push_back(errno_cause("connect", errno));
        return fail(std::move(error));
    }
    void keep(TcpStream client) {
        client.end_hard();
        open.push_back(std::move(client));
        if (open.size() > kept_open) open.pop_front();
    }
    std::string line(QueuePairEnd const& end) const {
        return make_perftest_line({end, {0x7f0000000000, 0x1234, 0}});
    }
    QueuePairEnd unused_end() const {
        return {verify::gid_hex(endpoint.gid), static_cast<std::uint32_t>(17 + below(1000)), 1,
                4096, 1};
    }
};

// Reads whatever the host sends, for as long as its answer to a handshake takes.
void say(Enemy& enemy, std::string const& bytes) {
    auto client = enemy.call();
    if (!client) return void(++enemy.done["no connection"]);
    client->end_hard();
    auto const until = Steady::now() + answer_time;
    if (!client->write(bytes, until)) return;
    static_cast<void>(client->read(opening.size(), until).has_value());
}

void changed(Enemy& enemy) {
    auto bytes = opening + enemy.line(enemy.unused_end());
    bytes[below(bytes.size())] = static_cast<char>(below(256));
    say(enemy, bytes);
}

void pingpong_changed(Enemy& enemy) {
    auto bytes = make_pingpong_line(enemy.unused_end());
    bytes[below(bytes.size())] = static_cast<char>(below(256));
    say(enemy, bytes);
}

void cut_off(Enemy& enemy) {
    auto const bytes = opening + enemy.line(enemy.unused_end());
    say(enemy, bytes.substr(0, 1 + below(bytes.size() - 1)));
}

void malformed(Enemy& enemy) {
    std::string bytes(1 + below(300), '\0');
    for (auto& byte : bytes) byte = static_cast<char>(below(256));
    say(enemy, bytes);
}

void another_gid(Enemy& enemy) {
    auto end = enemy.unused_end();
    end.gid.back() = end.gid.back() == '0' ? '1' : '0';
    say(enemy, opening + enemy.line(end));
}

void silent(Enemy& enemy) {
    if (auto client = enemy.call()) enemy.keep(std::move(*client));
}

void slow(Enemy& enemy) {
    auto client = enemy.call();
    if (!client) return;
    static_cast<void>(client->write(opening.substr(0, 1 + below(15)), Steady::now() + answer_time));
    enemy.keep(std::move(*client));
}

// A queue pair that the host has connected, with a key that it did not send.
Result<void> guess_key(Enemy& enemy) {
    auto* const pd = enemy.endpoint.pd.get();
    VFMGR_TRY(auto memory, verify::RegisteredMemory::make(pd, 64, IBV_ACCESS_LOCAL_WRITE, "guess"));
    VFMGR_TRY(auto pair, verify::QueuePair::make(enemy.endpoint, {.sends = 2, .receives = 1}, 0));
    VFMGR_TRY(auto client, enemy.call());
    client.end_hard();
    auto const until = Steady::now() + guess_time;
    VFMGR_CHECK(client.write(opening, until));
    VFMGR_CHECK(client.read(opening.size(), until));
    VFMGR_CHECK(client.write(enemy.line(pair.end()), until));
    VFMGR_TRY(auto const answer, client.read(perftest_line_bytes, until));
    auto host = parse_perftest_line(answer);
    if (!host) return fail(Problem::internal, "the host's line can't be read");
    host->end.path_mtu = enemy.endpoint.path_mtu;
    VFMGR_CHECK(pair.connect(enemy.endpoint, host->end));
    auto const guessed = host->memory.rkey ^ static_cast<std::uint32_t>(1 + below(0xffff));
    VFMGR_CHECK(pair.transfer(
        0, verify::TransferDirection::write,
        {{memory.bytes().first(8), memory.local_key()}, host->memory.address, guessed}));
    std::array<ibv_wc, 2> room{};
    VFMGR_TRY(auto const found, pair.completions().wait(room, until));
    auto const status = found.front().status;
    ++enemy.done[status == IBV_WC_SUCCESS ? "guesses that hit" : "guesses refused"];
    pair.shut(Steady::now() + verify::drain_wait);
    return {};
}

void guess(Enemy& enemy) {
    auto const guessed = guess_key(enemy);
    if (!guessed) ++enemy.done["guesses that came to nothing"];
    if (!guessed) fmt::print(stderr, "guess: {}\n", detail_with_causes(guessed.error()));
}

int run(char** arguments) {
    auto const host = IpAddress::parse(arguments[1]).value();
    auto const own = IpAddress::parse(arguments[2]).value();
    auto const count = std::stoul(arguments[3]);
    auto endpoint = verify::open_endpoint({own, ""}, verify::endpoint_wait).value();
    Enemy enemy{host, own, std::move(endpoint)};
    struct Way {
        char const* name;
        void (*go)(Enemy&);
    };
    constexpr std::array<Way, 8> ways{{{"silent", silent},
                                       {"slow", slow},
                                       {"malformed", malformed},
                                       {"cut off", cut_off},
                                       {"changed", changed},
                                       {"pingpong changed", pingpong_changed},
                                       {"another GID", another_gid},
                                       {"key guesses", guess}}};
    for (std::size_t i = 0; i < count; ++i) {
        // A guess takes ten times as long as any other kind.
        auto const& way = i % 40 == 0 ? ways.back() : ways[below(ways.size() - 1)];
        way.go(enemy);
        ++enemy.done[way.name];
    }
    fmt::print("{}\n", nlohmann::json(enemy.done).dump());
    return 0;
}

}  // namespace

int main(int count, char** arguments) {
    try {
        return count == 4 ? run(arguments) : 2;
    } catch (std::exception const& error) {
        fmt::print(stderr, "hostile_clients: {}\n", error.what());
        return 1;
    }
}
