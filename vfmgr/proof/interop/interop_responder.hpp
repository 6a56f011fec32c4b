// SPDX-License-Identifier: Apache-2.0
// The host's end for interop clients. Nothing listens until it is opened for one guest, on the
// interface that leads to the guest and for a limited time. It closes after that time, or at once
// when the guest's attachment ends. A thread of its own opens and closes; all functions may be
// called from any thread and return at once.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "vfmgr/proof/interop/rping.hpp"
#include "vfmgr/proof/interop/tcp_server.hpp"

namespace vfmgr::interop {

struct InteropLimits {
    std::size_t guests_max = 4;  // at a time
    std::uint16_t tcp_port = perftest_port;
    std::uint16_t cm_port = rping_port;
    std::vector<std::string> rping_program;  // the command that runs serve_rping()
    ShareLimits shares{};
};

// Called on the responder's thread.
struct InteropHooks {
    // Checks that packets from the host to the permit's address reach only the VF's MAC.
    std::function<Result<void>(verify::SessionPermit const&)> check_peer;
    // After observe_again(): whether the attachment still exists, unchanged.
    std::function<bool(verify::SessionPermit const&)> still_permitted;
};

class InteropResponder {
  public:
    InteropResponder(InteropLimits const& limits, Clock const& clock, InteropHooks hooks);
    ~InteropResponder();
    InteropResponder(InteropResponder const&) = delete;
    InteropResponder& operator=(InteropResponder const&) = delete;

    // Replaces what was open for the same attachment. `opened` is called on the responder's thread.
    using Opened = std::function<void(Result<InteropWindow> const&)>;
    void open(verify::SessionPermit permit, InteropRequest const& request, Opened opened);
    // Called with whether there was something to close.
    using Closed = std::function<void(bool)>;
    void close(std::string attachment, Closed closed);
    [[nodiscard]] std::optional<InteropWindow> find(std::string const& attachment) const;
    // Call after attachments have changed.
    void observe_again();

  private:
    struct Window {
        Terms terms;
        Time open_until{};
        std::unique_ptr<TcpServer> tcp;
        std::unique_ptr<RpingProcess> rping;  // null: not served, and no_rping holds the reason
        std::string no_rping;
    };
    using Windows = std::map<std::string, Window>;  // by attachment

    void enqueue(std::function<void()> job);
    void run();
    [[nodiscard]] Result<InteropWindow> open_now(verify::SessionPermit const& permit,
                                                 InteropRequest const& request);
    bool close_now(std::string const& attachment);
    void close_ended();
    [[nodiscard]] Result<void> admit(InteropRequest const& request) const;
    [[nodiscard]] static InteropWindow describe(Window const& window);

    InteropLimits const limits_;
    Clock const& clock_;
    InteropHooks const hooks_;
    Shares shares_;             // outlives its windows
    mutable std::mutex mutex_;  // guards what follows; only its thread changes windows_
    std::condition_variable wake_;
    std::deque<std::function<void()>> jobs_;
    Windows windows_;
    bool stopping_ = false;
    std::thread thread_;
};

// Returns the commands that work in the VM while the window is open.
[[nodiscard]] std::vector<std::string> interop_commands(IpAddress const& host,
                                                        InteropRequest const& request, bool rping);

}  // namespace vfmgr::interop
