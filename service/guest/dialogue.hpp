// SPDX-License-Identifier: Apache-2.0
// A connection between vfmgrd and vfmgr-guestd, for either end: both ask and answer. Any thread.
#pragma once

#include <functional>
#include <mutex>
#include <thread>

#include "api/os/descriptor.hpp"
#include "api/os/message_lines.hpp"
#include "service/guest/messages.hpp"

namespace vfmgr::guestd {

struct DialogueHooks {
    // Returns what the request's answer has. On a thread of its own: it may block.
    std::function<Result<Answer>(Request const&)> answer;
    // Takes a message that is neither. On the receiving thread, so in order: it must not block.
    // False for one that only the other end sends, which ends the connection.
    std::function<bool(Message const&)> take;
    // The connection has ended. On the receiving thread, once.
    std::function<void()> ended;
};

class Dialogue {
  public:
    Dialogue(FileDescriptor socket, DialogueHooks hooks);
    ~Dialogue();  // ends it, and waits for answers that are being made
    Dialogue(Dialogue const&) = delete;
    Dialogue& operator=(Dialogue const&) = delete;

    // Blocks until the other end has room for it, but not for longer than it may take a healthy
    // one: then, as when it is gone, the connection ends.
    void send(Message const& message);
    // The other end's own error; timed_out; unavailable when the connection ends.
    [[nodiscard]] Result<Answer> ask(Request request, Deadline deadline);
    [[nodiscard]] bool ended() const { return answers_.ended(); }
    // Any thread; returns at once. Whoever waits for an answer gets none.
    void end();

  private:
    [[nodiscard]] bool take(std::string const& line);
    [[nodiscard]] bool begin(Request request);

    FileDescriptor const socket_;
    DialogueHooks const hooks_;
    std::mutex sending_;  // keeps messages apart
    Answers<Answer> answers_;
    RequestThreads threads_;
    std::thread receiver_;
};

}  // namespace vfmgr::guestd
