// SPDX-License-Identifier: Apache-2.0
// An attachment's certificate states what happened, by the clock and with the requester; tests
// which attachments get none, and that a certificate outlives all else of its attachment.
#include <gmock/gmock.h>

#include "tests/fakes/fake_clock.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using namespace std::chrono_literals;
using testing::HasSubstr;

struct CertificateTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    FakeClock clock;
    std::unique_ptr<Bench> bench;

    void SetUp() override {
        hypervisor.add(make_vm("vm1", vm1));
        ASSERT_TRUE(hypervisor.start(vm1));
        start();
        bench->run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    }
    void start() {
        bench.reset();
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path(), AskResponder{}, clock);
    }
    Operation run_as(std::string who, Command command) {
        Intent intent;
        intent.requested_by = std::move(who);
        return bench->ended(bench->submit(std::move(command), intent)->operation->id);
    }
    // Attaches VF 0.
    Operation attach(std::string who = "uid:0") {
        auto spec = ask();
        spec.vf = 0;
        return run_as(std::move(who), Attach{spec});
    }
    [[nodiscard]] Attachment attachment() const {
        return bench->desired().attachments.begin()->second;
    }
    Result<Certificate> certificate(std::string const& attachment) {
        return bench->engine.control().wait([&](Control::State& state) -> Result<Certificate> {
            return find_certificate(state.desired(), state.store.events(attachment).value(),
                                    attachment);
        });
    }
};

TEST_F(CertificateTest, ShowsTimesClientsAndWhatWasRestored) {
    auto const began = clock.now();
    auto const attached = attach("token:9f86d081");
    auto const ended = attachment();
    kernel.counters[{pf0, 0}].rx_packets = 12;
    clock.advance(1h);
    // Each step takes a minute.
    std::optional<Time> reset_done;
    kernel.on_perform = [&](KernelStep const& step) {
        clock.advance(1min);
        if (std::holds_alternative<ResetVf>(step)) reset_done = clock.now();
    };
    auto const returned = run_as("uid:1000", Detach{ended.id});
    kernel.on_perform = {};
    ASSERT_EQ(returned.state, OperationState::succeeded) << returned.problem->detail;
    auto const found = certificate(ended.id);
    ASSERT_TRUE(found) << found.error().detail;
    EXPECT_EQ(*found, returned.certificate);
    EXPECT_EQ(found->attached, (CertificateMark{began, attached.id, "token:9f86d081"}));
    EXPECT_EQ(found->detached, (CertificateMark{began + 1h, returned.id, "uid:1000"}));
    ASSERT_TRUE(reset_done);
    EXPECT_EQ(found->reset, (VfReset{ResetMethod::flr, *reset_done}));
    EXPECT_EQ(found->restored.was, ended.settings);
    EXPECT_EQ(found->restored.is, ended.baseline);
    EXPECT_EQ(found->rotated.mac, (Rotated<MacAddress>{*ended.settings.mac, MacAddress{}}));
    ASSERT_TRUE(found->counters);
    EXPECT_EQ(found->counters->rx_packets, 12U);
    EXPECT_EQ(found->counters->tx_packets, std::nullopt);
}

TEST_F(CertificateTest, OfADriverThatCountsNothingHasNoCounters) {
    attach();
    auto const id = attachment().id;
    run_as("uid:0", Detach{id});
    EXPECT_EQ(certificate(id)->counters, std::nullopt);
}

// An admin's changes under the VM: what the detach found is recorded, the MAC is rotated.
TEST_F(CertificateTest, TellsWhatSomebodyElseHadSet) {
    attach();
    auto const ended = attachment();
    MacAddress const strange{{2, 0, 0, 0, 0, 0x99}};
    kernel.change([&](KernelView& view) { view.pfs.at(pf0).vfs[0].settings.mac = strange; });
    run_as("uid:0", Detach{ended.id});
    auto const found = certificate(ended.id).value();
    EXPECT_EQ(found.restored.was.mac, strange);
    EXPECT_EQ(found.rotated.mac->was, ended.settings.mac);
}

TEST_F(CertificateTest, IsFoundAfterAttachmentVfAndDaemonAreGone) {
    attach();
    auto const id = attachment().id;
    EXPECT_THAT(certificate(id).error().detail, HasSubstr("has not ended (attached)"));
    auto const returned = run_as("uid:0", Detach{id});
    attach();
    bench->run(Detach{attachment().id});
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(0)});
    start();
    // Its operations have expired by then.
    clock.advance(24h * 400);
    ASSERT_TRUE(bench->engine.control().wait(
        [&](Control::State& state) { return state.store.prune(clock.now()); }));
    EXPECT_EQ(certificate(id).value(), returned.certificate);
}

// The store forgets an operation after 30 days, and attachments last longer.
TEST_F(CertificateTest, KnowsWhoAskedForALongAttachment) {
    auto const attached = attach("token:9f86d081");
    auto const id = attachment().id;
    clock.advance(24h * 31);
    ASSERT_TRUE(bench->engine.control().wait(
        [&](Control::State& state) { return state.store.prune(clock.now()); }));
    start();
    run_as("uid:0", Detach{id});
    auto const found = certificate(id).value();
    EXPECT_EQ(found.attached.requested_by, "token:9f86d081");
    EXPECT_EQ(found.attached.operation, attached.id);
}

TEST_F(CertificateTest, ThereIsNoneWhileTheVfIsInQuarantine) {
    attach("token:9f86d081");
    auto const id = attachment().id;
    // The first kernel step of a detach is the reset.
    kernel.fail_at = Fault{kernel.performed(), FaultPoint::before};
    run_as("uid:0", Detach{id});
    kernel.fail_at.reset();
    auto const none = certificate(id);
    ASSERT_FALSE(none);
    EXPECT_THAT(none.error().detail, HasSubstr("is in quarantine: the fake was told to fail"));
    auto const lifted = run_as("uid:7", LiftQuarantine{{pf0, 0}});
    auto const found = certificate(id);
    ASSERT_TRUE(found) << found.error().detail;
    EXPECT_EQ(found->attached.requested_by, "token:9f86d081");
    EXPECT_EQ(found->detached.operation, lifted.id);
    EXPECT_EQ(found->detached.requested_by, "uid:7");
}

TEST_F(CertificateTest, AVfThatVanishedHasNone) {
    attach();
    auto const id = attachment().id;
    kernel.change([](KernelView& view) { view.pfs.at(pf0).vfs.clear(); });
    auto const returned = run_as("uid:0", Detach{id});
    EXPECT_EQ(returned.state, OperationState::succeeded);
    EXPECT_FALSE(returned.certificate);
    EXPECT_THAT(certificate(id).error().detail, HasSubstr("VF 0000:01:00.0/0 no longer existed"));
}

// Gone when its detach is planned, and created anew by an admin before the detach is done.
TEST_F(CertificateTest, AVfThatCameBackMeanwhileWasNotReset) {
    attach();
    auto const id = attachment().id;
    auto anew = kernel.view().pfs.at(pf0).vfs[1];  // no VM has it
    anew.index = 0;
    anew.pci = attachment().vf_pci;
    kernel.change([](KernelView& view) { view.pfs.at(pf0).vfs.clear(); });
    kernel.on_perform = [&](KernelStep const&) {
        kernel.change([&](KernelView& view) { view.pfs.at(pf0).vfs = {anew}; });
    };
    auto const returned = run_as("uid:0", Detach{id});
    kernel.on_perform = {};
    EXPECT_EQ(returned.state, OperationState::failed);
    EXPECT_THAT(certificate(id).error().detail, HasSubstr("was not reset"));
    ASSERT_EQ(run_as("uid:0", LiftQuarantine{{pf0, 0}}).state, OperationState::succeeded);
    EXPECT_TRUE(certificate(id)->reset);
}

TEST_F(CertificateTest, AnAttachmentThatWasNotProvedIsCertifiedByItsOwnOperation) {
    auto spec = ask();
    spec.verify = VerifyMode::required;
    bench->guest_reports(Verdict::fail);
    auto const failed = run_as("uid:0", Attach{spec});
    ASSERT_EQ(failed.state, OperationState::failed);
    ASSERT_TRUE(failed.certificate);
    EXPECT_EQ(failed.certificate->attached.operation, failed.id);
    EXPECT_EQ(failed.certificate->detached.operation, failed.id);
    EXPECT_EQ(certificate(failed.certificate->attachment).value(), failed.certificate);
}

}  // namespace
}  // namespace vfmgr
