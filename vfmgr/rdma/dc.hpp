// SPDX-License-Identifier: Apache-2.0
// Dynamically connected transport (DC) of mlx5 NICs, by libmlx5.so.1. One thread, unless noted.
#pragma once

#include <infiniband/mlx5dv.h>

#include <string>

#include "api/types/guest.hpp"
#include "api/types/problem.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::verify {

// The functions used from libmlx5.so.1, opened at run time: it serves one maker's NICs, so nothing
// links against it. It is never closed: libibverbs has the same file open as the devices' provider.
// Values; any thread.

inline constexpr char const* mlx5_library = "libmlx5.so.1";

// Members are named after the symbols.
struct Mlx5 {
    decltype(&::mlx5dv_is_supported) mlx5dv_is_supported = nullptr;
    decltype(&::mlx5dv_create_qp) mlx5dv_create_qp = nullptr;
    decltype(&::mlx5dv_qp_ex_from_ibv_qp_ex) mlx5dv_qp_ex_from_ibv_qp_ex = nullptr;
};

// Fails with not_found if it is not installed, with unsupported if it is too old to have all of
// them.
[[nodiscard]] Result<Mlx5> open_mlx5(std::string const& library = mlx5_library);

// This machine's library, opened on first use.
[[nodiscard]] Result<Mlx5> const& mlx5_here();

// Both ends of mlx5's dynamically connected transport (DC): a target (DCT), which any peer that
// knows its GID, number and key may reach, and an initiator (DCI), which addresses each request to
// a target. There is no connection set-up. The attributes are exactly those that the kernel's
// driver requires (mlx5_ib_modify_dct(), modify_dci_qp_is_ok()). Each has one owner, and one thread
// at a time; pd and library outlive it.

// Fails with unsupported where the device is not mlx5's: only mlx5 has DC.
[[nodiscard]] Result<void> require_dc(Result<Mlx5> const& mlx5, Endpoint const& endpoint);

// Why there is no DC, in one line: "mlx5_0: … (mlx5dv_create_qp: EOPNOTSUPP, Operation not
// …)".
[[nodiscard]] std::string reason_of(Error const& error);

// The destructor is enough: the device completes requests in flight before it destroys a target,
// and a target has no error state.
class DcTarget {
  public:
    // The peer may write and read what is registered for that, and nothing else.
    [[nodiscard]] static Result<DcTarget> make(Result<Mlx5> const& mlx5, Endpoint const& endpoint,
                                               std::shared_ptr<CompletionQueue> queue);
    [[nodiscard]] DcTargetEnd const& end() const { return end_; }
    // Posts a receive for one write of the peer's with immediate data, which completes here as
    // well.
    [[nodiscard]] Result<void> receive(std::uint64_t id);

  private:
    DcTarget(std::shared_ptr<CompletionQueue> queue, VerbsReceives receives, VerbsPair pair,
             std::uint64_t key)
        : queue_(std::move(queue)),
          receives_(std::move(receives)),
          pair_(std::move(pair)),
          end_{0, key} {}
    [[nodiscard]] Result<void> make_ready(Endpoint const& endpoint);
    std::shared_ptr<CompletionQueue> queue_;  // outlives the pair, whose receives complete here
    VerbsReceives receives_;
    VerbsPair pair_;
    DcTargetEnd end_;
};

class DcInitiator {
  public:
    // For requests to one target at one GID, one outstanding at a time. `queue` must have room for
    // two.
    [[nodiscard]] static Result<DcInitiator> make(Result<Mlx5> const& mlx5,
                                                  Endpoint const& endpoint,
                                                  QueuePairEnd const& peer,
                                                  DcTargetEnd const& target,
                                                  std::shared_ptr<CompletionQueue> queue);
    // A write always carries `what.notify` to the target.
    [[nodiscard]] Result<void> transfer(std::uint64_t id, TransferDirection direction,
                                        RemoteTransfer const& what);
    // As QueuePair::shut().
    void shut(Deadline deadline);

  private:
    DcInitiator(std::shared_ptr<CompletionQueue> queue, VerbsPair pair, VerbsAddress address,
                DcTargetEnd const& target)
        : queue_(std::move(queue)),
          pair_(std::move(pair)),
          address_(std::move(address)),
          target_(target) {}
    [[nodiscard]] Result<void> make_ready(Endpoint const& endpoint);
    std::shared_ptr<CompletionQueue> queue_;  // outlives the pair
    VerbsPair pair_;
    VerbsAddress address_;
    DcTargetEnd target_;
    ibv_qp_ex* requests_ = nullptr;  // the pair's interface for posting requests
    mlx5dv_qp_ex* addressed_ = nullptr;
};

}  // namespace vfmgr::verify
