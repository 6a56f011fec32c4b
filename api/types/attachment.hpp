// SPDX-License-Identifier: Apache-2.0
// AttachmentSpec: a request to attach a VF to a VM. Attachment: the resulting attachment. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/ip_address.hpp"
#include "api/types/json_fwd.hpp"
#include "api/types/pci_address.hpp"
#include "api/types/time.hpp"
#include "api/types/verification.hpp"
#include "api/types/vf_spec.hpp"

namespace vfmgr {

// Where the device is attached. `auto`: the running VM and its persistent XML, whichever exist.
enum class Persistence { auto_, live, config };
template <>
inline constexpr std::array<EnumName<Persistence>, 3> enum_names<Persistence> = {
    {{Persistence::auto_, "auto"}, {Persistence::live, "live"}, {Persistence::config, "config"}}};

// required: the attachment stands only after RDMA over it is proved; otherwise it is undone.
// background: verified when the guest reports; the attachment stands meanwhile.
enum class VerifyMode { none, background, required };
template <>
inline constexpr std::array<EnumName<VerifyMode>, 3> enum_names<VerifyMode> = {
    {{VerifyMode::none, "none"},
     {VerifyMode::background, "background"},
     {VerifyMode::required, "required"}}};

struct AttachmentSpec {
    std::string vm;  // name or UUID
    PciAddress pf;
    std::optional<std::uint16_t> vf;  // absent: any free VF
    std::optional<std::string> network;
    std::optional<IpAddress> address;  // absent with a network: its first free address
    VfSpec settings;
    std::vector<std::string> best_effort;  // members of settings that the driver may refuse
    Persistence persistence = Persistence::auto_;
    VerifyMode verify = VerifyMode::none;
    std::uint32_t verify_timeout_seconds = 120;
    Profile verify_profile = Profile::default_;
    std::uint32_t verify_every_seconds = 0;  // from the start of the last run; 0: never
    bool operator==(AttachmentSpec const&) const = default;
};

enum class AttachmentState { attaching, attached, detaching };
template <>
inline constexpr std::array<EnumName<AttachmentState>, 3> enum_names<AttachmentState> = {
    {{AttachmentState::attaching, "attaching"},
     {AttachmentState::attached, "attached"},
     {AttachmentState::detaching, "detaching"}}};

struct Attachment {
    std::string id;       // 8 hex digits; the libvirt alias is ua-vfmgr-<id>
    AttachmentSpec spec;  // as requested
    VfId vf;
    PciAddress vf_pci;                // the VF's address at attach time; the VM's XML names it
    std::string driver = "vfio-pci";  // the VF's driver for the VM: vfio-pci or a variant
    std::string vm_uuid;
    std::string vm;
    VfSpec settings;  // as resolved: with the chosen MAC and the network's VLAN
    VfSpec baseline;  // the VF's values of the same members before; restored at detach
    std::optional<IpAddress> address;
    bool live = false;    // in the running VM
    bool config = false;  // in the persistent XML
    AttachmentState state = AttachmentState::attaching;
    std::optional<Verification> verification;  // the latest run
    Time created_at{};
    // Absent: from an older vfmgrd that did not record it, or from a dry run.
    std::optional<std::string> operation{};     // that attached it; leaves the store after 30 days
    std::optional<std::string> requested_by{};  // uid:0, token:<id>
    bool operator==(Attachment const&) const = default;
};

[[nodiscard]] std::string hostdev_alias(std::string_view attachment_id);
[[nodiscard]] bool is_attachment_id(std::string_view text);

extern template struct Json<AttachmentSpec>;
extern template struct Json<Attachment>;

}  // namespace vfmgr
