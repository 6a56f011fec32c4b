// SPDX-License-Identifier: Apache-2.0
// What the guest's tests share: the proofs' names, the queue pair to the host, the offer, and the
// form of a result. One thread: the session's.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "api/types/enum_names.hpp"
#include "vfmgr/proof/echo.hpp"
#include "vfmgr/proof/guest_stream.hpp"
#include "vfmgr/proof/permit.hpp"
#include "vfmgr/rdma/memory.hpp"
#include "vfmgr/rdma/queue_pair.hpp"

namespace vfmgr::verify {

// The tests that prove a VF, in the order in which they run; the host judges each by what it found.
enum class Proof { reachability, path_mtu, rc_ping, rdma_write, rdma_read };

[[nodiscard]] constexpr bool needs_rdma(Proof proof) {
    return proof >= Proof::rc_ping;
}

struct Bench {
    Endpoint const& endpoint;
    QueuePair& pair;
    SessionOffer const& offer;
    std::string nonce;
    Deadline deadline;
};

// A test's result as the guest measured it. The digest covers what the host sent; empty when
// nothing arrived.
struct Measured {
    TestResult result;
    std::string digest{};
};

[[nodiscard]] Measured measured(std::string_view name = {});
[[nodiscard]] Measured measured_failure(std::string_view name, Error const& error);
[[nodiscard]] Measured measured_skip(std::string_view name, Error const& error);
// Returns what was measured, or the failure, under that name.
[[nodiscard]] Measured measured(std::string_view name, Result<Measured> made);

// Another machine's text, made fit for display: printable, at most `length_max` characters.
[[nodiscard]] std::string printable(std::string_view text, std::size_t length_max);

// CLOCK_MONOTONIC_RAW: not slewed during a measurement.
[[nodiscard]] std::uint64_t raw_nanoseconds();

// bandwidth_mbps in 10^6 bit/s, bandwidth_mib_per_s in 2^20 bytes/s, and the time itself.
[[nodiscard]] std::map<std::string, double> rate_figures(std::uint64_t bytes, double seconds);

// Waits for completions and takes them. Returns the first bad one as an Error that names `what`.
[[nodiscard]] Result<std::span<ibv_wc>> await(CompletionQueue& queue, std::span<ibv_wc> room,
                                              Deadline deadline, std::string_view what,
                                              unsigned polls = polls_by_default);
// Waits for that many completions, and no more are outstanding.
[[nodiscard]] Result<void> await_all(CompletionQueue& queue, std::size_t count, Deadline deadline,
                                     std::string_view what, unsigned polls = polls_by_default);

// What rping and every program with -R do first: sets up a connection by RDMA CM, which chooses
// device and GID by itself, and sends pings over it that the host writes back. One thread.

struct CmOptions {
    EndpointOptions own;  // the VF's address and netdev: no other device may be tested
    IpAddress host;
    std::uint16_t cm_port = 0;  // the host's, from the stream's offer
    std::uint32_t message_bytes = 64;
    std::uint64_t pings = 10;
};

// Runs the pings, until the deadline (interop::cm_pinger()): RDMA CM needs a process of its own,
// and only vf-guest knows that program.
using CmPinger = std::function<Measured(CmOptions const&, Deadline)>;

// The guest's side of reachability and path MTU: UDP over the VF only. It runs before RDMA, which
// would only report "transport retry counter exceeded". One thread.

struct EchoTest {
    GuestAttachment attachment;
    std::string ifname;
    Deadline deadline;
};

[[nodiscard]] Measured reachability(EchoTest const& test);
[[nodiscard]] Measured path_mtu(EchoTest const& test);

}  // namespace vfmgr::verify
