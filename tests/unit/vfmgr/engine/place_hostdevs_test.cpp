// SPDX-License-Identifier: Apache-2.0
// Placing a VM's devices, from the request to libvirt's XML.
#include <gmock/gmock.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

PciAddress const gpu{0, 0x41, 0, 0};

// A GPU below the PF's switch; the VM is shut off and has it, and a VF of the PF.
struct Placing : testing::Test {
    Placing() {
        PciPlace place{pf0, {{PciAddress{0, 0, 1, 0}}, {PciAddress{0, 2, 0, 0}}}, 0, {}, {}};
        place.above.push_back({PciAddress{0, 3, 0, 0}});
        auto of_gpu = place;
        of_gpu.address = gpu;
        of_gpu.above.back().address = {0, 3, 1, 0};
        kernel.change([&](KernelView& view) { view.places = {{of_gpu}, {place}, {}, {}}; });
        auto vm = make_vm("vm1", vm1);
        vm.config.push_back({gpu, std::nullopt});
        vm.pcie = GuestPcie{3, {4, 5}, {}, {}};
        hypervisor.add(std::move(vm));
        hypervisor.stop(vm1);
        bench.emplace(kernel, hypervisor, folder.path());
        bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
        EXPECT_EQ(bench->run(Attach{ask()}).state, OperationState::succeeded);
    }
    [[nodiscard]] VmInfo vm() const { return hypervisor.view().vms.at(vm1); }

    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::optional<Bench> bench;
};

TEST_F(Placing, IsAnOperationOnTheVm) {
    auto const done = bench->run(PlaceInVm{"vm1", false});
    ASSERT_EQ(done.state, OperationState::succeeded) << done.problem->detail;
    EXPECT_EQ(done.kind, OperationKind::place_hostdevs);
    EXPECT_EQ(done.subject, "/v1/vms/" + std::string(vm1));
    EXPECT_THAT(vm().pcie->placed, SizeIs(2));
    EXPECT_EQ(bench->run(PlaceInVm{"vm1", true}).state, OperationState::succeeded);
    EXPECT_THAT(vm().pcie->placed, IsEmpty());
}

TEST_F(Placing, IsUndoneWhenLibvirtFails) {
    hypervisor.fail_at = Fault{hypervisor.performed(), FaultPoint::after};
    auto const done = bench->run(PlaceInVm{"vm1", false});
    EXPECT_EQ(done.state, OperationState::failed);
    EXPECT_THAT(vm().pcie->placed, IsEmpty());
}

TEST_F(Placing, IsRefusedWhileTheVmRuns) {
    ASSERT_TRUE(hypervisor.start(vm1));
    observe_anew(*bench);
    auto const refused = bench->run(PlaceInVm{"vm1", false});
    ASSERT_TRUE(refused.problem);
    EXPECT_THAT(refused.problem->remedy, HasSubstr("virsh shutdown"));
}

}  // namespace
}  // namespace vfmgr
