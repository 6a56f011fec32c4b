// SPDX-License-Identifier: Apache-2.0
// rping's server in a process of its own: librdmacm keeps a device open until its process ends, and
// a SoftRoCE device that is open can't be removed: the kernel waits, and with it whoever removes
// it. Owned by the responder; any thread.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/types/file_descriptor.hpp"
#include "guest-tools/stock/terms.hpp"

namespace vfmgr::stock {

class RpingProcess {
  public:
    // `program`: words that run serve_rping(), to which those of the terms are added. An Error,
    // with the child's own reason, when it does not serve.
    [[nodiscard]] static Result<std::unique_ptr<RpingProcess>> start(
        std::vector<std::string> program, Terms const& terms);
    // Ends it, and waits for that: a second at most, then it is killed.
    ~RpingProcess();
    RpingProcess(RpingProcess const&) = delete;
    RpingProcess& operator=(RpingProcess const&) = delete;

    [[nodiscard]] Served served() const;

  private:
    RpingProcess(pid_t child, FileDescriptor socket) : child_(child), socket_(std::move(socket)) {}
    [[nodiscard]] Result<void> await_ready(Deadline deadline);

    pid_t const child_;
    FileDescriptor const socket_;
    mutable std::mutex mutex_;
    mutable Served served_;  // mutex_; as it told last
};

// The child: serves on the terms in `words` until its standard input ends or the time is over.
// Its exit status.
[[nodiscard]] int serve_rping(std::vector<std::string> const& words);

}  // namespace vfmgr::stock
