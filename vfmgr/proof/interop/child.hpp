// SPDX-License-Identifier: Apache-2.0
// Runs this program again as a child process whose standard input is a message socket. Code that
// uses RDMA CM runs in such a child: librdmacm keeps a device open until its process ends, and a
// SoftRoCE device that is open can't be removed: the kernel blocks, and so does the caller that
// removes it. Any thread, one at a time.
#pragma once

#include <sys/types.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/os/descriptor.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"

namespace vfmgr::interop {

inline constexpr std::size_t message_bytes_max = 4096;

class Child {
  public:
    // Fails with unavailable, and names `what` ("rping's server") in the detail, if it can't start.
    [[nodiscard]] static Result<std::unique_ptr<Child>> start(std::vector<std::string> words,
                                                              std::string_view what);
    // Ends the child and waits up to a second for it, then kills it. A child that then hangs in the
    // kernel, for example in a GPU's driver, is abandoned after 10 s.
    ~Child();
    Child(Child const&) = delete;
    Child& operator=(Child const&) = delete;

    // Returns the next message; nothing at the deadline, or when the child has ended and all is
    // read.
    [[nodiscard]] std::optional<std::string> receive(Deadline deadline) const;
    // Returns a message that is already there.
    [[nodiscard]] std::optional<std::string> received() const;
    // Describes how an ended child ended: "exit status 1", "signal 11".
    [[nodiscard]] std::string how_ended() const;
    // Closes the child's input, which asks the child to end too. It may still send messages.
    void end_input() const;

  private:
    Child(pid_t pid, FileDescriptor socket) : pid_(pid), socket_(std::move(socket)) {}

    pid_t const pid_;
    FileDescriptor const socket_;
};

// Called in the child.
void report_to_parent(std::string_view message);
// Waits until the input has ended, at most until the deadline. Returns whether it has ended.
[[nodiscard]] bool await_end_of_input(Deadline deadline);

}  // namespace vfmgr::interop
