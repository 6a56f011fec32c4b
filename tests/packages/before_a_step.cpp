// SPDX-License-Identifier: Apache-2.0
// One connection of the broker on a host that has nothing: what the linker keeps of the project is
// what a front's bytes reach in the broker's own process, as root, before a step is admitted, and
// little more. Compiled by test_before_a_step.py; never run.
#include "service/broker/serve.hpp"

namespace vfmgr {
namespace {

class NoKernel final : public Kernel {
    Result<KernelView> observe(KernelScope const&) override { return {}; }
    Result<Observed> perform(KernelStep const&, Deadline) override { return {}; }
    Result<std::vector<FirmwareCard>> read_firmware(std::optional<PciAddress> const&) override {
        return {};
    }
    Result<std::vector<PfTraffic>> read_traffic(std::optional<PciAddress> const&) override {
        return {};
    }
};

class NoHypervisor final : public Hypervisor {
    Result<HypervisorView> observe(HypervisorScope const&) override { return {}; }
    Result<Observed> perform(HypervisorStep const&, Deadline) override { return {}; }
    Result<void> settle(std::string const&, Deadline) override { return {}; }
};

}  // namespace
}  // namespace vfmgr

int main() {
    using namespace vfmgr;
    NoKernel kernel;
    NoHypervisor hypervisor;
    broker::Collectors const collectors;
    broker::StepsUnderway underway;
    auto const keeper = broker::Keeper::open("records");
    if (!keeper) return 1;
    broker::Service(FileDescriptor(0), 1, HostRules{},
                    {kernel, hypervisor, collectors, **keeper, underway})
        .run("0");
}
