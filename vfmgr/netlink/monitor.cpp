// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/monitor.hpp"

#include <fmt/format.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

#include "api/os/descriptor.hpp"
#include "vfmgr/netlink/packet_filter.hpp"

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

namespace {

// Events come in bursts: hundreds a second while another program sets VFs. The first is reported at
// once, those of the next moment together; a wakeup for each takes an eighth of an emulated CPU.
constexpr std::chrono::milliseconds crowd{100};

void follow(EventMonitor monitor, std::optional<FilterMonitor> filter, int stop_fd,
            std::function<void()> const& changed) {
    auto const [links, objects] = monitor.fds();
    std::array const host{links, objects};
    std::array const fds{links, objects, filter ? filter->fd() : -1, stop_fd};
    std::array const stop{stop_fd};
    while (await_readable(fds, Deadline::max())) {
        auto const now = std::chrono::steady_clock::now();
        if (await_readable(stop, now) == Readiness::readable) return;
        bool news = await_readable(host, now) == Readiness::readable;
        static_cast<void>(monitor.wait(now).has_value());
        if (filter && filter->take()) news = true;
        if (news) changed();
        if (await_readable(stop, now + crowd) == Readiness::readable) return;
    }
}

}  // namespace

Result<std::unique_ptr<HostEvents>> HostEvents::start(std::function<void()> changed) {
    // Not neighbours: on a busy network there is always one that changes, and no view shows them.
    VFMGR_TRY(auto monitor, EventMonitor::open(EventMonitor::Scope::links));
    VFMGR_TRY(auto filter, FilterMonitor::open());
    VFMGR_TRY(auto stop, make_event());
    std::unique_ptr<HostEvents> events(new HostEvents(std::move(stop)));
    events->thread_ =
        std::thread([monitor = std::move(monitor), filter = std::move(filter),
                     stop_fd = events->stop_.get(), changed = std::move(changed)]() mutable {
            follow(std::move(monitor), std::move(filter), stop_fd, changed);
        });
    return events;
}

HostEvents::~HostEvents() {
    raise_event(stop_);
    if (thread_.joinable()) thread_.join();
}

}  // namespace vfmgr
