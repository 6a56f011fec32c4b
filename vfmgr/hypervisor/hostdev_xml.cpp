// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/hostdev_xml.hpp"

#include <fmt/format.h>

#include <pugixml.hpp>
#include <sstream>

namespace vfmgr {
namespace {

void write_address(pugi::xml_node parent, PciAddress const& pci, char const* type) {
    auto address = parent.append_child("address");
    if (type) address.append_attribute("type") = type;
    address.append_attribute("domain") = fmt::format("0x{:04x}", pci.domain).c_str();
    address.append_attribute("bus") = fmt::format("0x{:02x}", pci.bus).c_str();
    address.append_attribute("slot") = fmt::format("0x{:02x}", pci.device).c_str();
    address.append_attribute("function") = fmt::format("0x{:x}", pci.function).c_str();
}

}  // namespace

std::string to_xml(HostdevXml const& hostdev) {
    pugi::xml_document document;
    auto root = document.append_child("hostdev");
    root.append_attribute("mode") = "subsystem";
    root.append_attribute("type") = "pci";
    root.append_attribute("managed") = "no";
    root.append_child("driver").append_attribute("name") = "vfio";
    write_address(root.append_child("source"), hostdev.pci, nullptr);
    root.append_child("alias").append_attribute("name") = hostdev.alias.c_str();
    if (hostdev.guest) write_address(root, *hostdev.guest, "pci");
    std::ostringstream text;
    document.save(text, "  ", pugi::format_indent | pugi::format_no_declaration);
    return text.str();
}

}  // namespace vfmgr
