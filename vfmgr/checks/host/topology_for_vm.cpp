// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/host/topology_for_vm.hpp"

#include <algorithm>

#include "vfmgr/checks/gpu_place.hpp"
#include "vfmgr/checks/host/rules.hpp"
#include "vfmgr/machine/files.hpp"
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

}  // namespace

Facts collect_places(std::string const& root, std::vector<VmHostdev> const& given) {
    Facts facts;
    Files files(root, {});
    files.read({"/sys/devices/system/node/has_cpu"}, facts);
    files.list("/sys/kernel/iommu_groups", facts);
    facts.folders[std::string(devices)] = {};
    Places places(files, facts);
    for (auto const& one : given) places.add(one.pci);
    read_configuration_spaces(files, facts);
    std::ranges::sort(facts.folders[std::string(devices)].names);
    return facts;
}

std::vector<std::string> blocked_paths(Machine const& host) {
    std::vector<std::string> notes;
    auto const acs = std::ranges::find(pci_rules, "pci.acs", &Rule::id);
    for (auto const& finding : acs->judge(host))
        if (is_bad(finding)) notes.push_back(finding.subject + ": " + finding.detail);
    return notes;
}

HostTopology topology_for_vm(Machine const& host, std::vector<VmHostdev> const& given) {
    HostTopology topology;
    for (auto const& one : given) {
        auto const* const device = find_pci(host, one.pci);
        if (!device || device->vendor() == 0 || !one.in_guest) continue;
        topology.functions.push_back(
            {*one.in_guest, device->vendor(), device->device(), place_of(host, *device)});
    }
    topology.notes = blocked_paths(host);
    return topology;
}

}  // namespace vfmgr::checks
