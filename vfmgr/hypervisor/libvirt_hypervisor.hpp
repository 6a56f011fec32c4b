// SPDX-License-Identifier: Apache-2.0
// The hypervisor seam by libvirt. Any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "vfmgr/hypervisor/described_vms.hpp"
#include "vfmgr/hypervisor/domain_xml.hpp"
#include "vfmgr/hypervisor/hypervisor.hpp"
#include "vfmgr/hypervisor/libvirt_domain.hpp"
#include "vfmgr/hypervisor/libvirt_events.hpp"
#include "vfmgr/hypervisor/libvirt_session.hpp"
#include "vfmgr/plan/host_view.hpp"

namespace vfmgr {

// Makes one observation for all callers that came before it began: when a host is repaired, eight
// PFs need one at once. A caller that comes during an observation waits for the next one, since
// what it is about to do depends on what has happened until then. Any thread.
class SharedObservation {
  public:
    using Observe = std::function<Result<HypervisorView>()>;

    // Runs `observe` here, or returns another caller's result that began later than this call.
    [[nodiscard]] Result<HypervisorView> ask(Observe const& observe);
    // The number of callers that the next observation will serve.
    [[nodiscard]] std::size_t waiting() const;

  private:
    struct Round {
        std::size_t callers = 0;
        std::optional<Result<HypervisorView>> found;
    };

    mutable std::mutex mutex_;
    std::condition_variable ended_;
    std::shared_ptr<Round> next_;  // not begun yet; empty: no caller waits
    bool observing_ = false;
};

struct LibvirtTimes {
    std::chrono::milliseconds observe_max{30'000};
    // A request that the guest has not answered is repeated after this. QEMU forgets a pending PCIe
    // unplug after 5 s and refuses a second one before.
    std::chrono::milliseconds unplug_retry{10'000};
    std::chrono::milliseconds reconnect_retry{1'000};
    // Reserved from a detach's deadline, to read the live XML once more.
    std::chrono::milliseconds last_check{2'000};
};

// The Hypervisor for a real libvirt. Owned by main; called from operation threads. Every call
// returns by its deadline, whatever libvirt does; on_change is called from libvirt's event thread
// and only requests a new observation.

class LibvirtHypervisor final : public Hypervisor {
  public:
    // Connects on first use. The next call opens a broken connection again; on_change triggers that
    // call.
    LibvirtHypervisor(std::string uri, std::function<void()> on_change, LibvirtTimes times = {});
    ~LibvirtHypervisor() override;
    LibvirtHypervisor(LibvirtHypervisor const&) = delete;
    LibvirtHypervisor& operator=(LibvirtHypervisor const&) = delete;

    // If the scope's domain does not exist, the view is empty, not an error. Of all domains, those
    // are described again whose files have changed. A call for all domains that comes while another
    // one observes them waits for that one, too.
    [[nodiscard]] Result<HypervisorView> observe(HypervisorScope const& scope) override;
    [[nodiscard]] Result<Observed> perform(HypervisorStep const& step, Deadline deadline) override;
    [[nodiscard]] Result<void> settle(std::string const& vm_uuid, Deadline deadline) override;

  private:
    [[nodiscard]] Result<HypervisorView> describe(HypervisorScope const& scope);
    [[nodiscard]] Result<LibvirtDomain> read(std::string const& uuid, Deadline deadline);
    // As read(), with what an observation of the VM returns.
    struct ReadBack;
    [[nodiscard]] Result<ReadBack> read_back(std::string const& uuid, Deadline deadline);
    struct Request;
    [[nodiscard]] Result<Observed> perform_step(AttachHostdev const& step, Deadline deadline);
    [[nodiscard]] Result<Observed> perform_step(DetachHostdev const& step, Deadline deadline);
    [[nodiscard]] Result<Observed> perform_step(MarkHostdev const& step, Deadline deadline);
    [[nodiscard]] Result<Observed> perform_step(AddVsock const& step, Deadline deadline);
    [[nodiscard]] Result<Observed> perform_step(PlaceHostdevs const& step, Deadline deadline);
    [[nodiscard]] Result<ReadBack> attach(AttachHostdev const& step, XmlPart part,
                                          LibvirtDomain const& before, Deadline deadline);
    [[nodiscard]] Result<void> detach_live(DetachHostdev const& step, Deadline deadline);
    [[nodiscard]] Result<void> detach_config(DetachHostdev const& step, Deadline deadline);
    [[nodiscard]] Result<void> ask(Request request, Deadline deadline);

    LibvirtTimes times_;
    std::shared_ptr<DescribedVms> described_;
    std::shared_ptr<LibvirtEvents> events_;
    LibvirtSession session_;
    SharedObservation every_domain_;
};

}  // namespace vfmgr
