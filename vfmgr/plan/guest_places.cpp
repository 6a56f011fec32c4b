// SPDX-License-Identifier: Apache-2.0
// Ports and switches for a VM's host devices: addresses that libvirt takes
// (vfmgr/hypervisor/LIBVIRT.md#placing).
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "vfmgr/plan/guest_topology.hpp"

namespace vfmgr {
namespace {

constexpr std::uint32_t buses_max = 255;
constexpr std::uint32_t slots_of_a_bus = 32;

constexpr std::string_view expander_bus = "pcie-expander-bus";

Error no_room(std::string const& vm, std::string_view what) {
    return {Problem::conflict, fmt::format("the PCI tree of VM {} has no {} left", vm, what),
            fmt::format("take devices or controllers that it does not need out of its XML: virsh "
                        "edit {}",
                        vm)};
}

PciAddress on_bus(std::uint32_t bus, std::uint32_t slot) {
    return {0, static_cast<std::uint8_t>(bus), static_cast<std::uint8_t>(slot), 0};
}

using Cell = std::optional<std::uint32_t>;
// A switch by its cell and its numbers from the root down.
using SwitchKey = std::pair<Cell, std::vector<std::uint32_t>>;

// Adds controllers as they are needed.
class Ports {
  public:
    Ports(GuestPcie const& pcie, std::string const& vm)
        : pcie_(pcie), vm_(vm), next_bus_(pcie.next_bus) {}

    Result<PciAddress> place(PlacedHostdev const& hostdev) {
        VFMGR_TRY(auto const bus, port_of({hostdev.cell, hostdev.switches}));
        return on_bus(bus, 0);
    }

    // Numbers the expander buses from the highest down, each with room for the buses below it: the
    // VM's firmware may leave one free behind each port.
    Result<std::vector<GuestController>> numbered() {
        auto number = buses_max + 1;
        for (auto& each : controllers_) {
            if (each.model != expander_bus) continue;
            auto const room = 1 + 2 * ports_below_[each.cell];
            if (number < room + next_bus_) return fail(no_room(vm_, "bus numbers"));
            each.number = number -= room;
        }
        return controllers_;
    }

  private:
    // A bus on which one device can be.
    Result<std::uint32_t> port_of(SwitchKey const& key) {
        if (key.second.empty()) return root_port(key.first);
        VFMGR_TRY(auto const above, switch_of(key));
        auto& slot = slots_[above];
        if (slot == slots_of_a_bus) return fail(no_room(vm_, "port of a switch"));
        return add("pcie-switch-downstream-port", on_bus(above, slot++), key.first);
    }
    Result<std::uint32_t> switch_of(SwitchKey const& key) {
        if (auto const known = switches_.find(key); known != switches_.end()) return known->second;
        auto above = key;
        above.second.pop_back();
        VFMGR_TRY(auto const port, port_of(above));
        VFMGR_TRY(auto const bus, add("pcie-switch-upstream-port", on_bus(port, 0), key.first));
        return switches_[key] = bus;
    }
    Result<std::uint32_t> root_port(Cell const& cell) {
        constexpr std::string_view model = "pcie-root-port";
        if (!cell) {
            VFMGR_TRY(auto const slot, root_slot());
            return add(model, on_bus(0, slot), cell);
        }
        if (!roots_.contains(cell)) {
            VFMGR_TRY(auto const slot, root_slot());
            VFMGR_TRY(roots_[cell], add(expander_bus, on_bus(0, slot), cell));
        }
        auto const root = roots_[cell];
        auto& slot = slots_[root];
        if (slot == slots_of_a_bus) return fail(no_room(vm_, "slot of an expander bus"));
        return add(model, on_bus(root, slot++), cell);
    }
    Result<std::uint32_t> root_slot() {
        if (slots_used_ == pcie_.free_slots.size()) return fail(no_room(vm_, "slot of its root"));
        return pcie_.free_slots[slots_used_++];
    }
    Result<std::uint32_t> add(std::string_view model, PciAddress const& at, Cell const& cell) {
        if (next_bus_ > buses_max) return fail(no_room(vm_, "buses"));
        controllers_.push_back({static_cast<std::uint8_t>(next_bus_), model, at, {}, {}});
        if (model == expander_bus)
            controllers_.back().cell = cell;
        else if (cell)
            ++ports_below_[cell];
        return next_bus_++;
    }

    GuestPcie const& pcie_;
    std::string const& vm_;
    std::uint32_t next_bus_;
    std::size_t slots_used_ = 0;
    std::vector<GuestController> controllers_;
    std::map<SwitchKey, std::uint32_t> switches_;   // their buses
    std::map<Cell, std::uint32_t> roots_;           // expander buses
    std::map<std::uint32_t, std::uint32_t> slots_;  // that are taken, by bus
    std::map<Cell, std::uint32_t> ports_below_;
};

// As VmHostdev.in_guest.
std::string path_to(std::vector<GuestController> const& controllers, PciAddress const& guest) {
    auto const text = fmt::format("{:02x}.{}", guest.device, guest.function);
    auto const above =
        std::ranges::find(controllers, guest.bus, [](auto const& one) { return one.index; });
    if (above == controllers.end()) return "00/" + text;
    if (above->number) return fmt::format("{:02x}/{}", *above->number, text);
    return fmt::format("{}/{}", path_to(controllers, above->at), text);
}

}  // namespace

Result<GuestPlaces> guest_places(GuestPcie const& pcie, std::string const& vm,
                                 std::vector<PlacedHostdev> const& hostdevs) {
    GuestPlaces places;
    Ports ports(pcie, vm);
    for (auto const& each : hostdevs) {
        VFMGR_TRY(auto const guest, ports.place(each));
        places.hostdevs.push_back({each.pci, guest, {}});
    }
    VFMGR_TRY(places.controllers, ports.numbered());
    for (auto& each : places.hostdevs) each.in_guest = path_to(places.controllers, each.guest);
    return places;
}

}  // namespace vfmgr
