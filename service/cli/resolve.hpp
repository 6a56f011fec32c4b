// SPDX-License-Identifier: Apache-2.0
// Maps the names that users type to the API's ids: whatever vfctl prints for an object names it. A
// name that fits several objects is refused with a list of them. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "api/types/attachment.hpp"
#include "api/types/pf_state.hpp"
#include "api/types/vm_info.hpp"
#include "service/cli/connection.hpp"

namespace vfmgr {

// A VF as users name it: "0000:01:00.0/3", "enp1s0/3", the VF's own PCI address or netdev, or its
// PF with the number beside it.
struct VfName {
    std::string text;
    std::optional<std::uint16_t> index{};
};

// Accepts a PCI address or the name of the PF's netdev.
[[nodiscard]] Result<PciAddress> resolve_pf(Connection const& connection, std::string const& text);

// The VF need not exist any more if its PF's address and its number name it.
[[nodiscard]] Result<VfId> resolve_vf(Connection const& connection, VfName const& name);

// Accepts a VM's name or UUID.
[[nodiscard]] Result<VmInfo> resolve_vm(Connection const& connection, std::string const& text);

// Accepts an attachment's id, its VF, or a VM (name or UUID) that has exactly one.
[[nodiscard]] Result<std::string> resolve_attachment(Connection const& connection,
                                                     std::string const& text);

// Those of a VM, by name or UUID; none if it has none.
[[nodiscard]] Result<std::vector<Attachment>> attachments_of_vm(Connection const& connection,
                                                                std::string const& vm);
// Asks to detach all of these in one operation.
[[nodiscard]] ApiRequest detach_request(std::vector<Attachment> const& attachments);

// The pure parts.
[[nodiscard]] Result<PciAddress> pf_among(std::vector<PfView> const& pfs, std::string const& text);
[[nodiscard]] Result<VfId> vf_among(std::vector<PfView> const& pfs, VfName const& name);
[[nodiscard]] Result<VmInfo> vm_among(std::vector<VmInfo> const& vms, std::string const& text);
[[nodiscard]] Result<std::string> attachment_among(std::vector<Attachment> const& attachments,
                                                   std::string const& text);
[[nodiscard]] Result<std::string> attachment_of(std::vector<Attachment> const& attachments,
                                                VfId const& vf);

}  // namespace vfmgr
