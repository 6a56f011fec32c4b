// SPDX-License-Identifier: Apache-2.0
// The guest plane's messages (api/openapi-guest.yaml): what the host sends a VM about its VFs, and
// how an RDMA session is set up and reported. Everything that comes from a guest is data with
// limits. Values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types/ip_address.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/mac_address.hpp"
#include "api/types/pf_info.hpp"
#include "api/types/verification.hpp"

namespace vfmgr {

// UDP, on every address of the responder: what a tenant can reach on the host besides RoCE's port.
inline constexpr std::uint16_t responder_echo_port = 8472;

// One VF of this VM: how to find it, how to configure it, and which test run is requested.
struct GuestAttachment {
    std::string attachment;
    MacAddress mac;  // finds the VF in the VM
    IpAddress address;
    std::uint8_t prefix_length = 24;
    std::uint32_t mtu = 1500;
    RdmaMode rdma = RdmaMode::auto_;     // rxe: create SoftRoCE on the VF if it has no RDMA device
    std::optional<std::uint8_t> dscp{};  // for the RDMA tests, 0..63; absent: 0
    IpAddress responder;                 // the host's address in the same network
    std::uint16_t echo_port = 0;  // UDP echo port of the responder, for reachability and path MTU
    std::optional<std::string> run;  // id of a requested verification
    std::string nonce;               // ties session and report to the run; empty without a run
    Profile profile = Profile::default_;
    bool operator==(GuestAttachment const&) const = default;
};

struct GuestConfig {
    std::uint64_t revision = 0;  // long poll: ?wait=30&revision=N answers once it differs from N
    std::vector<GuestAttachment> attachments;
    bool operator==(GuestConfig const&) const = default;
};

// A verification that the guest itself starts.
struct RunRequest {
    Profile profile = Profile::default_;
    bool operator==(RunRequest const&) const = default;
};

// One end of an RC queue pair.
struct QueuePairEnd {
    std::string gid;                // 32 hex digits
    std::uint32_t qp_num = 0;       // 24 bits
    std::uint32_t psn = 0;          // 24 bits
    std::uint32_t path_mtu = 1024;  // bytes: 256, 512, 1024, 2048, 4096
    std::uint8_t reads_max = 1;     // RDMA reads that this end serves at once (max_dest_rd_atomic)
    bool operator==(QueuePairEnd const&) const = default;
};

struct SessionRequest {
    std::string attachment;
    std::string run;
    std::string nonce;
    QueuePairEnd guest;
    bool operator==(SessionRequest const&) const = default;
};

struct MemoryRegion {
    std::uint64_t address = 0;
    std::uint32_t rkey = 0;
    std::uint64_t length = 0;  // bytes
    bool operator==(MemoryRegion const&) const = default;
};

// The host poisons the write region and checks it against `write_seed`. It fills the read region
// from a seed that it never sends to the guest.
struct SessionOffer {
    std::string session;  // random id; valid until the session ends
    QueuePairEnd host;
    MemoryRegion write;
    std::uint64_t write_seed = 0;
    MemoryRegion read;
    std::uint32_t ping_count = 0;  // RC sends that the host expects and answers
    std::uint32_t ping_size = 0;   // bytes
    std::uint64_t ping_seed = 0;   // seed of the guest's sends; the host's answers use another
    std::uint32_t deadline_seconds = 0;
    bool operator==(SessionOffer const&) const = default;
};

// The guest's measurements. Its verdicts are data; digests are SHA-256 in hex over nonce and bytes.
struct GuestReport {
    std::string nonce;
    std::vector<TestResult> tests;
    std::map<std::string, std::string> digests;  // "rdma_read", "rc_ping"
    std::vector<Counter> counters;               // counters of losses in the VM: their growth
    std::map<std::string, std::string> facts;    // kernel, vf_guest version, ifname, rdma_device
    std::string error;                           // why the guest could not test at all
    bool operator==(GuestReport const&) const = default;
};

extern template struct Json<GuestAttachment>;
extern template struct Json<GuestConfig>;
extern template struct Json<RunRequest>;
extern template struct Json<QueuePairEnd>;
extern template struct Json<SessionRequest>;
extern template struct Json<MemoryRegion>;
extern template struct Json<SessionOffer>;
extern template struct Json<GuestReport>;

}  // namespace vfmgr
