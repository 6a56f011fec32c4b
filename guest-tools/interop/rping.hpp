// SPDX-License-Identifier: Apache-2.0
// One rping client, from its connection request to its end. Owned by the server, whose thread
// creates and destroys it; runs on a thread of its own; stop() from the server's.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "guest-tools/interop/cm_set_up.hpp"
#include "guest-tools/interop/terms.hpp"
#include "guest-tools/verify/memory.hpp"
#include "guest-tools/verify/queue_pair.hpp"

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

}  // namespace vfmgr::interop
