// SPDX-License-Identifier: Apache-2.0
// Maps the names that users type to the API's ids. One thread.
#pragma once

#include <string>

#include "api/types/addresses.hpp"
#include "service/cli/connection.hpp"

namespace vfmgr {

// Accepts a PCI address or the name of the PF's netdev.
[[nodiscard]] Result<PciAddress> resolve_pf(Connection const& connection, std::string const& text);

// Accepts an attachment's id, or a VM (name or UUID) that has exactly one.
[[nodiscard]] Result<std::string> resolve_attachment(Connection const& connection,
                                                     std::string const& text);

// The pure parts: `list` is the body of GET /v1/pfs or GET /v1/attachments.
[[nodiscard]] Result<PciAddress> pf_among(nlohmann::json const& list, std::string const& text);
[[nodiscard]] Result<std::string> attachment_among(nlohmann::json const& list,
                                                   std::string const& text);

}  // namespace vfmgr
