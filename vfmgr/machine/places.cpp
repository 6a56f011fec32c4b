// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/places.hpp"

#include <algorithm>

#include "vfmgr/machine/files.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"
#include "vfmgr/machine/read_devices.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::string_view devices = "/sys/bus/pci/devices";

// Reads functions and the ports above them, each once.
class Places {
  public:
    Places(Files& files, Facts& facts) : files_(files), facts_(facts) {}

    void add(PciAddress const& function) {
        if (!read(function)) return;
        auto const folder = folder_of(function);
        for (auto const* const link : {"driver", "physfn", "virtfn*"})
            files_.read_link(folder + "/" + link, facts_);
        if (auto const path = facts_.target(folder))
            for (auto const& port : parse_pci_path(*path)) static_cast<void>(read(port));
        auto const pf = facts_.target(folder + "/physfn");
        if (!pf) return;
        if (auto const address = PciAddress::parse(pf->substr(pf->rfind('/') + 1))) add(*address);
    }

  private:
    static std::string folder_of(PciAddress const& function) {
        return std::string(devices) + "/" + to_string(function);
    }
    // Returns false if it was read before.
    bool read(PciAddress const& function) {
        auto& names = facts_.folders[std::string(devices)].names;
        if (std::ranges::find(names, to_string(function)) != names.end()) return false;
        names.push_back(to_string(function));
        auto const folder = folder_of(function);
        for (auto const* const file :
             {"vendor", "device", "subsystem_vendor", "subsystem_device", "class", "numa_node",
              "sriov_totalvfs", "current_link_speed", "current_link_width"})
            files_.read({folder + "/" + file}, facts_);
        files_.read_link(folder, facts_);
        return true;
    }

    Files& files_;
    Facts& facts_;
};

// A node without CPUs is memory, perhaps a GPU's (recorded on POWER9): it is near nothing. A list
// without a number proves nothing: CentOS 7's kernel has such a list though its nodes have CPUs
// (recorded).
std::optional<int> cpu_node(Machine const& machine, PciDevice const& device) {
    auto const with_cpus = machine.facts.text("/sys/devices/system/node/has_cpu");
    bool const lists_nodes = with_cpus && with_cpus->find_first_of("0123456789") != with_cpus->npos;
    if (device.numa_node() && lists_nodes && !number_list_has(*with_cpus, *device.numa_node()))
        return std::nullopt;
    return device.numa_node();
}

}  // namespace

Facts collect_places(std::string const& root, std::vector<PciAddress> const& functions) {
    Facts facts;
    Files files(root, {});
    files.read({"/sys/devices/system/node/has_cpu"}, facts);
    files.list("/sys/kernel/iommu_groups", facts);
    facts.folders[std::string(devices)] = {};
    Places places(files, facts);
    for (auto const& function : functions) places.add(function);
    read_configuration_spaces(files, facts);
    std::ranges::sort(facts.folders[std::string(devices)].names);
    return facts;
}

PciPlace place_of(Machine const& machine, PciDevice const& device) {
    PciPlace place{device.address, {}, cpu_node(machine, device), {}, {}};
    for (auto const& address : device.above()) {
        auto const* const port = find_pci(machine, address);
        place.above.push_back(port ? PciPort{address, port->vendor(), port->device(),
                                             port->subsystem_vendor(), port->subsystem_device()}
                                   : PciPort{address});
    }
    // A VF has no link of its own.
    auto const* const pf = device.pf() ? find_pci(machine, *device.pf()) : nullptr;
    auto const& linked = pf ? *pf : device;
    place.speed_gts = linked.speed_gts();
    if (linked.width() && *linked.width() > 0)
        place.width = static_cast<std::uint32_t>(*linked.width());
    return place;
}

}  // namespace vfmgr::checks
