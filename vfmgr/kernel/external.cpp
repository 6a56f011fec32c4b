// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "vfmgr/kernel/in_use.hpp"
#include "vfmgr/kernel/pf_view.hpp"
#include "vfmgr/kernel/steps.hpp"

namespace vfmgr {
namespace {

std::string words_for(VfAt const& vf) {
    return fmt::format("VF {} of {} ({})", vf.id.index, to_string(vf.id.pf), to_string(vf.pci));
}

// Who may open the group's node gets every function in it. Bridges are of no use to VFIO.
Result<void> check_sole_member(LinuxKernelRoots const& roots, VfAt const& vf, std::uint32_t uid) {
    constexpr std::uint64_t bridge_class = 0x06;
    auto const group = iommu_group_of(roots, vf.pci);
    if (!group)
        return fail(Problem::unsupported, fmt::format("{} is in no IOMMU group", words_for(vf)),
                    "enable the IOMMU in the firmware and on the kernel's command line");
    auto const members = roots.sysfs / "kernel/iommu_groups" / std::to_string(*group) / "devices";
    for (auto const& name : entries(members)) {
        auto const member = PciAddress::parse(name);
        if (member == vf.pci) continue;
        auto const device_class =
            member ? read_number(pci_folder(roots, *member) / "class") : Result<std::uint64_t>(0);
        if (device_class && (*device_class >> 16U) == bridge_class) continue;
        return fail(Problem::conflict,
                    fmt::format("{} shares IOMMU group {} with {}, which user {} could open, too",
                                words_for(vf), *group, name, uid),
                    "leave the uid out, so that only root opens it; or move the NIC to a slot "
                    "behind a switch with ACS");
    }
    return {};
}

// The node is opened as such, not followed: what is named like one must be one.
Result<void> set_owner(std::string const& path, std::uint32_t uid) {
    auto const refused = [&](std::string const& call, int error) {
        return fail(Error{Problem::kernel_refused,
                          fmt::format("{} could not be given to user {}: {}", path, uid,
                                      std::generic_category().message(error)),
                          "run vfmgr-broker with CAP_CHOWN, as its unit does",
                          {errno_cause(call + " " + path, error)}});
    };
    FileDescriptor const node(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!node) return refused("open", errno);
    struct stat status{};
    if (::fstat(node.get(), &status) != 0) return refused("stat", errno);
    if (!S_ISCHR(status.st_mode)) return refused("stat", ENOTSUP);
    if (status.st_uid == uid) return {};
    constexpr auto same_group = static_cast<gid_t>(-1);
    if (::fchownat(node.get(), "", uid, same_group, AT_EMPTY_PATH) != 0)
        return refused("chown", errno);
    return {};
}

Result<void> set_owner(VfioNodes const& nodes, std::uint32_t uid) {
    if (!nodes.paths) return {};
    for (auto const& path : {nodes.paths->group, nodes.paths->device})
        if (path) VFMGR_CHECK(set_owner(*path, uid));
    return {};
}

}  // namespace

Result<Observed> perform_step(LinuxKernelRoots const& roots, AttachExternal const& step,
                              Deadline deadline) {
    VFMGR_TRY(auto const pci, vf_address(roots, step.vf));
    VfAt const vf{step.vf, pci};
    if (!bound_to_vfio(roots, pci))
        return fail(Problem::conflict, fmt::format("{} is not bound to VFIO", words_for(vf)),
                    "attach it again: its driver changed meanwhile");
    VFMGR_TRY(auto const host, read_host_netdevs(deadline));
    VFMGR_TRY(auto const unused, guard_unused(roots, host, std::span(&vf, 1)));
    if (!step.uid) return Observed{};
    VFMGR_CHECK(check_sole_member(roots, vf, *step.uid));
    auto const nodes = read_vfio_nodes(roots, pci);
    if (!nodes.paths)
        return fail(Problem::kernel_refused, fmt::format("{} has no VFIO node", words_for(vf)),
                    "see the kernel's log: journalctl -k");
    VFMGR_CHECK(set_owner(nodes, *step.uid));
    return Observed{};
}

// A VF that is not bound has no nodes, and so no holders.
Result<Observed> perform_step(LinuxKernelRoots const& roots, DetachExternal const& step, Deadline) {
    VFMGR_TRY(auto const pci, vf_address(roots, step.vf));
    if (!bound_to_vfio(roots, pci)) return Observed{};
    auto const nodes = read_vfio_nodes(roots, pci);
    if (step.owner) VFMGR_CHECK(set_owner(nodes, *step.owner));
    VFMGR_TRY(auto const open, find_holders(roots, nodes.numbers));
    std::vector<std::string> holders;
    for (auto const& holder : holders_of(open, nodes.numbers))
        holders.push_back(fmt::format("{} (pid {})", holder.comm, holder.pid));
    if (holders.empty()) return Observed{};
    return fail(
        Problem::vf_in_use,
        fmt::format("{} is held open by {}", words_for({step.vf, pci}), fmt::join(holders, ", ")),
        "end that process, then detach it again");
}

}  // namespace vfmgr
