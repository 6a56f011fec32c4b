// SPDX-License-Identifier: Apache-2.0
// What the two ends of a stream test say to each other over TCP, a line of JSON each: the sender
// opens, the receiver accepts or refuses; the sender ends with what it sent, the receiver answers
// with what came. The other end may be anybody: all of it is data with limits. Values.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "api/types/enum_names.hpp"
#include "api/types/guest.hpp"
#include "api/types/pci_address.hpp"
#include "guest-tools/stream/pacer.hpp"
#include "guest-tools/verify/route.hpp"

namespace vfmgr::stream {

inline constexpr std::uint16_t default_port = 18525;
inline constexpr std::size_t line_bytes_max = 4096;
// Of what is said here and of the packets. The ends of a test must have the same.
inline constexpr std::uint32_t protocol_version = 1;

enum class Over { udp, ud };  // sockets; unreliable datagrams of a queue pair

// The longest packets: the longest UDP payload over IPv4, and the largest path MTU of RDMA.
[[nodiscard]] std::uint32_t packet_bytes_max(Over over);
inline constexpr std::uint32_t chunk_max = 1024;  // packets; sendmmsg() takes no more at once

// From the sender.
struct Opening {
    std::uint32_t version = protocol_version;
    std::string run{};  // 16 hex digits, in each packet
    Over over = Over::udp;
    std::uint32_t packet_bytes = 0;
    std::uint32_t chunk = 1;
    std::optional<QueuePairEnd> pair{};  // of ud, and of no other: the sender's
    bool operator==(Opening const&) const = default;
};

// From the receiver: it is ready, or why not.
struct Acceptance {
    std::optional<std::uint16_t> udp_port{};  // of udp
    std::optional<QueuePairEnd> pair{};       // of ud: the receiver's
    std::optional<Error> refusal{};
    bool operator==(Acceptance const&) const = default;
};

// From the sender, behind its last packet.
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
    // Of a GPU, and of nothing else: which, and how what is received comes there.
    std::optional<PciAddress> gpu{};
    std::optional<verify::Route> route{};
    bool operator==(RingPlace const&) const = default;
};

// How the receiver's counting ended.
enum class End { sent, sender_gone, time_over, stopped };

// What both ends tell.
struct Summary {
    std::string run{};
    Over over = Over::udp;
    std::uint32_t packet_bytes = 0;
    End end = End::sent;
    std::optional<Ending> sent{};  // absent: the sender did not say, and with it `lost` is unknown
    std::optional<std::uint64_t> lost{};
    std::uint64_t received = 0;  // each packet once
    std::uint64_t missing = 0;   // before the newest that came: lost at least
    std::uint64_t out_of_order = 0;
    std::uint64_t duplicates = 0;
    std::uint64_t too_late = 0;
    std::uint64_t foreign = 0;
    std::uint64_t microseconds = 0;  // from the first that came to the last
    std::uint64_t timed = 0;         // of the received: behind the first, in that time
    std::optional<std::uint64_t>
        socket_lost{};  // of the lost and foreign, by the receiver's socket
    std::uint64_t ring_packets = 0;
    RingPlace ring{};
    bool operator==(Summary const&) const = default;

    [[nodiscard]] std::uint64_t bytes() const { return received * packet_bytes; }
    [[nodiscard]] bool nothing_lost() const { return lost && *lost == 0; }
};

void to_json(nlohmann::json& out, Opening const& opening);
void read(JsonReader& reader, Opening& opening);
void to_json(nlohmann::json& out, Acceptance const& acceptance);
void read(JsonReader& reader, Acceptance& acceptance);
void to_json(nlohmann::json& out, Ending const& ending);
void read(JsonReader& reader, Ending& ending);
void to_json(nlohmann::json& out, RingPlace const& ring);
void to_json(nlohmann::json& out, Summary const& summary);
void read(JsonReader& reader, Summary& summary);

// A sender of another version is refused for that, whatever else it says.
[[nodiscard]] Result<Opening> read_opening(std::string_view line);
// What the receiver refused with, as an Error; and its end must be one of `over`.
[[nodiscard]] Result<Acceptance> read_acceptance(std::string_view line, Over over);
[[nodiscard]] Result<Ending> read_ending(std::string_view line);
[[nodiscard]] Result<Summary> read_summary(std::string_view line);
// Of Opening::run.
[[nodiscard]] std::uint64_t run_number(std::string_view run);

}  // namespace vfmgr::stream

template <>
inline constexpr std::array<vfmgr::EnumName<vfmgr::stream::Over>, 2>
    vfmgr::enum_names<vfmgr::stream::Over> = {
        {{vfmgr::stream::Over::udp, "udp"}, {vfmgr::stream::Over::ud, "ud"}}};
template <>
inline constexpr std::array<vfmgr::EnumName<vfmgr::stream::Memory>, 2>
    vfmgr::enum_names<vfmgr::stream::Memory> = {
        {{vfmgr::stream::Memory::host, "host"}, {vfmgr::stream::Memory::gpu, "gpu"}}};
template <>
inline constexpr std::array<vfmgr::EnumName<vfmgr::stream::End>, 4>
    vfmgr::enum_names<vfmgr::stream::End> = {{{vfmgr::stream::End::sent, "sent"},
                                              {vfmgr::stream::End::sender_gone, "sender_gone"},
                                              {vfmgr::stream::End::time_over, "time_over"},
                                              {vfmgr::stream::End::stopped, "stopped"}}};
