// SPDX-License-Identifier: Apache-2.0
// What a request changes of an attachment while its VM has the VF: a JSON merge patch (RFC 7396) of
// its settings. An absent member stays as it is; null takes a value away. A value.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/attachment.hpp"

namespace vfmgr {

// Members that are absent keep the values of the VLAN that the VF has.
struct VlanPatch {
    std::optional<std::uint16_t> id;
    std::optional<std::uint8_t> qos;
    std::optional<VlanProtocol> proto;
    bool operator==(VlanPatch const&) const = default;
};

// A VF gets the value that it had before it was attached for one that is removed; a MAC is chosen
// then, and the VLAN is the network's.
struct VfPatch {
    VfSpec set;  // without its VLAN
    std::optional<VlanPatch> vlan;
    std::vector<VfAttribute> removed;
    bool operator==(VfPatch const&) const = default;
};
// True when a driver can change the attribute while a VM has the VF. GUIDs, RoCE and MSI-X vectors
// need the VF without a driver, or take effect when the VM's next driver probes it.
[[nodiscard]] bool can_change_attached(VfAttribute attribute);
// The members that the patch names, in the order of VfAttribute.
[[nodiscard]] std::vector<VfAttribute> named_by(VfPatch const& patch);

struct AttachmentPatch {
    VfPatch settings;
    std::optional<std::vector<std::string>> best_effort;  // replaces the list
    std::optional<VerifyMode> verify;                     // of the changed settings; absent: none
    // That run's limit and profile; absent: the attachment's.
    std::optional<std::uint32_t> verify_timeout_seconds;
    std::optional<Profile> verify_profile;
    bool allow_reset = false;  // the running VM may lose its link
    bool operator==(AttachmentPatch const&) const = default;
};

template <>
void Json<VfPatch>::write(nlohmann::json& out, VfPatch const& patch);
template <>
void Json<VfPatch>::read(JsonReader& reader, VfPatch& patch);
extern template struct Json<AttachmentPatch>;

}  // namespace vfmgr
