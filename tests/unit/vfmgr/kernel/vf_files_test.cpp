// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/vf_files.hpp"

#include "host_tree.hpp"

namespace vfmgr {
namespace {

using test::HostTree;
using test::pci;

VfId const vf{pci("0000:01:00.0"), 3};
auto const address = pci("0000:01:10.6");

TEST(VfFile, IsNoneWhereSysfsHasNone) {
    HostTree const tree;
    tree.add_pf("0000:01:00.0", 7);
    tree.add_vf("0000:01:00.0", 3, "0000:01:10.6");
    VfSpec expected;
    expected.msix_vectors = 4;
    expected.trust = true;
    expected.node_guid = Guid{1};
    for (auto const& [attribute, name] : enum_names<VfAttribute>)
        EXPECT_FALSE(vf_file(tree.roots(), vf, address, expected, attribute)) << name;
    EXPECT_TRUE(empty(read_vf_files(tree.roots(), vf, address)));

    tree.write(tree.device("0000:01:10.6") / "sriov_vf_msix_count", "");
    auto const file = vf_file(tree.roots(), vf, address, expected, VfAttribute::msix_vectors);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->text, "4");
    EXPECT_FALSE(vf_file(tree.roots(), vf, address, VfSpec{}, VfAttribute::msix_vectors));
}

TEST(VfFile, PoliciesAreSpelledAsTheDriverDoes) {
    HostTree const tree;
    auto const policy = tree.device("0000:01:00.0") / "sriov/3/policy";
    tree.write(policy, "");
    for (auto const& [state, text] : {std::pair(LinkState::auto_, "Follow"),
                                      {LinkState::enable, "Up"},
                                      {LinkState::disable, "Down"}}) {
        VfSpec expected;
        expected.link_state = state;
        EXPECT_EQ(vf_file(tree.roots(), vf, address, expected, VfAttribute::link_state)->text,
                  text);
        tree.write(policy, std::string(text) + "\n");
        EXPECT_EQ(read_vf_files(tree.roots(), vf, address), expected);
    }
    tree.write(policy, "Sideways\n");
    EXPECT_TRUE(empty(read_vf_files(tree.roots(), vf, address)));
}

TEST(MsixVectorsIn, FollowsTheListOfCapabilities) {
    EXPECT_EQ(msix_vectors_in(test::configuration_with_msix(1)), 1U);
    EXPECT_EQ(msix_vectors_in(test::configuration_with_msix(2048)), 2048U);
    auto const whole = test::configuration_with_msix(12);
    EXPECT_EQ(msix_vectors_in(whole.substr(0, 64)), std::nullopt) << "without CAP_SYS_ADMIN";
    EXPECT_EQ(msix_vectors_in(""), std::nullopt);
    auto loop = whole;
    loop[0x70] = 0x01;  // no MSI-X, and the list's second entry points at the first
    loop[0x71] = 0x40;
    EXPECT_EQ(msix_vectors_in(loop), std::nullopt);
    EXPECT_EQ(msix_vectors_in(std::string(256, '\xff')), std::nullopt) << "the device is gone";
}

}  // namespace
}  // namespace vfmgr
