// SPDX-License-Identifier: Apache-2.0
// The host's end of a stream of any kind. Owned by the responder; the destructor ends it.
#pragma once

#include <functional>
#include <memory>

#include "api/types/stream.hpp"
#include "guest-tools/verify/payload.hpp"
#include "guest-tools/verify/permit.hpp"

namespace vfmgr::verify {

// The host's own results on streams of kind transfer.
struct TransferFacts {
    std::uint64_t orders = 0;         // carried out
    std::uint64_t bytes_written = 0;  // to the guest's memory
    std::uint64_t bytes_kept = 0;     // read back intact, of data that only the host knows
    PayloadCheck read;                // sums over all reads; detail of the first bad chunk
    std::string error;                // the error that ended a stream, in a sentence
};

class StreamEnd {
  public:
    virtual ~StreamEnd() = default;
    [[nodiscard]] virtual StreamOffer const& offer() const = 0;
    // Ends the stream; returns how many messages it took or answered in total. Once; may take a
    // second.
    virtual std::uint64_t stop() = 0;
    // After stop(); for kind transfer.
    [[nodiscard]] virtual TransferFacts transferred() const { return {}; }
};

// Opens a stream of kind cm_ping for that guest only; may take seconds. Fails with unsupported
// where RDMA CM is missing. The responder's owner supplies it (interop::cm_streams()): RDMA CM
// needs a process of its own, and the responder does not know that program.
using OpenCmStream = std::function<Result<std::unique_ptr<StreamEnd>>(
    SessionPermit const&, StreamRequest const&, ResponderLimits const&)>;

// Fails with forbidden if the network has no RDMA.
[[nodiscard]] Result<void> require_rdma(SessionPermit const& permit);
// Also fails with forbidden if a queue pair is not the VF's, with limit_exceeded if it takes too
// much memory.
[[nodiscard]] Result<void> check_stream(SessionPermit const& permit, StreamRequest const& request,
                                        ResponderLimits const& limits);

}  // namespace vfmgr::verify
