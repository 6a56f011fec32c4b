// SPDX-License-Identifier: Apache-2.0
// Events of what is only stored: networks, pools, identities and reservations. Each is in the
// transaction of its change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.hpp"
#include "tests/unit/vfmgr/engine/engine_bench.hpp"

namespace vfmgr {
namespace {

using namespace example;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct StoredEventsTest : testing::Test {
    TemporaryFolder folder;
    FakeKernel kernel{igb_host()};
    FakeHypervisor hypervisor{kernel};
    FakeClock clock;
    std::unique_ptr<Bench> bench;
    std::uint64_t last = 0;

    StoredEventsTest() {
        hypervisor.add(make_vm("vm1", vm1));
        EXPECT_TRUE(hypervisor.start(vm1));
        bench = std::make_unique<Bench>(kernel, hypervisor, folder.path(), AskResponder{}, clock);
    }
    // Those that were stored since the last call.
    std::vector<Event> more() {
        auto page = bench->engine.control().wait(
            [&](Control::State& state) { return state.store.events_after(last, 1000).value(); });
        last = page.last;
        return std::move(page.events);
    }
    // "network_changed train: network train, 192.168.100.0/24, is new"
    std::vector<std::string> texts(std::optional<std::string> Event::* member) {
        std::vector<std::string> texts;
        for (auto const& event : more()) {
            EXPECT_EQ(event.at, clock.now());
            EXPECT_EQ(event.operation, std::nullopt);
            texts.push_back(fmt::format("{} {}: {}", enum_name(event.kind),
                                        (event.*member).value_or("-"), event.detail));
        }
        return texts;
    }
    Result<Answer> reserve(std::uint16_t count, std::uint32_t seconds = 60) {
        ReservationSpec spec;
        spec.network = "train";
        spec.count = count;
        spec.seconds = seconds;
        Intent intent;
        intent.requested_by = "uid:7";
        return bench->submit(Reserve{"job", spec}, intent);
    }
};

TEST_F(StoredEventsTest, ANetworkFromItsMakingToItsEnd) {
    auto network = train();
    network.name = "other";
    network.vlan = 101;
    network.prefix = IpPrefix::parse("192.168.101.0/24").value();
    network.pfs = {{pf0, IpAddress::parse("192.168.101.3").value()}};
    ASSERT_TRUE(bench->submit(PutNetwork{network}));
    ASSERT_TRUE(bench->submit(PutNetwork{network})) << "nothing changes";
    EXPECT_THAT(texts(&Event::network),
                ElementsAre("network_changed other: network other, 192.168.101.0/24, is new"));
    network.mtu = 1500;
    ASSERT_TRUE(bench->submit(PutNetwork{network}));
    ASSERT_TRUE(bench->submit(RemoveNetwork{"other"}));
    EXPECT_THAT(texts(&Event::network),
                ElementsAre("network_changed other: network other, 192.168.101.0/24, has changed",
                            "network_removed other: network other was removed"));
    ASSERT_FALSE(bench->submit(RemoveNetwork{"other"}));
    EXPECT_THAT(more(), IsEmpty());
}

TEST_F(StoredEventsTest, APoolFromItsMakingToItsEnd) {
    Pool pool;
    pool.name = "fast";
    ASSERT_TRUE(bench->submit(PutPool{pool}));
    ASSERT_TRUE(bench->submit(PutPool{pool})) << "nothing changes";
    pool.defaults.network = "train";
    ASSERT_TRUE(bench->submit(PutPool{pool}));
    ASSERT_TRUE(bench->submit(RemovePool{"fast"}));
    EXPECT_THAT(texts(&Event::pool), ElementsAre("pool_changed fast: pool fast is new",
                                                 "pool_changed fast: pool fast has changed",
                                                 "pool_removed fast: pool fast was removed"));
}

TEST_F(StoredEventsTest, TheIdentitiesOfTheHost) {
    Identities identities;
    identities.macs = {Range<MacAddress>::parse("52:54:00:00:00:01-52:54:00:00:00:ff").value()};
    ASSERT_TRUE(bench->submit(PutIdentities{identities}));
    ASSERT_TRUE(bench->submit(PutIdentities{identities})) << "nothing changes";
    EXPECT_THAT(texts(&Event::network), ElementsAre(HasSubstr("identities_changed -: ")));
}

TEST_F(StoredEventsTest, AReservationThatIsReleased) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(4)});
    more();
    ASSERT_TRUE(reserve(2));
    clock.advance(std::chrono::seconds(1));
    ASSERT_TRUE(reserve(1, 600)) << "other VFs, for another time";
    auto const made = more();
    ASSERT_EQ(made.size(), 2U);
    for (auto const& event : made) {
        EXPECT_EQ(event.kind, EventKind::reservation_made);
        EXPECT_EQ(event.reservation, "job");
    }
    EXPECT_THAT(made[0].detail, HasSubstr("uid:7 reserved 2 VFs until "));
    EXPECT_THAT(made[1].detail, HasSubstr("uid:7 reserved 1 VF until "));
    ASSERT_TRUE(bench->submit(Release{"job"}));
    EXPECT_THAT(texts(&Event::reservation),
                ElementsAre("reservation_released job: reservation job of uid:7 ended: it was "
                            "released"));
}

TEST_F(StoredEventsTest, AReservationThatExpires) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(4)});
    ASSERT_TRUE(reserve(2));
    more();
    clock.advance(std::chrono::seconds(59));
    bench->engine.end_expired();
    EXPECT_THAT(more(), IsEmpty());
    clock.advance(std::chrono::seconds(1));
    bench->engine.end_expired();
    EXPECT_THAT(texts(&Event::reservation),
                ElementsAre("reservation_expired job: reservation job of uid:7 expired"));
}

TEST_F(StoredEventsTest, AReservationThatIsUsedUp) {
    bench->run(ReplacePfSpec{pf0, spec_with_vfs(4)});
    ASSERT_TRUE(reserve(2));
    more();
    auto mine = ask();
    mine.reservation = "job";
    EXPECT_EQ(bench->run(Attach{mine}).state, OperationState::succeeded);
    bench->engine.end_expired();
    for (auto const& event : more()) EXPECT_EQ(event.reservation, std::nullopt) << event.detail;
    EXPECT_EQ(bench->run(Attach{mine}).state, OperationState::succeeded);
    more();
    bench->engine.end_expired();
    EXPECT_THAT(texts(&Event::reservation),
                ElementsAre("reservation_released job: reservation job of uid:7 ended: all its "
                            "VFs are attached"));
}

}  // namespace
}  // namespace vfmgr
