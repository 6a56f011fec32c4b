// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/no_libvirt.hpp"

#include <gtest/gtest.h>

namespace vfmgr {
namespace {

TEST(NoLibvirt, HasNoVmsAndKnowsIt) {
    NoLibvirt hypervisor;
    auto const view = hypervisor.observe({});
    ASSERT_TRUE(view);
    EXPECT_TRUE(view->vms.empty());
    EXPECT_FALSE(view->stale);
    EXPECT_GT(view->observed_at, Time{});
}

TEST(NoLibvirt, GivesNoVmADevice) {
    NoLibvirt hypervisor;
    auto const refused = hypervisor.perform(AttachHostdev{}, {});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unsupported);
    EXPECT_FALSE(refused.error().remedy.empty());
    EXPECT_TRUE(hypervisor.settle("a", {}));
}

}  // namespace
}  // namespace vfmgr
