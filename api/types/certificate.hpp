// SPDX-License-Identifier: Apache-2.0
// What the host saw of a VF after its last lease ended: function level reset done, every setting
// that was lent at its baseline again, held open by nobody. Kept with the operation that took the
// VF back; a VF without one is in quarantine. A value.
#pragma once

#include <optional>
#include <string>

#include "api/types/time.hpp"
#include "api/types/vf_state.hpp"

namespace vfmgr {

struct Certificate {
    VfId vf;
    PciAddress vf_pci;
    std::string attachment;  // the lease that ended
    std::string vm_name;
    VfSpec settings;                    // as the driver reports them
    std::optional<std::string> driver;  // that the VF waits with
    Time seen_at{};
    bool operator==(Certificate const&) const = default;
};

void to_json(nlohmann::json& out, Certificate const& certificate);
void read(JsonReader& reader, Certificate& certificate);

}  // namespace vfmgr
