// SPDX-License-Identifier: Apache-2.0
// Identifies a PF independently of its address, which changes with its slot, and of its netdev's
// name, which udev and admins change. A value.
#pragma once

#include <optional>
#include <string>

#include "api/types/guid.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/mac_address.hpp"

namespace vfmgr {

struct PfIdentity {
    std::optional<MacAddress> mac;      // the permanent one, whatever a bond or an admin set
    std::optional<Guid> guid;           // the node GUID of an InfiniBand PF
    std::optional<std::string> serial;  // the card's, from its VPD; all PFs of the card share it
    bool operator==(PfIdentity const&) const = default;
};

// True if no part of it could be read, for example because no driver is bound.
[[nodiscard]] bool empty(PfIdentity const& identity);
// For display: "MAC 52:54:00:00:01:01, serial MT2108X00001"; "an unknown identity" if empty.
[[nodiscard]] std::string to_string(PfIdentity const& identity);

// unknown: the two have no MAC or GUID to compare. A serial distinguishes cards, but not the PFs of
// one card.
enum class SamePf { yes, no, unknown };
[[nodiscard]] SamePf same_pf(PfIdentity const& known, PfIdentity const& observed);
// Adds to `known` what only `observed` has, if both are of one device or at least of one card.
[[nodiscard]] PfIdentity completed(PfIdentity known, PfIdentity const& observed);

extern template struct Json<PfIdentity>;

}  // namespace vfmgr
