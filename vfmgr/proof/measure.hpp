// SPDX-License-Identifier: Apache-2.0
// The host's end of a stream of any kind. Owned by the responder; the destructor ends it.
#pragma once

#include <functional>
#include <memory>

#include "api/types/enum_names.hpp"
#include "api/types/guest.hpp"
#include "vfmgr/proof/guest_stream.hpp"
#include "vfmgr/proof/permit.hpp"
#include "vfmgr/proof/random_payload.hpp"
#include "vfmgr/proof/reachability.hpp"

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

// The way from a NIC into a GPU's memory. Values; any thread.

enum class Route {
    dma_buf,      // ibv_reg_dmabuf_mr of the GPU's memory
    dma_buf_vmm,  // ibv_reg_dmabuf_mr of its virtual memory, cuMemCreate and cuMemMap
    peermem,      // ibv_reg_mr of it, with nvidia-peermem or its older variants
    staged,       // none of these: main memory, copied
};

// For people.
[[nodiscard]] constexpr char const* route_text(Route route) {
    constexpr std::array texts{"DMA-BUF", "DMA-BUF of virtual memory", "nvidia-peermem",
                               "staged through main memory"};
    return texts.at(static_cast<std::size_t>(route));
}

// Tests that give figures: bandwidth and latency as perftest measures them, each on a stream of its
// own. One thread.

struct Measurement {
    char const* name;
    StreamKind kind;
    // Null: those without such a stream (cm_ping.hpp, transfer.hpp, gpu/gpu_transfer.hpp).
    Measured (*run)(GuestStream&, Load const&, Deadline);
    Load load;
    Profile since = Profile::default_;  // the smallest profile that includes it
};

// All measurements, with their load in the default profile.
[[nodiscard]] std::vector<Measurement> all_measurements();
// Null if none has that name.
[[nodiscard]] Measurement const* find_measurement(std::vector<Measurement> const& among,
                                                  std::string_view name);
// The measurements of a profile: none in quick.
[[nodiscard]] std::vector<Measurement> measurements_of(Profile profile);

// For all but cm_ping and gpudirect: opens the stream, measures, closes it. Reports errors in the
// result; if the host is busy with another VM's stream, the test is skipped.
[[nodiscard]] Measured measure(Measurement const& what, StreamHost const& host,
                               Endpoint const& endpoint, Deadline deadline);

}  // namespace vfmgr::verify
