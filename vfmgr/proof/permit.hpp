// SPDX-License-Identifier: Apache-2.0
// What the host allows one guest in one run, and how much of it. Made by the host from its own
// state, never from a guest's data. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/types/guest.hpp"

namespace vfmgr::verify {

struct SessionPermit : RunTerms {
    MacAddress vf_mac;                // zeros on InfiniBand, where `vf_guid` identifies the VF
    IpAddress host_address;           // the responder's, on `host_netdev`
    std::string host_netdev;          // the interface: the PF's netdev or a VLAN device on it
    std::optional<Guid> host_guid{};  // the port of `host_netdev`, on InfiniBand
    std::string vm;                   // whose share it uses; empty: the attachment's own
    bool operator==(SessionPermit const&) const = default;
};

// The VM, or else the attachment, whose share of the responder the permit uses.
[[nodiscard]] inline std::string const& sharer(SessionPermit const& permit) {
    return permit.vm.empty() ? permit.attachment : permit.vm;
}

// "MAC 52:54:00:11:22:33", on InfiniBand "port GUID 02:02:c9:ff:fe:11:22:33".
[[nodiscard]] inline std::string identity_of(SessionPermit const& permit) {
    return permit.vf_guid ? "port GUID " + to_string(*permit.vf_guid)
                          : "MAC " + to_string(permit.vf_mac);
}

struct ResponderLimits {
    std::size_t sessions_max = 16;
    std::size_t sessions_each_max = 4;  // per VM, which always leaves places for others
    std::uint32_t session_seconds_max = 90;
    std::uint64_t write_bytes = 4 << 20;
    std::uint64_t read_bytes = 4 << 20;
    std::uint32_t ping_count = 16;
    std::uint32_t ping_bytes = 4096;
    std::uint32_t echo_datagrams_max = 256;  // answered, for each session
    std::uint16_t echo_port = responder_echo_port;
    std::size_t streams_max = 4;       // that wait for events, of all sessions
    std::size_t streams_each_max = 2;  // per VM
    std::size_t echoes_max = 1;        // streams that spin, in addition to those
    std::uint64_t stream_bytes_max = 16 << 20;
    std::uint32_t stream_seconds_max = 60;
    std::uint32_t echo_seconds_max = 20;
    // The CPU time that one VM's echoes may take: this many seconds at once, then this share of
    // time.
    std::uint32_t echo_saved_seconds_max = 60;
    double echo_share = 0.25;
};

struct ResponderLoad {
    std::size_t sessions = 0;
    std::size_t sessions_max = 0;
    std::size_t streams = 0;
    std::size_t waiting = 0;  // sessions and streams that wait for their turn
    bool operator==(ResponderLoad const&) const = default;
};

// The immediate data of RDMA_WRITE_WITH_IMM.
inline constexpr std::uint32_t notify_write_mr = 1;
// Epochs keep the streams of one key apart.
inline constexpr std::uint64_t epoch_write = 1;
inline constexpr std::uint64_t epoch_read = 2;
inline constexpr std::uint64_t epoch_ping = 3;
inline constexpr std::uint64_t epoch_answer = 4;

}  // namespace vfmgr::verify
