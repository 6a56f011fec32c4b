// SPDX-License-Identifier: Apache-2.0
// One client of a TCP set-up, from its first byte to its last. Owned by the server; runs on a
// thread of its own; stop() from any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "guest-tools/interop/share.hpp"
#include "guest-tools/interop/tcp_stream.hpp"
#include "guest-tools/interop/terms.hpp"

namespace vfmgr::interop {

class Conversation {
  public:
    // Called before the client's test begins; fails with limit_exceeded when enough are running.
    using BeginTest = std::function<Result<void>()>;

    // Called at the very end, on its thread; `tested`: whether the client's test began.
    using OnEnd = std::function<void(bool tested)>;

    // `shares` outlives the conversation; `own` is the share that its connection takes.
    struct Room {
        Shares& shares;
        Shares::Share own;
    };
    Conversation(FileDescriptor socket, Terms terms, Room room, BeginTest begin_test, OnEnd on_end);
    ~Conversation();
    Conversation(Conversation const&) = delete;
    Conversation& operator=(Conversation const&) = delete;

    // Ends it soon; the destructor waits for the end.
    void stop();
    [[nodiscard]] bool testing() const { return testing_; }
    [[nodiscard]] bool ended() const { return ended_; }

  private:
    void run();
    [[nodiscard]] Result<void> serve();
    [[nodiscard]] Result<void> begin_test();
    [[nodiscard]] Result<void> serve_pingpong(std::string begun, Deadline handshake);
    [[nodiscard]] Result<void> serve_perftest(std::string begun, Deadline handshake);
    [[nodiscard]] bool wait_stopped(std::chrono::milliseconds time);

    Room const room_;
    TcpStream client_;
    Terms const terms_;
    BeginTest const begin_test_;
    OnEnd const on_end_;
    std::atomic<bool> testing_ = false, ended_ = false;
    std::mutex mutex_;
    std::condition_variable wake_;
    bool stopping_ = false;  // mutex_
    std::thread thread_;
};

}  // namespace vfmgr::interop
