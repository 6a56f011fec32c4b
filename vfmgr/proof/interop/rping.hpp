// SPDX-License-Identifier: Apache-2.0
// One rping client, from its connection request to its end. Owned by the server, whose thread
// creates and destroys it; runs on a thread of its own; stop() from the server's.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "vfmgr/proof/interop/child.hpp"
#include "vfmgr/proof/interop/cm_pinger.hpp"
#include "vfmgr/proof/interop/share.hpp"
#include "vfmgr/rdma/memory.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::interop {

class RpingConversation {
  public:
    // Called on its thread: `pinged` for each ping written back, before the client is notified;
    // `ended` at the very end.
    struct Events {
        std::function<void()> pinged;
        std::function<void()> ended;
    };
    RpingConversation(CmId id, Terms terms, Events events);
    ~RpingConversation();
    RpingConversation(RpingConversation const&) = delete;
    RpingConversation& operator=(RpingConversation const&) = delete;

    [[nodiscard]] rdma_cm_id const* id() const { return id_.get(); }
    // Call when the client has gone, or the time is over.
    void stop();
    [[nodiscard]] bool served() const { return pings_ > 0; }
    [[nodiscard]] bool ended() const { return ended_; }

  private:
    struct Rdma {
        verify::Endpoint endpoint;  // members are destroyed from the last to the first
        verify::RegisteredMemory messages, ping;
        verify::QueuePair pair;
    };
    enum class Direction { read_ping, write_pong };

    void run();
    [[nodiscard]] Result<void> serve();
    [[nodiscard]] Result<Rdma> open() const;
    [[nodiscard]] Result<void> accept(Rdma& rdma);
    [[nodiscard]] Result<void> move(Rdma& rdma, Direction direction, Deadline deadline);
    [[nodiscard]] Result<void> await(Rdma& rdma, ibv_wc_opcode expected, Deadline deadline);

    CmId id_;
    Terms const terms_;
    Events const events_;
    std::atomic<bool> ended_ = false;
    std::atomic<std::uint64_t> pings_ = 0;
    unsigned messages_ = 0;  // received, not yet handled
    std::mutex mutex_;
    bool stopping_ = false;                   // mutex_
    verify::QueuePair* connected_ = nullptr;  // mutex_
    std::thread thread_;
};

// rping's server in a process of its own (child.hpp explains why). Owned by the responder; any
// thread.

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
