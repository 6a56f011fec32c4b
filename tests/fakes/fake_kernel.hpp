// SPDX-License-Identifier: Apache-2.0
// A Kernel that behaves: its state is a KernelView, and steps change it as Linux and the PF's
// driver would, refusals included. Its claims are checked against the real kernel in the lab. Any
// thread; the public members are set before the test's threads start.
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

    // The behaviour of a PF's driver; igb's where none is named.
    std::map<PciAddress, DriverModel> models;
    // What drivers that count have counted of VFs; a reset clears it. igb counts nothing.
    std::map<VfId, VfCounters> counters;
    // driver_override of functions that have one, which no look shows.
    std::map<PciAddress, std::string> overrides;
    std::optional<Fault> fail_at;
    std::optional<Fault> die_at;
    std::optional<Error> observe_error;
    // Called before each step, without the lock: a test blocks or looks here.
    std::function<void(KernelStep const&)> on_perform;

    [[nodiscard]] KernelView view() const;
    // Somebody else changes the host.
    void change(std::function<void(KernelView&)> const& edit);
    // Somebody else changes the cards' firmware; none has any before.
    void change_firmware(std::function<void(std::vector<FirmwareCard>&)> const& edit);
    // The host starts anew: cards take over what they have for their next reset.
    void reboot_cards(std::string const& boot_id);
    // A process opens and closes the VFIO group of the function at `pci`.
    void hold(PciAddress const& pci, VfioHolder const& holder);
    void release(PciAddress const& pci, std::int32_t pid);
    // A netdev comes, and goes with the RDMA links on it.
    void add_netdev(std::string const& name, NetdevState const& netdev);
    void remove_netdev(std::string const& name);

    [[nodiscard]] std::size_t performed() const;  // calls of perform(), refused ones too
    [[nodiscard]] std::size_t observed() const;
    [[nodiscard]] std::vector<KernelStep> steps() const;  // in order, refused ones too
    [[nodiscard]] std::size_t resets(VfId const& vf) const;

  private:
    struct Effects;

    [[nodiscard]] DriverModel const& model(PciAddress const& pf) const;
    Result<Observed> effect(KernelStep const& step, FaultPoint until);

    mutable std::mutex mutex_;
    KernelView host_;
    std::vector<KernelStep> steps_;
    std::map<VfId, std::size_t> resets_;
    std::map<VfId, VfSpec> guids_;  // what a driver keeps of VFs that are gone
    std::vector<FirmwareCard> cards_;
    std::size_t observed_ = 0;
};

}  // namespace vfmgr
