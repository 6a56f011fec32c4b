// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/guest_topology.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

namespace vfmgr {
namespace {

// A GPU or NIC of the VM, and where it is on the host.
struct OnHost {
    HostDeviceKind kind;
    VmHostdev hostdev;
    PciPlace place;
};

std::vector<VmHostdev> const& lasting(VmInfo const& vm) {
    return vm.persistent ? vm.config : vm.live;
}

// A VF is where its PF is.
std::optional<PciPlace> place_of_nic(HostView const& host, PciAddress const& pci) {
    for (auto const& [address, pf] : host.kernel.pfs) {
        bool const is_vf =
            std::ranges::find(pf.vfs, pci, &VfState::pci) != pf.vfs.end() || address == pci;
        if (!is_vf) continue;
        PciPlace place{pci, {}, {}, {}, {}};
        if (!host.kernel.places) return place;
        auto const& pfs = host.kernel.places->pfs;
        if (auto const at = std::ranges::find(pfs, address, &PciPlace::address); at != pfs.end())
            place = *at;
        place.address = pci;
        return place;
    }
    return std::nullopt;
}

std::vector<OnHost> devices_of(HostView const& host, VmInfo const& vm) {
    std::vector<OnHost> all;
    for (auto const& hostdev : lasting(vm)) {
        if (auto const nic = place_of_nic(host, hostdev.pci))
            all.push_back({HostDeviceKind::nic, hostdev, *nic});
        if (!host.kernel.places) continue;
        auto const& gpus = host.kernel.places->gpus;
        if (auto const gpu = std::ranges::find(gpus, hostdev.pci, &PciPlace::address);
            gpu != gpus.end())
            all.push_back({HostDeviceKind::gpu, hostdev, *gpu});
    }
    std::ranges::sort(all, {}, [](OnHost const& one) { return one.hostdev.pci; });
    return all;
}

std::optional<std::uint32_t> cell_of(GuestPcie const& pcie, PciPlace const& place) {
    if (!place.numa_node) return std::nullopt;
    auto const cell = std::ranges::find(pcie.cell_nodes, *place.numa_node);
    if (cell == pcie.cell_nodes.end()) return std::nullopt;
    return static_cast<std::uint32_t>(cell - pcie.cell_nodes.begin());
}

// The functions below one root port of the host; of each of its switches one function.
struct Below {
    std::set<HostDeviceKind> kinds;
    std::vector<PciPlace> switches;
};

auto with_switch(Below const& below, PciPlace const& place) {
    return std::ranges::find_if(below.switches, [&](PciPlace const& one) {
        return distance(one, place) == PciDistance::pix;
    });
}

std::map<PciAddress, Below> by_root_port(std::vector<OnHost> const& devices) {
    std::map<PciAddress, Below> all;
    for (auto const& one : devices) {
        if (one.place.above.empty()) continue;
        auto& below = all[one.place.above.front().address];
        below.kinds.insert(one.kind);
        if (with_switch(below, one.place) == below.switches.end())
            below.switches.push_back(one.place);
    }
    return all;
}

// Numbers of switches as PlacedHostdev has them. Two levels suffice: what parts above the last
// switch is PXB, however high.
std::vector<std::uint32_t> switches_of(std::map<PciAddress, Below> const& all,
                                       PciPlace const& place) {
    auto const root = all.find(place.above.front().address);
    auto const& below = root->second;
    std::vector switches{static_cast<std::uint32_t>(std::distance(all.begin(), root))};
    if (below.switches.size() > 1)
        switches.push_back(
            static_cast<std::uint32_t>(with_switch(below, place) - below.switches.begin()));
    return switches;
}

Result<GuestPcie const*> pcie_of(VmInfo const& vm) {
    if (!vm.persistent)
        return fail(Problem::unsupported,
                    fmt::format("VM {} is transient, so it has no persistent XML to place devices "
                                "in",
                                vm.name),
                    "define it in libvirt (virsh define)");
    if (vm.pcie) return &*vm.pcie;
    return fail(
        Problem::unsupported,
        fmt::format("the machine of VM {} has no PCI Express root, and so no switches", vm.name),
        fmt::format("change it to machine='q35' (virsh edit {}); or in the VM run vf-guest "
                    "gpu topology --write",
                    vm.name));
}

// A place in a VM, as a PciPlace whose ports have addresses of their own. `path` is in_guest.
class GuestTree {
  public:
    explicit GuestTree(GuestPlaces const& proposed) {
        for (auto const& each : proposed.controllers)
            if (each.number && each.cell) cells_[*each.number] = static_cast<int>(*each.cell);
    }
    std::optional<PciPlace> place(std::optional<std::string> const& path) {
        if (!path) return std::nullopt;
        auto const root = path->substr(0, path->find('/'));
        std::uint32_t number = 0;
        std::from_chars(root.data(), root.data() + root.size(), number, 16);
        PciPlace place;
        if (auto const cell = cells_.find(number); cell != cells_.end())
            place.numa_node = cell->second;
        for (auto end = path->find('/', root.size() + 1); end != path->npos;
             end = path->find('/', end + 1))
            place.above.push_back({address(path->substr(0, end), number), 0, 0, 0, 0});
        place.address = address(*path, number);
        return place;
    }

  private:
    // Domain 0 is kept for the root's: distance() compares the root buses of first ports.
    PciAddress address(std::string const& path, std::uint32_t root) {
        auto const known = paths_.try_emplace(path, paths_.size());
        auto const depth = std::ranges::count(path, '/');
        auto const number = static_cast<std::uint32_t>(known.first->second);
        if (depth == 1)
            return {0, static_cast<std::uint8_t>(root), static_cast<std::uint8_t>(number), 0};
        return {1 + number, 0, 0, 0};
    }
    std::map<std::string, std::size_t> paths_;
    std::map<std::uint32_t, int> cells_;
};

PciDistance distance_in(std::optional<PciPlace> const& one, std::optional<PciPlace> const& other) {
    return one && other ? distance(*one, *other) : PciDistance::unknown;
}

void add_pairs(VmTopology& topology, std::vector<OnHost> const& devices,
               GuestPlaces const& proposed) {
    GuestTree tree(proposed);
    std::map<PciAddress, std::optional<PciPlace>> now, then;
    for (auto const& each : topology.devices) {
        now[each.pci] = tree.place(each.in_guest);
        then[each.pci] = each.proposed ? tree.place(each.proposed) : now[each.pci];
    }
    for (auto const& gpu : devices)
        for (auto const& nic : devices) {
            if (gpu.kind != HostDeviceKind::gpu || nic.kind != HostDeviceKind::nic) continue;
            auto const& [a, b] = std::pair(gpu.hostdev.pci, nic.hostdev.pci);
            topology.pairs.push_back({a, b, distance(gpu.place, nic.place),
                                      distance_in(now[a], now[b]), distance_in(then[a], then[b])});
        }
}

std::string sentence_of(Error const& error) {
    return fmt::format("{}; {}", error.detail, error.remedy);
}

std::string address_xml(PciAddress const& at, std::string_view type) {
    return fmt::format(
        "<address {}domain='0x{:04x}' bus='0x{:02x}' slot='0x{:02x}' function='0x{:x}'/>", type,
        at.domain, at.bus, at.device, at.function);
}

std::string target_xml(GuestController const& one) {
    if (!one.number) return {};
    return fmt::format("    <target busNr='{}'><node>{}</node></target>\n", *one.number,
                       one.cell.value_or(0));
}

// Without function 0, which would be moved, a VM does not find the others of its slot.
Result<void> check_slots(VmInfo const& vm, std::vector<PlacedHostdev> const& hostdevs) {
    auto const slot_of = [](VmHostdev const& one) {
        return one.in_guest ? one.in_guest->substr(0, one.in_guest->rfind('.')) : std::string();
    };
    for (auto const& each : hostdevs) {
        auto const slot = slot_of(*find_hostdev(vm.config, each.pci));
        if (slot.empty() || std::ranges::count(vm.config, slot, slot_of) == 1) continue;
        return fail(Problem::unsupported,
                    fmt::format("{} shares its slot in VM {} with another function, which it would "
                                "leave alone",
                                to_string(each.pci), vm.name),
                    fmt::format("take the other function out of the VM, or give it a slot of its "
                                "own: virsh edit {}",
                                vm.name));
    }
    return {};
}

Error nothing_near(HostView const& host, VmInfo const& vm) {
    auto const devices = devices_of(host, vm);
    auto const lacks = [&](HostDeviceKind kind) {
        return std::ranges::find(devices, kind, &OnHost::kind) == devices.end();
    };
    if (lacks(HostDeviceKind::gpu))
        return {
            Problem::conflict,
            fmt::format("VM {} has no GPU in its persistent XML that a NIC could be near", vm.name),
            "add a GPU to it first (a <hostdev> in its XML: virsh edit)"};
    if (lacks(HostDeviceKind::nic))
        return {Problem::conflict, fmt::format("VM {} has no VF in its persistent XML", vm.name),
                fmt::format("attach one: vfctl attach {} --near gpu", vm.name)};
    return {Problem::conflict,
            fmt::format("no GPU of VM {} shares a switch of the host with one of its NICs, and the "
                        "memory of no NUMA cell of the VM is bound to their node",
                        vm.name),
            fmt::format("attach a VF that is nearer (vfctl attach {} --near gpu); or bind each "
                        "cell's memory to one node: <memnode> in <numatune>",
                        vm.name)};
}

}  // namespace

std::string to_xml(GuestPlaces const& places) {
    std::string xml = "<devices>\n";
    constexpr std::string_view pci = "type='pci' ";
    for (auto const& one : places.controllers)
        xml += fmt::format(
            "  <controller type='pci' index='{}' model='{}'>\n{}"
            "    <alias name='{}{}'/>\n    {}\n  </controller>\n",
            one.index, one.model, target_xml(one), placed_alias, one.index,
            address_xml(one.at, pci));
    for (auto const& one : places.hostdevs)
        xml += fmt::format(
            "  <hostdev mode='subsystem' type='pci'>\n    <source>{}</source>\n"
            "    {}\n  </hostdev>\n",
            address_xml(one.pci, ""), address_xml(one.guest, pci));
    return xml + "</devices>\n";
}

Result<std::vector<PlacedHostdev>> hostdevs_to_place(HostView const& host, VmInfo const& vm) {
    VFMGR_TRY(auto const* const pcie, pcie_of(vm));
    if (!host.kernel.places)
        return fail(Problem::unavailable, "it was not observed yet where this host's GPUs are",
                    "try again");
    auto const devices = devices_of(host, vm);
    auto const all = by_root_port(devices);
    std::map<std::optional<std::uint32_t>, std::set<HostDeviceKind>> in_cells;
    for (auto const& one : devices) in_cells[cell_of(*pcie, one.place)].insert(one.kind);
    std::vector<PlacedHostdev> placed;
    for (auto const& one : devices) {
        PlacedHostdev each{one.hostdev.pci, cell_of(*pcie, one.place), {}};
        if (each.cell && in_cells[each.cell].size() < 2) each.cell.reset();
        if (!one.place.above.empty() && all.at(one.place.above.front().address).kinds.size() == 2)
            each.switches = switches_of(all, one.place);
        if (each.cell || !each.switches.empty()) placed.push_back(std::move(each));
    }
    if (placed.empty()) return fail(nothing_near(host, vm));
    VFMGR_CHECK(check_slots(vm, placed));
    return placed;
}

VmTopology vm_topology(HostView const& host, VmInfo const& vm) {
    VmTopology topology{vm.name, vm.uuid, {}, {}, vm.pcie && !vm.pcie->placed.empty(), {}, {}};
    auto const devices = devices_of(host, vm);
    GuestPlaces proposed;
    auto const hostdevs = hostdevs_to_place(host, vm);
    auto places = hostdevs ? guest_places(*vm.pcie, vm.name, *hostdevs) : fail(hostdevs.error());
    if (places) {
        proposed = std::move(*places);
        topology.xml = to_xml(proposed);
    } else {
        topology.notes.push_back(sentence_of(places.error()));
    }
    for (auto const& [kind, hostdev, place] : devices) {
        VmDevice device{kind, hostdev.pci, place.numa_node, hostdev.in_guest, {}};
        auto const to = std::ranges::find(proposed.hostdevs, hostdev.pci, &GuestPlace::pci);
        if (to != proposed.hostdevs.end()) device.proposed = to->in_guest;
        topology.devices.push_back(std::move(device));
    }
    add_pairs(topology, devices, proposed);
    if (!topology.xml.empty() && is_running(vm))
        topology.notes.push_back(
            fmt::format("VM {} runs; its devices can be placed when it is shut off", vm.name));
    topology.notes.emplace_back(
        "in the VM, vf-guest gpu topology --write gives NCCL the host's distances and links in a "
        "file: for a VM that stays as it is, and because ports of QEMU's switches report slow "
        "links");
    return topology;
}

Result<Plan> plan_placing(HostView const& host, std::string_view name, bool back) {
    VFMGR_TRY(VmInfo const* const vm, readable_vm(host, name));
    VFMGR_TRY(auto const* const pcie, pcie_of(*vm));
    PlaceHostdevs step{vm->uuid, {}, vm->name};
    if (!back) {
        VFMGR_TRY(step.hostdevs, hostdevs_to_place(host, *vm));
        VFMGR_CHECK(guest_places(*pcie, vm->name, step.hostdevs));
    }
    Plan plan;
    if (step.hostdevs == pcie->placed) {
        plan.notes.push_back(fmt::format("VM {} has its devices there already", vm->name));
        return plan;
    }
    if (vm->state != VmState::shut_off)
        return fail(Problem::conflict,
                    fmt::format("VM {} is {}: its PCI tree changes only while it is shut off",
                                vm->name, enum_name(vm->state)),
                    fmt::format("virsh shutdown {}, then try again", vm->name));
    plan.blast_radius.push_back(
        fmt::format("VM {} finds these devices at other PCI addresses at its next start: names of "
                    "its network interfaces that are made of them change",
                    vm->name));
    plan.steps.emplace_back(std::move(step));
    return plan;
}

}  // namespace vfmgr
