// SPDX-License-Identifier: Apache-2.0
// Maps the names that users type to the API's ids. One thread.
#pragma once

#include <string>
#include <vector>

#include "api/types/attachment.hpp"
#include "api/types/pf_state.hpp"
#include "service/cli/connection.hpp"

namespace vfmgr {

// Accepts a PCI address or the name of the PF's netdev.
[[nodiscard]] Result<PciAddress> resolve_pf(Connection const& connection, std::string const& text);

// Accepts an attachment's id, or a VM (name or UUID) that has exactly one.
[[nodiscard]] Result<std::string> resolve_attachment(Connection const& connection,
                                                     std::string const& text);

// The pure parts.
[[nodiscard]] Result<PciAddress> pf_among(std::vector<PfView> const& pfs, std::string const& text);
[[nodiscard]] Result<std::string> attachment_among(std::vector<Attachment> const& attachments,
                                                   std::string const& text);

}  // namespace vfmgr
