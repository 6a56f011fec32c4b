// SPDX-License-Identifier: Apache-2.0
// Waiting for the kernel without sleeping: changes of links, addresses and neighbours, and kernel
// objects coming, going, binding. What an event says is not used: it only means "look again".
// Owned by one thread.
#pragma once

#include <array>
#include <functional>

#include "vfmgr/netlink/socket.hpp"

namespace vfmgr {

// A socket in those groups; nothing where the kernel has no such protocol.
[[nodiscard]] Result<std::optional<NlSocketHandle>> listen_to(int protocol, unsigned groups);

class EventMonitor {
  public:
    enum class Scope {
        all,
        links,  // links, addresses and kernel objects, not neighbours
    };
    // Open it before the change whose effect is awaited.
    [[nodiscard]] static Result<EventMonitor> open(Scope scope = Scope::all);

    // Until anything happened, or the deadline. Takes all that is there.
    [[nodiscard]] Result<Readiness> wait(Deadline deadline);
    // For a poll loop of the caller's: readable means that wait() would return at once.
    [[nodiscard]] std::array<int, 2> fds() const;

  private:
    EventMonitor(NlSocketHandle links, NlSocketHandle objects)
        : links_(std::move(links)), objects_(std::move(objects)) {}

    NlSocketHandle links_;
    NlSocketHandle objects_;
};

enum class Waited { holds, deadline_passed };
// Asks `holds` now, after each event, and once more at the deadline.
[[nodiscard]] Result<Waited> wait_until(EventMonitor& monitor, Deadline deadline,
                                        std::function<Result<bool>()> const& holds);

}  // namespace vfmgr
