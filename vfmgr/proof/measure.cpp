// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/proof/measure.hpp"

#include <algorithm>

#include "vfmgr/proof/bandwidth.hpp"
#include "vfmgr/proof/latency.hpp"
#include "vfmgr/proof/rdma_proof.hpp"
#include "vfmgr/proof/session.hpp"
#include "vfmgr/proof/transfer.hpp"

namespace vfmgr::verify {
namespace {

constexpr StreamSize datagram{.message_bytes = 64, .depth = 1, .pairs = 1};
constexpr StreamSize large{.message_bytes = 64 * 1024, .depth = 128, .pairs = 1};
constexpr StreamSize small{.message_bytes = 8, .depth = 1, .pairs = 1};
constexpr StreamSize both_ways{.message_bytes = 64 * 1024, .depth = 64, .pairs = 2};
constexpr StreamSize many{.message_bytes = 8 * 1024, .depth = 32, .pairs = 8};
constexpr std::chrono::milliseconds deep_window{3000};

}  // namespace

std::vector<Measurement> all_measurements() {
    return {{"ud_ping", StreamKind::ud_echo, ud_ping, {datagram}},
            {"cm_ping", StreamKind::cm_ping, nullptr, {datagram}},
            {"write_bandwidth", StreamKind::one_sided, write_bandwidth, {large}},
            {"read_bandwidth", StreamKind::one_sided, read_bandwidth, {large}},
            {"send_bandwidth", StreamKind::send, send_bandwidth, {large}},
            {"write_latency", StreamKind::write_echo, write_latency, {small}},
            {"read_latency", StreamKind::one_sided, read_latency, {small}},
            {"send_latency", StreamKind::send_echo, send_latency, {small}},
            {"bidirectional_bandwidth",
             StreamKind::one_sided,
             bidirectional_bandwidth,
             {both_ways},
             Profile::deep},
            {"many_pairs_bandwidth", StreamKind::one_sided, write_bandwidth, {many}, Profile::deep},
            {"memory_regions", StreamKind::one_sided, memory_regions, {small}, Profile::deep},
            {"transfer", StreamKind::transfer, nullptr, {large}, Profile::deep},
            {"gpudirect", StreamKind::gpu_transfer, nullptr, {large}, Profile::deep}};
}

Measurement const* find_measurement(std::vector<Measurement> const& among, std::string_view name) {
    auto const found = std::ranges::find(among, name, &Measurement::name);
    return found == among.end() ? nullptr : &*found;
}

std::vector<Measurement> measurements_of(Profile profile) {
    auto all = all_measurements();
    std::erase_if(all, [&](Measurement const& each) { return each.since > profile; });
    if (profile == Profile::deep)
        for (auto& each : all) each.load.window = deep_window;
    return all;
}

Measured measure(Measurement const& what, StreamHost const& host, Endpoint const& endpoint,
                 Deadline deadline) {
    if (what.kind == StreamKind::transfer) return transfer(host, endpoint, what.load, deadline);
    auto stream = GuestStream::open(host, endpoint, what.kind, what.load.size);
    auto made = stream ? what.run(*stream, what.load, deadline)
                       : measured_failure(what.name, stream.error());
    made.result.name = what.name;
    bool const busy = !stream && stream.error().problem == Problem::unavailable;
    if (busy) made.result.verdict = Verdict::skip;
    return made;
}

}  // namespace vfmgr::verify
