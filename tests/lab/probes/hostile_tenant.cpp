// SPDX-License-Identifier: Apache-2.0
// Uses all it can get of the guest plane; the scenario hostile-tenants runs it in a VM:
//   hostile_tenant SECONDS ATTACHMENT
// It opens connections from unprivileged ports and keeps them, keeps others from privileged ports
// that ask nothing, floods requests, and opens sessions that it never ends. At the end one line of
// JSON says how often each went how.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
// linux/vm_sockets.h needs struct sockaddr to be declared before it.
#include <linux/vm_sockets.h>

#include <array>
#include <cstdlib>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/types/json.hpp"
#include "guest-tools/net/host_client.hpp"
#include "vfmgr/rdma/device.hpp"

namespace {

using namespace vfmgr;
using Steady = std::chrono::steady_clock;

constexpr std::size_t flooders = 8, connectors = 4, kept_each = 64, idle_kept = 40;
constexpr unsigned host_cid = 2, plane_port = 8471;

class Counts {
  public:
    void add(std::string const& what) {
        std::lock_guard const lock(mutex_);
        ++counts_[what];
    }
    [[nodiscard]] nlohmann::json shown() {
        std::lock_guard const lock(mutex_);
        return counts_;
    }

  private:
    std::mutex mutex_;
    std::map<std::string, std::uint64_t> counts_;
};

http::VsockTarget privileged() {
    return {.cid = host_cid, .port = plane_port, .source = http::SourcePort::privileged};
}

// Binds the given port, or any unprivileged one, which may fail.
FileDescriptor connect_from(unsigned port) {
    FileDescriptor fd(::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_vm address{};
    address.svm_family = AF_VSOCK;
    address.svm_cid = VMADDR_CID_ANY;
    address.svm_port = port;
    if (port != VMADDR_PORT_ANY &&
        ::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
        return {};
    address.svm_cid = host_cid;
    address.svm_port = plane_port;
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
    return fd;
}

// Acts as a process of any user, which sends a request at once.
void connect_unprivileged(Counts& counts, Deadline until) {
    std::string_view const request = "GET /guest/v1/config HTTP/1.1\r\nHost: host\r\n\r\n";
    timeval const patience{5, 0};
    std::deque<FileDescriptor> kept;
    while (Steady::now() < until) {
        auto fd = connect_from(VMADDR_PORT_ANY);
        counts.add(fd ? "unprivileged connections" : "unprivileged not connected");
        if (!fd) continue;
        ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        static_cast<void>(::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) > 0);
        std::array<char, 16> answer{};
        auto const got = ::recv(fd.get(), answer.data(), answer.size(), 0);
        if (got > 12 && std::string_view(answer.data() + 9, 3) == "200")
            counts.add("unprivileged served");
        kept.push_back(std::move(fd));
        if (kept.size() > kept_each) kept.pop_front();
    }
}

// Opens silent connections, more than the VM may have; replaces each one that the host ends.
void keep_idle(Counts& counts, Deadline until) {
    std::vector<FileDescriptor> kept(idle_kept);
    unsigned next = 0;
    while (Steady::now() < until) {
        std::vector<pollfd> ends;
        for (auto& one : kept) {
            if (!one) {
                one = connect_from(600 + next++ % 200);
                counts.add(one ? "idle connections" : "idle not connected");
            }
            ends.push_back({one.get(), POLLIN, 0});
        }
        ::poll(ends.data(), ends.size(), 500);
        for (std::size_t i = 0; i < kept.size(); ++i)
            if (ends[i].revents != 0) kept[i].reset();
    }
}

void flood(Counts& counts, Deadline until) {
    http::Client const client(privileged());
    while (Steady::now() < until) {
        auto const answer =
            client.send(http::make_request("GET", "/guest/v1/config"), std::chrono::seconds(30));
        counts.add(answer ? fmt::format("requests answered {}", answer->status)
                          : "requests not answered");
    }
}

void hold_sessions(Counts& counts, std::string const& attachment, Deadline until) {
    guest::HostClient host(privileged());
    while (Steady::now() < until) {
        auto const expected = host.start_run(attachment, {Profile::quick});
        if (!expected) {
            counts.add("runs refused");
            continue;
        }
        QueuePairEnd const end{verify::gid_hex(expected->address.gid()), 0x123456, 0x654321, 1024,
                               1};
        auto const held =
            host.open_session({attachment, expected->run.value_or(""), expected->nonce, end});
        if (!held)
            counts.add("sessions refused");
        else
            counts.add(std::holds_alternative<Turn>(*held) ? "turns" : "sessions held");
    }
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 3) return 2;
    auto const until = Steady::now() + std::chrono::seconds(std::atoi(arguments[1]));
    Counts counts;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < connectors; ++i)
        threads.emplace_back([&] { connect_unprivileged(counts, until); });
    for (std::size_t i = 0; i < flooders; ++i) threads.emplace_back([&] { flood(counts, until); });
    threads.emplace_back([&] { keep_idle(counts, until); });
    threads.emplace_back([&] { hold_sessions(counts, arguments[2], until); });
    for (auto& thread : threads) thread.join();
    fmt::print("{}\n", counts.shown().dump());
}
