// SPDX-License-Identifier: Apache-2.0
// Events that libvirt sends: domains start and stop, devices come and go, connections close. Shared
// by the hypervisor and every connection's callbacks. The callbacks run on libvirt's event thread;
// watches belong to operation threads.
#pragma once

#include <libvirt/libvirt.h>

#include <condition_variable>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"
#include "vfmgr/hypervisor/described_vms.hpp"

namespace vfmgr {

// The latest news for a caller that waits for a device to leave a domain.
enum class UnplugNews {
    silence,          // nothing until the deadline
    refused,          // DEVICE_REMOVAL_FAILED: the guest refused
    removed,          // DEVICE_REMOVED
    stopped,          // the domain no longer runs, and no device is in it
    connection_lost,  // events may be missing: read the XML instead
};

class LibvirtEvents {
    struct Waiter {
        std::string uuid;
        std::string alias;
        UnplugNews news = UnplugNews::silence;
    };

  public:
    // `on_change` only requests a new observation. It is called with a lock held: it must return at
    // once and call nothing of this class. Before it, the VM that has changed is forgotten in
    // `described`.
    LibvirtEvents(std::function<void()> on_change, std::shared_ptr<DescribedVms> described);

    // After this has returned, on_change is never called again.
    void mute();

    // Create it before requesting the unplug, so no event falls in between.
    class Watch {
      public:
        Watch(LibvirtEvents& events, std::string uuid, std::string alias);
        ~Watch();
        Watch(Watch const&) = delete;
        Watch& operator=(Watch const&) = delete;
        // Waits for news until `deadline`, if there is none yet; returns and clears it.
        [[nodiscard]] UnplugNews next(Deadline deadline);

      private:
        LibvirtEvents& events_;
        std::list<Waiter>::iterator waiter_;
    };

    // Called from libvirt's callbacks.
    void domain_changed(std::string const& uuid, int lifecycle_event);
    void unplug_ended(std::string const& uuid, std::string const& alias, UnplugNews how);
    void device_added(std::string const& uuid);
    void connection_closed();

  private:
    void observe_again();
    template <class Matches>
    void notify(UnplugNews news, Matches matches);

    std::mutex mutex_;
    std::condition_variable changed_;
    std::list<Waiter> waiters_;
    std::mutex on_change_mutex_;
    std::function<void()> on_change_;
    std::shared_ptr<DescribedVms> const described_;
};

// Runs libvirt's default event loop in a thread of its own, for the life of the process: it can be
// registered only once, before the first connection. Keepalive needs it.
[[nodiscard]] Result<void> start_libvirt_event_loop();

// Registers for the events of all domains. The ids are for unsubscribe(). A driver that lacks an
// event is an error: a detach could not wait for it.
[[nodiscard]] Result<std::vector<int>> subscribe(virConnectPtr connection,
                                                 std::shared_ptr<LibvirtEvents> const& events);
void unsubscribe(virConnectPtr connection, std::vector<int> const& ids);

}  // namespace vfmgr
