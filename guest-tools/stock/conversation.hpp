// SPDX-License-Identifier: Apache-2.0
// One client of a TCP set-up, from its first byte to its last. Owned by the server; run by a thread
// of its own; stop() by any.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "guest-tools/stock/share.hpp"
#include "guest-tools/stock/tcp_stream.hpp"
#include "guest-tools/stock/terms.hpp"

namespace vfmgr::stock {

class Conversation {
  public:
    // Asked before the client's test begins; limit_exceeded when enough are under way.
    using BeginTest = std::function<Result<void>()>;

    // Told at the very end, on its thread: whether it came to its test.
    using OnEnd = std::function<void(bool tested)>;

    // `shares` outlives it; `own` is that of its connection.
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

}  // namespace vfmgr::stock
