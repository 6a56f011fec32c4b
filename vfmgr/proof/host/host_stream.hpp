// SPDX-License-Identifier: Apache-2.0
// The host's end of a stream of queue pairs, of all kinds but cm_ping and transfer: owns queue
// pairs, memory, and a thread where it has to answer. Only an echo spins, and yields the CPU while
// it does; the rest waits for events. Owned by the responder; the destructor waits for the thread,
// a second at most.
#pragma once

#include <atomic>
#include <thread>

#include "api/types/guest.hpp"
#include "vfmgr/proof/measure.hpp"
#include "vfmgr/proof/permit.hpp"
#include "vfmgr/rdma/memory.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::verify {

class HostStream final : public StreamEnd {
  public:
    [[nodiscard]] static Result<std::unique_ptr<HostStream>> open(SessionPermit const& permit,
                                                                  StreamRequest const& request,
                                                                  ResponderLimits const& limits);
    ~HostStream() override;
    HostStream(HostStream const&) = delete;
    HostStream& operator=(HostStream const&) = delete;

    [[nodiscard]] StreamOffer const& offer() const override { return offer_; }
    // How many messages it took or answered so far. Any thread.
    [[nodiscard]] std::uint64_t messages() const { return messages_; }
    // For a write_echo whose guest waits for the first number and answers it: makes the host go
    // first. Call once, when the guest is connected.
    void lead() { leads_ = true; }
    std::uint64_t stop() override;

  private:
    struct Rdma {
        Endpoint endpoint;        // members are destroyed from the last to the first
        RegisteredMemory memory;  // what the guest reaches
        RegisteredMemory answer;
        QueuePairs all;
    };
    HostStream(Rdma rdma, StreamRequest request, ResponderLimits const& limits);
    [[nodiscard]] static Result<Rdma> open_rdma(SessionPermit const& permit,
                                                StreamRequest const& request);
    [[nodiscard]] Result<void> connect();
    [[nodiscard]] std::span<std::byte> message(std::size_t pair) const;
    [[nodiscard]] Result<void> receive(std::size_t pair);
    [[nodiscard]] Result<void> take_sends();
    [[nodiscard]] Result<bool> answer_send(std::size_t pair, ibv_wc const& arrived);
    [[nodiscard]] Result<void> answer_writes();
    [[nodiscard]] Result<void> write_number(std::uint8_t number);
    void run();

    StreamRequest const request_;
    Deadline const deadline_;
    StreamOffer offer_;
    Rdma rdma_;
    std::atomic<bool> stopping_ = false;
    std::atomic<bool> leads_ = false;
    std::atomic<std::uint64_t> messages_ = 0;
    std::thread thread_;  // none for one_sided
};

}  // namespace vfmgr::verify
