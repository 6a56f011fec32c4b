// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/readable.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace vfmgr {

Result<PfState const*> readable_pf(HostView const& host, PciAddress const& pf) {
    auto const* state = find_pf(host, pf);
    if (!state) {
        std::vector<std::string> known;
        for (auto const& [address, other] : host.kernel.pfs)
            known.push_back(fmt::format("{} ({})", to_string(address), other.info.ifname));
        return fail(Problem::not_found,
                    fmt::format("there is no SR-IOV capable device at {}", to_string(pf)),
                    known.empty() ? "this host has none; enable SR-IOV in the card's firmware"
                                  : fmt::format("use one of: {}", fmt::join(known, ", ")));
    }
    if (state->stuck)
        return fail(Problem::pf_stuck, fmt::format("{} is stuck: {}", to_string(pf), *state->stuck),
                    "end what holds its VFs, or reboot the host; VFs of other PFs can be attached");
    if (state->stale)
        return fail(Problem::unavailable,
                    fmt::format("{} can't be read: {}", to_string(pf), state->stale_reason),
                    "try again when the kernel answers for this device");
    return state;
}

Result<VmInfo const*> readable_vm(HostView const& host, std::string_view name_or_uuid) {
    if (host.hypervisor.stale)
        return fail(Problem::unavailable,
                    fmt::format("libvirt can't be queried: {}", host.hypervisor.stale_reason),
                    "start libvirtd and try again");
    if (auto const* vm = find_vm(host, name_or_uuid)) return vm;
    return fail(Problem::not_found, fmt::format("libvirt knows no VM {}", name_or_uuid),
                "virsh list --all shows the VMs of this host");
}

// The kernel creates and removes VFs of one PF at a time: a task that hangs in it blocks all others
// (vfmgr/kernel/KERNEL.md#locks).
Result<void> require_free_pci(HostView const& host) {
    for (auto const& [pci, pf] : host.kernel.pfs)
        if (pf.pci_busy)
            return fail(
                Problem::pci_busy,
                fmt::format("no VFs can be created or removed on this host: {} is stuck: {}",
                            to_string(pci), pf.stuck.value_or("")),
                "end what holds the VFs of that PF, or reboot the host; existing VFs can "
                "be attached");
    return {};
}

Result<void> require_free_port(VmInfo const& vm) {
    if (vm.free_pcie_ports > 0) return {};
    return fail(Problem::unsupported,
                fmt::format("VM {} has no free PCIe port for a hot-plugged device", vm.name),
                "add <controller type='pci' model='pcie-root-port'/> to its XML, shut it down and "
                "start it again, or attach with persistence config while it is shut off");
}

}  // namespace vfmgr
