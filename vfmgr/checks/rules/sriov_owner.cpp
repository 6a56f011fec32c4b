// SPDX-License-Identifier: Apache-2.0
// Other programs that make or change the VFs of a PF: two owners undo each other's work.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "vfmgr/checks/find_owners.hpp"
#include "vfmgr/checks/nic.hpp"
#include "vfmgr/checks/rule.hpp"

namespace vfmgr::checks {
namespace {

// The PF's names, as files may use them.
DeviceSelector names_of(Machine const& machine, PciDevice const& pf) {
    DeviceSelector names{pf.netdevs, {}, {}, {to_string(pf.address)}, pf.rdma_devices};
    if (pf.driver) names.drivers = {*pf.driver};
    if (machine.netdevs)
        for (auto const& netdev : *machine.netdevs)
            if (netdev.pci == pf.address && netdev.mac)
                names.macs.push_back(to_string(*netdev.mac));
    return names;
}

// Quotes one word for a shell, whatever is in it.
std::string for_shell(std::string_view word) {
    std::string quoted_word = "'";
    for (char const byte : word) quoted_word += byte == '\'' ? "'\\''" : std::string(1, byte);
    return quoted_word + "'";
}

Remedy give_up(FoundOwner const& found) {
    auto const& owner = found.owner;
    constexpr std::string_view or_leave = "; or leave the PF to it: vfctl pf set PF --mode observe";
    switch (owner.kind) {
        case OwnerKind::network_manager:
            if (!owner.name.empty())
                return by_command(
                    fmt::format("nmcli connection modify {} remove sriov", for_shell(owner.name)),
                    fmt::format("its VFs are removed when the connection goes down{}", or_leave));
            break;
        case OwnerKind::unit:
            return by_command(
                fmt::format(
                    "systemctl disable {}",
                    for_shell(owner.name.empty() ? found.path.substr(found.path.rfind('/') + 1)
                                                 : owner.name)),
                fmt::format("its VFs then belong to vfmgr{}", or_leave));
        case OwnerKind::sriov_operator:
            return by_hand(fmt::format(
                "remove the PF from its SriovNetworkNodePolicy, or set externallyManaged there{}",
                or_leave));
        case OwnerKind::module:
        case OwnerKind::networkd:
        case OwnerKind::udev:
        case OwnerKind::netplan:
        case OwnerKind::ifupdown:
        case OwnerKind::other:
            break;
    }
    return by_hand(fmt::format("remove it from {}{}", found.path, or_leave));
}

Finding two_owners(Machine const& machine, FoundOwner const& found, PciDevice const* pf) {
    auto const of = pf ? fmt::format(" of {}", name_of(machine, *pf)) : std::string();
    return warning(pf ? to_string(pf->address) : std::string(),
                   fmt::format("{}{}, in addition to vfmgr", sentence_of(found), of),
                   give_up(found), {{found.path, found.owner.line}});
}

// Configuration that only root may read.
std::optional<Unknown> unseen(Machine const& machine) {
    constexpr auto profiles = "/etc/NetworkManager/system-connections";
    if (auto const names = machine.facts.names(profiles); !names) return names.error();
    for (auto const& [path, fact] : machine.facts.files)
        if (fact.error != 0 && is_owner_file(path)) return Unknown{path, fact.error};
    return std::nullopt;
}

std::vector<Finding> judge_owner(Machine const& machine) {
    if (!machine.pci) return {unknown("", machine.pci.error())};
    auto pfs = sriov_nics(machine);
    std::erase_if(pfs, [](auto const* nic) { return nic->total_vfs.value_or(0) == 0; });
    if (pfs.empty()) return {not_applicable("no NIC here has SR-IOV")};
    std::vector<Finding> findings;
    for (auto const& found : find_owners(machine)) {
        if (found.owner.of.any()) {
            findings.push_back(two_owners(machine, found, nullptr));
            continue;
        }
        for (auto const* pf : pfs)
            if (means(found.owner.of, names_of(machine, *pf)))
                findings.push_back(two_owners(machine, found, pf));
    }
    if (auto const hidden = unseen(machine)) findings.push_back(unknown("", *hidden));
    if (findings.empty()) findings.push_back(ok("", "no other program creates or changes VFs"));
    return findings;
}

constexpr std::array owner_group{
    Rule{
        "sriov.owner", "No other program owns the VFs",
        "systemd.link(5), systemd.network(5), nm-settings(5), netplan(5), modinfo of mlx4_core and "
        "ixgbe; sriov-network-operator, pkg/systemd and pkg/host/store",
        AppliesTo::host, judge_owner},
};

}  // namespace

std::span<Rule const> owner_rules() {
    return owner_group;
}

}  // namespace vfmgr::checks
