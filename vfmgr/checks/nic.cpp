// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/nic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace vfmgr::checks {
namespace {

constexpr std::array<std::string_view, 2> firmware_tools{"mstconfig", "mlxconfig"};

CommandFact const* firmware_answer(Machine const& machine, PciAddress const& function) {
    for (auto const tool : firmware_tools)
        if (auto const answer = machine.facts.command(firmware_query(tool, function)))
            return *answer;
    return nullptr;
}

}  // namespace

bool is_connectx(PciDevice const& device) {
    return device.vendor == vendor_mellanox && is_network(device);
}

bool is_vf(PciDevice const& device) {
    if (device.pf) return true;
    // As mlx4_core and mlx5_core list them [src mlx4/main.c, mlx5/core/main.c].
    constexpr std::array<std::uint16_t, 10> vfs{0x1002, 0x1004, 0x1012, 0x1014, 0x1016,
                                                0x1018, 0x101a, 0x101c, 0x101e, 0xa2d3};
    return device.vendor == vendor_mellanox && std::ranges::find(vfs, device.device) != vfs.end();
}

bool on_vfio(PciDevice const& device) {
    return device.driver && device.driver->find("vfio") != std::string::npos;
}

std::vector<PciDevice const*> sriov_nics(Machine const& machine) {
    std::vector<PciDevice const*> nics;
    if (!machine.pci) return nics;
    for (auto const& device : *machine.pci)
        if (is_network(device) && !is_vf(device) && (device.total_vfs || is_connectx(device)))
            nics.push_back(&device);
    return nics;
}

std::vector<PciDevice const*> connectx_cards(Machine const& machine) {
    auto cards = sriov_nics(machine);
    std::erase_if(cards, [](PciDevice const* device) {
        return !is_connectx(*device) || device->address.function != 0;
    });
    return cards;
}

std::string name_of(Machine const& machine, PciDevice const& device) {
    for (auto const& name : device.netdevs) {
        // A PF in switchdev mode has its VFs' representors next to its own netdev.
        auto const port = machine.facts.text("/sys/class/net/" + name + "/phys_port_name");
        if (port.value_or("").find("vf") == std::string_view::npos)
            return fmt::format("{} ({})", name, to_string(device.address));
    }
    return to_string(device.address);
}

Known<FirmwareConfiguration> firmware_of(Machine const& machine, PciAddress const& function) {
    auto const* const answer = firmware_answer(machine, function);
    auto const query = firmware_query(firmware_tool(machine), function);
    if (!answer) return tl::unexpected(machine.facts.command(query).error());
    auto configuration = parse_firmware_configuration(answer->out);
    if (configuration.parameters.empty()) return tl::unexpected(Unknown{query, EIO});
    return configuration;
}

std::string firmware_complaint(Machine const& machine, PciAddress const& function) {
    auto const* const answer = firmware_answer(machine, function);
    if (!answer) return {};
    auto text = answer->err.empty() ? answer->out : answer->err;
    text.erase(text.find_last_not_of(" \n") + 1);
    std::ranges::replace(text, '\n', ' ');
    constexpr std::size_t text_bytes_max = 200;
    return text.empty() ? fmt::format("exit status {}", answer->exit_status)
                        : text.substr(0, text_bytes_max);
}

std::string firmware_tool(Machine const& machine) {
    for (auto const tool : firmware_tools)
        for (auto const& [line, fact] : machine.facts.commands)
            if (line.starts_with(tool)) return std::string(tool);
    return std::string(firmware_tools[0]);
}

Known<PciConfiguration> configuration_of(Machine const& machine, PciAddress const& address) {
    auto const path = "/sys/bus/pci/devices/" + to_string(address) + "/config";
    // text() won't do: a last byte of 0x0a is no newline here.
    if (auto const known = machine.facts.text(path); !known) return tl::unexpected(known.error());
    auto const found = machine.facts.files.find(path);
    auto configuration = parse_pci_configuration(found->second.bytes);
    if (!configuration) return tl::unexpected(Unknown{path, EIO});
    return *configuration;
}

}  // namespace vfmgr::checks
