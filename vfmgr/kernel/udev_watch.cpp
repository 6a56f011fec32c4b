// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/udev_watch.hpp"

#include <libudev.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

namespace vfmgr {
namespace {

constexpr int receive_bytes = 16 * 1024 * 1024;  // a few hundred VFs appear at once

struct UnrefDevice {
    void operator()(udev_device* device) const { udev_device_unref(device); }
};

// False: the deadline passed, or udev's socket failed.
bool readable(int fd, Deadline deadline) {
    while (true) {
        auto const left = std::chrono::ceil<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        pollfd event{.fd = fd, .events = POLLIN, .revents = 0};
        int const ready = ::poll(&event, 1, static_cast<int>(std::max<long>(left.count(), 0)));
        if (ready >= 0 || errno != EINTR) return ready > 0;
    }
}

}  // namespace

void UdevWatch::Unref::operator()(udev* context) const {
    udev_unref(context);
}

void UdevWatch::Unref::operator()(udev_monitor* monitor) const {
    udev_monitor_unref(monitor);
}

Result<UdevWatch> UdevWatch::open(LinuxKernelRoots const& roots) {
    UdevWatch watch;
    if (!std::filesystem::exists(roots.udev / "control")) return watch;
    watch.context_.reset(udev_new());
    watch.monitor_.reset(udev_monitor_new_from_netlink(watch.context_.get(), "udev"));
    auto* const monitor = watch.monitor_.get();
    if (!monitor || udev_monitor_filter_add_match_subsystem_devtype(monitor, "pci", nullptr) < 0 ||
        udev_monitor_set_receive_buffer_size(monitor, receive_bytes) < 0 ||
        udev_monitor_enable_receiving(monitor) < 0)
        return fail({Problem::kernel_refused,
                     "udev's events can't be received",
                     "run vfmgr as root in the host's network namespace",
                     {errno_cause("udev_monitor_enable_receiving", errno)}});
    return watch;
}

void UdevWatch::await_added(std::set<PciAddress> devices, Deadline deadline) {
    if (!monitor_) return;
    while (!devices.empty() && readable(udev_monitor_get_fd(monitor_.get()), deadline)) {
        std::unique_ptr<udev_device, UnrefDevice> const device(
            udev_monitor_receive_device(monitor_.get()));
        if (!device || std::string_view(udev_device_get_action(device.get())) != "add") continue;
        if (auto const pci = PciAddress::parse(udev_device_get_sysname(device.get())))
            devices.erase(*pci);
    }
}

}  // namespace vfmgr
