// SPDX-License-Identifier: Apache-2.0
// The host's end of one session: a queue pair that only the VF's GID can use, memory that is
// poisoned before and checked after, keys that end with it. Owned by the responder, under its lock;
// finish() once, by the thread that took it out.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "vfmgr/proof/echo.hpp"
#include "vfmgr/proof/host/judge.hpp"
#include "vfmgr/rdma/counters.hpp"
#include "vfmgr/rdma/memory.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::verify {

class HostSession {
  public:
    // Without a queue pair when the permit rules RDMA out.
    [[nodiscard]] static Result<std::unique_ptr<HostSession>> open(SessionPermit const& permit,
                                                                   SessionRequest const& request,
                                                                   ResponderLimits const& limits);
    [[nodiscard]] SessionPermit const& permit() const { return permit_; }
    [[nodiscard]] SessionOffer const& offer() const { return offer_; }
    [[nodiscard]] Deadline deadline() const { return deadline_; }

    // The descriptors for the event loop; none without a queue pair or after the device failed.
    [[nodiscard]] std::vector<int> watched() const;
    // Handles what made them readable, if anything did.
    void on_events();

    // Answers a datagram that came from the permit's address; nullopt beyond the limit.
    [[nodiscard]] std::optional<std::vector<std::byte>> answer(EchoDatagram const& question);
    void answer_refused(EchoDatagram const& question, int error_number);

    // Records what one of its streams did, once that has ended. Any thread, no lock.
    void add(StreamKind kind, StreamFacts const& streamed);

    // Ends all access from outside, then checks what arrived. May take seconds.
    [[nodiscard]] SessionFacts finish();

  private:
    struct Rdma {
        Endpoint endpoint;  // members are destroyed from the last to the first
        RegisteredMemory write, read, pings, answers;
        QueuePair pair;
    };
    HostSession(SessionPermit permit, ResponderLimits const& limits);
    [[nodiscard]] static Result<Rdma> open_rdma(SessionPermit const& permit,
                                                ResponderLimits const& limits);
    [[nodiscard]] Result<void> prepare(SessionRequest const& request);
    void on_completions();
    void on_completion(ibv_wc const& completion);
    void on_ping(ibv_wc const& completion);
    void device_failed(Error const& error);

    [[nodiscard]] CounterPlace counted() const;
    [[nodiscard]] PathFacts path_facts(QueuePairEnd const& guest) const;

    SessionPermit permit_;
    ResponderLimits limits_;
    SessionOffer offer_;
    Deadline deadline_;
    Payload echo_secret_, read_secret_, answer_secret_;
    SessionFacts facts_;
    std::mutex streamed_mutex_;
    std::map<StreamKind, StreamFacts> streamed_;  // streamed_mutex_
    std::vector<Counter> counters_;               // before the run
    std::uint32_t echoes_ = 0;
    bool device_gone_ = false;
    std::optional<Rdma> rdma_;
};

}  // namespace vfmgr::verify
