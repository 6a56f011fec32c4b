// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/plan/host_view.hpp"

#include <gtest/gtest.h>

namespace vfmgr {
namespace {

VmInfo a_vm(std::string name, std::optional<std::int32_t> start_id,
            std::optional<std::uint32_t> cid) {
    VmInfo info;
    info.uuid = "uuid-of-" + name;
    info.name = std::move(name);
    info.start_id = start_id;
    info.vsock_cid = cid;
    return info;
}

HypervisorView view(std::vector<VmInfo> const& vms) {
    HypervisorView made;
    for (auto const& one : vms) made.vms[one.uuid] = one;
    return made;
}

TEST(VmWithCid, TheRunningOne) {
    auto const found = vm_with_cid(view({a_vm("a", 1, 3), a_vm("b", 2, 4)}), 4);
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, (VmIdentity{"uuid-of-b", "b", 2}));
}

TEST(VmWithCid, NobodyThere) {
    auto const found = vm_with_cid(view({a_vm("a", 1, 3), a_vm("off", std::nullopt, 4)}), 4);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().problem, Problem::not_found);
    EXPECT_EQ(found.error().detail, "no running VM has vsock CID 4");
}

TEST(VmWithCid, TwoIsNone) {
    auto const found = vm_with_cid(view({a_vm("a", 1, 3), a_vm("b", 2, 3)}), 3);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().problem, Problem::conflict);
    EXPECT_EQ(found.error().detail, "VMs a and b both have vsock CID 3");
}

TEST(VmWithCid, AStaleViewIdentifiesNobody) {
    auto stale = view({a_vm("a", 1, 3)});
    stale.stale = true;
    stale.stale_reason = "libvirtd is gone";
    auto const found = vm_with_cid(stale, 3);
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().problem, Problem::unavailable);
}

}  // namespace
}  // namespace vfmgr
