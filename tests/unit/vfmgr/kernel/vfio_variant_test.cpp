// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/vfio_variant.hpp"

#include "host_tree.hpp"

namespace vfmgr {
namespace {

using test::HostTree;
using test::pci;

// Lines as depmod writes them, on Linux 6.1.
constexpr auto vfio_aliases = R"(# Aliases extracted from modules themselves.
alias pci:v000015B3d0000101Esv*sd*bc*sc*i* mlx5_core
alias vfio_pci:v*d*sv*sd*bc*sc*i* vfio_pci
alias vfio_pci:v000015B3d*sv*sd*bc*sc*i* a_vendors
alias vfio_pci:v000015B3d0000101Esv*sd*bc*sc*i* mlx5_vfio_pci
alias vfio_pci:v000015B3d0000101Esv*sd*bc*sc*i* a_second
alias vfio_pci:v000019E5d0000A251sv*sd*bc*sc*i* hisi_acc_vfio_pci
)";
constexpr auto connectx = "pci:v000015B3d0000101Esv000015B3sd00000023bc02sc00i00";
constexpr auto intel = "pci:v00008086d000010CAsv00001AF4sd00001100bc02sc00i00";

TEST(BestVfioModule, SaysTheMostOfTheDevice) {
    EXPECT_EQ(best_vfio_module(vfio_aliases, connectx), "mlx5_vfio_pci");
    EXPECT_EQ(best_vfio_module(vfio_aliases, "pci:v000015B3d00001018sv0sd0bc02sc00i00"),
              "a_vendors");
    EXPECT_EQ(best_vfio_module(vfio_aliases, intel), "vfio_pci") << "it is for every device";
}

TEST(BestVfioModule, NoneWhereNoneIsListed) {
    EXPECT_EQ(best_vfio_module("", connectx), std::nullopt);
    EXPECT_EQ(best_vfio_module("alias pci:v*d*sv*sd*bc*sc*i* e1000", connectx), std::nullopt);
    EXPECT_EQ(best_vfio_module(vfio_aliases, "usb:v046DpC52Bd1203"), std::nullopt);
    EXPECT_EQ(best_vfio_module("alias vfio_pci:v*", connectx), std::nullopt) << "names no module";
    EXPECT_EQ(best_vfio_module("alias vfio_pci:v* ", connectx), std::nullopt);
    EXPECT_EQ(best_vfio_module("alias vfio_pci:v* last", connectx), "last") << "no line end";
}

struct ConnectX : HostTree {
    ConnectX() {
        add_device("0000:01:00.2");
        write(device("0000:01:00.2") / "modalias", connectx + std::string("\n"));
        write(roots().modules / "modules.alias", vfio_aliases);
    }
    [[nodiscard]] std::optional<VfioVariant> variant() {
        return known.variant_of(roots(), pci("0000:01:00.2"));
    }
    VfioAliases known;
};

TEST(VfioVariant, NamesTheModuleAndWhetherItIsThere) {
    ConnectX tree;
    EXPECT_EQ(tree.variant(), (VfioVariant{"mlx5_vfio_pci", {}})) << "not loaded";
    auto const drivers = tree.roots().sysfs / "module/mlx5_vfio_pci/drivers";
    tree.link(drivers / "pci:mlx5-vfio-pci", tree.roots().sysfs);
    EXPECT_EQ(tree.variant(), (VfioVariant{"mlx5_vfio_pci", "mlx5-vfio-pci"}))
        << "the driver's name, which need not be the module's";
}

TEST(VfioVariant, IsAnotherWhenDepmodWroteAnother) {
    ConnectX tree;
    ASSERT_EQ(tree.variant()->module, "mlx5_vfio_pci");
    auto const file = tree.roots().modules / "modules.alias";
    tree.write(file, "alias vfio_pci:v000015B3d*sv*sd*bc*sc*i* a_vendors\n");
    test::fs::last_write_time(file, test::fs::last_write_time(file) + std::chrono::seconds(1));
    EXPECT_EQ(tree.variant()->module, "a_vendors");
}

TEST(VfioVariant, NoneForADeviceThatHasNone) {
    ConnectX tree;
    tree.write(tree.device("0000:01:00.2") / "modalias", intel);
    EXPECT_EQ(tree.variant(), std::nullopt);
    tree.write(tree.device("0000:01:00.2") / "modalias", connectx);
    test::fs::remove(tree.roots().modules / "modules.alias");
    EXPECT_EQ(tree.variant(), std::nullopt);
}

}  // namespace
}  // namespace vfmgr
