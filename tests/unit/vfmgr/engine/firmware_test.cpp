// SPDX-License-Identifier: Apache-2.0
// A card's firmware through the engine: what is durable before the card changes, what is restored,
// and that a host which requests it at every boot is stopped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::HasSubstr;
using testing::IsEmpty;

FirmwareSettings vfs(std::uint16_t count) {
    FirmwareSettings settings;
    settings.num_of_vfs = count;
    return settings;
}

struct FirmwareEngineTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};

    FirmwareEngineTest() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
        FirmwareCard card;
        card.pci = pf0;
        card.functions = {pf0, {0, 1, 0, 1}};
        card.device_type = "ConnectX6DX";
        card.tool = FirmwareTool{"mstconfig", "4.21.0"};
        card.current = card.next = FirmwareSettings{true, 8, PortType::eth, PortType::eth, false};
        card.boot_id = "boot 1";
        kernel.change_firmware([&](std::vector<FirmwareCard>& cards) { cards = {card}; });
    }
    [[nodiscard]] FirmwareCard card() { return kernel.read_firmware(pf0).value().at(0); }
    // The card reboots and still has 8 VFs.
    void reboot_in_vain(std::string const& boot_id) {
        kernel.change_firmware([&](std::vector<FirmwareCard>& cards) {
            cards[0].boot_id = boot_id;
            cards[0].next = cards[0].current;
        });
    }
    std::unique_ptr<Bench> managing() {
        auto bench = std::make_unique<Bench>(kernel, hypervisor, folder.path());
        EXPECT_NE(bench->run(ReplacePfSpec{pf0, spec_with_vfs(4)}).state, OperationState::failed);
        return bench;
    }
};

TEST_F(FirmwareEngineTest, IsSetAndRemembered) {
    auto const bench = managing();
    auto const set = bench->run(ChangeFirmware{vfs(16), card()});
    ASSERT_EQ(set.state, OperationState::succeeded) << set.problem->detail;
    EXPECT_EQ(set.kind, OperationKind::configure_firmware);
    EXPECT_EQ(set.subject, "/v1/pfs/0000:01:00.0/firmware");
    EXPECT_EQ(card().next->num_of_vfs, 16);
    EXPECT_EQ(card().current->num_of_vfs, 8);
    EXPECT_EQ(bench->desired().firmware_tries.at(pf0).settings, vfs(16));
    // Once more in this boot: it is pending, and there is nothing to do.
    auto const steps = kernel.performed();
    auto const again = bench->submit(ChangeFirmware{vfs(16), card()});
    ASSERT_TRUE(again) << again.error().detail;
    EXPECT_FALSE(again->operation);
    EXPECT_EQ(kernel.performed(), steps);
    // A request for a setting that holds clears the tries.
    kernel.reboot_cards("boot 2");
    EXPECT_TRUE(bench->submit(ChangeFirmware{vfs(16), card()}));
    EXPECT_TRUE(bench->engine.control().wait(
        [](Control::State& state) { return state.desired().firmware_tries.empty(); }));
}

TEST_F(FirmwareEngineTest, ADryRunChangesNothing) {
    auto const bench = managing();
    Intent intent;
    intent.dry_run = true;
    auto const planned = bench->submit(ChangeFirmware{vfs(16), card()}, intent);
    ASSERT_TRUE(planned) << planned.error().detail;
    EXPECT_EQ(planned->plan->steps.size(), 1U);
    EXPECT_EQ(card().next, card().current);
    EXPECT_THAT(bench->desired().firmware_tries, IsEmpty()) << "it was not tried";
}

TEST_F(FirmwareEngineTest, IsRestoredWhenItFails) {
    auto const bench = managing();
    kernel.fail_at = Fault{kernel.performed(), FaultPoint::halfway};
    auto requested = vfs(16);
    requested.ats_enabled = true;
    auto const set = bench->run(ChangeFirmware{requested, card()});
    EXPECT_EQ(set.state, OperationState::failed);
    EXPECT_EQ(card().next, card().current) << "a half of it had been set";
}

TEST_F(FirmwareEngineTest, AVfThatWasAttachedSinceItWasPlannedIsSeen) {
    auto const bench = managing();
    auto const before = card();
    auto const attached = bench->run(Attach{ask()});
    ASSERT_EQ(attached.state, OperationState::succeeded) << attached.problem->detail;
    auto const refused = bench->run(ChangeFirmware{vfs(16), before});
    ASSERT_EQ(refused.state, OperationState::failed);
    EXPECT_EQ(refused.problem->problem, Problem::vf_in_use);
    EXPECT_THAT(refused.problem->detail, HasSubstr("attached to vm1"));
    EXPECT_EQ(card().next, card().current);
}

// A provisioning script asks at each boot and reboots while it does not hold; vfmgrd restarts.
TEST_F(FirmwareEngineTest, TheThirdTryIsRefusedOverRestarts) {
    for (auto const* const boot : {"boot 2", "boot 3"}) {
        auto const bench = managing();
        auto const set = bench->run(ChangeFirmware{vfs(16), card()});
        ASSERT_EQ(set.state, OperationState::succeeded) << set.problem->detail;
        reboot_in_vain(boot);
    }
    auto const bench = managing();
    auto const third = bench->submit(ChangeFirmware{vfs(16), card()});
    ASSERT_FALSE(third);
    EXPECT_EQ(third.error().problem, Problem::conflict);
    EXPECT_THAT(third.error().detail, HasSubstr("did not apply NUM_OF_VFS=16 in 2 boots"));
    EXPECT_EQ(card().next, card().current);
    EXPECT_TRUE(bench->submit(ChangeFirmware{vfs(8), card()})) << "the current values";
    EXPECT_EQ(bench->run(ChangeFirmware{vfs(16), card()}).state, OperationState::succeeded);
}

TEST_F(FirmwareEngineTest, ACardThatIsGoneIsNoCard) {
    auto const bench = managing();
    auto const before = card();
    kernel.change_firmware([](std::vector<FirmwareCard>& cards) { cards.clear(); });
    auto const gone = bench->run(ChangeFirmware{vfs(16), before});
    EXPECT_EQ(gone.problem->problem, Problem::not_found);
}

// Killed after the card had the setting and before that could be written.
TEST_F(FirmwareEngineTest, WhatACrashInterruptedIsRestored) {
    {
        auto const bench = managing();
        Operation operation;
        operation.id = "00000000000000000000000000000001";
        operation.kind = OperationKind::configure_firmware;
        operation.state = OperationState::running;
        operation.steps = {{"set it", StepState::intended}};
        Batch batch;
        batch.save_operations = {operation};
        batch.save_records = {{operation.id,
                               {0,
                                SetFirmware{pf0, vfs(16), vfs(8)},
                                {SetFirmware{pf0, vfs(8), vfs(16)}},
                                StepState::intended}}};
        EXPECT_TRUE(bench->engine.control().wait(
            [&](Control::State& state) { return state.commit(batch); }));
        EXPECT_TRUE(kernel.perform(SetFirmware{pf0, vfs(16), vfs(8)}, Deadline::max()));
    }
    Bench const after(kernel, hypervisor, folder.path());
    EXPECT_TRUE(after.recovered);
    EXPECT_EQ(card().next->num_of_vfs, 8);
}

}  // namespace
}  // namespace vfmgr
