// SPDX-License-Identifier: Apache-2.0
// What a PF is, wherever it stands: its slot may change, and with it its address; udev and people
// rename its netdev. A value.
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

// Nothing of it could be read: no driver is bound, say.
[[nodiscard]] bool empty(PfIdentity const& identity);
// For people: "MAC 52:54:00:00:01:01, serial MT2108X00001"; "an unknown identity" where empty.
[[nodiscard]] std::string to_string(PfIdentity const& identity);

// unknown: there is nothing that both have and that tells PFs apart; a serial tells cards apart.
enum class SamePf { yes, no, unknown };
[[nodiscard]] SamePf same_pf(PfIdentity const& known, PfIdentity const& seen);
// `known` with what `seen` has besides, where both are of one device or at least of one card;
// otherwise `known`.
[[nodiscard]] PfIdentity completed(PfIdentity known, PfIdentity const& seen);

class JsonReader;
void to_json(nlohmann::json& out, PfIdentity const& identity);
void read(JsonReader& reader, PfIdentity& identity);

}  // namespace vfmgr
