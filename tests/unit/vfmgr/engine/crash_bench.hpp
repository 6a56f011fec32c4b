// SPDX-License-Identifier: Apache-2.0
// Enumerates crashes: the state of disk and host at every point of an operation, and whether both
// are sound after recovery from there. For crash_test.cpp.
#pragma once

#include <gtest/gtest.h>

#include <set>

#include "tests/fakes/lossy_disk.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr::example {

struct Moment {
    std::string what;
    bool power_failed = false;  // otherwise the process was killed, and the host goes on
    bool answered = false;      // the operation had ended and its client had the answer
    LossyDisk::Files disk;
    HostView host;
    std::map<PciAddress, std::string> overrides;
};

// The host after power-on: neither VFs nor running VMs.
inline HostView switched_on(HostView host) {
    host.kernel = igb_host();
    for (auto& [uuid, vm] : host.hypervisor.vms) {
        vm.state = VmState::shut_off;
        vm.live.clear();
        vm.start_id.reset();
        vm.vsock_cid.reset();
    }
    return host;
}

// Sits between the engine and the fakes: takes moments around every call of either seam, half way
// through each step, and around every durable write.
class Watched final : public Kernel, public Hypervisor {
  public:
    Watched(FakeKernel& kernel, FakeHypervisor& hypervisor, LossyDisk& disk)
        : kernel_(kernel), hypervisor_(hypervisor), disk_(disk) {
        disk_.on_sync = [this](std::string const& when) {
            if (taking_) take(when, kernel_, hypervisor_);
        };
    }
    ~Watched() override { disk_.on_sync = {}; }
    Watched(Watched const&) = delete;
    Watched& operator=(Watched const&) = delete;

    Result<KernelView> observe(KernelScope const& scope) override {
        take("observe the kernel", kernel_, hypervisor_);
        return kernel_.observe(scope);
    }
    Result<HypervisorView> observe(HypervisorScope const& scope) override {
        take("observe libvirt", kernel_, hypervisor_);
        return hypervisor_.observe(scope);
    }
    Result<Observed> perform(KernelStep const& step, Deadline deadline) override {
        return around(kernel_, step, deadline);
    }
    Result<Observed> perform(HypervisorStep const& step, Deadline deadline) override {
        return around(hypervisor_, step, deadline);
    }
    Result<std::vector<FirmwareCard>> read_firmware(
        std::optional<PciAddress> const& function) override {
        return kernel_.read_firmware(function);
    }
    Result<std::vector<PfTraffic>> read_traffic(std::optional<PciAddress> const& pf) override {
        return kernel_.read_traffic(pf);
    }
    Result<void> settle(std::string const& vm, Deadline deadline) override {
        return hypervisor_.settle(vm, deadline);
    }
    // Returns the moments that `work` passes through.
    std::vector<Moment> moments_of(std::function<void()> const& work) {
        taking_ = true;
        work();
        ended_ = true;
        take("after all", kernel_, hypervisor_);
        taking_ = false;
        return std::move(moments_);
    }
    [[nodiscard]] std::size_t points() const { return points_; }

  private:
    template <class Fake, class AnyStep>
    Result<Observed> around(Fake& fake, AnyStep const& step, Deadline deadline) {
        auto const text = sentence(step);
        take("before: " + text, kernel_, hypervisor_);
        FakeKernel kernel{kernel_.view()};
        kernel.overrides = kernel_.overrides;
        FakeHypervisor hypervisor{kernel};
        hypervisor.change([this](HypervisorView& view) { view = hypervisor_.view(); });
        kernel.fail_at = hypervisor.fail_at = Fault{0, FaultPoint::halfway};
        if constexpr (std::is_same_v<Fake, FakeKernel>)
            static_cast<void>(kernel.perform(step, deadline).has_value());
        else
            static_cast<void>(hypervisor.perform(step, deadline).has_value());
        take("half way: " + text, kernel, hypervisor);
        auto result = fake.perform(step, deadline);
        take("after: " + text, kernel_, hypervisor_);
        return result;
    }

    // The control thread writes while an operation's thread goes on.
    void take(std::string const& what, FakeKernel const& kernel, FakeHypervisor const& hypervisor) {
        HostView const host{kernel.view(), hypervisor.view()};
        std::lock_guard const lock(mutex_);
        if (!taking_) return;
        for (auto const survives : {Survives::all_writes, Survives::synced, Survives::reordered}) {
            bool const power_failed = survives != Survives::all_writes;
            Moment moment{
                what + (survives == Survives::reordered ? ", and the power fails amid writes"
                        : power_failed                  ? ", and the power fails"
                                                        : ", killed"),
                power_failed,
                ended_,
                disk_.after_crash(survives),
                power_failed ? switched_on(host) : host,
                power_failed ? decltype(kernel.overrides){} : kernel.overrides};
            ++points_;
            if (seen_.insert(key(moment)).second) moments_.push_back(std::move(moment));
        }
    }
    // Many points leave the same state: recovery from it is tried once.
    static std::string key(Moment const& moment) {
        auto all = text(moment.host.kernel) + (moment.power_failed ? "off" : "on") +
                   (moment.answered ? "answered" : "");
        for (auto const& [pci, driver] : moment.overrides) all += to_string(pci) + driver;
        for (auto const& [uuid, vm] : moment.host.hypervisor.vms) all += nlohmann::json(vm).dump();
        for (auto const& [path, content] : moment.disk)
            all += path + std::to_string(std::hash<std::string>{}(content));
        return all;
    }

    FakeKernel& kernel_;
    FakeHypervisor& hypervisor_;
    LossyDisk& disk_;
    std::mutex mutex_;
    std::atomic<bool> taking_ = false;
    std::atomic<bool> ended_ = false;
    std::size_t points_ = 0;       // guarded by mutex_
    std::set<std::string> seen_;   // guarded by mutex_
    std::vector<Moment> moments_;  // guarded by mutex_
};

inline std::size_t mentions(HypervisorView const& view, PciAddress const& pci) {
    std::size_t count = 0;
    for (auto const& [uuid, vm] : view.vms)
        for (auto const* devices : {&vm.live, &vm.config})
            count += static_cast<std::size_t>(std::ranges::count(*devices, pci, &VmHostdev::pci));
    return count;
}

// Empty when the VF is bound for its VM and has the attachment's settings.
inline std::string fault_of_attached_vf(HostView const& host, Attachment const& attachment) {
    auto const* vf = find_vf(host, attachment.vf);
    if (!vf || vf->driver != "vfio-pci") return "an attached VF is not bound";
    if (vf->settings.mac != attachment.settings.mac ||
        vf->settings.vlan != attachment.settings.vlan ||
        vf->settings.trust != attachment.settings.trust)
        return "an attached VF has other settings";
    return {};
}

// Empty when the VF is attached as the attachment requires.
inline std::string fault_of_attachment(HostView const& host, Attachment const& attachment,
                                       bool vm_runs) {
    if (attachment.state != AttachmentState::attached)
        return "an attachment is neither attached nor ended";
    if (auto fault = fault_of_attached_vf(host, attachment); !fault.empty()) return fault;
    auto const* vf = find_vf(host, attachment.vf);
    if (attachment.holder && (!vf->vfio || vf->vfio->owner != attachment.holder->uid))
        return "an external holder has not got the VF's nodes";
    auto const expected = (attachment.live && vm_runs ? 1U : 0U) + (attachment.config ? 1U : 0U);
    if (mentions(host.hypervisor, vf->pci) != expected) return "the VM has not got its VF";
    auto const* interface = find_interface(host, {attachment.vf.pf, 100});
    if (!interface || !interface->up || interface->peers.empty())
        return "the attachment's interface is not there";
    return {};
}

// Empty when the VF is free and nothing of an earlier attachment is left.
inline std::string fault_of_free(HostView const& host, VfState const& vf) {
    if (vf.driver) return "a free VF has a driver: leaked";
    if (!vf.holders.empty() || mentions(host.hypervisor, vf.pci) != 0)
        return "a free VF is in a VM: leaked";
    if (vf.settings != driver_model("igb").new_vf) return "a free VF has settings of a tenant";
    return {};
}

inline bool has_owner(DesiredState const& desired, VmHostdev const& device) {
    auto const is = [&](Attachment const& attachment) {
        return device.alias == hostdev_alias(attachment.id);
    };
    return std::ranges::any_of(desired.attachments,
                               [&](auto const& entry) { return is(entry.second); }) ||
           std::ranges::any_of(desired.quarantine,
                               [&](auto const& entry) { return is(entry.second.attachment); });
}

// Empty when each VF that is neither attached nor in quarantine is free and clean, and no VM has a
// device that is nobody's.
inline std::string fault_of_the_rest(HostView const& host, DesiredState const& desired) {
    for (auto const& vf : host.kernel.pfs.at(pf0).vfs) {
        bool const attached = std::ranges::any_of(desired.attachments, [&](auto const& attachment) {
            return attachment.second.vf.index == vf.index;
        });
        if (attached || desired.quarantine.contains({pf0, vf.index})) continue;
        if (auto fault = fault_of_free(host, vf); !fault.empty()) return fault;
    }
    for (auto const& [uuid, vm] : host.hypervisor.vms)
        for (auto const* devices : {&vm.live, &vm.config})
            for (auto const& device : *devices)
                if (!has_owner(desired, device)) return "a VM has a device that nobody attached it";
    return {};
}

// Returns why the host is neither in the old state, nor in the new one, nor in quarantine with the
// residue listed; empty when it is.
inline std::string fault_of(HostView const& host, DesiredState const& desired, bool vm_runs) {
    auto const& pf = host.kernel.pfs.at(pf0);
    if (pf.drivers_autoprobe != true) return "sriov_drivers_autoprobe is left off";
    for (auto const& vf : pf.reset_methods)
        if (vf.methods != "flr bus") return "a VF's reset_method is left changed";
    auto const desired_pf = desired.pfs.find(pf0);
    if (desired_pf != desired.pfs.end() && desired_pf->second.spec.num_vfs &&
        pf.vfs.size() != *desired_pf->second.spec.num_vfs)
        return "the number of VFs is not the one that is wanted";
    for (auto const& [id, attachment] : desired.attachments)
        if (auto fault = fault_of_attachment(host, attachment, vm_runs); !fault.empty())
            return fault;
    for (auto const& [vf, quarantine] : desired.quarantine)
        if (quarantine.residue.empty()) return "a quarantine names no residue";
    if (auto fault = fault_of_the_rest(host, desired); !fault.empty()) return fault;
    bool const bare = pf.interfaces == igb_host().pfs.at(pf0).interfaces && !pf.info.rdma_device;
    if (desired.attachments.empty() && desired.quarantine.empty() && !bare)
        return "links are left behind";
    return {};
}

}  // namespace vfmgr::example
