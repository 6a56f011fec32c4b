// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/netlink/host_events.hpp"

#include "api/os/event.hpp"
#include "vfmgr/netlink/monitor.hpp"
#include "vfmgr/netlink/packet_filter.hpp"

namespace vfmgr {
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
