// SPDX-License-Identifier: Apache-2.0
// Waits for the kernel without sleeping: changes of links, addresses and neighbours, and kernel
// objects that come, go or bind. The content of an event is not used: it only means "check again".
// Owned by one thread.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <thread>

#include "api/os/descriptor.hpp"
#include "api/types/problem.hpp"
#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

// Returns a socket that listens to those groups; nothing where the kernel lacks the protocol.
[[nodiscard]] Result<std::optional<NlSocketHandle>> listen_to(int protocol, unsigned groups);

class EventMonitor {
  public:
    enum class Scope {
        all,
        links,  // links, addresses and kernel objects, not neighbours
    };
    // Open it before the change whose effect is awaited.
    [[nodiscard]] static Result<EventMonitor> open(Scope scope = Scope::all);

    // Waits for any event, or for the deadline. Takes all pending events.
    [[nodiscard]] Result<Readiness> wait(Deadline deadline);
    // For a poll loop of the caller: readable means that wait() would return at once.
    [[nodiscard]] std::array<int, 2> fds() const;

  private:
    EventMonitor(NlSocketHandle links, NlSocketHandle objects)
        : links_(std::move(links)), objects_(std::move(objects)) {}

    NlSocketHandle links_;
    NlSocketHandle objects_;
};

enum class Waited { holds, deadline_passed };
// Calls `holds` now, after each event, and once more at the deadline.
[[nodiscard]] Result<Waited> wait_until(EventMonitor& monitor, Deadline deadline,
                                        std::function<Result<bool>()> const& holds);

// Reports the kernel's own events: links and addresses change, devices come, go and bind, another
// program changes vfmgr's packet filter. Requests only a new observation, from a thread of its own.

class HostEvents {
  public:
    // `changed` may be called until the destructor has returned; it must return at once.
    [[nodiscard]] static Result<std::unique_ptr<HostEvents>> start(std::function<void()> changed);
    ~HostEvents();
    HostEvents(HostEvents const&) = delete;
    HostEvents& operator=(HostEvents const&) = delete;

  private:
    explicit HostEvents(FileDescriptor stop) : stop_(std::move(stop)) {}

    FileDescriptor stop_;  // an eventfd
    std::thread thread_;
};

}  // namespace vfmgr
