// SPDX-License-Identifier: Apache-2.0
// VFs that are kept for somebody, for a time: nobody else gets them, and their PFs are not resized.
// Values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/addresses.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/time.hpp"

namespace vfmgr {

struct VfsOfPf {
    PciAddress pf;
    std::uint16_t count = 1;
    bool operator==(VfsOfPf const&) const = default;
};

// A request: names a pool, a network, or both.
struct ReservationSpec {
    std::optional<std::string> pool;
    std::optional<std::string> network;
    std::uint16_t count = 1;      // of VFs, 1..128
    bool distinct_pfs = false;    // each VF on a PF of its own: one for each rail
    std::uint32_t seconds = 600;  // from now, 10..604800
    // From which PFs they are to be, each once; `count` is the sum. Absent: from any.
    std::optional<std::vector<VfsOfPf>> pfs{};
    bool operator==(ReservationSpec const&) const = default;
};

struct Reservation {
    std::string name;  // unique on the host; [a-z0-9-], at most 32
    ReservationSpec spec;
    std::vector<VfId> vfs;  // those that no attachment has taken yet
    std::string requested_by;
    Time created_at{};
    Time expires_at{};
    std::optional<std::string> tenant{};  // whose it is
    bool operator==(Reservation const&) const = default;
};

extern template struct Json<VfsOfPf>;
extern template struct Json<ReservationSpec>;
extern template struct Json<Reservation>;

}  // namespace vfmgr
