// SPDX-License-Identifier: Apache-2.0
// The host's end for stock clients: nothing listens until it is opened for one guest, on the leg
// that leads there and for a limited time; then it is closed again, at once when the guest's lease
// ends. Opening and closing is done on a thread of its own; all may be called from any thread and
// return at once.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "guest-tools/stock/rping_process.hpp"
#include "guest-tools/stock/tcp_server.hpp"

namespace vfmgr::stock {

struct StockLimits {
    std::size_t guests_max = 4;  // at a time
    std::uint16_t tcp_port = perftest_port;
    std::uint16_t cm_port = rping_port;
    std::vector<std::string> rping_program;  // words that run serve_rping()
    ShareLimits shares{};
};

// Asked on the responder's thread.
struct StockHooks {
    // Does what the host sends to the permit's address reach only the VF's MAC?
    std::function<Result<void>(verify::SessionPermit const&)> check_peer;
    // After look_again(): is the lease still there, and the same?
    std::function<bool(verify::SessionPermit const&)> still_permitted;
};

class StockResponder {
  public:
    StockResponder(StockLimits const& limits, Clock const& clock, StockHooks hooks);
    ~StockResponder();
    StockResponder(StockResponder const&) = delete;
    StockResponder& operator=(StockResponder const&) = delete;

    // Replaces what was open for the same attachment. `opened` is told on the responder's thread.
    using Opened = std::function<void(Result<StockClients> const&)>;
    void open(verify::SessionPermit permit, StockRequest const& request, Opened opened);
    // Whether there was something to close.
    using Closed = std::function<void(bool)>;
    void close(std::string attachment, Closed closed);
    [[nodiscard]] std::optional<StockClients> find(std::string const& attachment) const;
    // Leases have changed.
    void look_again();

  private:
    struct Window {
        Terms terms;
        Time open_until{};
        std::unique_ptr<TcpServer> tcp;
        std::unique_ptr<RpingProcess> rping;  // none: it is not served, and why
        std::string no_rping;
    };
    using Windows = std::map<std::string, Window>;  // by attachment

    void enqueue(std::function<void()> job);
    void run();
    [[nodiscard]] Result<StockClients> open_now(verify::SessionPermit const& permit,
                                                StockRequest const& request);
    bool close_now(std::string const& attachment);
    void close_ended();
    [[nodiscard]] Result<void> admit(StockRequest const& request) const;
    [[nodiscard]] static StockClients describe(Window const& window);

    StockLimits const limits_;
    Clock const& clock_;
    StockHooks const hooks_;
    Shares shares_;             // outlives its windows
    mutable std::mutex mutex_;  // guards what follows; only its thread changes windows_
    std::condition_variable wake_;
    std::deque<std::function<void()>> jobs_;
    Windows windows_;
    bool stopping_ = false;
    std::thread thread_;
};

// What works in the VM while it is open.
[[nodiscard]] std::vector<std::string> stock_commands(IpAddress const& host,
                                                      StockRequest const& request, bool rping);

}  // namespace vfmgr::stock
