// SPDX-License-Identifier: Apache-2.0
// Identifies a PF independently of its address, which changes with its slot, and of its netdev's
// name, which udev and people change. A value.
#pragma once

#include <optional>
#include <string>

#include "api/types/guid.hpp"
#include "api/types/mac_address.hpp"

namespace vfmgr {

struct PfIdentity {
    std::optional<MacAddress> mac;      // the permanent one, whatever a bond or a person set
    std::optional<Guid> guid;           // the node's, of an InfiniBand PF
    std::optional<std::string> serial;  // the card's, from its VPD: all of its PFs have it
    bool operator==(PfIdentity const&) const = default;
};

// True when nothing of it could be read, for example because no driver is bound.
[[nodiscard]] bool empty(PfIdentity const& identity);
// For people: "MAC 52:54:00:00:01:01, serial MT2108X00001"; "an unknown identity" where empty.
[[nodiscard]] std::string to_string(PfIdentity const& identity);

// unknown: the two have no MAC or GUID to compare. A serial tells cards apart, but not the PFs of
// one card.
enum class SamePf { yes, no, unknown };
[[nodiscard]] SamePf same_pf(PfIdentity const& known, PfIdentity const& seen);
// Adds to `known` what `seen` has besides, if both are of one device or at least of one card.
[[nodiscard]] PfIdentity completed(PfIdentity known, PfIdentity const& seen);

class JsonReader;
void to_json(nlohmann::json& out, PfIdentity const& identity);
void read(JsonReader& reader, PfIdentity& identity);

}  // namespace vfmgr
