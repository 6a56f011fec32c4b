// SPDX-License-Identifier: Apache-2.0
// How operations, dry runs and logs describe a step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "vfmgr/plan/step.hpp"

namespace vfmgr {
namespace {

PciAddress const pf{0, 1, 0, 0};

TEST(Sentence, NamesTheVfsThatAreBound) {
    EXPECT_EQ(sentence(BindVfs{pf, {2}, "vfio-pci"}), "bind VF 2 of 0000:01:00.0 to vfio-pci");
    EXPECT_EQ(sentence(BindVfs{pf, {0, 1, 2, 5, 7, 8}, "vfio-pci"}),
              "bind VFs 0-2, 5, 7-8 of 0000:01:00.0 to vfio-pci");
    EXPECT_EQ(sentence(BindVfs{pf, {2}, {}}), "unbind VF 2 of 0000:01:00.0 from its driver");
    EXPECT_EQ(sentence(BindVfs{pf, {2, 3}, {}}),
              "unbind VFs 2-3 of 0000:01:00.0 from their driver");
}

TEST(Sentence, NamesTheSettingsOfAFewVfs) {
    ConfigureVfs step{pf, {}, {}};
    VfSpec settings;
    settings.trust = true;
    settings.vlan = Vlan{100};
    for (std::uint16_t vf = 0; vf < 8; ++vf) step.changes.push_back({vf, settings});
    EXPECT_THAT(sentence(step), testing::EndsWith("VF 7 (vlan 100 qos 0 802.1q, trust on)"));
    step.changes.push_back({8, settings});
    step.changes.push_back({9, settings});
    EXPECT_THAT(sentence(step), testing::EndsWith("VF 7 (vlan 100 qos 0 802.1q, trust on); "
                                                  "and 2 more VFs"));
}

TEST(Sentence, NamesTheDevicesThatArePlaced) {
    EXPECT_EQ(sentence(PlaceHostdevs{"u", {{pf, {}, {0}}, {{0, 2, 0, 0}, {}, {0}}}, "vm1"}),
              "place 0000:01:00.0, 0000:02:00.0 in VM vm1's PCI tree as on the host: the "
              "persistent XML");
    EXPECT_EQ(sentence(PlaceHostdevs{"u", {}, "vm1"}),
              "put VM vm1's host devices back to where they were: the persistent XML");
}

TEST(Sentence, NamesTheLinkAndItsNetdev) {
    EXPECT_EQ(sentence(AddSoftRdmaLink{{"rxe0", SoftRdmaType::rxe, "bond0"}}),
              "create the rxe link rxe0 on bond0");
    EXPECT_EQ(sentence(RemoveSoftRdmaLink{"rxe0", false}), "delete the RDMA link rxe0");
    EXPECT_EQ(sentence(RemoveSoftRdmaLink{"rxe0", true}),
              "delete the RDMA link rxe0, even while it is in use");
}

}  // namespace
}  // namespace vfmgr
