// SPDX-License-Identifier: Apache-2.0
// This program once more, as a child whose standard input is a socket of messages. What uses RDMA
// CM runs in one: librdmacm keeps a device open until its process ends, and a SoftRoCE device that
// is open can't be removed: the kernel waits, and with it whoever removes it. Any thread, one at a
// time.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/file_descriptor.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr::stock {

inline constexpr std::size_t message_bytes_max = 4096;

class Child {
  public:
    // unavailable, with `what` ("rping's server") in its detail, when it can't be started.
    [[nodiscard]] static Result<std::unique_ptr<Child>> start(std::vector<std::string> words,
                                                              std::string_view what);
    // Ends it, and waits for that: a second at most, then it is killed. One that hangs in the
    // kernel then, as in a GPU's driver, is left to it after 10 s.
    ~Child();
    Child(Child const&) = delete;
    Child& operator=(Child const&) = delete;

    // Its next message; nothing at the deadline, or when it has ended and all is read.
    [[nodiscard]] std::optional<std::string> receive(Deadline deadline) const;
    // One that is there already.
    [[nodiscard]] std::optional<std::string> received() const;
    // "exit status 1", "signal 11", of one that has ended.
    [[nodiscard]] std::string how_ended() const;
    // Its input ends, which asks it to end, too. It may still say something.
    void end_input() const;

  private:
    Child(pid_t pid, FileDescriptor socket) : pid_(pid), socket_(std::move(socket)) {}

    pid_t const pid_;
    FileDescriptor const socket_;
};

// In the child.
void tell_parent(std::string_view message);
// Whether its input has ended: waits for that, not longer than the deadline.
[[nodiscard]] bool await_end_of_input(Deadline deadline);

}  // namespace vfmgr::stock
