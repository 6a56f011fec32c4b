// SPDX-License-Identifier: Apache-2.0
// The tests that give figures, as one table for both ends: the guest runs them, the host judges
// them. Bandwidth and latency are measured as perftest does. Values; a test runs on one thread.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/guest.hpp"
#include "vfmgr/proof/bandwidth.hpp"
#include "vfmgr/proof/guest_stream.hpp"
#include "vfmgr/proof/reachability.hpp"

namespace vfmgr::verify {

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

// What a test runs on: the VF, the host's streams, and the time it has.
struct TestBed {
    GuestAttachment const& attachment;
    std::string const& ifname;  // the VF's netdev
    Endpoint const& endpoint;
    StreamHost const& host;
    Deadline deadline;
};

// The parts of a load that a test uses.
enum LoadPart : unsigned {
    takes_size = 1,
    takes_depth = 2,
    takes_pairs = 4,
    takes_messages = 8,
    takes_time = 16,
};

struct Measurement {
    // Fails with unavailable when the host is busy with another VM's stream.
    using Run = std::function<Result<Measured>(Measurement const&, TestBed const&)>;

    char const* name;
    StreamKind kind;
    Run run;
    unsigned takes = 0;  // of LoadPart; select_tests() refuses the others
    Load load{};
    Profile since = Profile::default_;  // the smallest profile that includes it
    std::optional<Flow> flow{};         // of a test of bandwidth
};

// The tests that only vf-guest has programs and drivers for. Elsewhere they are skipped.
struct OwnRuns {
    Measurement::Run cm_ping, gpudirect;
    OwnRuns();
};

// For OwnRuns: opens the stream, runs the pinger, closes the stream. Figures: connect_us, the round
// trip as in latency.hpp, and sent. Skipped where the host can't serve it: the VF is not at fault
// then.
[[nodiscard]] Measurement::Run cm_ping_by(CmPinger pinger);

// All measurements, with their load in the default profile.
[[nodiscard]] std::vector<Measurement> all_measurements(OwnRuns const& own = {});

// What a user chose to measure.
struct Selection {
    std::vector<std::string> tests;    // empty: the profile's
    std::optional<Profile> profile{};  // absent: default
    // Replace these parts of each named test's load; absent: the test's own.
    std::optional<std::uint32_t> message_bytes{}, depth{}, queue_pairs{};
    std::optional<std::uint64_t> messages{};
    std::optional<double> seconds{};
};

// Returns the chosen tests of `all`, or the profile's: quick has none. Fails with invalid_request
// for a test that does not exist, for a part of the load that a test does not use, and for a
// profile beside named tests.
[[nodiscard]] Result<std::vector<Measurement>> select_tests(std::vector<Measurement> all,
                                                            Selection const& selection);
[[nodiscard]] std::vector<Measurement> measurements_of(std::vector<Measurement> all,
                                                       Profile profile);

// Runs the test. Errors are in the result; if the host is busy with another VM's stream, the test
// is skipped.
[[nodiscard]] Measured measure(Measurement const& what, TestBed const& bed);

}  // namespace vfmgr::verify
