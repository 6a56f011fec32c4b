// SPDX-License-Identifier: Apache-2.0
// The host's end of a stream, whatever its kind. Owned by the responder; the destructor ends it.
#pragma once

#include <functional>
#include <memory>

#include "api/types/stream.hpp"
#include "guest-tools/verify/payload.hpp"
#include "guest-tools/verify/permit.hpp"

namespace vfmgr::verify {

// What the host itself saw on streams of kind transfer.
struct TransferFacts {
    std::uint64_t orders = 0;         // obeyed
    std::uint64_t bytes_written = 0;  // to the guest's memory
    std::uint64_t bytes_kept = 0;     // read back as they were of what only the host knows
    PayloadCheck read;                // sums over all that was read; detail of the first bad chunk
    std::string error;                // what ended one, in a sentence
};

class StreamEnd {
  public:
    virtual ~StreamEnd() = default;
    [[nodiscard]] virtual StreamOffer const& offer() const = 0;
    // Ends it; how many messages it took or answered in the end. Once; may take a second.
    virtual std::uint64_t stop() = 0;
    // After stop(); of kind transfer.
    [[nodiscard]] virtual TransferFacts transferred() const { return {}; }
};

// Opens one of kind cm_ping for that guest and nobody else; may take seconds. unsupported where
// RDMA CM is not there. Who runs the responder gives it (stock::cm_streams()): RDMA CM needs a
// process of its own, a program that the responder does not know.
using OpenCmStream = std::function<Result<std::unique_ptr<StreamEnd>>(
    SessionPermit const&, StreamRequest const&, ResponderLimits const&)>;

// forbidden when the network has none.
[[nodiscard]] Result<void> require_rdma(SessionPermit const& permit);
// forbidden, too, when a queue pair is not the VF's; limit_exceeded when it takes too much memory.
[[nodiscard]] Result<void> check_stream(SessionPermit const& permit, StreamRequest const& request,
                                        ResponderLimits const& limits);

}  // namespace vfmgr::verify
