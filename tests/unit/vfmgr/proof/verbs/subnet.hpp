// SPDX-License-Identifier: Apache-2.0
// An InfiniBand subnet of the in-process device: the host at port 1, the VF at port 2.
#pragma once

#include "api/types/addresses.hpp"
#include "tests/fakes/verbs/fabric.hpp"

namespace vfmgr::verify {

inline constexpr Guid host_guid{0x0002'c9ff'fe11'0001}, vf_guid{0x0202'c9ff'fe11'0002};
inline constexpr std::uint16_t host_lid = 5, vf_lid = 9;
inline constexpr std::uint64_t link_local_prefix = 0xfe80'0000'0000'0000;

inline std::array<std::uint8_t, 16> gid_at(Guid const& guid,
                                           std::uint64_t prefix = link_local_prefix) {
    std::array<std::uint8_t, 16> gid{};
    for (unsigned i = 0; i < 8; ++i) {
        gid[i] = static_cast<std::uint8_t>(prefix >> (56 - 8 * i));
        gid[8 + i] = static_cast<std::uint8_t>(guid.value >> (56 - 8 * i));
    }
    return gid;
}

inline void plug_in_host_and_vf() {
    fakes::plug_in_subnet(
        {{.gid = gid_at(host_guid), .lid = host_lid}, {.gid = gid_at(vf_guid), .lid = vf_lid}});
}

}  // namespace vfmgr::verify
