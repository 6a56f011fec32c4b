// SPDX-License-Identifier: Apache-2.0
// The Hypervisor for a real libvirt. Owned by main; called from operation threads. Every call
// returns by its deadline, whatever libvirt does; on_change is called from libvirt's event thread
// and only requests a new observation.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "vfmgr/hypervisor/hostdev_presence.hpp"
#include "vfmgr/hypervisor/hypervisor.hpp"
#include "vfmgr/hypervisor/libvirt_domain.hpp"
#include "vfmgr/hypervisor/libvirt_events.hpp"
#include "vfmgr/hypervisor/libvirt_session.hpp"
#include "vfmgr/hypervisor/shared_observation.hpp"

namespace vfmgr {

class LibvirtHypervisor final : public Hypervisor {
  public:
    struct Times {
        std::chrono::milliseconds observe_max{30'000};
        // A request that the guest has not answered is repeated after this. QEMU forgets a pending
        // PCIe unplug after 5 s and refuses a second one before.
        std::chrono::milliseconds unplug_retry{10'000};
        std::chrono::milliseconds reconnect_retry{1'000};
        // Reserved from a detach's deadline, to read the live XML once more.
        std::chrono::milliseconds last_check{2'000};
    };

    // Connects on first use. The next call opens a broken connection again; on_change triggers that
    // call.
    LibvirtHypervisor(std::string uri, std::function<void()> on_change);
    LibvirtHypervisor(std::string uri, std::function<void()> on_change, Times times);
    ~LibvirtHypervisor() override;
    LibvirtHypervisor(LibvirtHypervisor const&) = delete;
    LibvirtHypervisor& operator=(LibvirtHypervisor const&) = delete;

    // If the scope's domain does not exist, the view is empty, not an error. A caller for every
    // domain that comes while an observation of them runs waits for that one, too.
    [[nodiscard]] Result<HypervisorView> observe(HypervisorScope const& scope) override;
    [[nodiscard]] Result<Observed> perform(HypervisorStep const& step, Deadline deadline) override;
    [[nodiscard]] Result<void> settle(std::string const& vm_uuid, Deadline deadline) override;

  private:
    [[nodiscard]] Result<HypervisorView> describe(HypervisorScope const& scope);
    [[nodiscard]] Result<LibvirtDomain> read(std::string const& uuid, Deadline deadline);
    struct Request;
    [[nodiscard]] Result<Observed> perform_step(AttachHostdev const& step, Deadline deadline);
    [[nodiscard]] Result<Observed> perform_step(DetachHostdev const& step, Deadline deadline);
    [[nodiscard]] Result<void> attach(AttachHostdev const& step, XmlPart part, Deadline deadline);
    [[nodiscard]] Result<void> detach_live(DetachHostdev const& step, Deadline deadline);
    [[nodiscard]] Result<void> detach_config(DetachHostdev const& step, Deadline deadline);
    [[nodiscard]] Result<void> plug(Request request, Deadline deadline);
    [[nodiscard]] Result<void> unplug(Request request, Deadline deadline);

    Times times_;
    std::shared_ptr<LibvirtEvents> events_;
    LibvirtSession session_;
    SharedObservation every_domain_;
};

}  // namespace vfmgr
