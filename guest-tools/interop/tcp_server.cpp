// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/interop/tcp_server.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "api/os/event.hpp"
#include "api/os/socket_address.hpp"

namespace vfmgr::interop {
namespace {

using Steady = std::chrono::steady_clock;
constexpr std::chrono::milliseconds observe_again{200};

// The answer to a write is awaited by polling memory, which takes a CPU.
std::size_t tests_at_once(InteropTest test) {
    return test == InteropTest::write_echo ? 1 : tests_max;
}

FileDescriptor keep_one_back() {
    return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
}

}  // namespace

Result<std::unique_ptr<TcpServer>> TcpServer::start(Terms const& terms, Shares& shares) {
    VFMGR_TRY(auto listener,
              listen_tcp({terms.permit.host_address, terms.tcp_port, terms.permit.host_netdev}));
    VFMGR_TRY(auto wake, make_event());
    return std::unique_ptr<TcpServer>(
        new TcpServer(terms, shares, std::move(listener), std::move(wake)));
}

TcpServer::TcpServer(Terms terms, Shares& shares, FileDescriptor listener, FileDescriptor wake)
    : terms_(std::move(terms)),
      shares_(shares),
      listener_(std::move(listener)),
      wake_(std::move(wake)),
      spare_(keep_one_back()) {
    thread_ = std::thread([this] { run(); });
}

TcpServer::~TcpServer() {
    stopping_ = true;
    raise_event(wake_);
    thread_.join();
}

Served TcpServer::served() const {
    std::lock_guard const lock(mutex_);
    return served_;
}

void TcpServer::run() {
    std::array const watched{wake_.get(), listener_.get()};
    while (!stopping_) {
        if (await_readable(watched, terms_.until) != Readiness::readable) break;
        take_event(wake_);
        forget_ended();
        take();
    }
    for (auto const& one : conversations_) one->stop();
    conversations_.clear();
}

void TcpServer::take() {
    SocketAddress peer;
    auto* const room = peer.room();
    FileDescriptor socket(::accept4(listener_.get(), room, &peer.length, SOCK_CLOEXEC));
    if (!socket && (errno == EMFILE || errno == ENFILE)) return turn_away_without_descriptors();
    if (!socket) return;  // there is none, or the client has gone again
    serve(std::move(socket), peer.address() == terms_.permit.peer_address);
}

void TcpServer::serve(FileDescriptor socket, bool welcome) {
    make_room();
    auto own = shares_.take(terms_.permit.attachment, taken_by_client);
    if (!welcome || !own || conversations_.size() >= conversations_max) {
        TcpStream(std::move(socket)).end_hard();
        return end(false);
    }
    conversations_.push_back(std::make_unique<Conversation>(
        std::move(socket), terms_, Conversation::Room{shares_, std::move(*own)},
        [this] { return begin_test(); }, [this](bool tested) { end(tested); }));
}

// A client left in the listener's queue would keep it readable, and this thread spinning.
void TcpServer::turn_away_without_descriptors() {
    spare_.reset();
    FileDescriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    bool const came = static_cast<bool>(socket);
    if (came) {
        TcpStream(std::move(socket)).end_hard();
        end(false);
    }
    spare_ = keep_one_back();
    if (came) return;
    // Another thread took the freed descriptor. Pause; clients wait in the queue meanwhile.
    static_cast<void>(await_readable(std::array{wake_.get()}, Steady::now() + observe_again));
}

void TcpServer::forget_ended() {
    std::erase_if(conversations_, [](auto const& one) { return one->ended(); });
}

void TcpServer::make_room() {
    if (conversations_.size() < conversations_max) return;
    auto const idle =
        std::ranges::find_if(conversations_, [](auto const& one) { return !one->testing(); });
    if (idle != conversations_.end()) conversations_.erase(idle);
}

Result<void> TcpServer::begin_test() {
    std::lock_guard const lock(mutex_);
    auto const most = tests_at_once(terms_.request.test);
    if (testing_ >= most)
        return fail(Problem::limit_exceeded,
                    fmt::format("{} tests already run, no more are allowed", most),
                    "start it again when one has ended");
    ++testing_;
    ++served_.served;
    return {};
}

// On the conversation's thread.
void TcpServer::end(bool tested) {
    {
        std::lock_guard const lock(mutex_);
        if (tested)
            --testing_;
        else
            ++served_.refused;
    }
    raise_event(wake_);
}

}  // namespace vfmgr::interop
