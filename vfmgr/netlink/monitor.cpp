// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/monitor.hpp"

#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace vfmgr {
namespace {

constexpr unsigned uevent_group_kernel = 1;  // 2 is udev's own

// Dropped events (ENOBUFS, no buffer space) count as events: they require a new check.
void take_all(int fd) {
    std::array<std::byte, 16> scrap{};
    while (::recv(fd, scrap.data(), scrap.size(), MSG_DONTWAIT | MSG_TRUNC) >= 0 ||
           errno == ENOBUFS || errno == EINTR) {
    }
}

}  // namespace

Result<std::optional<NlSocketHandle>> listen_to(int protocol, unsigned groups) {
    NlSocketHandle handle(nl_socket_alloc());
    if (!handle) return fail(Problem::internal, "out of memory", "free memory and try again");
    nl_join_groups(handle.get(), static_cast<int>(groups));
    errno = 0;
    if (nl_connect(handle.get(), protocol) == 0) return std::optional(std::move(handle));
    auto const error = errno != 0 ? errno : EIO;
    if (error == EPROTONOSUPPORT) return std::optional<NlSocketHandle>{};
    return fail({Problem::kernel_refused,
                 fmt::format("the kernel's events can't be received: {}",
                             std::generic_category().message(error)),
                 "allow AF_NETLINK in the unit",
                 {errno_cause(fmt::format("bind netlink protocol {}", protocol), error)}});
}

Result<EventMonitor> EventMonitor::open(Scope scope) {
    unsigned groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR;
    if (scope == Scope::all) groups |= RTMGRP_NEIGH;
    VFMGR_TRY(auto links, listen_to(NETLINK_ROUTE, groups));
    VFMGR_TRY(auto objects, listen_to(NETLINK_KOBJECT_UEVENT, uevent_group_kernel));
    if (links && objects) return EventMonitor(std::move(*links), std::move(*objects));
    return fail(Problem::unsupported, "the kernel sends no events about changes",
                "boot a kernel with rtnetlink and uevents");
}

std::array<int, 2> EventMonitor::fds() const {
    return {nl_socket_get_fd(links_.get()), nl_socket_get_fd(objects_.get())};
}

Result<Readiness> EventMonitor::wait(Deadline deadline) {
    VFMGR_TRY(auto const ready, await_readable(fds(), deadline));
    if (ready == Readiness::readable)
        for (auto const fd : fds()) take_all(fd);
    return ready;
}

Result<Waited> wait_until(EventMonitor& monitor, Deadline deadline,
                          std::function<Result<bool>()> const& holds) {
    while (true) {
        // Read before the check: a steady stream of events must not carry us past the deadline.
        bool const last = std::chrono::steady_clock::now() >= deadline;
        VFMGR_TRY(bool const now, holds());
        if (now) return Waited::holds;
        if (last) return Waited::deadline_passed;
        VFMGR_CHECK(monitor.wait(deadline));
    }
}

}  // namespace vfmgr
