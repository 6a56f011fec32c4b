// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <libudev.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <system_error>

#include "api/os/descriptor.hpp"
#include "api/os/handle.hpp"
#include "vfmgr/kernel/in_use.hpp"
#include "vfmgr/kernel/quirks.hpp"
#include "vfmgr/kernel/steps.hpp"
#include "vfmgr/kernel/worker_process.hpp"
#include "vfmgr/netlink/monitor.hpp"

namespace vfmgr {
namespace {

constexpr std::chrono::seconds udev_time{10};
constexpr std::chrono::seconds links_time{3};

// Maps errno to its meaning in this call [src drivers/pci/iov.c].
std::string numvfs_remedy(int error) {
    switch (error) {
        case ENOENT:
            return "bind the PF to a driver that can create VFs";
        case EBUSY:
            return "try again: another program changed the number of VFs at the same time";
        case ENOMEM:
            return "give the VFs address space or bus numbers: enable SR-IOV or MMIO above 4G in "
                   "the firmware, or boot with pci=realloc,assign-busses";
        case EPERM:
        case EACCES:
            return "run vfmgr as root with /sys writable";
        default:
            return quirks::remedy_for_count(error).value_or(
                "see the kernel's log for the driver's reason: journalctl -k");
    }
}

Result<void> write_count(LinuxKernelRoots const& roots, PciAddress const& pf, std::uint16_t count) {
    auto const folder = pci_folder(roots, pf);
    auto file = folder / "sriov_numvfs";
    // Plain decimal: the kernel reads a leading 0 as octal.
    auto error = write_text(file, std::to_string(count));
    // The file exists even where the driver does not implement it.
    std::error_code absent;
    auto const other = folder / quirks::other_count_file;
    if (error == ENOENT && std::filesystem::exists(other, absent)) {
        file = other;
        error = write_text(file, std::to_string(count));
    }
    if (error == 0) return {};
    auto const what = count == 0
                          ? fmt::format("the VFs of {} could not be removed", to_string(pf))
                          : fmt::format("{} VFs could not be created on {}", count, to_string(pf));
    return fail({Problem::kernel_refused,
                 what + ": " + std::generic_category().message(error),
                 numvfs_remedy(error),
                 {errno_cause(fmt::format("write {} to {}", count, file.string()), error)}});
}

// Goes through 0: the kernel refuses a change between counts with EBUSY. Ends the group hold.
Result<void> resize(LinuxKernelRoots const& roots, SetNumVfs const& step, std::size_t present,
                    [[maybe_unused]] GroupHold attachment) {
    if (present != 0) VFMGR_CHECK(write_count(roots, step.pf, 0));
    if (step.count != 0) VFMGR_CHECK(write_count(roots, step.pf, step.count));
    return {};
}

// The links exist when the write returns [src drivers/pci/iov.c, sriov_add_vfs()], or soon after. A
// driver that makes fewer VFs is not waited for as long as a creation may take.
Result<VfAddresses> await_links(LinuxKernelRoots const& roots, SetNumVfs const& step,
                                EventMonitor& monitor, Deadline deadline) {
    VfAddresses observed;
    VFMGR_TRY(auto const waited, wait_until(monitor, deadline, [&]() -> Result<bool> {
                  VFMGR_TRY(observed, list_vfs(roots, step.pf));
                  return observed.size() == step.count;
              }));
    if (waited == Waited::holds) return observed;
    // The driver may make fewer VFs; the write still succeeds.
    return fail(
        Problem::kernel_refused,
        fmt::format("{} VFs were requested on {}, {} appeared", step.count, to_string(step.pf),
                    observed.size()),
        "see the kernel's log for the driver's reason (journalctl -k), or request fewer VFs");
}

// Udev's events about PCI devices; without a monitor where udev does not run.
struct UdevWatch {
    Handle<udev, udev_unref> context;
    Handle<udev_monitor, udev_monitor_unref> monitor;
};

// Call it before the devices appear. Where udev does not run there is nothing to wait for.
Result<UdevWatch> watch_udev(LinuxKernelRoots const& roots) {
    constexpr int receive_bytes = 16 * 1024 * 1024;  // a few hundred VFs appear at once
    UdevWatch watch;
    if (!std::filesystem::exists(roots.udev / "control")) return watch;
    watch.context.reset(udev_new());
    watch.monitor.reset(udev_monitor_new_from_netlink(watch.context.get(), "udev"));
    auto* const monitor = watch.monitor.get();
    if (!monitor || udev_monitor_filter_add_match_subsystem_devtype(monitor, "pci", nullptr) < 0 ||
        udev_monitor_set_receive_buffer_size(monitor, receive_bytes) < 0 ||
        udev_monitor_enable_receiving(monitor) < 0)
        return fail({Problem::kernel_refused,
                     "udev's events can't be received",
                     "run vfmgr as root in the host's network namespace",
                     {errno_cause("udev_monitor_enable_receiving", errno)}});
    return watch;
}

// Waits until udev has processed the "add" of each of these PCI devices: above all, until it has
// loaded their drivers. Gives up at the deadline: a rule of the host's own may block udev.
void await_added(UdevWatch const& watch, std::set<PciAddress> devices, Deadline deadline) {
    auto* const monitor = watch.monitor.get();
    if (!monitor) return;
    std::array const fds{udev_monitor_get_fd(monitor)};
    while (!devices.empty() && await_readable(fds, deadline) == Readiness::readable) {
        Handle<udev_device, udev_device_unref> const device(udev_monitor_receive_device(monitor));
        if (!device || std::string_view(udev_device_get_action(device.get())) != "add") continue;
        if (auto const pci = PciAddress::parse(udev_device_get_sysname(device.get())))
            devices.erase(*pci);
    }
}

// udev loads a new VF's driver a moment after the VF appeared, and a loaded driver binds what
// autoprobe allows at that time [src drivers/pci/pci-driver.c, pci_device_can_probe].
Result<void> resize_and_settle(LinuxKernelRoots const& roots, SetNumVfs const& step,
                               std::size_t present, GroupHold attachment, Deadline deadline) {
    VFMGR_TRY(auto monitor, EventMonitor::open());
    VFMGR_TRY(auto const watch, watch_udev(roots));
    VFMGR_CHECK(resize(roots, step, present, std::move(attachment)));
    auto const now = std::chrono::steady_clock::now;
    VFMGR_TRY(auto const made,
              await_links(roots, step, monitor, std::min(deadline, now() + links_time)));
    std::set<PciAddress> devices;
    for (auto const& [index, pci] : made) devices.insert(pci);
    await_added(watch, std::move(devices), std::min(deadline, now() + udev_time));
    return {};
}

// Resizes with autoprobe off, so no host driver binds new VFs: they are configured while unbound.
// Restores autoprobe on success and on failure.
Result<void> resize_unprobed(LinuxKernelRoots const& roots, SetNumVfs const& step,
                             std::size_t present, GroupHold attachment, Deadline deadline) {
    auto const file = pci_folder(roots, step.pf) / "sriov_drivers_autoprobe";
    VFMGR_TRY(auto const before, read_text(file));
    auto const set = [&](std::string const& value) -> Result<void> {
        auto const error = write_text(file, value);
        if (error == 0) return {};
        return fail({Problem::kernel_refused,
                     fmt::format("{} could not be set to {}: {}", file.string(), value,
                                 std::generic_category().message(error)),
                     "run vfmgr as root with /sys writable",
                     {errno_cause("write " + file.string(), error)}});
    };
    VFMGR_CHECK(set("0"));
    auto resized = resize_and_settle(roots, step, present, std::move(attachment), deadline);
    auto restored = set(before);
    if (!resized) return resized;
    return restored;
}

// The kernel changes the VFs of one PF at a time. Waits a limited time for another writer: behind
// one that hangs we would hang too, holding the lock of our own PF. Another worker of ours does not
// hang for long: vfmgrd kills it.
Result<void> await_others(LinuxKernelRoots const& roots, Deadline deadline) {
    constexpr std::chrono::milliseconds observe_again{250};  // the end of a write sends no event
    VFMGR_TRY(auto monitor, EventMonitor::open());
    auto const patience = std::min(deadline, std::chrono::steady_clock::now() + hang_time);
    while (true) {
        auto const writers = find_numvfs_writers(roots);
        if (writers.empty()) return {};
        bool const ours = std::ranges::all_of(
            writers, [](NumVfsWriter const& each) { return each.comm == worker_comm; });
        auto const now = std::chrono::steady_clock::now();
        auto const give_up = ours ? deadline : patience;
        if (now >= give_up)
            return fail(Problem::pci_busy,
                        "no VFs can be created or removed on this host: " +
                            describe(roots, writers.front()),
                        "end the processes that hold the VFs of that PF, or reboot the host; "
                        "existing VFs can "
                        "be attached");
        VFMGR_CHECK(monitor.wait(std::min(give_up, now + observe_again)));
    }
}

}  // namespace

Result<Observed> perform_step(LinuxKernelRoots const& roots, SetNumVfs const& step,
                              Deadline deadline) {
    VFMGR_TRY(auto const vfs, list_vfs(roots, step.pf));
    VFMGR_TRY(auto const total, total_vfs(roots, step.pf));
    if (step.count > total)
        return fail(
            Problem::limit_exceeded,
            fmt::format("{} allows {} VFs, {} were requested", to_string(step.pf), total,
                        step.count),
            fmt::format("request at most {}, or raise the limit in the NIC's firmware", total));
    if (vfs.size() == step.count) return Observed{};
    VFMGR_CHECK(await_others(roots, deadline));
    std::vector<VfAt> going;
    for (auto const& [index, pci] : vfs) going.push_back({{step.pf, index}, pci});
    VFMGR_TRY(auto const host, read_host_netdevs(deadline));
    VFMGR_TRY(auto attachment, guard_unused(roots, host, going));
    VFMGR_CHECK(resize_unprobed(roots, step, vfs.size(), std::move(attachment), deadline));
    return Observed{};
}

}  // namespace vfmgr
