// SPDX-License-Identifier: Apache-2.0
// What each kernel step does to a KernelView, in fake_vfs.cpp (VFs), fake_links.cpp (interfaces)
// and fake_rdma_links.cpp. For FakeKernel only, under its lock.
#pragma once

#include "tests/fakes/fake_kernel.hpp"

namespace vfmgr {

// "half": a step with several parts does only its first part (FaultPoint::halfway).
enum class Extent { whole, half };

struct FakeKernel::Effects {
    KernelView& host;
    DriverModel const& model;
    std::map<VfId, std::size_t>& resets;
    std::map<VfId, std::size_t>& driver_resets;
    std::map<VfId, VfSpec>& guids;
    std::map<VfId, VfCounters>& counters;
    std::vector<FirmwareCard>& cards;
    std::map<PciAddress, std::string>& overrides;
    Extent extent = Extent::whole;

    using Outcome = Result<Observed>;

    Outcome operator()(SetNumVfs const& step) const;
    Outcome operator()(ConfigureVfs const& step) const;
    Outcome operator()(BindVfs const& step) const;
    Outcome operator()(ResetVf const& step) const;
    Outcome operator()(SetPciValues const& step) const;
    Outcome operator()(AttachExternal const& step) const;
    Outcome operator()(DetachExternal const& step) const;
    Outcome operator()(SetLink const& step) const;
    Outcome operator()(AwaitCarrier const& step) const;
    Outcome operator()(AddVlanInterface const& step) const;
    Outcome operator()(RemoveVlanInterface const& step) const;
    Outcome operator()(AddAddress const& step) const;
    Outcome operator()(RemoveAddress const& step) const;
    Outcome operator()(AddPeer const& step) const;
    Outcome operator()(RemovePeer const& step) const;
    Outcome operator()(AddRdmaLink const& step) const;
    Outcome operator()(RemoveRdmaLink const& step) const;
    Outcome operator()(SetFirmware const& step) const;
    Outcome operator()(AddSoftRdmaLink const& step) const;
    Outcome operator()(RemoveSoftRdmaLink const& step) const;

  private:
    Result<void> bind(PciAddress const& pf, VfState& target, std::string const& driver) const;
    [[nodiscard]] Result<PfState*> pf(PciAddress const& address) const;
    [[nodiscard]] Result<VfState*> vf(VfId const& id) const;
    [[nodiscard]] Result<HostInterface*> interface(InterfaceId const& id) const;
    void drop_routes(HostInterface& interface) const;
};

// "the kernel refused …: <call>: <errno>" with the cause.
[[nodiscard]] tl::unexpected<Error> refused(std::string detail, std::string call, int error);

}  // namespace vfmgr
