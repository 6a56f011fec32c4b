// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/xml_values.hpp"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

namespace vfmgr {

// libvirt writes 0x0000 and accepts decimal as well. nullopt: absent, or not a number up to `max`.
std::optional<std::uint32_t> number(pugi::xml_attribute const& attribute, std::uint32_t max) {
    std::string_view text = attribute.value();
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) {
        base = 16;
        text.remove_prefix(2);
    }
    std::uint32_t value = 0;
    auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value > max)
        return std::nullopt;
    return value;
}

// Parses <address domain= bus= slot= function=>; libvirt leaves out a domain or function of 0.
std::optional<PciAddress> pci_address(pugi::xml_node const& address) {
    auto const part = [&](char const* name, std::uint32_t max) {
        auto const attribute = address.attribute(name);
        return attribute ? number(attribute, max) : std::optional<std::uint32_t>(0);
    };
    auto const domain = part("domain", 0xffffffff);
    auto const bus = part("bus", 0xff);
    auto const slot = part("slot", 0x1f);
    auto const function = part("function", 7);
    if (!address.attribute("bus") || !address.attribute("slot")) return std::nullopt;
    if (!domain || !bus || !slot || !function) return std::nullopt;
    return PciAddress{*domain, static_cast<std::uint8_t>(*bus), static_cast<std::uint8_t>(*slot),
                      static_cast<std::uint8_t>(*function)};
}

// The device's place in the guest: its own <address>, not the one inside <source>.
std::optional<PciAddress> guest_address(pugi::xml_node const& device) {
    auto const address = device.child("address");
    if (std::string_view(address.attribute("type").value()) != "pci") return std::nullopt;
    return pci_address(address);
}

bool is(pugi::xml_attribute const& attribute, std::string_view value) {
    return std::string_view(attribute.value()) == value;
}

// Three ways to give a domain a host PCI device. libvirt prints a live <interface type='network'>
// of a hostdev network as type='hostdev' with the VF it chose.
bool takes_host_pci(pugi::xml_node const& device) {
    std::string_view const kind = device.name();
    if (kind == "hostdev") return is(device.attribute("type"), "pci");
    if (kind == "interface") return is(device.attribute("type"), "hostdev");
    if (kind == "disk") return is(device.attribute("type"), "nvme");
    return false;
}

void write_address(pugi::xml_node parent, PciAddress const& pci, char const* type) {
    auto address = parent.append_child("address");
    if (type) address.append_attribute("type") = type;
    address.append_attribute("domain") = fmt::format("0x{:04x}", pci.domain).c_str();
    address.append_attribute("bus") = fmt::format("0x{:02x}", pci.bus).c_str();
    address.append_attribute("slot") = fmt::format("0x{:02x}", pci.device).c_str();
    address.append_attribute("function") = fmt::format("0x{:x}", pci.function).c_str();
}

Result<std::string> changed_xml(std::string_view xml, std::string_view vm,
                                std::function<Result<void>(pugi::xml_node domain)> const& change) {
    pugi::xml_document document;
    auto const parsed = document.load_buffer(xml.data(), xml.size(), pugi::parse_full);
    auto const domain = document.child("domain");
    if (!parsed || !domain)
        return fail(Problem::hypervisor_refused,
                    fmt::format("libvirt's XML of VM {} can't be parsed: {}", vm,
                                parsed ? "it is no domain" : parsed.description()),
                    "report this with the output of: virsh version");
    VFMGR_CHECK(change(domain));
    std::ostringstream text;
    document.save(text, "", pugi::format_raw | pugi::format_no_declaration);
    return text.str();
}

}  // namespace vfmgr
