// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/interop/interop_responder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "api/os/descriptor.hpp"
#include "api/os/socket_address.hpp"
#include "api/types/problem.hpp"

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

std::vector<std::string> interop_commands(IpAddress const& host, InteropRequest const& request,
                                          bool rping) {
    auto const address = to_string(host);
    std::vector<std::string> commands;
    if (rping) commands.push_back(fmt::format("rping -c -a {}", address));
    commands.push_back(fmt::format(
        "ibv_rc_pingpong -g INDEX {}  # INDEX of the RoCE v2 GID: ibv_devinfo -v", address));
    auto const perftest = [&](std::string_view program) {
        commands.push_back(fmt::format("{} {}", program, address));
    };
    switch (request.test) {
        case InteropTest::one_sided:
            perftest("ib_write_bw");
            perftest("ib_read_bw");
            perftest("ib_read_lat");
            break;
        case InteropTest::send:
            perftest("ib_send_bw");
            break;
        case InteropTest::send_echo:
            perftest("ib_send_lat");
            break;
        case InteropTest::write_echo:
            perftest(fmt::format("ib_write_lat -s {}", request.message_bytes));
            break;
    }
    return commands;
}

InteropResponder::InteropResponder(InteropLimits const& limits, Clock const& clock,
                                   InteropHooks hooks)
    : limits_(limits), clock_(clock), hooks_(std::move(hooks)), shares_(limits.shares) {
    thread_ = std::thread([this] { run(); });
}

InteropResponder::~InteropResponder() {
    {
        std::lock_guard const lock(mutex_);
        stopping_ = true;
    }
    wake_.notify_all();
    thread_.join();
}

void InteropResponder::enqueue(std::function<void()> job) {
    {
        std::lock_guard const lock(mutex_);
        jobs_.push_back(std::move(job));
    }
    wake_.notify_all();
}

void InteropResponder::open(verify::SessionPermit permit, InteropRequest const& request,
                            Opened opened) {
    enqueue([this, permit = std::move(permit), request, opened = std::move(opened)] {
        opened(guarded([&] { return open_now(permit, request); }));
    });
}

void InteropResponder::close(std::string attachment, Closed closed) {
    enqueue([this, attachment = std::move(attachment), closed = std::move(closed)] {
        closed(close_now(attachment));
    });
}

void InteropResponder::observe_again() {
    enqueue([] {});  // run() checks all windows after each job
}

std::optional<InteropWindow> InteropResponder::find(std::string const& attachment) const {
    std::lock_guard const lock(mutex_);
    auto const found = windows_.find(attachment);
    if (found == windows_.end()) return std::nullopt;
    return describe(found->second);
}

// --- on its own thread ------------------------------------------------------------------------

void InteropResponder::run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
        auto next = clock_.steady_now() + std::chrono::hours(1);
        for (auto const& [attachment, window] : windows_) next = std::min(next, window.terms.until);
        wake_.wait_until(lock, next, [&] { return stopping_ || !jobs_.empty(); });
        auto const jobs = std::exchange(jobs_, {});
        lock.unlock();
        for (auto const& job : jobs) job();
        close_ended();
        lock.lock();
    }
}

// An echo of writes polls memory without a pause: only one at a time.
Result<void> InteropResponder::admit(InteropRequest const& request) const {
    if (windows_.size() >= limits_.guests_max)
        return fail(
            Problem::limit_exceeded,
            fmt::format("the interop clients of {} guests are already served, no more are allowed",
                        limits_.guests_max),
            "close one, or wait until its time is up");
    auto const spins = [](auto const& entry) {
        return entry.second.terms.request.test == InteropTest::write_echo;
    };
    if (request.test != InteropTest::write_echo || std::ranges::none_of(windows_, spins)) return {};
    return fail(Problem::limit_exceeded, "write_echo is open for another guest",
                "close it, or wait until its time is up");
}

Result<InteropWindow> InteropResponder::open_now(verify::SessionPermit const& permit,
                                                 InteropRequest const& request) {
    if (permit.rdma == RdmaMode::none)
        return fail(Problem::conflict, "the network has rdma: none",
                    "set rdma: auto or rxe on the network");
    close_now(permit.attachment);
    VFMGR_CHECK(admit(request));
    VFMGR_CHECK(hooks_.check_peer(permit));
    std::chrono::seconds const time(request.seconds);
    Window window{{permit, request, clock_.steady_now() + time, limits_.tcp_port, limits_.cm_port},
                  clock_.now() + time,
                  nullptr,
                  nullptr,
                  {}};
    VFMGR_TRY(window.tcp, TcpServer::start(window.terms, shares_));
    auto rping = RpingProcess::start(limits_.rping_program, window.terms);
    if (rping)
        window.rping = std::move(*rping);
    else
        window.no_rping = detail_with_causes(rping.error());
    auto described = describe(window);
    std::lock_guard const lock(mutex_);
    windows_.insert_or_assign(permit.attachment, std::move(window));
    return described;
}

// The servers end outside the lock, because that joins their threads.
bool InteropResponder::close_now(std::string const& attachment) {
    Windows::node_type closed;
    std::lock_guard const lock(mutex_);
    closed = windows_.extract(attachment);
    return !closed.empty();
}

void InteropResponder::close_ended() {
    Windows ended;
    std::unique_lock lock(mutex_);
    for (auto at = windows_.begin(); at != windows_.end();) {
        auto const one = at++;
        auto const& terms = one->second.terms;
        if (terms.until > clock_.steady_now() && hooks_.still_permitted(terms.permit)) continue;
        ended.insert(windows_.extract(one));
    }
    lock.unlock();
}

InteropWindow InteropResponder::describe(Window const& window) {
    auto const& [permit, request, until, tcp_port, cm_port] = window.terms;
    auto const tcp = window.tcp->served();
    auto const rping = window.rping ? window.rping->served() : Served{};
    return {permit.attachment,
            permit.host_address,
            request.test,
            request.message_bytes,
            window.open_until,
            interop_commands(permit.host_address, request, window.rping != nullptr),
            window.no_rping,
            tcp.served + rping.served,
            tcp.refused + rping.refused};
}

}  // namespace vfmgr::interop
