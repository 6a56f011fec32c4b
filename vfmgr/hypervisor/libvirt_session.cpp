// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/libvirt_session.hpp"

#include <fmt/format.h>
#include <libvirt/virterror.h>

#include <atomic>
#include <mutex>
#include <vector>

#include "vfmgr/hypervisor/libvirt_domain.hpp"
#include "vfmgr/hypervisor/libvirt_error.hpp"

namespace vfmgr {
namespace {

// A call that never returns keeps its thread. Beyond this many, libvirt is considered gone.
constexpr int calls_running_max = 128;
constexpr int keepalive_interval_seconds = 5;
constexpr unsigned keepalive_misses_max = 3;

// Shared with the close callback, which libvirt may call after the connection's owner is gone.
struct Lifeline {
    std::shared_ptr<LibvirtEvents> events;
    std::atomic<bool> alive{true};
};

void closed(virConnectPtr, int, void* opaque) {
    auto& lifeline = **static_cast<std::shared_ptr<Lifeline>*>(opaque);
    lifeline.alive = false;
    lifeline.events->connection_closed();
}
void release_close(void* opaque) {
    delete static_cast<std::shared_ptr<Lifeline>*>(opaque);
}

}  // namespace

struct LibvirtSession::Connection {
    VirConnect handle;
    std::shared_ptr<Lifeline> lifeline;
    std::vector<int> subscriptions;
    bool watches_close = false;

    void watch_close() {
        auto opaque = std::make_unique<std::shared_ptr<Lifeline>>(lifeline);
        watches_close =
            virConnectRegisterCloseCallback(handle.get(), closed, opaque.get(), release_close) == 0;
        if (!watches_close) return;
        // release_close() deletes it when libvirt drops the registration.
        [[maybe_unused]] auto const* const libvirts = opaque.release();
    }

    [[nodiscard]] static Result<std::shared_ptr<Connection>> open(
        std::string const& uri, std::shared_ptr<LibvirtEvents> const& events);
    // A registration keeps the connection open, so all are removed. This calls libvirtd, so it may
    // block.
    ~Connection() {
        if (!handle) return;
        unsubscribe(handle.get(), subscriptions);
        if (watches_close) (void)virConnectUnregisterCloseCallback(handle.get(), closed);
    }
};

struct LibvirtSession::State {
    std::string uri;
    std::shared_ptr<LibvirtEvents> events;
    std::mutex mutex;
    std::shared_ptr<Connection> current;
    std::atomic<int> running{0};
};

struct LibvirtSession::Turn {
    std::shared_ptr<State> state;
    std::mutex mutex;
    std::shared_ptr<Connection> connection;
};

Result<std::shared_ptr<LibvirtSession::Connection>> LibvirtSession::Connection::open(
    std::string const& uri, std::shared_ptr<LibvirtEvents> const& events) {
    VFMGR_CHECK(start_libvirt_event_loop());
    auto connection = std::make_shared<Connection>();
    connection->handle.reset(virConnectOpen(uri.c_str()));
    if (!connection->handle) {
        auto error =
            libvirt_error("virConnectOpen", fmt::format("libvirt at {} can't be reached", uri));
        error.problem = Problem::unavailable;
        error.remedy =
            "start it: systemctl start libvirtd.socket (modular libvirt: virtqemud.socket)";
        return fail(std::move(error));
    }
    auto* const handle = connection->handle.get();
    connection->lifeline = std::make_shared<Lifeline>();
    connection->lifeline->events = events;
    // Only a connection to a daemon has a keepalive, and only that can close. The test driver
    // reports here that it has none; it accepts a close callback nevertheless and never releases
    // it.
    if (virConnectSetKeepAlive(handle, keepalive_interval_seconds, keepalive_misses_max) >= 0)
        connection->watch_close();
    VFMGR_TRY(connection->subscriptions, subscribe(handle, events));
    return connection;
}

LibvirtSession::LibvirtSession(std::string uri, std::shared_ptr<LibvirtEvents> events)
    : state_(std::make_shared<State>()) {
    state_->uri = std::move(uri);
    state_->events = std::move(events);
    // Here, not in the first call's thread: libraries below libvirt keep memory for the thread that
    // initialises them (OpenSSL its errors), and leak it when the process ends before a call's
    // thread does. open() reports a failure.
    static_cast<void>(start_libvirt_event_loop());
}

LibvirtSession::~LibvirtSession() {
    std::lock_guard const lock(state_->mutex);
    discard(std::exchange(state_->current, nullptr));
}

// The last owner closes the connection, which may block: never in a caller's thread.
void LibvirtSession::discard(std::shared_ptr<Connection> connection) {
    if (connection) std::thread([gone = std::move(connection)] {}).detach();
}

Result<std::shared_ptr<LibvirtSession::Turn>> LibvirtSession::begin(
    std::shared_ptr<State> const& state) {
    if (state->running >= calls_running_max)
        return fail(
            Problem::unavailable,
            fmt::format("libvirt at {} has not answered {} calls", state->uri,
                        state->running.load()),
            "restart libvirt: systemctl restart libvirtd, or virtqemud (running VMs stay up)");
    ++state->running;
    auto turn = std::make_shared<Turn>();
    turn->state = state;
    return turn;
}

Result<virConnectPtr> LibvirtSession::connect(Turn& turn) {
    auto& state = *turn.state;
    std::shared_ptr<Connection> connection;
    {
        std::lock_guard const lock(state.mutex);
        connection = state.current;
    }
    // The close callback may come later than the first call that fails.
    if (connection && connection->lifeline->alive &&
        virConnectIsAlive(connection->handle.get()) == 1)
        return use(turn, std::move(connection));
    VFMGR_TRY(std::shared_ptr<Connection> opened, Connection::open(state.uri, state.events));
    std::shared_ptr<Connection> broken;
    {
        std::lock_guard const lock(state.mutex);
        broken = std::exchange(state.current, opened);
    }
    return use(turn, std::move(opened));
}

virConnectPtr LibvirtSession::use(Turn& turn, std::shared_ptr<Connection> connection) {
    std::lock_guard const lock(turn.mutex);
    turn.connection = std::move(connection);
    return turn.connection->handle.get();
}

// Runs in the call's own thread, after it has answered: closing a dropped connection may block
// here.
void LibvirtSession::finish(Turn& turn) {
    std::shared_ptr<Connection> connection;
    {
        std::lock_guard const lock(turn.mutex);
        connection = std::move(turn.connection);
    }
    connection.reset();
    --turn.state->running;
}

Error LibvirtSession::abandon(Turn& turn, std::string const& doing) {
    std::shared_ptr<Connection> hung;
    {
        std::lock_guard const lock(turn.mutex);
        hung = turn.connection;
    }
    if (hung) {
        std::lock_guard const lock(state_->mutex);
        if (state_->current == hung) state_->current.reset();
    }
    discard(std::move(hung));
    // No events come until the next call opens a new connection: all watches must read for
    // themselves.
    state_->events->connection_closed();
    return Error{
        Problem::timed_out,
        fmt::format("libvirt did not answer in time; it was asked to {}", doing),
        "check whether libvirt hangs: journalctl -u libvirtd -u virtqemud; the request may still "
        "take effect"};
}

}  // namespace vfmgr
