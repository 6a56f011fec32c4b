// SPDX-License-Identifier: Apache-2.0
// What the broker remembers of the VFs that it was asked to change: it trusts no front with that.
// Kept in a file that only root writes, so that it outlives the broker. Pure; any thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "vfmgr/plan/host_view.hpp"

namespace vfmgr::broker {

struct VfRecord {
    VfSpec baseline;  // its settings before the first change, and its driver
    std::optional<std::string> driver{};
    // The VM that has the VF, or had it last, or external_key(); absent: none since it was made.
    std::optional<std::string> vm_uuid{};
    bool clean = true;  // it was reset after that VM
    // Who had the VFIO nodes before an external holder got them; absent: root.
    std::optional<std::uint32_t> node_owner{};
    std::optional<PciAddress> pci{};  // where that VM's XML has it
    // Attachments so far: tells a reset that ends whether one has begun meanwhile. Not in the file.
    std::uint64_t attachments = 0;
    bool operator==(VfRecord const&) const = default;
};
using Records = std::map<VfId, VfRecord>;

[[nodiscard]] bool is_external(VfRecord const& record);
// Whether this holder has had the VF since its last reset.
[[nodiscard]] bool has_had(Records const& records, AttachExternal const& step);

// Whether the step touches a VF that has no record yet, so that its PF must be observed first.
[[nodiscard]] bool touches_unrecorded(Records const& records, Step const& step);

// What must be in the file before the step is performed: `host` has the PF of a VF without a
// record. And after it has been: `began` is what the first returned. Whether anything changed is
// for the caller to compare.
[[nodiscard]] Records recorded_before(Records records, HostView const& host, Step const& step);
[[nodiscard]] Records recorded_after(Records records, Records const& began, Step const& step);

// Adds that a VM has, or has had, each VF that its XML names as vfmgr's: a version without a broker
// attached it, or it was made anew since, at a boot. Such a VF is not clean; an unknown baseline is
// what a new VF is. `began`: the records from before `host` was observed.
// The second says whether there may be such a VF: then its PF must be observed.
[[nodiscard]] Records with_attached(Records records, Records const& began, HostView const& host);
[[nodiscard]] bool has_unrecorded(HypervisorView const& view, Records const& records);

// The file's text: JSON, indented. invalid_request for anything that to_text() does not make.
[[nodiscard]] std::string to_text(Records const& records);
[[nodiscard]] Result<Records> parse_records(std::string_view text);

}  // namespace vfmgr::broker
