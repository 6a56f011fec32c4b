// SPDX-License-Identifier: Apache-2.0
// A stream of the guest plane (api/openapi-guest.yaml): queue pairs beside the session's own, on
// which one thing is measured. What comes from a guest is data with limits. Values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/types/guest.hpp"
#include "api/types/json_fwd.hpp"

namespace vfmgr {

// What the host does on the stream's queue pairs.
enum class StreamKind {
    one_sided,     // nothing: the guest writes to the host's memory, or reads it
    send,          // receives sends
    send_echo,     // answers each send with one of the same length
    write_echo,    // answers each write with one to the guest's memory, ended by the same byte
    ud_echo,       // echoes unreliable datagrams: answers each with one that begins with the same 8
                   // bytes and is as long
    cm_ping,       // no queue pairs of its own: accepts connections by RDMA CM, as rping's server
    transfer,      // executes orders (guest-tools/verify/transfer_order.hpp): writes to the guest's
                   // memory, or reads it, and answers with the outcome
    gpu_transfer,  // the same for memory of the guest's GPU; counted separately
};
template <>
inline constexpr std::array<EnumName<StreamKind>, 8> enum_names<StreamKind> = {
    {{StreamKind::one_sided, "one_sided"},
     {StreamKind::send, "send"},
     {StreamKind::send_echo, "send_echo"},
     {StreamKind::write_echo, "write_echo"},
     {StreamKind::ud_echo, "ud_echo"},
     {StreamKind::cm_ping, "cm_ping"},
     {StreamKind::transfer, "transfer"},
     {StreamKind::gpu_transfer, "gpu_transfer"}}};

// The host answers each message. Only for these kinds does it spin, or nearly so.
[[nodiscard]] constexpr bool is_echo(StreamKind kind) {
    return kind == StreamKind::send_echo || kind == StreamKind::write_echo ||
           kind == StreamKind::ud_echo;
}

// The host counts its answers, to compare them with what a guest reports.
[[nodiscard]] constexpr bool is_answered(StreamKind kind) {
    return is_echo(kind) || kind == StreamKind::cm_ping;
}

[[nodiscard]] constexpr bool is_transfer(StreamKind kind) {
    return kind == StreamKind::transfer || kind == StreamKind::gpu_transfer;
}

// The transport of the host's writes and reads: the stream's own RC queue pair, or mlx5's
// dynamically connected transport, from an initiator of the host to the guest's target.
enum class TransferTransport { rc, dc };
template <>
inline constexpr std::array<EnumName<TransferTransport>, 2> enum_names<TransferTransport> = {
    {{TransferTransport::rc, "rc"}, {TransferTransport::dc, "dc"}}};

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

extern template struct Json<DcTargetEnd>;
extern template struct Json<StreamRequest>;
extern template struct Json<StreamOffer>;

}  // namespace vfmgr
