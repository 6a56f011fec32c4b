// SPDX-License-Identifier: Apache-2.0
// Reads and writes the values of libvirt's XML. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>

#include "api/types/addresses.hpp"
#include "api/types/problem.hpp"

namespace vfmgr {

// nullopt: absent, or not a number up to `max`.
[[nodiscard]] std::optional<std::uint32_t> number(pugi::xml_attribute const& attribute,
                                                  std::uint32_t max);
[[nodiscard]] std::optional<PciAddress> pci_address(pugi::xml_node const& address);
// The device's place in the guest: its own <address>, not the one inside <source>.
[[nodiscard]] std::optional<PciAddress> guest_address(pugi::xml_node const& device);
[[nodiscard]] bool is(pugi::xml_attribute const& attribute, std::string_view value);

// Whether the element gives the domain a host PCI device, as <source> names it.
[[nodiscard]] bool takes_host_pci(pugi::xml_node const& device);

// Appends <address domain= bus= slot= function=>, of that type unless `type` is null.
void write_address(pugi::xml_node parent, PciAddress const& pci, char const* type);

// Returns a domain's XML as `change` leaves it, comments and all. Fails with hypervisor_refused if
// it can't be parsed.
[[nodiscard]] Result<std::string> changed_xml(
    std::string_view xml, std::string_view vm,
    std::function<Result<void>(pugi::xml_node domain)> const& change);

}  // namespace vfmgr
