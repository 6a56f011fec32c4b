// SPDX-License-Identifier: Apache-2.0
// rping's server in a process of its own (child.hpp explains why). Owned by the responder; any
// thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "vfmgr/proof/interop/child.hpp"
#include "vfmgr/proof/interop/share.hpp"

namespace vfmgr::interop {

// The server's first message when it serves, followed by the port.
inline constexpr std::string_view rping_ready = "ready ";

class RpingProcess {
  public:
    // `program` is the command that runs serve_rping(); the terms are appended as further words.
    // Returns an Error, with the child's own reason, if it does not serve.
    [[nodiscard]] static Result<std::unique_ptr<RpingProcess>> start(
        std::vector<std::string> program, Terms const& terms);

    // The port it listens on: the terms' port, or if that is 0, the one that RDMA CM chose.
    [[nodiscard]] std::uint16_t port() const { return port_; }
    // As last reported by the child.
    [[nodiscard]] Served served() const;
    // Ends the child; returns its final counts.
    [[nodiscard]] Served stop();

  private:
    explicit RpingProcess(std::unique_ptr<Child> child) : child_(std::move(child)) {}
    [[nodiscard]] Result<void> await_ready(Deadline deadline);
    void take(std::string_view message) const;

    std::unique_ptr<Child> const child_;
    std::uint16_t port_ = 0;
    mutable std::mutex mutex_;
    mutable Served served_;  // mutex_
};

// Runs in the child: serves on the terms in `words` until its standard input ends or the time is
// over. Returns the exit status.
[[nodiscard]] int serve_rping(std::vector<std::string> const& words);

}  // namespace vfmgr::interop
