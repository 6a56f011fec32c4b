// SPDX-License-Identifier: Apache-2.0
// What the guest plane and responders send: turns, sessions, streams, permits. Values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/network.hpp"
#include "api/types/pf.hpp"
#include "api/types/verification.hpp"

namespace vfmgr {

// A place in a host's queue: a responder answers with it instead of a refusal while others are
// served first. Values.

// The guest keeps its place by asking again, and loses it when it stops asking.
struct Turn {
    std::uint32_t position = 1;  // 1: next
    std::uint32_t seconds = 1;   // estimated
    bool own = false;            // only sessions or streams of the same VM are ahead
    bool operator==(Turn const&) const = default;
};

template <class T>
using OrTurn = std::variant<T, Turn>;

extern template struct Json<Turn>;

// The guest plane's messages (api/openapi-guest.yaml): what the host sends a VM about its VFs, and
// how an RDMA session is set up and reported. Everything that comes from a guest is data with
// limits. Values.

// UDP, on every address of the responder: what a tenant can reach on the host besides RoCE's port.
inline constexpr std::uint16_t responder_echo_port = 8472;

// vfmgr-guestd's: on vsock, and by TLS on the host's address in the network of a VF whose guest
// reaches the host so.
inline constexpr std::uint16_t guest_plane_port = 8471;

// One VF of this VM: how to find it, how to configure it, and which test run is requested.
struct GuestAttachment {
    std::string attachment;
    // One of both finds the VF in the VM: the MAC, or an InfiniBand port's GUID.
    std::optional<MacAddress> mac;
    std::optional<Guid> guid{};
    std::optional<Pkey> pkey{};  // the partition that the port is expected in; absent: any
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

// What it takes to reach an InfiniBand port besides its GID.
struct SubnetEnd {
    std::uint16_t lid = 0;   // from the subnet manager, 1..0xbfff
    std::uint16_t pkey = 0;  // of the queue pair: 15 bits, and the highest for a full member
    bool grh = false;        // packets to it and from it name the GIDs, too
    bool operator==(SubnetEnd const&) const = default;
};

// One end of an RC queue pair.
struct QueuePairEnd {
    std::string gid;                // 32 hex digits
    std::uint32_t qp_num = 0;       // 24 bits
    std::uint32_t psn = 0;          // 24 bits
    std::uint32_t path_mtu = 1024;  // bytes: 256, 512, 1024, 2048, 4096
    std::uint8_t reads_max = 1;     // RDMA reads that this end serves at once (max_dest_rd_atomic)
    std::optional<SubnetEnd> subnet{};  // absent: Ethernet, where the GID is enough
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
    std::vector<Counter> counters;               // how much the VM's counters of losses grew
    std::map<std::string, std::string> facts;    // kernel, vf_guest version, ifname, rdma_device
    std::string error;                           // why the guest could not test at all
    bool operator==(GuestReport const&) const = default;
};

extern template struct Json<GuestAttachment>;
extern template struct Json<GuestConfig>;
extern template struct Json<RunRequest>;
extern template struct Json<QueuePairEnd>;
extern template struct Json<SessionRequest>;
extern template struct Json<SessionOffer>;
extern template struct Json<GuestReport>;

// A stream of the guest plane (api/openapi-guest.yaml): queue pairs beside the session's own, on
// which one thing is measured. What comes from a guest is data with limits. Values.

// What the host does on the stream's queue pairs.
enum class StreamKind {
    one_sided,     // nothing: the guest writes to the host's memory, or reads it
    send,          // receives sends
    send_echo,     // answers each send with one of the same length
    write_echo,    // answers each write with one to the guest's memory, ended by the same byte
    ud_echo,       // echoes unreliable datagrams: answers each with one that begins with the same 8
                   // bytes and is as long
    cm_ping,       // no queue pairs of its own: accepts connections by RDMA CM, as rping's server
    transfer,      // executes orders (vfmgr/proof/transfer_order.hpp): writes to the guest's
                   // memory, or reads it, and answers with the outcome
    gpu_transfer,  // the same for memory of the guest's GPU; counted separately
};

// The host answers each message. Only for these kinds does it spin, or nearly so.
[[nodiscard]] constexpr bool is_echo(StreamKind kind) {
    return kind == StreamKind::send_echo || kind == StreamKind::write_echo ||
           kind == StreamKind::ud_echo;
}

// For these kinds the host counts its answers, to compare them with what a guest reports.
[[nodiscard]] constexpr bool is_answered(StreamKind kind) {
    return is_echo(kind) || kind == StreamKind::cm_ping;
}

[[nodiscard]] constexpr bool is_transfer(StreamKind kind) {
    return kind == StreamKind::transfer || kind == StreamKind::gpu_transfer;
}

// The transport of the host's writes and reads: the stream's own RC queue pair, or mlx5's
// dynamically connected transport, from an initiator of the host to the guest's target.
enum class TransferTransport { rc, dc };

// The guest's DC target (DCT). Reachable by anyone who knows its GID, number and key.
struct DcTargetEnd {
    std::uint32_t qp_num = 0;  // 24 bits
    std::uint64_t key = 0;     // random, for this stream only
    bool operator==(DcTargetEnd const&) const = default;
};

// The shortest and longest datagram of ud_echo: a sequence number, and the largest path MTU.
inline constexpr std::uint32_t ud_bytes_min = 8, ud_bytes_max = 4096;
inline constexpr std::uint32_t cm_bytes_max = 1 << 20;  // of one cm_ping ping
inline constexpr std::uint32_t stream_message_bytes_max = 8 << 20;
inline constexpr std::uint32_t transfer_chunk_bytes = 64;  // transfers are multiples of this

struct StreamRequest {
    StreamKind kind = StreamKind::one_sided;
    std::uint32_t message_bytes = 1;   // 1..8 MiB; cm_ping: 1..1 MiB; ud_echo: 8..4096, one queue
                                       // pair; transfer: the longest, whole chunks of 64, one queue
                                       // pair
    std::uint32_t depth = 1;           // receives that the host keeps posted on each queue pair
    std::vector<QueuePairEnd> pairs;   // the guest's ends, 1..16; none for cm_ping
    std::optional<MemoryRegion> back;  // write_echo: where the host writes its answers; transfer:
                                       // what orders refer to, at least as long as a message
    std::optional<DcTargetEnd> dct{};  // transfer: target for the host over DC; at the pair's GID
    bool operator==(StreamRequest const&) const = default;
};

struct StreamOffer {
    std::string stream;               // id, valid until the session ends
    std::vector<QueuePairEnd> pairs;  // the host's ends, in the order of the guest's
    MemoryRegion memory;              // message_bytes per pair, one after the other
    std::uint32_t seconds = 0;        // the stream ends after this time
    // Only for cm_ping: where RDMA CM listens, in the TCP port space.
    std::optional<std::uint16_t> cm_port;
    std::optional<std::uint64_t> seed;  // for transfer: seed of the payload, known to both ends
    // Only for a transfer whose request names a DC target.
    std::optional<TransferTransport> transport;
    std::optional<std::string> transport_reason;  // why it is rc
    bool operator==(StreamOffer const&) const = default;
};

extern template struct Json<StreamRequest>;
extern template struct Json<StreamOffer>;

// The responder of another host (api/openapi-responder.yaml): how to reach it, what it reports
// about itself, what it is asked to do. Values.

inline constexpr std::uint16_t responder_tls_port = 8473;

// Only ever read: the token is never written anywhere.
struct ResponderTarget {
    HostPort place{"", responder_tls_port};
    std::string fingerprint;  // SHA-256 of its certificate, hex
    std::string token;
    bool operator==(ResponderTarget const&) const = default;
};

struct ResponderInfo {
    std::string version;
    IpAddress address;  // the address that the tests use
    std::uint16_t echo_port = 0;
    std::optional<MacAddress> mac;  // of its netdev; absent if that has no 6-byte address
    std::uint32_t mtu = 1500;
    std::string rdma_device;
    bool operator==(ResponderInfo const&) const = default;
};

// The terms of one run, as known to the host that attaches the VF.
struct RunTerms {
    std::string attachment;
    std::string run;
    std::string nonce;
    IpAddress peer_address;         // the VF's
    std::optional<Guid> vf_guid{};  // the VF's port, on InfiniBand
    std::optional<Pkey> pkey{};     // the network's partition; absent: any
    std::uint32_t mtu = 1500;
    RdmaMode rdma = RdmaMode::auto_;     // none: the network excludes RDMA, only IP is tested
    std::optional<std::uint8_t> dscp{};  // for the RDMA tests, 0..63; absent: 0
    std::optional<TestPath> path;        // absent: unknown
    Profile profile = Profile::default_;
    std::uint32_t vf_tx_rate_mbps = 0;  // the VF's send limit; 0: none, or unknown
    bool operator==(RunTerms const&) const = default;
};

// What a trusted caller lets one guest do in one run: a SessionPermit without what the responder
// knows itself.
struct RemotePermit : RunTerms {
    std::optional<MacAddress> vf_mac;  // the only MAC that may have `peer_address`
    bool operator==(RemotePermit const&) const = default;
};

struct SessionOpening {
    RemotePermit permit;
    SessionRequest request;
    bool operator==(SessionOpening const&) const = default;
};

extern template void Json<ResponderTarget>::read(JsonReader&, ResponderTarget&);
extern template struct Json<ResponderInfo>;
extern template struct Json<SessionOpening>;

}  // namespace vfmgr
