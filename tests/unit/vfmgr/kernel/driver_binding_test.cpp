// SPDX-License-Identifier: Apache-2.0
#include "host_tree.hpp"
#include "vfmgr/kernel/steps.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;
using test::HostTree;
using test::pci;
using test::Reaction;
using test::soon;
using test::SysfsReactions;

std::string const pf_name = "0000:01:00.0";
std::string const vf_name = "0000:01:10.4";

struct OneVf : HostTree {
    OneVf() {
        add_pf(pf_name, 7);
        add_vf(pf_name, 2, vf_name);
        put_in_group(vf_name, 12);
        add_driver("vfio-pci");
        write(drivers_probe(), "untouched");
    }
    [[nodiscard]] fs::path drivers_probe() const { return roots().sysfs / "bus/pci/drivers_probe"; }
    [[nodiscard]] fs::path driver_override() const { return device(vf_name) / "driver_override"; }
    // Binds the driver of driver_override, as the kernel does.
    [[nodiscard]] Reaction probe() {
        return {drivers_probe(), [this](std::string const& text) {
                    auto driver = read(device(text) / "driver_override");
                    probed.push_back(text + " " + driver);
                    driver.pop_back();
                    bind(text, driver);
                }};
    }
    [[nodiscard]] Reaction unbind(std::string const& driver) {
        return {roots().sysfs / "bus/pci/drivers" / driver / "unbind",
                [this](std::string const& text) {
                    unbound.push_back(text);
                    fs::remove(device(text) / "driver");
                }};
    }
    [[nodiscard]] Result<Observed> bind_to(std::optional<std::string> driver,
                                           Deadline deadline = soon()) const {
        return perform_step(roots(), BindVfs{pci(pf_name), {2}, std::move(driver)}, deadline);
    }
    [[nodiscard]] Result<Observed> reset() const {
        return perform_step(roots(), ResetVf{{pci(pf_name), 2}}, soon());
    }
    std::vector<std::string> probed;
    std::vector<std::string> unbound;
};

using BindVfsStep = test::Networked;
using ResetVfStep = test::Networked;

TEST_F(BindVfsStep, BindsByOverrideAndClearsIt) {
    OneVf tree;
    {
        SysfsReactions const kernel({tree.probe()});
        auto const done = tree.bind_to("vfio-pci");
        ASSERT_TRUE(done) << done.error().detail;
    }
    EXPECT_EQ(tree.probed, std::vector<std::string>{vf_name + " vfio-pci\n"});
    EXPECT_EQ(driver_of(tree.roots(), pci(vf_name)), "vfio-pci");
    EXPECT_EQ(tree.read(tree.driver_override()), "\n");
}

TEST_F(BindVfsStep, UnbindsTheOldDriverFirst) {
    OneVf tree;
    tree.bind(vf_name, "igbvf");
    tree.write(tree.device(vf_name) / "net/enp1s0v2/uevent", "");
    {
        SysfsReactions const kernel({tree.unbind("igbvf"), tree.probe()});
        auto const done = tree.bind_to("vfio-pci");
        ASSERT_TRUE(done) << done.error().detail;
    }
    EXPECT_EQ(tree.unbound, std::vector<std::string>{vf_name});
    EXPECT_EQ(driver_of(tree.roots(), pci(vf_name)), "vfio-pci");
}

TEST_F(BindVfsStep, NoDriverMeansUnbind) {
    OneVf tree;
    tree.bind(vf_name, "vfio-pci");
    {
        SysfsReactions const kernel({tree.unbind("vfio-pci")});
        tree.write(tree.device(vf_name) / "vfio-dev/vfio0/uevent", "");
        auto const done = tree.bind_to(std::nullopt);
        ASSERT_TRUE(done) << done.error().detail;
    }
    EXPECT_EQ(driver_of(tree.roots(), pci(vf_name)), std::nullopt);
    EXPECT_EQ(tree.read(tree.drivers_probe()), "untouched");
}

TEST_F(BindVfsStep, WhatHoldsAlreadyIsNotWritten) {
    OneVf tree;
    EXPECT_TRUE(tree.bind_to(std::nullopt));
    tree.bind(vf_name, "vfio-pci");
    EXPECT_TRUE(tree.bind_to("vfio-pci"));
    EXPECT_EQ(tree.read(tree.drivers_probe()), "untouched");
    EXPECT_EQ(tree.read(tree.driver_override()), "(null)\n");
}

TEST_F(BindVfsStep, ADriverThatIsNotLoadedIsUnsupportedWithAModprobe) {
    OneVf tree;
    auto const refused = tree.bind_to("mlx5-vfio-pci");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unsupported);
    EXPECT_EQ(refused.error().detail, "the driver mlx5-vfio-pci is not loaded");
    EXPECT_NE(refused.error().remedy.find("modprobe mlx5_vfio_pci"), std::string::npos);
    EXPECT_EQ(tree.read(tree.driver_override()), "(null)\n");
}

TEST_F(BindVfsStep, AnythingButADriversNameIsRefused) {
    OneVf tree;
    for (auto const* const name : {"", ".", "..", "../../..", "vfio-pci\nx"}) {
        auto const refused = tree.bind_to(name);
        ASSERT_FALSE(refused) << name;
        EXPECT_EQ(refused.error().problem, Problem::invalid_request) << name;
    }
}

TEST_F(BindVfsStep, AnIntruderInTheIommuGroupIsNamed) {
    OneVf tree;
    tree.add_device("0000:00:1f.6");
    tree.put_in_group("0000:00:1f.6", 12);
    tree.bind("0000:00:1f.6", "e1000e");
    auto const refused = tree.bind_to("vfio-pci");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::conflict);
    EXPECT_EQ(refused.error().detail,
              "VF 2 of 0000:01:00.0 (0000:01:10.4) shares IOMMU group 12 with 0000:00:1f.6, which "
              "is bound to e1000e");
    EXPECT_EQ(tree.read(tree.driver_override()), "(null)\n");
}

TEST_F(BindVfsStep, HarmlessCompanyInTheGroupIsFine) {
    OneVf tree;
    tree.add_device("0000:00:01.0");  // a bridge
    tree.put_in_group("0000:00:01.0", 12);
    tree.bind("0000:00:01.0", "pcieport");
    tree.write(tree.device("0000:00:01.0") / "class", "0x060400\n");
    tree.add_device("0000:01:10.6");  // unbound
    tree.put_in_group("0000:01:10.6", 12);
    tree.add_device("0000:01:11.0");  // on a VFIO driver, whatever its name
    tree.put_in_group("0000:01:11.0", 12);
    tree.bind("0000:01:11.0", "some_vfio_variant");
    tree.write(tree.device("0000:01:11.0") / "vfio-dev/vfio9/uevent", "");
    SysfsReactions const kernel({tree.probe()});
    auto const done = tree.bind_to("vfio-pci");
    EXPECT_TRUE(done) << done.error().detail;
}

// The second VF of the PF, in the first one's group.
struct TwoVfsToBind : OneVf {
    TwoVfsToBind() {
        add_vf(pf_name, 3, other);
        put_in_group(other, 12);
        for (auto const& each : {vf_name, other}) {
            bind(each, "igbvf");
            write(device(each) / "net" / ("enp1s0v" + each.substr(11)) / "uevent", "");
        }
    }
    [[nodiscard]] Result<Observed> bind_both(std::optional<std::string> driver) const {
        return perform_step(roots(), BindVfs{pci(pf_name), {2, 3}, std::move(driver)}, soon());
    }
    std::string const other = "0000:01:10.6";
};

TEST_F(BindVfsStep, VfsOfOneGroupGoTogether) {
    TwoVfsToBind tree;
    {
        SysfsReactions const kernel({tree.unbind("igbvf"), tree.probe()});
        auto const alone = tree.bind_to("vfio-pci");
        ASSERT_FALSE(alone);
        EXPECT_EQ(alone.error().problem, Problem::conflict);
        auto const both = tree.bind_both("vfio-pci");
        ASSERT_TRUE(both) << both.error().detail;
    }
    EXPECT_EQ(tree.unbound, (std::vector<std::string>{vf_name, tree.other}));
    EXPECT_EQ(driver_of(tree.roots(), pci(vf_name)), "vfio-pci");
    EXPECT_EQ(driver_of(tree.roots(), pci(tree.other)), "vfio-pci");
}

TEST_F(BindVfsStep, NoneIsTouchedWhenOneIsUsed) {
    TwoVfsToBind tree;
    tree.bind(vf_name, "vfio-pci");
    tree.bind(tree.other, "vfio-pci");
    tree.make_group_node(12);
    tree.add_process(812, "qemu-system-x86");
    tree.give_descriptor(812, 33, "/dev/null");
    auto const refused = tree.bind_both(std::nullopt);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::vf_in_use);
    EXPECT_EQ(driver_of(tree.roots(), pci(vf_name)), "vfio-pci");
}

TEST_F(BindVfsStep, WithoutAnIommuNoVmCanHaveIt) {
    OneVf tree;
    fs::remove(tree.device(vf_name) / "iommu_group");
    auto const refused = tree.bind_to("vfio-pci");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unsupported);
    EXPECT_NE(refused.error().remedy.find("intel_iommu=on"), std::string::npos);
}

TEST_F(BindVfsStep, OneInUseIsNotTouched) {
    OneVf tree;
    tree.bind(vf_name, "vfio-pci");
    tree.make_group_node(12);
    tree.add_process(812, "qemu-system-x86");
    tree.give_descriptor(812, 33, "/dev/null");
    tree.add_driver("igbvf");
    for (auto const& driver : {std::optional<std::string>(), std::optional<std::string>("igbvf")}) {
        auto const refused = tree.bind_to(driver);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().problem, Problem::vf_in_use);
    }
    EXPECT_EQ(tree.read(tree.driver_override()), "(null)\n");
}

TEST_F(BindVfsStep, ARefusedProbeClearsTheOverride) {
    OneVf tree;
    fs::remove(tree.drivers_probe());
    auto const refused = tree.bind_to("vfio-pci");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::kernel_refused);
    EXPECT_EQ(refused.error().causes.at(0).code, "ENOENT");
    EXPECT_EQ(tree.read(tree.driver_override()), "\n");
}

TEST_F(BindVfsStep, AProbeThatBindsNothingIsAnErrorAlthoughTheWriteSucceeds) {
    OneVf tree;
    auto const refused =
        tree.bind_to("vfio-pci", std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().detail,
              "0000:01:10.4 could not be bound to vfio-pci: it has no driver");
    EXPECT_EQ(tree.read(tree.driver_override()), "\n");
}

TEST_F(ResetVfStep, TakesFlrAndPutsTheMethodsBack) {
    OneVf tree;
    tree.write(tree.device(vf_name) / "reset_method", "flr bus\n");
    tree.write(tree.device(vf_name) / "reset", "");
    auto const done = tree.reset();
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(tree.read(tree.device(vf_name) / "reset"), "1");
    EXPECT_EQ(tree.read(tree.device(vf_name) / "reset_method"), "flr bus");
}

TEST_F(ResetVfStep, OtherResetsAreNoneOfOurs) {
    OneVf tree;
    for (auto const* const methods : {"bus\n", "", "pm bus\n", "flrx\n"}) {
        tree.write(tree.device(vf_name) / "reset_method", methods);
        tree.write(tree.device(vf_name) / "reset", "");
        auto const refused = tree.reset();
        ASSERT_FALSE(refused) << methods;
        EXPECT_EQ(refused.error().problem, Problem::unsupported);
        EXPECT_EQ(tree.read(tree.device(vf_name) / "reset"), "");
    }
}

TEST_F(ResetVfStep, ARefusedResetPutsTheMethodsBack) {
    OneVf tree;
    tree.write(tree.device(vf_name) / "reset_method", "flr bus\n");
    auto const refused = tree.reset();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::kernel_refused);
    EXPECT_EQ(tree.read(tree.device(vf_name) / "reset_method"), "flr bus");
}

TEST_F(ResetVfStep, OneInUseIsNotReset) {
    OneVf tree;
    tree.write(tree.device(vf_name) / "reset_method", "flr\n");
    tree.write(tree.device(vf_name) / "reset", "");
    tree.make_group_node(12);
    tree.add_process(812, "qemu-system-x86");
    tree.give_descriptor(812, 33, "/dev/null");
    EXPECT_EQ(tree.reset().error().problem, Problem::vf_in_use);
    EXPECT_EQ(tree.read(tree.device(vf_name) / "reset"), "");
}

}  // namespace
}  // namespace vfmgr
