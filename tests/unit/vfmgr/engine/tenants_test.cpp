// SPDX-License-Identifier: Apache-2.0
// What tenants may request, and their minutes of verification, with a clock that stands still until
// a test moves it.
#include "vfmgr/engine/tenants.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using namespace std::chrono_literals;
using testing::HasSubstr;

struct TenantTest : testing::Test {
    TemporaryFolder folder;
    FakeClock clock;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    std::unique_ptr<Bench> bench;
    std::string id;

    TenantTest() {
        for (auto const& [name, uuid] : {std::pair{"vm1", vm1}, {"vm2", vm2}}) {
            hypervisor.add(make_vm(name, uuid));
            EXPECT_TRUE(hypervisor.start(uuid));
        }
        hypervisor.change([](HypervisorView& view) {
            for (auto& [uuid, vm] : view.vms) vm.free_pcie_ports = 8;
        });
        open();
        bench->run(ReplacePfSpec{pf0, spec_with_vfs(4)});
        bench->run(PutPool{{"fast", {}, {}}});
        put({});
        bench->run(Attach{ask()});
        id = bench->desired().attachments.begin()->first;
    }
    void open() {
        bench.reset();
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path(), AskResponder{}, clock);
    }
    void put(TenantQuota quota) {
        Tenant blue{"blue", {vm1}, {"train"}, {"fast"}};
        blue.quota = quota;
        EXPECT_TRUE(bench->submit(PutTenant{blue}));
    }
    Result<Answer> request(Command command) {
        Intent intent{true, "token:1", {}, {}, {}};
        intent.tenant = "blue";
        return bench->submit(std::move(command), std::move(intent));
    }
    Result<void> begin(std::string const& run) {
        auto const now = clock.now();
        return bench->engine.runs().begin_run(id, vm1, {run, "nonce", now, now + 10min, {}, {}});
    }
    void settle() {
        for (int i = 0; i < 3; ++i)
            bench->engine.control().wait([](Control::State&) { return true; });
    }
    // A run without a report, which ends with its time.
    void run_for_ten_minutes(std::string const& run) {
        ASSERT_TRUE(begin(run));
        clock.advance(10min);
        settle();
        ASSERT_TRUE(bench->engine.snapshot().runs->empty());
    }
};

TEST_F(TenantTest, ItRequestsNothingThatIsNotKnownToBeItsOwn) {
    for (auto const& command : std::vector<Command>{
             ReplacePfSpec{pf0, spec_with_vfs(1)}, ForgetPf{pf0}, PutNetwork{train()},
             RemoveNetwork{"train"}, PutPool{{"fast", {}, {}}}, RemovePool{"fast"}, PutTenant{},
             RemoveTenant{"blue"}, PutIdentities{}, LiftQuarantine{{pf0, 0}}, ChangeFirmware{},
             AddLink{}, RemoveLink{}, EndGonePf{pf0}, ConfirmGonePf{pf0}, RekeyPf{pf0, pf1},
             ReplaceDesired{}}) {
        auto const refused = request(command);
        ASSERT_FALSE(refused) << command.index();
        EXPECT_EQ(refused.error().problem, Problem::forbidden) << command.index();
        EXPECT_EQ(refused.error().detail, "this is not tenant blue's to request");
    }
    EXPECT_TRUE(request(Detach{id}));
}

TEST_F(TenantTest, ATenantThatIsGoneRequestsNothing) {
    EXPECT_TRUE(bench->submit(RemoveTenant{"blue"}));
    auto const refused = request(Detach{id}).error();
    EXPECT_EQ(refused.problem, Problem::forbidden);
    EXPECT_EQ(refused.detail, "there is no tenant blue any more");
}

TEST_F(TenantTest, WhatIsAnothersIsNotThere) {
    auto other = ask("vm2");
    bench->run(Attach{other});
    std::string theirs;
    for (auto const& [name, attachment] : bench->desired().attachments)
        if (attachment.vm == "vm2") theirs = name;
    EXPECT_EQ(request(Detach{theirs}).error().detail, "there is no attachment " + theirs);
    EXPECT_EQ(request(Verify{theirs}).error().detail, "there is no attachment " + theirs);
    EXPECT_EQ(request(ChangeAttachment{theirs, {}}).error().detail,
              "there is no attachment " + theirs);
    AttachmentSpec spec;
    spec.pool = "fast";
    spec.network = "train";
    spec.vm = "vm2";
    EXPECT_EQ(request(Attach{spec}).error().detail, "libvirt knows no VM vm2");
    spec.vm = "vm1";
    EXPECT_TRUE(request(Attach{spec}));
    spec.network.reset();
    EXPECT_THAT(request(Attach{spec}).error().detail, HasSubstr("/network: is required"));
}

TEST_F(TenantTest, ChangesOnlyWhatItMaySet) {
    AttachmentPatch patch;
    patch.settings.set.trust = false;
    patch.settings.removed = {VfAttribute::spoofchk};
    patch.settings.vlan = VlanPatch{7, {}, {}};
    patch.best_effort = {"trust"};
    auto const refused = request(ChangeAttachment{id, patch}).error();
    EXPECT_EQ(refused.problem, Problem::forbidden);
    std::vector<std::string> pointers;
    for (auto const& violation : refused.violations) pointers.push_back(violation.pointer);
    EXPECT_THAT(pointers, testing::UnorderedElementsAre("/best_effort", "/settings/vlan",
                                                        "/settings/spoofchk", "/settings/trust"));
    AttachmentPatch plain;
    plain.settings.set.link_state = LinkState::disable;
    auto const planned = request(ChangeAttachment{id, plain});
    ASSERT_TRUE(planned) << planned.error().detail;
    EXPECT_THAT(planned->plan->blast_radius, testing::IsEmpty());
    EXPECT_THAT(planned->plan->steps, testing::IsEmpty()) << "they may name others' addresses";
    TenantQuota quota;
    quota.verification_minutes = 0;
    put(quota);
    plain.verify = VerifyMode::required;
    EXPECT_EQ(request(ChangeAttachment{id, plain}).error().problem, Problem::quota_exceeded);
}

TEST_F(TenantTest, NamesOfReservationsOfATenantAreNobodyElses) {
    ReservationSpec spec;
    spec.pool = "fast";
    spec.network = "train";
    EXPECT_THAT(bench->submit(Reserve{"blue-a", spec}).error().detail, HasSubstr("tenant blue's"));
    EXPECT_TRUE(bench->submit(Reserve{"other-a", spec}));
    EXPECT_EQ(request(Reserve{"other-a", spec}).error().remedy, "name it blue-other-a");
    EXPECT_EQ(request(Release{"other-a"}).error().problem, Problem::not_found);
    EXPECT_TRUE(request(Reserve{"blue-a", spec}));
}

TEST_F(TenantTest, MinutesOfVerificationCountForADayWhoeverBegan) {
    put({{}, {}, 15});
    run_for_ten_minutes("one");
    ASSERT_TRUE(begin("two")) << "10 of 15 minutes";
    clock.advance(6min);
    EXPECT_EQ(request(Verify{id}).error().problem, Problem::quota_exceeded) << "it still runs";
    clock.advance(4min);
    settle();
    EXPECT_EQ(begin("three").error().problem, Problem::quota_exceeded) << "the VM's own";
    EXPECT_THAT(request(Verify{id}).error().detail,
                HasSubstr("has verified for 20 minutes in the last 24 hours, and may for 15"));
    AttachmentSpec spec;
    spec.vm = "vm1";
    spec.pool = "fast";
    spec.network = "train";
    spec.verify = VerifyMode::required;
    EXPECT_EQ(request(Attach{spec}).error().problem, Problem::quota_exceeded);
    open();
    EXPECT_EQ(begin("four").error().problem, Problem::quota_exceeded) << "after a restart, too";
    clock.advance(24h - 10min);
    EXPECT_TRUE(begin("five")) << "only the second run's last ten minutes count";
}

TEST_F(TenantTest, ScheduledRunsTakeFromTheQuota) {
    auto spec = ask();
    spec.verify = VerifyMode::background;
    put({{}, {}, 0});
    bench->run(Attach{spec});
    settle();
    EXPECT_TRUE(bench->engine.snapshot().runs->empty()) << "begun for an attachment of the tenant";
    put({});
    bench->run(Attach{spec});
    std::promise<void> begun;
    bench->engine.control().watch(Deadline::max(), [&](Control::State& state, Watch) {
        if (state.runs().empty()) return false;
        begun.set_value();
        return true;
    });
    begun.get_future().get();
}

struct SeenEvents : testing::Test {
    Tenant const blue{"blue", {vm1}, {"train"}, {"fast"}};

    static Event event(EventKind kind) {
        Event one;
        one.kind = kind;
        one.detail = "a sentence";
        return one;
    }
};

TEST_F(SeenEvents, AreThoseOfItsThings) {
    auto attached = event(EventKind::attached);
    EXPECT_EQ(seen_by(blue, attached), std::nullopt) << "no VM is known";
    attached.vm_uuid = vm2;
    EXPECT_EQ(seen_by(blue, attached), std::nullopt);
    attached.network = "train";
    EXPECT_EQ(seen_by(blue, attached), std::nullopt) << "the VM decides";
    attached.vm_uuid = vm1;
    EXPECT_EQ(seen_by(blue, attached), attached);
    auto network = event(EventKind::network_changed);
    network.network = "other";
    EXPECT_EQ(seen_by(blue, network), std::nullopt);
    network.network = "train";
    EXPECT_EQ(seen_by(blue, network), network);
    auto reservation = event(EventKind::reservation_made);
    reservation.reservation = "red-a";
    EXPECT_EQ(seen_by(blue, reservation), std::nullopt);
    reservation.reservation = "blue-a";
    EXPECT_EQ(seen_by(blue, reservation), reservation);
    for (auto const kind : {EventKind::pf_gone, EventKind::token_created, EventKind::libvirt_lost,
                            EventKind::tenant_changed, EventKind::identities_changed})
        EXPECT_EQ(seen_by(blue, event(kind)), std::nullopt) << enum_name(kind);
}

TEST_F(SeenEvents, HaveNoSentenceThatMayQuoteOthers) {
    for (auto const kind : {EventKind::operation_failed, EventKind::attach_failed,
                            EventKind::quarantined, EventKind::drift, EventKind::lost}) {
        auto failed = event(kind);
        failed.vm_uuid = vm1;
        EXPECT_EQ(seen_by(blue, failed)->detail, "") << enum_name(kind);
    }
    EXPECT_EQ(seen_by(blue, event(EventKind::vfmgrd_started))->detail, "");
}

}  // namespace
}  // namespace vfmgr
