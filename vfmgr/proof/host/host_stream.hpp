// SPDX-License-Identifier: Apache-2.0
// The host's end of a stream of any kind. Owned by the responder; the destructor ends it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "api/types/guest.hpp"
#include "vfmgr/proof/permit.hpp"
#include "vfmgr/proof/random_payload.hpp"
#include "vfmgr/rdma/memory.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::verify {

// The host's own results on streams of one kind.
struct StreamFacts {
    std::uint64_t messages = 0;  // taken or answered; of a transfer: orders carried out
    // Only transfers count these.
    std::uint64_t bytes_kept = 0;  // read back intact, of data that only the host knows
    PayloadCheck read{};           // sums over all reads; detail of the first bad chunk
    std::string error{};           // the error that ended a stream, in a sentence

    // Adds the counts; keeps the first detail and error.
    void add(StreamFacts const& other);
};

class StreamEnd {
  public:
    virtual ~StreamEnd() = default;
    StreamEnd(StreamEnd const&) = delete;
    StreamEnd& operator=(StreamEnd const&) = delete;

    [[nodiscard]] StreamOffer const& offer() const { return offer_; }
    // Ends the stream; may take a second. Returns what it did in total.
    virtual StreamFacts stop() = 0;

  protected:
    // An offer with an id and the time that the stream lasts, to be completed.
    explicit StreamEnd(std::uint32_t seconds);
    StreamOffer offer_;
};

// Opens a stream of kind cm_ping for that guest only; may take seconds. Fails with unsupported
// where RDMA CM is missing. The responder's owner supplies it (interop::cm_streams()): RDMA CM
// needs a process of its own, and the responder does not know that program.
using OpenCmStream = std::function<Result<std::unique_ptr<StreamEnd>>(
    SessionPermit const&, StreamRequest const&, ResponderLimits const&)>;

// Fails with forbidden if the network has no RDMA.
[[nodiscard]] Result<void> require_rdma(SessionPermit const& permit);
// Fails with forbidden if that end of a queue pair is not at the VF: at its address's GID, on
// InfiniBand at its port's.
[[nodiscard]] Result<void> require_at_vf(SessionPermit const& permit, QueuePairEnd const& end);
// Also fails with forbidden if a queue pair is not the VF's, with limit_exceeded if it takes too
// much memory.
[[nodiscard]] Result<void> check_stream(SessionPermit const& permit, StreamRequest const& request,
                                        ResponderLimits const& limits);

// The device of the interface that leads to the guest, which sends in the network's traffic class.
[[nodiscard]] Result<Endpoint> open_host_endpoint(SessionPermit const& permit,
                                                  std::chrono::milliseconds wait = endpoint_wait);

// The end of a stream of queue pairs, of all kinds but cm_ping and transfer: owns queue pairs,
// memory, and a thread where it has to answer. Only an echo spins, and yields the CPU while it
// does; the rest waits for events. The destructor waits for the thread, a second at most.
class HostStream final : public StreamEnd {
  public:
    [[nodiscard]] static Result<std::unique_ptr<HostStream>> open(SessionPermit const& permit,
                                                                  StreamRequest const& request,
                                                                  ResponderLimits const& limits);
    ~HostStream() override;
    // How many messages it took or answered so far. Any thread.
    [[nodiscard]] std::uint64_t messages() const { return messages_; }
    // For a write_echo whose guest waits for the first number and answers it: makes the host go
    // first. Call once, when the guest is connected.
    void lead() { leads_ = true; }
    StreamFacts stop() override;

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
    Rdma rdma_;
    std::atomic<bool> stopping_ = false;
    std::atomic<bool> leads_ = false;
    std::atomic<std::uint64_t> messages_ = 0;
    std::thread thread_;  // none for one_sided
};

}  // namespace vfmgr::verify
