// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/transfer_mail.hpp"

#include "api/types/stream.hpp"
#include "guest-tools/verify/payload.hpp"

namespace vfmgr::verify {

static_assert(transfer_chunk_bytes == payload_chunk_bytes);

Result<TransferMail> TransferMail::make(ibv_pd* pd) {
    VFMGR_TRY(auto memory, RegisteredMemory::make(pd, transfer_order_bytes + transfer_answer_bytes,
                                                  IBV_ACCESS_LOCAL_WRITE, "orders and answers"));
    return TransferMail(std::move(memory));
}

Sge TransferMail::order() const {
    return {memory_.bytes().first(transfer_order_bytes), memory_.local_key()};
}

Sge TransferMail::answer() const {
    return {memory_.bytes().last(transfer_answer_bytes), memory_.local_key()};
}

}  // namespace vfmgr::verify
