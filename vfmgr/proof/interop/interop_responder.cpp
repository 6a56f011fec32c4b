// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/interop/interop_responder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "api/types/problem.hpp"

namespace vfmgr::interop {
namespace {

constexpr std::array<std::pair<InteropTest, std::string_view>, 5> perftest_programs{
    {{InteropTest::one_sided, "ib_write_bw"},
     {InteropTest::one_sided, "ib_read_bw"},
     {InteropTest::one_sided, "ib_read_lat"},
     {InteropTest::send, "ib_send_bw"},
     {InteropTest::send_echo, "ib_send_lat"}}};

}  // namespace

std::vector<std::string> interop_commands(IpAddress const& host, InteropRequest const& request,
                                          bool rping) {
    auto const address = to_string(host);
    std::vector<std::string> commands;
    if (rping) commands.push_back(fmt::format("rping -c -a {}", address));
    commands.push_back(fmt::format(
        "ibv_rc_pingpong -g INDEX {}  # INDEX of the RoCE v2 GID: ibv_devinfo -v", address));
    for (auto const& [test, program] : perftest_programs)
        if (test == request.test) commands.push_back(fmt::format("{} {}", program, address));
    if (request.test == InteropTest::write_echo)
        commands.push_back(fmt::format("ib_write_lat -s {} {}", request.message_bytes, address));
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
