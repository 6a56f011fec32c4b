// SPDX-License-Identifier: Apache-2.0
// The messages between the two ends of a stream test over TCP, a line of JSON each: the sender
// opens, the receiver accepts or refuses; the sender ends with what it sent, the receiver answers
// with what arrived, or sends that before, when it ends first. The other end is not trusted: all of
// it is data with limits. Values.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "api/types/addresses.hpp"
#include "api/types/enum_names.hpp"
#include "api/types/guest.hpp"
#include "api/types/json_fwd.hpp"
#include "guest-tools/traffic/pacer.hpp"
#include "vfmgr/proof/measure.hpp"

namespace vfmgr::stream {

inline constexpr std::uint16_t default_port = 18525;
inline constexpr std::size_t line_bytes_max = 4096;
// The version of these messages and of the packets. Both ends of a test must have the same.
inline constexpr std::uint32_t protocol_version = 1;

enum class Over { udp, ud };  // sockets; unreliable datagrams of a queue pair

// The longest packets: the longest UDP payload over IPv4, and the largest path MTU of RDMA.
[[nodiscard]] std::uint32_t packet_bytes_max(Over over);
inline constexpr std::uint32_t chunk_max = 1024;  // packets; sendmmsg() takes no more at once

// Sent by the sender.
struct Opening {
    std::uint32_t version = protocol_version;
    std::string run{};  // 16 hex digits, in each packet
    Over over = Over::udp;
    std::uint32_t packet_bytes = 0;
    std::uint32_t chunk = 1;
    std::optional<QueuePairEnd> pair{};  // only with ud: the sender's
    bool operator==(Opening const&) const = default;
};

// Sent by the receiver: it is ready, or why not.
struct Acceptance {
    std::optional<std::uint16_t> udp_port{};  // with udp
    std::optional<QueuePairEnd> pair{};       // with ud: the receiver's
    std::optional<Error> refusal{};
    bool operator==(Acceptance const&) const = default;
};

// Sent by the sender, after its last packet.
struct Ending {
    std::uint64_t packets = 0;
    std::uint64_t microseconds = 0;  // from the first to the last
    Lateness lateness{};
    std::uint64_t filtered = 0;  // of the packets: refused by a packet filter on the sender
    bool operator==(Ending const&) const = default;
};

// Where the receiver's ring is.
enum class Memory { host, gpu };  // main memory; a GPU's
struct RingPlace {
    Memory memory = Memory::host;
    // Set only for a GPU: which one, and the route by which received packets get there.
    std::optional<PciAddress> gpu{};
    std::optional<verify::Route> route{};
    bool operator==(RingPlace const&) const = default;
};

// How the receiver's counting ended.
enum class End { sent, sender_gone, time_over, stopped };

// Which packets arrived.
struct SequenceCounts {
    std::uint64_t received = 0;      // each once
    std::uint64_t missing = 0;       // before the newest that arrived: lost at least
    std::uint64_t out_of_order = 0;  // of the received: arrived after a newer one (RFC 4737)
    std::uint64_t duplicates = 0;
    std::uint64_t too_late = 0;  // beyond the window: late or duplicate, and counted as missing
    bool operator==(SequenceCounts const&) const = default;
};

// What both ends report.
struct Summary : SequenceCounts {
    std::string run{};
    Over over = Over::udp;
    std::uint32_t packet_bytes = 0;
    End end = End::sent;
    std::optional<Ending> sent{};  // absent: not reported, and `lost` is unknown
    std::optional<std::uint64_t> lost{};
    std::uint64_t foreign = 0;
    std::uint64_t microseconds = 0;              // from the first batch that arrived to the last
    std::uint64_t timed = 0;                     // of the received: after that first batch
    std::optional<std::uint64_t> socket_lost{};  // of lost and foreign: dropped by the socket
    std::uint64_t ring_packets = 0;
    RingPlace ring{};
    bool operator==(Summary const&) const = default;

    [[nodiscard]] std::uint64_t bytes() const { return received * packet_bytes; }
    [[nodiscard]] bool nothing_lost() const { return lost && *lost == 0; }
};

// Refuses a sender of another version for its version, whatever else it sends.
[[nodiscard]] Result<Opening> read_opening(std::string_view line);
// Returns the receiver's refusal as an Error. An acceptance must have an end for `over`.
[[nodiscard]] Result<Acceptance> read_acceptance(std::string_view line, Over over);
[[nodiscard]] Result<Ending> read_ending(std::string_view line);
[[nodiscard]] Result<Summary> read_summary(std::string_view line);
// Converts Opening::run.
[[nodiscard]] std::uint64_t run_number(std::string_view run);

}  // namespace vfmgr::stream

extern template struct vfmgr::Json<vfmgr::stream::Opening>;
extern template struct vfmgr::Json<vfmgr::stream::Acceptance>;
extern template struct vfmgr::Json<vfmgr::stream::Ending>;
extern template void vfmgr::Json<vfmgr::stream::RingPlace>::write(nlohmann::json&,
                                                                  vfmgr::stream::RingPlace const&);
extern template struct vfmgr::Json<vfmgr::stream::Summary>;
