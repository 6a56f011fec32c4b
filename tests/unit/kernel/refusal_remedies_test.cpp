// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/refusal_remedies.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace vfmgr {
namespace {

struct Case {
    RefusedAttribute refused;
    char const* says;
};

RefusedAttribute refused(VfAttribute attribute, int error) {
    return {attribute, error, LinkLayer::ethernet, EswitchMode::legacy, "0000:01:00.0"};
}
RefusedAttribute in_switchdev(VfAttribute attribute) {
    auto with = refused(attribute, EOPNOTSUPP);
    with.eswitch_mode = EswitchMode::switchdev;
    return with;
}
RefusedAttribute of_infiniband(VfAttribute attribute) {
    return {attribute, EOPNOTSUPP, LinkLayer::infiniband, std::nullopt, "0000:01:00.0"};
}

TEST(RemedyFor, IsTheOneOfTheCause) {
    for (auto const& [each, says] :
         {Case{in_switchdev(VfAttribute::vlan), "at its representor"},
          Case{in_switchdev(VfAttribute::max_tx_rate), "port of pci/0000:01:00.0 (devlink port"},
          Case{in_switchdev(VfAttribute::trust), "leave trust out"},
          Case{in_switchdev(VfAttribute::link_state), "this driver does not support it"},
          Case{of_infiniband(VfAttribute::mac), "InfiniBand PF has no mac"},
          Case{of_infiniband(VfAttribute::node_guid), "only InfiniBand PFs set"},
          Case{refused(VfAttribute::port_guid, EOPNOTSUPP), "leave port_guid out"},
          Case{refused(VfAttribute::mac, EPERM), "DPU mode"},
          Case{refused(VfAttribute::vlan, EPROTONOSUPPORT), "802.1Q only"},
          Case{refused(VfAttribute::vlan, EOPNOTSUPP),
               "this driver does not support it: leave vlan out"},
          Case{refused(VfAttribute::msix_vectors, EBUSY), "unbind the VF"},
          Case{in_switchdev(VfAttribute::roce), "Linux 6.2"},
          Case{refused(VfAttribute::roce, EOPNOTSUPP), "eswitch show pci/0000:01:00.0"},
          Case{refused(VfAttribute::min_tx_rate, EINVAL), "bring the PF's link up"},
          Case{refused(VfAttribute::mac, EINVAL), "choose another value, leave mac out"}})
        EXPECT_NE(remedy_for(each).find(says), std::string::npos)
            << says << ": " << remedy_for(each);
}

// There is a remedy for whatever error a driver returns for any attribute.
TEST(RemedyFor, IsThereForEveryRefusal) {
    for_each_member([](VfAttribute attribute, auto) {
        for (int const error : {EPERM, EINVAL, EOPNOTSUPP, EBUSY, EIO, ENODEV})
            for (auto const& each :
                 {refused(attribute, error), in_switchdev(attribute), of_infiniband(attribute)}) {
                auto const remedy = remedy_for(each);
                EXPECT_FALSE(remedy.empty());
                EXPECT_EQ(remedy.find('{'), std::string::npos) << remedy;
            }
    });
}

}  // namespace
}  // namespace vfmgr
