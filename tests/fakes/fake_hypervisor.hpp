// SPDX-License-Identifier: Apache-2.0
// A Hypervisor that behaves like libvirt with QEMU. A live attachment makes "QEMU" hold the VF's
// group in the linked FakeKernel. Any thread; public members are set before threads start.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "tests/fakes/fake_kernel.hpp"
#include "tests/fakes/fault.hpp"
#include "vfmgr/hypervisor/hypervisor.hpp"

namespace vfmgr {

// How a live detach ends. not_done: it returns success while the live XML still has the device and
// the config has lost it, as libvirt does on time-out (vfmgr/hypervisor/LIBVIRT.md#detaching).
// times_out: the guest does not let the device go, and the call reports so.
enum class DetachBehaviour { works, not_done, times_out };

class FakeHypervisor final : public Hypervisor {
  public:
    explicit FakeHypervisor(FakeKernel& kernel);

    Result<HypervisorView> observe(HypervisorScope const& scope) override;
    Result<Observed> perform(HypervisorStep const& step, Deadline deadline) override;
    Result<void> settle(std::string const& vm_uuid, Deadline deadline) override;

    DetachBehaviour detach = DetachBehaviour::works;
    bool says_when = true;  // false: the view has the time of one never observed
    // False: steps() and performed() know of none, and no fault comes; for a daemon that runs long.
    bool keeps_steps = true;
    std::optional<Fault> fail_at;
    std::optional<Fault> die_at;
    std::optional<Error> observe_error;
    std::function<void(HypervisorStep const&)> on_perform;  // before each step, without the lock

    [[nodiscard]] HypervisorView view() const;
    void change(std::function<void(HypervisorView&)> const& edit);
    void add(VmInfo vm);
    // The VM's power switch. start() takes the config's devices, as libvirt does; it binds those
    // with managed='yes' to vfio-pci, and stop() and an unplug to the host's driver again.
    [[nodiscard]] Result<void> start(std::string const& uuid);
    void stop(std::string const& uuid);

    [[nodiscard]] std::size_t performed() const;
    [[nodiscard]] std::vector<HypervisorStep> steps() const;
    [[nodiscard]] std::size_t settled() const;
    [[nodiscard]] std::size_t observed() const;

  private:
    Result<Observed> effect(HypervisorStep const& step, FaultPoint until);
    Result<Observed> attach(AttachHostdev const& step, FaultPoint until);
    Result<Observed> place(PlaceHostdevs const& step);
    Result<Observed> mark(MarkHostdev const& step);
    void bind_managed(VmHostdev const& device, std::optional<std::string> const& driver);
    Result<Observed> add_vsock(AddVsock const& step, FaultPoint until);
    Result<Observed> remove(DetachHostdev const& step, FaultPoint until);
    [[nodiscard]] HypervisorView part(HypervisorScope const& scope) const;
    [[nodiscard]] Result<VmInfo*> vm(std::string const& uuid);
    [[nodiscard]] Result<void> may_go_live(VmInfo const& vm, AttachHostdev const& step) const;
    [[nodiscard]] Result<void> usable(VmInfo const& vm, PciAddress const& pci) const;

    FakeKernel& kernel_;
    mutable std::mutex mutex_;
    HypervisorView view_;
    std::vector<HypervisorStep> steps_;
    std::size_t settled_ = 0;
    std::size_t observed_ = 0;
    std::int32_t next_start_id_ = 1;
};

// Makes a running, persistent VM with vsock and two free PCIe ports.
[[nodiscard]] VmInfo make_vm(std::string name, std::string uuid);

}  // namespace vfmgr
