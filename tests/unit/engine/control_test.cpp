// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tests/unit/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

std::unique_ptr<Control> start(example::TemporaryFolder const& folder) {
    return Control::start(Store::open(folder.path() / "vfmgr.db").value()).value();
}

TEST(Control, ReadersSeeTokensAsSoonAsTheyAreSavedOrErased) {
    example::TemporaryFolder const folder;
    Token const token{"id", "aa", "viewer", "for a test", Time{}, {}};
    {
        auto const control = start(folder);
        EXPECT_TRUE(control->snapshot().tokens->empty());
        ASSERT_TRUE(control->wait([&](Control::State& state) { return state.save_token(token); }));
        EXPECT_EQ(control->snapshot().tokens->at("aa"), token);
    }
    auto const control = start(folder);
    EXPECT_EQ(control->snapshot().tokens->at("aa"), token) << "after a restart";
    auto const erase = [](Control::State& state) { return state.erase_token("id"); };
    EXPECT_EQ(control->wait(erase), true);
    EXPECT_TRUE(control->snapshot().tokens->empty());
    EXPECT_EQ(control->wait(erase), false) << "there was none any more";
}

TEST(Control, AReplacedTokenIsNotKnownByItsOldSecret) {
    example::TemporaryFolder const folder;
    auto const control = start(folder);
    for (auto const* sha256 : {"aa", "bb"})
        ASSERT_TRUE(control->wait([&](Control::State& state) {
            return state.save_token({"id", sha256, "admin", "", Time{}, {}});
        }));
    EXPECT_EQ(control->snapshot().tokens->size(), 1U);
    EXPECT_TRUE(control->snapshot().tokens->contains("bb"));
}

Time at(int seconds) {
    return Time(std::chrono::seconds(seconds));
}

PfState pf_at(char const* address, int seconds) {
    auto pf = make_igb_pf(address, "enp1s0");
    pf.observed_at = at(seconds);
    return pf;
}

KernelView pfs_at(int seconds) {
    KernelView view;
    view.pfs[example::pf0] = pf_at("0000:01:00.0", seconds);
    return view;
}

HypervisorView vms_at(int seconds, VmState state) {
    HypervisorView view;
    view.vms["a"].state = state;
    view.observed_at = at(seconds);
    return view;
}

// A full look began at 5, and answers when others have read later.
TEST(Control, OfEachPfTheLaterReadingStays) {
    example::TemporaryFolder const folder;
    auto const control = start(folder);
    auto const pfs = [&] { return control->snapshot().host->kernel.pfs; };
    PciAddress const added{0, 2, 0, 0};
    control->publish(pfs_at(10), example::pf0, {at(9), at(11)});
    KernelView late = pfs_at(6);
    late.pfs[added] = pf_at("0000:02:00.0", 6);
    control->publish(late, std::nullopt, {at(5), at(12)});
    EXPECT_EQ(pfs().at(example::pf0).observed_at, at(10));
    EXPECT_TRUE(pfs().contains(added));
    control->publish({}, std::nullopt, {at(7), at(12)});
    EXPECT_TRUE(pfs().contains(example::pf0)) << "it was there when that look had begun";
    EXPECT_FALSE(pfs().contains(added));
    control->publish(late, std::nullopt, {at(5), at(13)});
    EXPECT_FALSE(pfs().contains(added)) << "a later look did not find it";
    control->publish({}, example::pf0, {at(14), at(15)});
    EXPECT_FALSE(pfs().contains(example::pf0));
}

TEST(Control, ThatAPfCantBeReadIsSaidOfTheLaterReading) {
    example::TemporaryFolder const folder;
    auto const control = start(folder);
    control->publish(pfs_at(10), example::pf0, {at(9), at(11)});
    auto hanging = pfs_at(6);
    hanging.pfs.at(example::pf0).stale = true;
    hanging.pfs.at(example::pf0).stuck = "it hangs";
    control->publish(hanging, std::nullopt, {at(5), at(12)});
    auto const pf = control->snapshot().host->kernel.pfs.at(example::pf0);
    EXPECT_EQ(pf.observed_at, at(10));
    EXPECT_TRUE(pf.stale);
    EXPECT_EQ(pf.stuck, "it hangs");
}

TEST(Control, OfLibvirtAndOfEachVmTheLaterReadingStays) {
    example::TemporaryFolder const folder;
    auto const control = start(folder);
    auto const vms = [&] { return control->snapshot().host->hypervisor.vms; };
    control->publish(vms_at(10, VmState::running), std::nullopt, at(11));
    control->publish(vms_at(8, VmState::shut_off), std::nullopt, at(12));
    EXPECT_EQ(vms().at("a").state, VmState::running);
    control->publish(vms_at(9, VmState::shut_off), "a", at(12));
    EXPECT_EQ(vms().at("a").state, VmState::running);
    control->publish(vms_at(20, VmState::shut_off), "a", at(21));
    auto all = vms_at(19, VmState::running);
    all.vms["b"].state = VmState::running;
    control->publish(all, std::nullopt, at(22));
    EXPECT_EQ(vms().at("a").state, VmState::shut_off);
    EXPECT_TRUE(vms().contains("b"));
    control->publish(vms_at(23, VmState::running), std::nullopt, at(24));
    EXPECT_EQ(vms().at("a").state, VmState::running);
}

TEST(Control, AClockThatWasSetBackHoldsNothingUp) {
    example::TemporaryFolder const folder;
    auto const control = start(folder);
    control->publish(pfs_at(3600), std::nullopt, {at(3600), at(3601)});
    control->publish(vms_at(3600, VmState::running), std::nullopt, at(3601));
    control->publish(pfs_at(10), std::nullopt, {at(10), at(11)});
    control->publish(vms_at(10, VmState::shut_off), std::nullopt, at(11));
    auto const host = control->snapshot().host;
    EXPECT_EQ(host->kernel.pfs.at(example::pf0).observed_at, at(10));
    EXPECT_EQ(host->hypervisor.vms.at("a").state, VmState::shut_off);
}

}  // namespace
}  // namespace vfmgr
