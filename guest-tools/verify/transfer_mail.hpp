// SPDX-License-Identifier: Apache-2.0
// The memory that each end of a stream of kind transfer sends from and receives into: an order, and
// its answer. Owned by that end; the pd outlives it.
#pragma once

#include "guest-tools/verify/memory.hpp"
#include "guest-tools/verify/queue_pair.hpp"
#include "guest-tools/verify/transfer_order.hpp"

namespace vfmgr::verify {

class TransferMail {
  public:
    [[nodiscard]] static Result<TransferMail> make(ibv_pd* pd);
    [[nodiscard]] Sge order() const;
    [[nodiscard]] Sge answer() const;

  private:
    explicit TransferMail(RegisteredMemory memory) : memory_(std::move(memory)) {}
    RegisteredMemory memory_;
};

}  // namespace vfmgr::verify
