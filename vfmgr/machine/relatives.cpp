// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/relatives.hpp"

#include <algorithm>
#include <array>

#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

// A netdev has the functions of the netdevs that it is on; no chain of these has more layers.
constexpr int layers_max = 4;

bool overlap(std::set<PciAddress> const& one, std::set<PciAddress> const& other) {
    return std::ranges::any_of(one, [&](PciAddress const& pci) { return other.contains(pci); });
}

// A card has one firmware, which function 0 answers for.
bool is_of_card(std::string_view source) {
    return source.starts_with("mstconfig ") || source.starts_with("mlxconfig ");
}

}  // namespace

std::string device_in(std::string_view source) {
    constexpr std::array<std::string_view, 3> folders{"/sys/bus/pci/devices/", "/sys/class/net/",
                                                      "/sys/class/infiniband/"};
    for (auto const folder : folders)
        if (source.starts_with(folder)) {
            auto const name = source.substr(folder.size());
            auto const device = name.substr(0, name.find('/'));
            return contains(device, "*") ? std::string() : std::string(device);
        }
    if (is_of_card(source)) {
        constexpr std::string_view option = " -d ";
        auto const at = source.find(option);
        auto const rest =
            at == source.npos ? std::string_view() : source.substr(at + option.size());
        return std::string(rest.substr(0, rest.find(' ')));
    }
    constexpr std::array<std::string_view, 4> questions{
        "DCB_CMD_IEEE_GET ", "ETHTOOL_MSG_PAUSE_GET ", "RTM_GETLINK ", "RDMA_NLDEV_CMD_PORT_GET "};
    for (auto const question : questions)
        if (source.starts_with(question)) {
            auto const rest = source.substr(question.size());
            return std::string(rest.substr(0, rest.find(' ')));
        }
    return {};
}

Relatives::Relatives(Machine const& machine) {
    if (auto const& pci = machine.pci.peek()) add_functions(*pci);
    if (auto const& netdevs = machine.netdevs.peek()) add_netdevs(machine, *netdevs);
    if (auto const& devices = machine.rdma_devices.peek()) add_rdma_devices(*devices);
}

void Relatives::add_functions(std::vector<PciDevice> const& all) {
    for (auto const& function : all) {
        auto& device = devices_[to_string(function.address)];
        device.functions = {function.address};
        if (auto const& pf = function.pf.peek()) device.relatives.insert(*pf);
        for (auto const& [index, vf] : function.vfs.peek()) device.relatives.insert(vf);
        for (auto const& port : function.above.peek()) device.relatives.insert(port);
        device.placed = function.above.is_read();
    }
}

void Relatives::add_netdevs(Machine const& machine, std::vector<MachineNetdev> const& all) {
    for (auto const& netdev : all) {
        auto& device = devices_[netdev.name];
        device.placed = netdev.pci.is_read();
        if (auto const& pci = netdev.pci.peek()) device = devices_[to_string(*pci)];
        device.placed = device.placed && netdev.pci.is_read();
    }
    // Bonds, bridges and VLANs belong to the functions that they are on.
    auto const& links = machine.facts.unnoted().links;
    for (int layer = 0; layer < layers_max; ++layer)
        for (auto const& [path, link] : links) {
            if (!matches("/sys/class/net/*/lower_*", path)) continue;
            auto const upper = devices_.find(device_in(path));
            auto const lower = devices_.find(path.substr(path.rfind("/lower_") + 7));
            if (upper == devices_.end() || lower == devices_.end()) continue;
            upper->second.functions.insert(lower->second.functions.begin(),
                                           lower->second.functions.end());
            upper->second.placed = upper->second.placed && lower->second.placed;
        }
}

void Relatives::add_rdma_devices(std::vector<MachineRdmaDevice> const& all) {
    for (auto const& one : all) {
        auto& device = devices_[one.name];
        if (auto const& pci = one.pci.peek())
            device = devices_[to_string(*pci)];
        else if (auto const* const netdev = find(one.parent.peek()))
            device = *netdev;
        device.placed = device.placed && one.pci.is_read() && one.parent.is_read();
        // A port has GIDs of each VLAN and bond on its netdev.
        for (auto const& port : one.ports)
            for (auto const& gid : port.gids.peek())
                if (auto const upper = devices_.find(gid.netdev.peek()); upper != devices_.end())
                    upper->second.functions.insert(device.functions.begin(),
                                                   device.functions.end());
    }
}

Relatives::Device const* Relatives::find(std::string_view name) const {
    auto const found = devices_.find(name.substr(0, name.find('/')));  // without its port
    return found == devices_.end() ? nullptr : &found->second;
}

bool Relatives::concerns(std::string_view source, std::string_view subject) const {
    auto const name = device_in(source);
    if (name.empty()) return true;
    auto const* const of = find(name);
    auto const* const about = find(subject);
    if (is_of_card(source) && of && about)
        return std::ranges::any_of(about->functions, [&](PciAddress const& one) {
            return std::ranges::any_of(
                of->functions, [&](PciAddress const& other) { return share_slot(one, other); });
        });
    return related(name, subject);
}

bool Relatives::related(std::string_view one, std::string_view other) const {
    auto const* const of = find(one);
    auto const* const about = find(other);
    if (of == about || !of || !about || !of->placed || !about->placed) return true;
    return overlap(of->functions, about->functions) || overlap(of->relatives, about->functions) ||
           overlap(of->functions, about->relatives);
}

}  // namespace vfmgr::checks
