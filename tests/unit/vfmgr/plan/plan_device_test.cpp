// SPDX-License-Identifier: Apache-2.0
// An attachment's decisions on the device itself: the GUIDs of an InfiniBand VF, its VFIO driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "tests/unit/vfmgr/plan/example_host.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

struct Infiniband {
    HostView view = host();
    Infiniband() {
        auto& pf = view.kernel.pfs[pf_address];
        pf.info.link_layer = LinkLayer::infiniband;
        for (auto& vf : pf.vfs) {
            vf.settings = {};
            vf.settings.node_guid = vf.settings.port_guid = Guid{};
        }
    }
    [[nodiscard]] Result<AttachmentPlan> attach(VfSpec const& settings = {}) const {
        auto spec = ask();
        spec.network.reset();
        spec.settings = settings;
        return plan(view, desired(), spec);
    }
    VfState& vf(std::size_t index) { return view.kernel.pfs[pf_address].vfs[index]; }
};

TEST(PlanDevice, AnInfinibandVfGetsGuidsOfItsOwn) {
    Infiniband ib;
    ib.vf(0).settings.port_guid = Guid{0x42};  // an old tenant's, which mlx5 gave to the VF
    auto const planned = ib.attach().value();
    auto const& [settings, baseline] =
        std::tie(planned.attachment.settings, planned.attachment.baseline);
    auto const guid = settings.port_guid.value();
    EXPECT_EQ(settings.node_guid, guid);
    EXPECT_EQ(guid.value >> 56U & 3U, 2U) << "no maker's, one port's";
    EXPECT_EQ(settings.mac, std::nullopt);
    EXPECT_EQ(baseline.port_guid, Guid{0x42});
    EXPECT_THAT(planned.plan.notes,
                testing::Contains("port GUID " + to_string(guid) + " was chosen: none was given"));
    EXPECT_EQ(ib.attach()->attachment.settings.port_guid, guid) << "stable";
    ib.vf(5).settings.node_guid = guid;
    EXPECT_NE(ib.attach()->attachment.settings.port_guid, guid) << "somebody has it";
}

// Without IPoIB the host has no address in the network: waiting for the VM would be in vain, and
// blame it.
TEST(PlanDevice, AnInfinibandVfIsVerifiedWhereTheHostHasIpoib) {
    Infiniband ib;
    auto spec = ask();
    spec.network = "plain";
    spec.verify_every_seconds = 60;
    auto const refuse = [&] {
        auto const refused = plan(ib.view, desired(), spec);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().problem, Problem::unsupported);
        EXPECT_EQ(
            refused.error().detail,
            "enp1s0 is an InfiniBand PF without an IPoIB interface, so the host can't answer a "
            "VM over it");
        EXPECT_EQ(refused.error().remedy, "load IPoIB on the host: modprobe ib_ipoib");
    };
    refuse();
    spec.verify_every_seconds = 0;
    for (auto const mode : {VerifyMode::background, VerifyMode::required}) {
        spec.verify = mode;
        refuse();
    }
    spec.verify = VerifyMode::none;
    EXPECT_TRUE(plan(ib.view, desired(), spec));
    ib.view.kernel.pfs[pf_address].info.port_guid = Guid{0x0002'c9ff'fe11'0001};
    ib.view.kernel.pfs[pf_address].info.rdma_device = "mlx5_0";
    for (auto const mode : {VerifyMode::background, VerifyMode::required}) {
        spec.verify = mode;
        auto const planned = plan(ib.view, desired(), spec);
        EXPECT_TRUE(planned) << planned.error().detail;
    }
}

TEST(PlanDevice, AGuidThatIsGivenIsTheOtherOnesToo) {
    Infiniband const ib;
    VfSpec requested;
    requested.node_guid = Guid{0x42};
    EXPECT_EQ(ib.attach(requested)->attachment.settings.port_guid, Guid{0x42});
    requested.port_guid = Guid{0x43};
    auto const both = ib.attach(requested).value();
    EXPECT_EQ(both.attachment.settings, requested);
    EXPECT_THAT(both.plan.notes, IsEmpty());
}

TEST(PlanDevice, RefusesAGuidThatSomebodyHas) {
    Infiniband ib;
    ib.vf(5).settings.port_guid = Guid{0x42};
    VfSpec requested;
    requested.node_guid = Guid{0x42};
    auto const refused = ib.attach(requested).error();
    EXPECT_EQ(refused.problem, Problem::conflict);
    EXPECT_EQ(refused.detail, "GUID 00:00:00:00:00:00:00:42 is already used by VF 5 of enp1s0");
    ib.vf(0).settings.node_guid = Guid{0x44};
    requested.node_guid = Guid{0x44};
    EXPECT_TRUE(ib.attach(requested)) << "the VF's own";
}

struct WithVariant {
    HostView view = host();
    DesiredState goal = desired();
    WithVariant() {
        view.kernel.pfs[pf_address].info.vfio_variant = {"mlx5_vfio_pci", "mlx5-vfio-pci"};
        view.hypervisor.vfio_variants = true;
    }
    // Returns the VF's driver, which the attachment stores.
    [[nodiscard]] std::string driver() const {
        auto const planned = plan(view, goal, ask()).value();
        EXPECT_EQ(steps_of<BindVfs>(planned.plan),
                  (std::vector<BindVfs>{{pf_address, {0}, planned.attachment.driver}}));
        return planned.attachment.driver;
    }
    [[nodiscard]] std::string note() const {
        auto const notes = plan(view, goal, ask()).value().plan.notes;
        for (auto const& each : notes)
            if (each.starts_with("the VF gets vfio-pci, not mlx5_vfio_pci: ")) return each;
        return "";
    }
};

TEST(PlanDevice, GivesTheVfTheVfioDriverMadeForIt) {
    WithVariant const with;
    EXPECT_EQ(with.driver(), "mlx5-vfio-pci");
    EXPECT_EQ(with.note(), "");
}

TEST(PlanDevice, AVariantIsTakenOnlyWhereItCanBeUsed) {
    WithVariant with;
    with.view.hypervisor.vfio_variants = false;
    EXPECT_EQ(with.driver(), "vfio-pci");
    EXPECT_THAT(with.note(), HasSubstr("libvirt before 10.0"));
    with = {};
    with.view.kernel.pfs[pf_address].info.vfio_variant->driver.reset();
    EXPECT_EQ(with.driver(), "vfio-pci");
    EXPECT_THAT(with.note(), HasSubstr("modprobe mlx5_vfio_pci"));
    with = {};
    with.goal.pfs[pf_address].spec.vf_driver = "vfio-pci";
    EXPECT_EQ(with.driver(), "vfio-pci") << "the admin says so";
    EXPECT_EQ(with.note(), "") << "no news to the admin";
    with.goal.pfs[pf_address].spec.vf_driver = "mlx5_core";
    EXPECT_EQ(with.driver(), "mlx5-vfio-pci") << "the unused VFs' driver is another matter";
}

}  // namespace
}  // namespace vfmgr
