// SPDX-License-Identifier: Apache-2.0
// The host's end of a stream of kind transfer: writes to the guest's memory and reads it, as the
// guest orders, one order after the other. Waits for events, never spins. Owned by the responder;
// the destructor waits for the thread, a second at most. Transfers go over DC where the guest has a
// target and the host's device an initiator that reaches it; over RC otherwise.
#pragma once

#include <atomic>
#include <thread>

#include "vfmgr/proof/host/host_stream.hpp"
#include "vfmgr/proof/transfer_order.hpp"
#include "vfmgr/rdma/dc.hpp"

namespace vfmgr::verify {

class HostTransfers final : public StreamEnd {
  public:
    // `request` is of kind transfer.
    [[nodiscard]] static Result<std::unique_ptr<HostTransfers>> open(
        SessionPermit const& permit, StreamRequest const& request, ResponderLimits const& limits,
        Result<Mlx5> const& mlx5 = mlx5_here());
    ~HostTransfers() override;
    HostTransfers(HostTransfers const&) = delete;
    HostTransfers& operator=(HostTransfers const&) = delete;

    [[nodiscard]] StreamOffer const& offer() const override { return offer_; }
    StreamFacts stop() override;

  private:
    struct Rdma {
        Endpoint endpoint;  // members are destroyed from the last to the first
        RegisteredMemory data;
        TransferMail mail;
        QueuePairs all;
        std::optional<DcInitiator> dc{};
    };
    HostTransfers(Rdma rdma, StreamRequest request, ResponderLimits const& limits);
    [[nodiscard]] static Result<Rdma> open_rdma(SessionPermit const& permit,
                                                StreamRequest const& request);
    [[nodiscard]] QueuePair& pair() { return rdma_.all.pairs.front(); }
    void choose_transport(Result<Mlx5> const& mlx5);
    [[nodiscard]] Result<void> reach_by_dc(Result<Mlx5> const& mlx5);
    [[nodiscard]] Result<void> transfer(TransferOrder const& order);
    [[nodiscard]] Result<void> await(std::uint64_t id, std::string_view what, Deadline deadline);
    [[nodiscard]] Result<TransferAnswer> obey(TransferOrder const& order);
    [[nodiscard]] Result<void> serve();
    void run();

    StreamRequest const request_;
    Deadline const deadline_;
    StreamOffer offer_;
    Payload seeded_, own_;  // keys; the epoch is the order's
    Rdma rdma_;
    std::atomic<bool> stopping_ = false;
    StreamFacts facts_;  // the thread's, until stop() has joined it
    std::thread thread_;
};

}  // namespace vfmgr::verify
