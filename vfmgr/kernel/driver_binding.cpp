// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <span>
#include <system_error>

#include "vfmgr/kernel/in_use.hpp"
#include "vfmgr/kernel/pci.hpp"
#include "vfmgr/kernel/pf_view.hpp"
#include "vfmgr/kernel/steps.hpp"
#include "vfmgr/netlink/monitor.hpp"
#include "vfmgr/netlink/vf.hpp"
#include "vfmgr/plan/choose.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds counters_seconds_max{5};

std::string module_of(std::string name) {
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

// The kernel loads no module for driver_override, and would leave the VF without a driver.
Result<void> check_driver(LinuxKernelRoots const& roots, std::string const& driver) {
    bool const name = !driver.empty() && driver.size() < 64 &&
                      driver.find_first_of("/\n") == driver.npos && driver != "." && driver != "..";
    if (!name)
        return fail(Problem::invalid_request,
                    fmt::format("\"{}\" is not the name of a driver", driver),
                    "give a name from /sys/bus/pci/drivers");
    std::error_code error;
    if (fs::is_directory(roots.sysfs / "bus/pci/drivers" / driver, error)) return {};
    return fail(Problem::unsupported, fmt::format("the driver {} is not loaded", driver),
                fmt::format("modprobe {0}, and list it in /etc/modules-load.d for the next boot",
                            module_of(driver)));
}

// VFIO gives a group to one user. A member with any other driver would share that user's memory.
// Bridges and pci-stub do not count [src vfio, pci_dma_configure].
bool harmless(LinuxKernelRoots const& roots, PciAddress const& pci) {
    constexpr std::uint64_t bridge_class = 0x06;
    auto const driver = driver_of(roots, pci);
    if (!driver || *driver == "pci-stub" || bound_to_vfio(roots, pci)) return true;
    auto const device_class = read_number(pci_folder(roots, pci) / "class");
    return device_class && (*device_class >> 16U) == bridge_class;
}

// `going`: the VFs that get a VFIO driver in the same step.
Result<void> check_group(LinuxKernelRoots const& roots, VfAt const& vf,
                         std::set<PciAddress> const& going) {
    auto const group = iommu_group_of(roots, vf.pci);
    if (!group)
        return fail(
            Problem::unsupported,
            fmt::format("VF {} of {} ({}) is in no IOMMU group, so it can't be attached to a VM",
                        vf.id.index, to_string(vf.id.pf), to_string(vf.pci)),
            "enable the IOMMU in the firmware, and with intel_iommu=on on the kernel's command "
            "line");
    auto const members = roots.sysfs / "kernel/iommu_groups" / std::to_string(*group) / "devices";
    for (auto const& name : entries(members)) {
        auto const member = PciAddress::parse(name);
        if (!member || going.contains(*member) || harmless(roots, *member)) continue;
        return fail(
            Problem::conflict,
            fmt::format("VF {} of {} ({}) shares IOMMU group {} with {}, which is bound to {}",
                        vf.id.index, to_string(vf.id.pf), to_string(vf.pci), *group, name,
                        driver_of(roots, *member).value_or("?")),
            fmt::format(
                "unbind {} from its driver, or move the NIC to a slot behind a switch with ACS",
                name));
    }
    return {};
}

Result<void> unbind(LinuxKernelRoots const& roots, PciAddress const& pci) {
    auto const file = pci_folder(roots, pci) / "driver/unbind";
    auto const error = write_text(file, to_string(pci));
    if (error == 0 || !driver_of(roots, pci)) return {};
    return fail(refused_write(file,
                              fmt::format("{} could not be unbound from {}", to_string(pci),
                                          driver_of(roots, pci).value_or("its driver")),
                              error));
}

Result<void> probe(LinuxKernelRoots const& roots, PciAddress const& pci, std::string const& driver,
                   EventMonitor& monitor, Deadline deadline) {
    auto const file = roots.sysfs / "bus/pci/drivers_probe";
    auto const detail = fmt::format("{} could not be bound to {}", to_string(pci), driver);
    if (auto const error = write_text(file, to_string(pci)); error != 0)
        return fail(refused_write(file, detail, error));
    // drivers_probe succeeds even when it binds nothing.
    VFMGR_TRY(auto const waited, wait_until(monitor, deadline, [&]() -> Result<bool> {
                  return driver_of(roots, pci) == driver;
              }));
    if (waited == Waited::holds) return {};
    auto const now = driver_of(roots, pci);
    return fail(Problem::kernel_refused,
                fmt::format("{}: it has {}", detail, now ? "the driver " + *now : "no driver"),
                "see the kernel's log for the driver's reason: journalctl -k");
}

// Moves the device from its current driver to `driver`, or to none.
Result<void> rebind(LinuxKernelRoots const& roots, PciAddress const& pci,
                    std::optional<std::string> const& driver, EventMonitor& monitor,
                    Deadline deadline) {
    auto const bound = [&]() -> Result<void> {
        if (driver) VFMGR_CHECK(set_override(roots, pci, *driver));
        if (driver_of(roots, pci)) VFMGR_CHECK(unbind(roots, pci));
        if (driver) VFMGR_CHECK(probe(roots, pci, *driver, monitor, deadline));
        return {};
    }();
    // Runs on failure too: an override left behind would choose the driver for the next owner.
    auto cleared = set_override(roots, pci, "");
    VFMGR_CHECK(bound);
    return cleared;
}

Result<void> check_driver_for(LinuxKernelRoots const& roots, std::string const& driver,
                              std::vector<VfAt> const& vfs) {
    VFMGR_CHECK(check_driver(roots, driver));
    if (!names_vfio_driver(driver)) return {};
    std::set<PciAddress> going;
    for (auto const& vf : vfs) going.insert(vf.pci);
    for (auto const& vf : vfs) VFMGR_CHECK(check_group(roots, vf, going));
    return {};
}

Result<GroupHold> guard(LinuxKernelRoots const& roots, std::span<VfAt const> vfs,
                        Deadline deadline) {
    VFMGR_TRY(auto const host, read_host_netdevs(deadline));
    return guard_unused(roots, host, vfs);
}

// Reads the counters before the reset, which may clear them. Nothing depends on them, so a failed
// read fails nothing else.
std::optional<VfCounters> counters_of(LinuxKernelRoots const& roots, HostNetdevs const& host,
                                      VfId const& vf, Deadline deadline) {
    auto const* const netdev = pf_netdev(roots, host.netdevs, vf.pf);
    if (netdev == nullptr) return std::nullopt;
    auto socket = NlSocket::open(NlProtocol::route);
    if (!socket) return std::nullopt;
    auto const soon = std::min(deadline, std::chrono::steady_clock::now() + counters_seconds_max);
    auto const all = read_vf_counters(*socket, netdev->name, netdev->ifindex, soon);
    if (!all) return std::nullopt;
    auto const found = std::ranges::find(*all, vf.index, &VfTraffic::index);
    return found == all->end() ? std::nullopt : std::optional(found->counters);
}

}  // namespace

Result<Observed> perform_step(LinuxKernelRoots const& roots, BindVfs const& step,
                              Deadline deadline) {
    std::vector<VfAt> changing;
    for (auto const index : step.vfs) {
        VfId const id{step.pf, index};
        VFMGR_TRY(auto const pci, vf_address(roots, id));
        if (driver_of(roots, pci) != step.driver) changing.push_back({id, pci});
    }
    if (changing.empty()) return Observed{};
    if (step.driver) VFMGR_CHECK(check_driver_for(roots, *step.driver, changing));
    VFMGR_TRY(auto const attachment, guard(roots, changing, deadline));
    VFMGR_TRY(auto monitor, EventMonitor::open());
    for (auto const& vf : changing)
        VFMGR_CHECK(rebind(roots, vf.pci, step.driver, monitor, deadline));
    return Observed{};
}

Result<Observed> perform_step(LinuxKernelRoots const& roots, ResetVf const& step,
                              Deadline deadline) {
    VFMGR_TRY(auto const pci, vf_address(roots, step.vf));
    VfAt const vf{step.vf, pci};
    auto const method = pci_folder(roots, pci) / "reset_method";
    auto const methods = read_reset_methods(roots, pci);
    if ((" " + methods + " ").find(" flr ") == std::string::npos)
        return fail(
            Problem::unsupported,
            fmt::format("VF {} of {} ({}) has no function level reset (flr); its reset methods: {}",
                        step.vf.index, to_string(step.vf.pf), to_string(pci),
                        methods.empty() ? "none" : methods),
            "use a VF that has it: without it, data of the last VM may be left");
    VFMGR_TRY(auto const host, read_host_netdevs(deadline));
    VFMGR_TRY(auto const attachment, guard_unused(roots, host, std::span(&vf, 1)));
    Observed observed;
    observed.counters = counters_of(roots, host, step.vf, deadline);
    // Without this the kernel falls back to other resets, which reach less or more than the VF.
    if (auto const error = write_text(method, "flr"); error != 0)
        return fail(refused_write(
            method, fmt::format("the reset method of {} could not be set to flr", to_string(pci)),
            error));
    auto const file = pci_folder(roots, pci) / "reset";
    auto const error = write_text(file, "1");
    auto const restored = write_text(method, methods);
    if (error != 0)
        return fail(
            refused_write(file, fmt::format("{} could not be reset", to_string(pci)), error));
    if (restored != 0)
        return fail(refused_write(
            method, fmt::format("the reset methods of {} could not be restored", to_string(pci)),
            restored));
    return observed;
}

}  // namespace vfmgr
