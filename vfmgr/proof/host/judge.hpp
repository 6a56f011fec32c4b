// SPDX-License-Identifier: Apache-2.0
// The verdict: from the host's own measurements, and from digests that only a receiver of the
// host's bytes can compute. A guest's claims are data beside it: the verdict is the receiver's,
// never the tester's own word. Pure.
#pragma once

#include "api/types/guest.hpp"
#include "vfmgr/proof/bandwidth.hpp"
#include "vfmgr/proof/host/host_stream.hpp"
#include "vfmgr/proof/measure.hpp"
#include "vfmgr/proof/permit.hpp"
#include "vfmgr/proof/random_payload.hpp"

namespace vfmgr::verify {

struct EchoFacts {
    std::uint32_t datagrams = 0;  // from the VF's address, on the interface, with the run's nonce
    std::size_t bytes_max = 0;    // the longest of them
    std::string answer_digest;    // of the answer to a datagram of full length
    std::string refused;          // why the host could not answer, in a sentence
    bool operator==(EchoFacts const&) const = default;
};

// The host's facts at the end of a session.
struct SessionFacts {
    EchoFacts reachability;
    EchoFacts path_mtu;
    std::uint32_t pings_expected = 0;
    std::uint32_t pings = 0;
    PayloadCheck ping_check;    // sums over all pings; detail of the first bad one
    std::string answer_digest;  // of all answers to pings
    bool write_notified = false;
    PayloadCheck write_check;
    std::string read_digest;
    std::uint64_t read_bytes = 0;
    std::map<StreamKind, StreamFacts> streamed;
    std::vector<Counter> lost;  // on the host: counters that grew
    PathFacts path;             // what limits the rate
    std::string peer_gid;       // as the queue pair had it
    // On InfiniBand, the P_Keys of both ends' queue pairs. The guest's is only what the guest
    // claims.
    std::optional<std::uint16_t> host_pkey, guest_pkey;
    std::vector<std::uint16_t> host_pkeys;  // the table of the host's port
    std::uint8_t dscp = 0;                  // as the queue pair had it
    std::string device_error;               // the host's own RDMA failure, in a sentence
    std::string device_remedy;
};

// Leaves out started_at and finished_at, which only the caller's clock knows.
[[nodiscard]] Verification judge(SessionPermit const& permit, SessionFacts const& facts,
                                 GuestReport const& report);

// A run in which the guest could not start a session: its report has the error.
[[nodiscard]] Verification judge_error(SessionPermit const& permit, GuestReport const& report);

// A run whose session the host could not open.
[[nodiscard]] Verification judge_refusal(SessionPermit const& permit, Error const& error);

}  // namespace vfmgr::verify
