// SPDX-License-Identifier: Apache-2.0
// Each driver's quirks through FakeKernel, and what happens to attachments on each driver.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"
#include "vfmgr/engine/restore.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

KernelView host_with(DriverModel const& model) {
    KernelView view;
    view.pfs[pf0] = make_pf(model, "0000:01:00.0", "enp1s0");
    return view;
}

struct Host {
    FakeKernel kernel;
    FakeHypervisor hypervisor{kernel};

    explicit Host(DriverModel const& model) : kernel(host_with(model)) {
        kernel.models[pf0] = model;
        for (auto const* uuid : {vm1, vm2}) {
            hypervisor.add(make_vm(uuid == vm1 ? "vm1" : "vm2", uuid));
            EXPECT_TRUE(hypervisor.start(uuid));
        }
    }
    [[nodiscard]] VfSpec settings(std::uint16_t index) const {
        return kernel.view().pfs.at(pf0).vfs.at(index).settings;
    }
    // Returns the driver's refusal of one spec for VF 0; empty: the driver accepts it.
    std::string answer(VfSpec const& spec) {
        auto const done = kernel.perform(ConfigureVfs{pf0, {{0, spec}}, {}}, {});
        return done ? "" : done.error().causes.at(0).code;
    }
    Result<Observed> make_vfs(std::uint16_t count) {
        return kernel.perform(SetNumVfs{pf0, count}, {});
    }
    void set_link(bool up, bool carrier) {
        kernel.change([&](KernelView& view) {
            auto& pf = view.pfs.at(pf0);
            pf.info.up = pf.interfaces.at(0).up = up;
            pf.info.carrier = carrier;
        });
    }
};

template <auto Member, class T>
VfSpec with(T value) {
    VfSpec settings;
    settings.*Member = value;
    return settings;
}

// One line for each quirk: the driver, the request, its answer.
struct Quirk {
    char const* model;
    VfSpec spec;
    char const* answer;
    bool up = true;
    bool carrier = true;
};

class Quirks : public testing::TestWithParam<Quirk> {};

TEST_P(Quirks, AsTheFactsSay) {
    auto const& [model, asked, answer, up, carrier] = GetParam();
    Host host(driver_model(model));
    ASSERT_TRUE(host.make_vfs(2));
    host.set_link(up, carrier);
    auto const before = host.settings(0);
    EXPECT_EQ(host.answer(asked), answer) << model << " " << nlohmann::json(asked).dump();
    EXPECT_EQ(host.settings(0) == before, *answer != '\0') << "refused means unchanged";
}

auto const dot1ad = with<&VfSpec::vlan>(Vlan{100, 0, VlanProtocol::dot1ad});
auto const tagged = with<&VfSpec::vlan>(Vlan{100});
auto const with_qos = with<&VfSpec::vlan>(Vlan{100, 3});
auto const trusted = with<&VfSpec::trust>(true);
auto const some_mac = with<&VfSpec::mac>(MacAddress{{0x02, 0, 0, 0, 0, 7}});
auto const multicast = with<&VfSpec::mac>(MacAddress{{0x03, 0, 0, 0, 0, 7}});
auto const min_rate = with<&VfSpec::min_tx_rate_mbps>(100U);
auto const max_rate = with<&VfSpec::max_tx_rate_mbps>(100U);
auto const no_spoofchk = with<&VfSpec::spoofchk>(false);
auto const link_on = with<&VfSpec::link_state>(LinkState::enable);
auto const no_roce = with<&VfSpec::roce>(false);
auto const node_guid = with<&VfSpec::node_guid>(Guid{7});
auto const port_guid = with<&VfSpec::port_guid>(Guid{7});

INSTANTIATE_TEST_SUITE_P(
    Igb, Quirks,
    testing::Values(Quirk{"igb", some_mac, ""}, Quirk{"igb", multicast, "EINVAL"},
                    Quirk{"igb", tagged, ""}, Quirk{"igb", dot1ad, "EPROTONOSUPPORT"},
                    Quirk{"igb", link_on, "EOPNOTSUPP"}, Quirk{"igb", min_rate, "EINVAL"},
                    Quirk{"igb", max_rate, ""}, Quirk{"igb", max_rate, "EINVAL", true, false},
                    Quirk{"igb", node_guid, "EOPNOTSUPP"}));
INSTANTIATE_TEST_SUITE_P(
    OtherIntel, Quirks,
    testing::Values(Quirk{"ixgbe", dot1ad, "EPROTONOSUPPORT"}, Quirk{"ixgbe", min_rate, "EINVAL"},
                    Quirk{"ixgbe", max_rate, "EINVAL", true, false}, Quirk{"ixgbe", link_on, ""},
                    Quirk{"i40e", dot1ad, "EPROTONOSUPPORT"}, Quirk{"i40e", min_rate, "EINVAL"},
                    Quirk{"i40e", max_rate, ""}, Quirk{"ice", dot1ad, "EPROTONOSUPPORT"},
                    Quirk{"ice", min_rate, ""}));
INSTANTIATE_TEST_SUITE_P(Bnxt, Quirks,
                         testing::Values(Quirk{"bnxt_en", some_mac, ""},
                                         Quirk{"bnxt_en", some_mac, "EINVAL", false},
                                         Quirk{"bnxt_en", trusted, "EINVAL", false},
                                         Quirk{"bnxt_en", dot1ad, "EPROTONOSUPPORT"},
                                         Quirk{"bnxt_en", with_qos, "EINVAL"},
                                         Quirk{"bnxt_en", multicast, "EINVAL"}));
INSTANTIATE_TEST_SUITE_P(
    Mlx5, Quirks,
    testing::Values(Quirk{"mlx5", dot1ad, "EPROTONOSUPPORT"}, Quirk{"mlx5", min_rate, ""},
                    Quirk{"mlx5", port_guid, "EOPNOTSUPP"}, Quirk{"mlx5", link_on, ""},
                    Quirk{"mlx5_switchdev", tagged, "EOPNOTSUPP"},
                    Quirk{"mlx5_switchdev", trusted, "EOPNOTSUPP"},
                    Quirk{"mlx5_switchdev", no_spoofchk, "EOPNOTSUPP"},
                    Quirk{"mlx5_switchdev", max_rate, "EOPNOTSUPP"},
                    Quirk{"mlx5_switchdev", some_mac, ""}, Quirk{"mlx5_switchdev", no_roce, ""},
                    Quirk{"mlx5", no_roce, "EOPNOTSUPP"}));
INSTANTIATE_TEST_SUITE_P(Mlx5Infiniband, Quirks,
                         testing::Values(Quirk{"mlx5_infiniband", some_mac, "EOPNOTSUPP"},
                                         Quirk{"mlx5_infiniband", tagged, "EOPNOTSUPP"},
                                         Quirk{"mlx5_infiniband", max_rate, "EOPNOTSUPP"},
                                         Quirk{"mlx5_infiniband", min_rate, "EOPNOTSUPP"},
                                         Quirk{"mlx5_infiniband", no_spoofchk, "EOPNOTSUPP"},
                                         Quirk{"mlx5_infiniband", trusted, "EOPNOTSUPP"},
                                         Quirk{"mlx5_infiniband", link_on, ""},
                                         Quirk{"mlx5_infiniband", node_guid, ""},
                                         Quirk{"mlx5_infiniband", port_guid, ""}));

TEST(DriverModel, AZeroMacThatIsRefusedBecomesTheOneThatStandsForIt) {
    for (auto const* name : {"ixgbe", "i40e"}) {
        Host host(driver_model(name));
        ASSERT_TRUE(host.make_vfs(1));
        EXPECT_EQ(host.answer(some_mac), "");
        EXPECT_EQ(host.answer(with<&VfSpec::mac>(MacAddress{})), "");
        EXPECT_EQ(host.settings(0).mac, mac_for_none) << name;
    }
}

TEST(DriverModel, InfinibandReportsNoMacAndOnlyGuidsThatWereSet) {
    Host host(driver_model("mlx5_infiniband"));
    ASSERT_TRUE(host.make_vfs(2));
    EXPECT_FALSE(host.settings(0).mac);
    EXPECT_FALSE(host.settings(0).trust);
    EXPECT_EQ(host.settings(0).port_guid, Guid{});
    EXPECT_EQ(host.answer(port_guid), "");
    EXPECT_EQ(host.settings(0).port_guid, Guid{7});
    EXPECT_EQ(host.settings(0).node_guid, Guid{});
    EXPECT_EQ(host.settings(1).port_guid, Guid{});
}

TEST(DriverModel, InfinibandGuidsComeBackWithVfsThatAreMadeAnew) {
    Host host(driver_model("mlx5_infiniband"));
    ASSERT_TRUE(host.make_vfs(2));
    EXPECT_EQ(host.answer(port_guid), "");
    ASSERT_TRUE(host.make_vfs(0));
    ASSERT_TRUE(host.make_vfs(3));
    EXPECT_EQ(host.settings(0).port_guid, Guid{7});
    EXPECT_EQ(host.settings(2).port_guid, Guid{});
    Host ethernet(driver_model("mlx5"));
    ASSERT_TRUE(ethernet.make_vfs(2));
    EXPECT_EQ(ethernet.answer(some_mac), "");
    ASSERT_TRUE(ethernet.make_vfs(0));
    ASSERT_TRUE(ethernet.make_vfs(2));
    EXPECT_EQ(ethernet.settings(0).mac, MacAddress{}) << "Ethernet settings are cleared";
}

TEST(DriverModel, BnxtMakesNoVfsWhileItIsDown) {
    Host host(driver_model("bnxt_en"));
    host.set_link(false, false);
    auto const refused = host.make_vfs(7);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("0 appeared"));
    host.set_link(true, true);
    EXPECT_TRUE(host.make_vfs(7));
}

// One line for each driver that resets a VF as a setting changes.
struct Reset {
    char const* model;
    VfSpec spec;
    bool resets = true;
};

class Resets : public testing::TestWithParam<Reset> {};

TEST_P(Resets, OfDriversThatResetAVfWhenASettingChanges) {
    auto const& [model, asked, resets] = GetParam();
    Host host(driver_model(model));
    ASSERT_TRUE(host.make_vfs(2));
    ASSERT_EQ(host.answer(asked), "");
    EXPECT_EQ(host.kernel.driver_resets({pf0, 0}), resets ? 1U : 0U)
        << model << " " << nlohmann::json(asked).dump();
    ASSERT_EQ(host.answer(asked), "");
    EXPECT_EQ(host.kernel.driver_resets({pf0, 0}), resets ? 1U : 0U) << "it holds already";
    EXPECT_EQ(host.kernel.driver_resets({pf0, 1}), 0U);
}

INSTANTIATE_TEST_SUITE_P(Intel, Resets,
                         testing::Values(Reset{"i40e", some_mac}, Reset{"i40e", tagged},
                                         Reset{"i40e", trusted}, Reset{"i40e", no_spoofchk, false},
                                         Reset{"i40e", max_rate, false}, Reset{"ice", some_mac},
                                         Reset{"ice", tagged}, Reset{"ice", trusted},
                                         Reset{"ice", no_spoofchk, false}, Reset{"ixgbe", trusted},
                                         Reset{"ixgbe", link_on}, Reset{"ixgbe", tagged, false},
                                         Reset{"igb", tagged, false}, Reset{"igb", trusted, false},
                                         Reset{"igb", some_mac, false},
                                         Reset{"mlx5", tagged, false}));

// --- the engine on each driver --------------------------------------------------------------

class OnEach : public testing::TestWithParam<DriverModel> {
  protected:
    TemporaryFolder folder;
    Host host{GetParam()};

    // An attachment that this driver accepts.
    AttachmentSpec any() {
        AttachmentSpec spec;
        spec.vm = "vm1";
        spec.pf = pf0;
        spec.settings.link_state = LinkState::enable;
        spec.best_effort = {"link_state"};
        if (GetParam().new_vf.node_guid) {
            spec.settings.node_guid = Guid{0x42};
            spec.settings.port_guid = Guid{0x43};
        }
        return spec;
    }
};

VfSpec without_stand_in(VfSpec settings) {
    if (settings.mac == mac_for_none) settings.mac = MacAddress{};
    return settings;
}

TEST_P(OnEach, AnAttachmentComesBackAtItsBaseline) {
    Bench bench(host.kernel, host.hypervisor, folder.path());
    ASSERT_EQ(bench.run(ReplacePfSpec{pf0, {PfMode::manage, 7, {}}}).state,
              OperationState::succeeded);
    host.set_link(GetParam().driver != "bnxt_en", true);  // an attachment needs the PF up
    auto const before = host.settings(0);
    auto const attached = bench.run(Attach{any()});
    ASSERT_EQ(attached.state, OperationState::succeeded) << attached.problem->detail;
    EXPECT_NE(host.settings(0), before);
    auto const attachment = bench.desired().attachments.begin()->second;
    EXPECT_EQ(host.settings(0).mac, attachment.settings.mac);
    EXPECT_EQ(host.settings(0).port_guid, attachment.settings.port_guid);
    auto const back = bench.run(Detach{attachment.id});
    ASSERT_EQ(back.state, OperationState::succeeded) << back.problem->detail;
    EXPECT_EQ(without_stand_in(host.settings(0)), before);
    EXPECT_THAT(bench.desired().quarantine, IsEmpty());
}

TEST_P(OnEach, ARefusedSettingLeavesNothing) {
    Bench bench(host.kernel, host.hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, {PfMode::manage, 7, {}}});
    auto spec = any();
    spec.settings.vlan = Vlan{100, 0, VlanProtocol::dot1ad};
    auto const before = host.settings(0);
    auto const attached = bench.run(Attach{spec});
    if (GetParam().name == "obliging") {
        EXPECT_EQ(attached.state, OperationState::succeeded);
        return;
    }
    EXPECT_EQ(attached.problem->problem, Problem::kernel_refused);
    EXPECT_EQ(without_stand_in(host.settings(0)), before);
    EXPECT_THAT(bench.desired().attachments, IsEmpty());
    EXPECT_THAT(bench.desired().quarantine, IsEmpty());
}

TEST_P(OnEach, ABootBringsAnAttachmentBack) {
    {
        Bench bench(host.kernel, host.hypervisor, folder.path());
        bench.run(ReplacePfSpec{pf0, {PfMode::manage, 7, {}}});
        ASSERT_EQ(bench.run(Attach{any()}).state, OperationState::succeeded);
    }
    Host booted(GetParam());
    booted.set_link(false, true);
    auto control = open_control(folder.path());
    auto const said = restore(booted.kernel, *control, system_clock()).value();
    auto const vfs = booted.kernel.view().pfs.at(pf0).vfs;
    ASSERT_EQ(vfs.size(), 7U) << said.at(0);
    EXPECT_EQ(vfs[0].driver, "vfio-pci") << said.at(0);
    EXPECT_EQ(vfs[0].settings, host.settings(0));
}

INSTANTIATE_TEST_SUITE_P(Drivers, OnEach, testing::ValuesIn(driver_models()),
                         [](auto const& row) { return row.param.name; });

// mlx5 keeps GUIDs until the PF's driver is unloaded (vfmgr/kernel/KERNEL.md#guids-outlive-vfs).
struct OldGuids : testing::Test {
    TemporaryFolder folder;
    Host host{driver_model("mlx5_infiniband")};

    static AttachmentSpec ask_with_guids() {
        AttachmentSpec spec;
        spec.vm = "vm1";
        spec.pf = pf0;
        spec.settings.node_guid = Guid{0x42};
        spec.settings.port_guid = Guid{0x43};
        return spec;
    }
    static AttachmentSpec ask_plain() {
        AttachmentSpec spec;
        spec.vm = "vm2";
        spec.pf = pf0;
        return spec;
    }
};

TEST_F(OldGuids, DoNotComeBackAfterARelease) {
    Bench bench(host.kernel, host.hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, {PfMode::manage, 7, {}}});
    ASSERT_EQ(bench.run(Attach{ask_with_guids()}).state, OperationState::succeeded);
    ASSERT_EQ(bench.run(Detach{bench.desired().attachments.begin()->first}).state,
              OperationState::succeeded);
    bench.run(ReplacePfSpec{pf0, {PfMode::manage, 4, {}}});
    EXPECT_EQ(host.settings(0).port_guid, Guid{});
    EXPECT_EQ(host.settings(0).node_guid, Guid{});
    ASSERT_EQ(bench.run(Attach{ask_plain()}).state, OperationState::succeeded);
    auto const attachment = bench.desired().attachments.begin()->second;
    EXPECT_EQ(host.settings(0).node_guid, attachment.settings.node_guid);
    EXPECT_NE(host.settings(0).node_guid, Guid{0x42});
}

// A VM does not get GUIDs set past vfmgr either.
TEST_F(OldGuids, OfOthersAreNotAttached) {
    Bench bench(host.kernel, host.hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, {PfMode::manage, 7, {}}});
    ASSERT_EQ(host.answer(port_guid), "");
    ASSERT_EQ(host.settings(0).port_guid, Guid{7});
    ASSERT_EQ(bench.run(Attach{ask_plain()}).state, OperationState::succeeded);
    auto const attachment = bench.desired().attachments.begin()->second;
    EXPECT_NE(attachment.settings.port_guid, Guid{7});
    EXPECT_EQ(host.settings(0).port_guid, attachment.settings.port_guid);
    EXPECT_EQ(host.settings(0).node_guid, attachment.settings.node_guid);
}

// An admin removed all VFs while one was attached: its GUIDs come back with the next VFs.
TEST_F(OldGuids, OfAVfThatWentAwayAreNotAttached) {
    Bench bench(host.kernel, host.hypervisor, folder.path());
    bench.run(ReplacePfSpec{pf0, {PfMode::manage, 7, {}}});
    ASSERT_EQ(bench.run(Attach{ask_with_guids()}).state, OperationState::succeeded);
    host.hypervisor.stop(vm1);
    ASSERT_TRUE(host.make_vfs(0));
    bench.run(Detach{bench.desired().attachments.begin()->first});
    EXPECT_THAT(bench.desired().attachments, IsEmpty());
    ASSERT_EQ(bench.run(ReplacePfSpec{pf0, {PfMode::manage, 4, {}}}).state,
              OperationState::succeeded);
    ASSERT_EQ(host.settings(0).port_guid, Guid{0x43}) << "sriov_restore_guids()";
    ASSERT_EQ(bench.run(Attach{ask_plain()}).state, OperationState::succeeded);
    EXPECT_EQ(bench.desired().attachments.begin()->second.vf.index, 1) << "0 is in quarantine";
    EXPECT_EQ(host.settings(1).port_guid,
              bench.desired().attachments.begin()->second.settings.port_guid);
    EXPECT_NE(host.settings(1).port_guid, Guid{0x43});
    ASSERT_EQ(bench.run(LiftQuarantine{{pf0, 0}}).state, OperationState::succeeded);
    EXPECT_EQ(host.settings(0).port_guid, Guid{});
    EXPECT_EQ(host.settings(0).node_guid, Guid{});
    EXPECT_THAT(bench.desired().quarantine, IsEmpty());
}

}  // namespace
}  // namespace vfmgr
