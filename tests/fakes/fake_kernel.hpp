// SPDX-License-Identifier: Apache-2.0
// A Kernel that behaves: its state is a KernelView, and steps change it as Linux and the PF's
// driver would, refusals included. The lab checks its claims against the real kernel. Any thread;
// public members are set before the test's threads start.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "tests/fakes/driver_model.hpp"
#include "tests/fakes/fault.hpp"
#include "vfmgr/kernel/kernel.hpp"

namespace vfmgr {

class FakeKernel final : public Kernel {
  public:
    explicit FakeKernel(KernelView host = {});

    Result<KernelView> observe(KernelScope const& scope) override;
    Result<Observed> perform(KernelStep const& step, Deadline deadline) override;
    Result<std::vector<FirmwareCard>> read_firmware(
        std::optional<PciAddress> const& function) override;
    Result<std::vector<PfTraffic>> read_traffic(std::optional<PciAddress> const& pf) override;

    // How each PF's driver behaves; igb where none is named.
    std::map<PciAddress, DriverModel> models;
    // VF counters of the drivers that count; a reset clears them. igb counts nothing.
    std::map<VfId, VfCounters> counters;
    std::map<PciAddress, std::map<std::string, std::uint64_t>> rdma_hw_counters;
    // driver_override of the functions that have one; no observation shows it.
    std::map<PciAddress, std::string> overrides;
    // False: steps() and performed() know of none, and no fault comes; for a daemon that runs long.
    bool keeps_steps = true;
    std::optional<Fault> fail_at;
    std::optional<Fault> die_at;
    std::optional<Error> observe_error;
    // Called before each step, without the lock: a test blocks or inspects the state here.
    std::function<void(KernelStep const&)> on_perform;

    [[nodiscard]] KernelView view() const;
    // Another program changes the host.
    void change(std::function<void(KernelView&)> const& edit);
    // Another program changes the cards' firmware; no card has any before.
    void change_firmware(std::function<void(std::vector<FirmwareCard>&)> const& edit);
    // Packets went through a VF; its counters become these.
    void count(VfId const& vf, VfCounters const& now);
    void count(PciAddress const& pf, std::map<std::string, std::uint64_t> const& now);
    // The host reboots: cards apply what is pending for their next reset.
    void reboot_cards(std::string const& boot_id);
    // A process opens and closes the VFIO group of the function at `pci`.
    void hold(PciAddress const& pci, VfioHolder const& holder);
    void release(PciAddress const& pci, std::int32_t pid);
    // Adds and removes a netdev; the RDMA links on it go with it.
    void add_netdev(std::string const& name, NetdevState const& netdev);
    void remove_netdev(std::string const& name);

    [[nodiscard]] std::size_t performed() const;  // calls of perform(), including refused ones
    [[nodiscard]] std::size_t observed() const;
    [[nodiscard]] std::vector<KernelStep> steps() const;  // in order, including refused ones
    [[nodiscard]] std::size_t resets(VfId const& vf) const;
    // By the PF's driver, as it changed a setting.
    [[nodiscard]] std::size_t driver_resets(VfId const& vf) const;

  private:
    struct Effects;

    [[nodiscard]] DriverModel const& model(PciAddress const& pf) const;
    Result<Observed> effect(KernelStep const& step, FaultPoint until);

    mutable std::mutex mutex_;
    KernelView host_;
    std::vector<KernelStep> steps_;
    std::map<VfId, std::size_t> resets_;
    std::map<VfId, std::size_t> driver_resets_;
    std::map<VfId, VfSpec> guids_;  // what a driver keeps for VFs that are gone
    std::vector<FirmwareCard> cards_;
    std::size_t observed_ = 0;
};

}  // namespace vfmgr
