// SPDX-License-Identifier: Apache-2.0
// One client of rping's, from its request to connect to its end. Owned by the server, whose thread
// makes and destroys it; run by a thread of its own; stop() by the server's.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "guest-tools/stock/cm_set_up.hpp"
#include "guest-tools/stock/terms.hpp"
#include "guest-tools/verify/memory.hpp"
#include "guest-tools/verify/queue_pair.hpp"

namespace vfmgr::stock {

class RpingConversation {
  public:
    // On its thread: each ping that was written back, before the client is told; and the very end.
    struct Told {
        std::function<void()> pinged;
        std::function<void()> ended;
    };
    RpingConversation(CmId id, Terms terms, Told told);
    ~RpingConversation();
    RpingConversation(RpingConversation const&) = delete;
    RpingConversation& operator=(RpingConversation const&) = delete;

    [[nodiscard]] rdma_cm_id const* id() const { return id_.get(); }
    // The client has gone, or the time is over.
    void stop();
    [[nodiscard]] bool served() const { return pings_ > 0; }
    [[nodiscard]] bool ended() const { return ended_; }

  private:
    struct Rdma {
        verify::VerbsPort port;  // members are destroyed from the last to the first
        verify::VerbsDomain domain;
        verify::RegisteredMemory messages, ping;
        verify::QueuePair pair;
    };
    enum class Direction { read_ping, write_pong };

    void run();
    [[nodiscard]] Result<void> serve();
    [[nodiscard]] Result<Rdma> open() const;
    [[nodiscard]] Result<void> accept(Rdma& rdma);
    [[nodiscard]] Result<void> move(Rdma& rdma, Direction direction, Deadline deadline);
    [[nodiscard]] Result<void> await(Rdma& rdma, ibv_wc_opcode wanted, Deadline deadline);

    CmId id_;
    Terms const terms_;
    Told const told_;
    std::atomic<bool> ended_ = false;
    std::atomic<std::uint64_t> pings_ = 0;
    unsigned messages_ = 0;  // received, and not yet acted upon
    std::mutex mutex_;
    bool stopping_ = false;                   // mutex_
    verify::QueuePair* connected_ = nullptr;  // mutex_
    std::thread thread_;
};

}  // namespace vfmgr::stock
