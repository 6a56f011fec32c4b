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
                    "end what holds its VFs, or reboot the host; VFs of other PFs can be lent");
    if (state->stale)
        return fail(Problem::unavailable,
                    fmt::format("{} can't be read: {}", to_string(pf), state->stale_reason),
                    "try again when the kernel answers for this device");
    return state;
}

Result<VmInfo const*> readable_vm(HostView const& host, std::string_view name_or_uuid) {
    if (host.hypervisor.stale)
        return fail(Problem::unavailable,
                    fmt::format("libvirt can't be asked: {}", host.hypervisor.stale_reason),
                    "start libvirtd and try again");
    if (auto const* vm = find_vm(host, name_or_uuid)) return vm;
    return fail(Problem::not_found, fmt::format("libvirt knows no VM {}", name_or_uuid),
                "virsh list --all shows the VMs of this host");
}

}  // namespace vfmgr
