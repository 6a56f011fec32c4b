// SPDX-License-Identifier: Apache-2.0
// rping's server in a process of its own (child.hpp says why). Owned by the responder; any thread.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "guest-tools/stock/child.hpp"
#include "guest-tools/stock/terms.hpp"

namespace vfmgr::stock {

class RpingProcess {
  public:
    // `program`: words that run serve_rping(), to which those of the terms are added. An Error,
    // with the child's own reason, when it does not serve.
    [[nodiscard]] static Result<std::unique_ptr<RpingProcess>> start(
        std::vector<std::string> program, Terms const& terms);

    // Where it listens: the terms' port, or if that is 0, the one that RDMA CM chose.
    [[nodiscard]] std::uint16_t port() const { return port_; }
    // As it told last.
    [[nodiscard]] Served served() const;
    // Ends it; what it had served in the end.
    [[nodiscard]] Served stop();

  private:
    explicit RpingProcess(std::unique_ptr<Child> child) : child_(std::move(child)) {}
    [[nodiscard]] Result<void> await_ready(Deadline deadline);
    void take(std::string_view told) const;

    std::unique_ptr<Child> const child_;
    std::uint16_t port_ = 0;
    mutable std::mutex mutex_;
    mutable Served served_;  // mutex_
};

// The child: serves on the terms in `words` until its standard input ends or the time is over.
// Its exit status.
[[nodiscard]] int serve_rping(std::vector<std::string> const& words);

}  // namespace vfmgr::stock
