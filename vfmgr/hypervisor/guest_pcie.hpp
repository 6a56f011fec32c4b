// SPDX-License-Identifier: Apache-2.0
// Reads and changes where a domain's XML has its host devices (LIBVIRT.md#placing). Pure; any
// thread.
#pragma once

#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "api/types/problem.hpp"
#include "api/types/vm_info.hpp"
#include "vfmgr/plan/step.hpp"

namespace vfmgr {

// nullopt: the machine has no PCIe root.
[[nodiscard]] std::optional<GuestPcie> guest_pcie_in(pugi::xml_node const& domain);

// Returns the domain's XML as the step leaves it. Refuses a device that the domain lacks.
[[nodiscard]] Result<std::string> placed_xml(std::string_view xml, PlaceHostdevs const& step);

}  // namespace vfmgr
