// SPDX-License-Identifier: Apache-2.0
// An InfiniBand port in its subnet: its LID, its partitions, and how a packet gets from there to
// another port (RDMA.md#infiniband). Values and one read of the device; any thread.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "api/types/guest.hpp"
#include "api/types/problem.hpp"

namespace vfmgr::verify {

// Whether all packets of a port's queue pairs carry GIDs (a GRH).
enum class Grh {
    if_needed,  // where either port needs it, or the other end demands it
    always,     // the other end's LID is only a claim
};

struct SubnetPort {
    SubnetEnd end;  // for the peer
    std::uint16_t pkey_index = 0;
    std::vector<std::uint16_t> pkeys{};  // the port's table, without empty entries
};

// The P_Key of one member, as it is in a port's table.
[[nodiscard]] std::uint16_t table_entry(Pkey const& pkey);
[[nodiscard]] constexpr bool is_full(std::uint16_t pkey) {
    return (pkey & 0x8000U) != 0;
}
// Two limited members of a partition don't reach each other.
[[nodiscard]] constexpr bool reach_each_other(std::uint16_t one, std::uint16_t other) {
    return ((one ^ other) & 0x7fffU) == 0 && (is_full(one) || is_full(other));
}
// "0x8001 0xffff".
[[nodiscard]] std::string pkeys_text(std::span<std::uint16_t const> pkeys);

// Without the subnet's prefix.
[[nodiscard]] Guid guid_of(std::array<std::uint8_t, 16> const& gid);

// Queue pairs of the port get `pkey`, or else the same partition with another membership, or else
// the table's first P_Key: the verdict names the missing one.
[[nodiscard]] Result<SubnetPort> read_subnet_port(ibv_context* context, std::uint8_t number,
                                                  ibv_port_attr const& port,
                                                  std::optional<std::uint16_t> pkey, Grh grh);

// Fills in the LID of a packet to the peer. Returns whether it must name the GIDs, too. Fails if
// the peer is in another subnet, or on Ethernet.
[[nodiscard]] Result<bool> route_by_lid(SubnetPort const& own,
                                        std::array<std::uint8_t, 16> const& own_gid,
                                        QueuePairEnd const& peer, ibv_ah_attr& address);

}  // namespace vfmgr::verify
