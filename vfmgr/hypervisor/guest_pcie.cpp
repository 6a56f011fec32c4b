// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/guest_pcie.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "api/types/text.hpp"
#include "vfmgr/hypervisor/xml_values.hpp"
#include "vfmgr/plan/guest_topology.hpp"

namespace vfmgr {
namespace {

constexpr char const* placing_name = "vfmgr:placing";
constexpr char const* placed_name = "vfmgr:hostdev";
constexpr char const* prefix_name = "xmlns:vfmgr";
constexpr char const* placing_uri = "urn:vfmgr:placing";
// Lower slots are those that libvirt gives to its own ports first; on the highest are the chipset's
// devices, which no XML shows.
constexpr std::uint32_t first_slot = 3, last_slot = 0x1a;

bool is_pci_controller(pugi::xml_node const& device) {
    return std::string_view(device.name()) == "controller" && is(device.attribute("type"), "pci");
}

bool is_placed(pugi::xml_node const& device) {
    return is_pci_controller(device) &&
           std::string_view(device.child("alias").attribute("name").value())
               .starts_with(placed_alias);
}

pugi::xml_node placing_in(pugi::xml_node const& domain) {
    for (auto const& one : domain.child("metadata").children(placing_name))
        if (is(one.attribute(prefix_name), placing_uri)) return one;
    return {};
}

// The buses that placing added.
std::set<std::uint32_t> placed_buses(pugi::xml_node const& domain) {
    std::set<std::uint32_t> buses;
    for (auto const& device : domain.child("devices").children())
        if (auto const index = number(device.attribute("index"), 0xff); is_placed(device) && index)
            buses.insert(*index);
    return buses;
}

pugi::xml_node find_device(pugi::xml_node const& domain, PciAddress const& pci) {
    for (auto const& device : domain.child("devices").children())
        if (takes_host_pci(device) && pci_address(device.child("source").child("address")) == pci)
            return device;
    return {};
}

bool same_slot(PciAddress const& one, PciAddress const& other) {
    return one.domain == other.domain && one.bus == other.bus && one.device == other.device;
}

// The node of the host that has the memory of each cell.
std::vector<std::int32_t> cell_nodes_of(pugi::xml_node const& domain) {
    constexpr std::uint32_t most = 0xffff;
    auto const tune = domain.child("numatune");
    auto const bound = [](pugi::xml_node const& memory) {
        auto const node = is(memory.attribute("mode"), "preferred")
                              ? std::nullopt
                              : number(memory.attribute("nodeset"), most);
        return node ? static_cast<std::int32_t>(*node) : -1;
    };
    std::vector<std::int32_t> nodes;
    for (auto const& cell : domain.child("cpu").child("numa").children("cell")) {
        // libvirt writes them in order, each with its id.
        if (cell.attribute("id") && number(cell.attribute("id"), most) != nodes.size()) return {};
        nodes.push_back(bound(tune.child("memory")));
        for (auto const& memory : tune.children("memnode"))
            if (number(memory.attribute("cellid"), most) == nodes.size() - 1)
                nodes.back() = bound(memory);
    }
    return nodes;
}

std::optional<PlacedHostdev> read_placed(pugi::xml_node const& element) {
    auto const pci = PciAddress::parse(element.attribute("pci").value());
    if (!pci) return std::nullopt;
    PlacedHostdev placed{*pci, number(element.attribute("cell"), 0xffff), {}};
    std::istringstream numbers(element.attribute("switches").value());
    for (std::uint32_t one = 0; numbers >> one;) placed.switches.push_back(one);
    return placed;
}

void write_placed(pugi::xml_node placing, PlacedHostdev const& placed,
                  pugi::xml_node const& device) {
    auto element = placing.append_child(placed_name);
    element.append_attribute("pci") = to_string(placed.pci).c_str();
    if (placed.cell) element.append_attribute("cell") = *placed.cell;
    element.append_attribute("switches") =
        fmt::format("{}", fmt::join(placed.switches, " ")).c_str();
    if (auto const former = guest_address(device))
        element.append_attribute("former") = to_string(*former).c_str();
}

bool can_be_at(pugi::xml_node const& domain, PciAddress const& guest) {
    bool bus = false;
    for (auto const& device : domain.child("devices").children()) {
        auto const taken = guest_address(device);
        if (taken && same_slot(*taken, guest)) return false;
        bus = bus || (is_pci_controller(device) &&
                      number(device.attribute("index"), 0xff) == std::uint32_t{guest.bus});
    }
    return bus;
}

// A device whose former place is taken gets one from libvirt, and so does one that somebody else
// put below a port of ours.
void undo_placing(pugi::xml_node domain) {
    auto devices = domain.child("devices");
    auto const buses = placed_buses(domain);
    for (auto device = devices.first_child(); device;) {
        auto const next = device.next_sibling();
        if (is_placed(device)) devices.remove_child(device);
        device = next;
    }
    for (auto const& device : devices.children())
        if (auto const guest = guest_address(device); guest && buses.contains(guest->bus))
            pugi::xml_node(device).remove_child("address");
    auto const placing = placing_in(domain);
    for (auto const& element : placing.children(placed_name)) {
        auto const pci = PciAddress::parse(element.attribute("pci").value());
        auto const former = PciAddress::parse(element.attribute("former").value());
        auto const device = pci ? find_device(domain, *pci) : pugi::xml_node();
        if (former && device && !guest_address(device) && can_be_at(domain, *former))
            write_address(device, *former, "pci");
    }
    auto metadata = domain.child("metadata");
    metadata.remove_child(placing);
    if (!metadata.first_child()) domain.remove_child(metadata);
}

Result<void> place(pugi::xml_node domain, PlaceHostdevs const& step) {
    auto const pcie = guest_pcie_in(domain);
    if (!pcie)
        return fail(Problem::conflict,
                    fmt::format("the machine of VM {} has no PCI Express root", step.vm),
                    "change it to machine='q35': virsh edit");
    VFMGR_TRY(auto const places, guest_places(*pcie, step.vm, step.hostdevs));
    auto metadata = domain.child("metadata");
    if (!metadata) metadata = domain.append_child("metadata");
    auto placing = metadata.append_child(placing_name);
    placing.append_attribute(prefix_name) = placing_uri;
    for (std::size_t i = 0; i < step.hostdevs.size(); ++i) {
        auto const& placed = step.hostdevs[i];
        auto device = find_device(domain, placed.pci);
        if (!device)
            return fail(Problem::conflict,
                        fmt::format("{} is not in the persistent XML of VM {}",
                                    to_string(placed.pci), step.vm),
                        "it was taken out meanwhile: try again");
        write_placed(placing, placed, device);
        device.remove_child("address");
        write_address(device, places.hostdevs[i].guest, "pci");
    }
    pugi::xml_document added;
    static_cast<void>(added.load_string(to_xml(places).c_str()));
    for (auto const& controller : added.child("devices").children("controller"))
        domain.child("devices").append_copy(controller);
    return {};
}

}  // namespace

std::optional<GuestPcie> guest_pcie_in(pugi::xml_node const& domain) {
    GuestPcie pcie;
    bool has_root = false, has_expanders = false;
    std::set<std::uint32_t> used;
    for (auto const& device : domain.child("devices").children()) {
        if (is_placed(device)) continue;
        if (auto const guest = guest_address(device); guest && guest->bus == 0)
            used.insert(guest->device);
        if (!is_pci_controller(device)) continue;
        has_root = has_root || is(device.attribute("model"), "pcie-root");
        has_expanders = has_expanders || is(device.attribute("model"), "pcie-expander-bus");
        if (auto const index = number(device.attribute("index"), 0xff))
            pcie.next_bus = std::max(pcie.next_bus, *index + 1);
    }
    if (!has_root) return std::nullopt;
    for (auto slot = first_slot; slot <= last_slot; ++slot)
        if (!used.contains(slot)) pcie.free_slots.push_back(slot);
    if (!has_expanders) pcie.cell_nodes = cell_nodes_of(domain);
    for (auto const& element : placing_in(domain).children(placed_name))
        if (auto const one = read_placed(element); one && find_device(domain, one->pci))
            pcie.placed.push_back(*one);
    return pcie;
}

Result<std::string> placed_xml(std::string_view xml, PlaceHostdevs const& step) {
    return changed_xml(xml, step.vm, [&step](pugi::xml_node domain) -> Result<void> {
        undo_placing(domain);
        return step.hostdevs.empty() ? Result<void>() : place(domain, step);
    });
}

}  // namespace vfmgr
