// SPDX-License-Identifier: Apache-2.0
// The TCP connection between the two ends of a stream test: lines of text, at most line_bytes_max
// long, and never awaited beyond a deadline. One thread.
#pragma once

#include <optional>
#include <string>

#include "api/os/descriptor.hpp"
#include "api/types/addresses.hpp"
#include "api/types/problem.hpp"
#include "api/types/time.hpp"
#include "guest-tools/traffic/sender.hpp"

namespace vfmgr::stream {

class Control {
  public:
    // `who` names the other end in errors: "sender".
    Control(FileDescriptor socket, std::string who);
    [[nodiscard]] int fd() const { return socket_.get(); }
    [[nodiscard]] IpAddress local() const;
    [[nodiscard]] IpAddress peer() const;

    // `stop`: a descriptor that ends the wait; -1: none.
    [[nodiscard]] Result<std::string> line(Deadline deadline, int stop);
    // Returns a whole line if there is one, without waiting. Fails with unavailable when the other
    // end has gone.
    [[nodiscard]] Result<std::optional<std::string>> line_now();
    [[nodiscard]] Result<void> send(std::string line);
    // Sends a line, and returns the other end's next one.
    [[nodiscard]] Result<std::string> ask(std::string line, Deadline deadline, int stop);

  private:
    [[nodiscard]] tl::unexpected<Error> gone(char const* call, int error_number) const;

    FileDescriptor socket_;
    std::string who_;
    std::string read_;  // what followed the last whole line
};

// Waits until `deadline`, or until `stop` is readable.
[[nodiscard]] Result<Control> connect_to(SendOptions const& options, Deadline deadline, int stop);

// The Error that ends a test that the user stopped.
[[nodiscard]] Error stopped();

}  // namespace vfmgr::stream
