// SPDX-License-Identifier: Apache-2.0
// Tokens, audit, idempotency keys, pruning, the host's seed.
#include "store_bench.hpp"

namespace vfmgr {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using test::at;

class RecordsTest : public test::StoreTest {};

Time const now = at(1769860800000);

TEST_F(RecordsTest, TokensAreKeptInTheOrderTheyWereMade) {
    Token const first{"id2", "aa", "admin", "é\n", at(1000), {}};
    Token const second{"id1", "bb", "viewer", "", at(1000), at(2000)};
    Token const third{"id0", "cc", "operator", "later", at(1001), at(0)};
    {
        auto store = open();
        EXPECT_TRUE(store.tokens().value().empty());
        for (auto const& token : {third, first, second}) ASSERT_TRUE(store.save_token(token));
    }
    auto store = open();
    EXPECT_EQ(store.tokens().value(), (std::vector{second, first, third})) << "oldest first";
}

TEST_F(RecordsTest, TokensAreReplacedAndErasedById) {
    auto store = open();
    ASSERT_TRUE(store.save_token({"id", "aa", "admin", "", at(0), at(5)}));
    Token const changed{"id", "bb", "viewer", "d", at(0), {}};
    ASSERT_TRUE(store.save_token(changed));
    EXPECT_EQ(store.tokens().value(), std::vector{changed});
    EXPECT_EQ(store.erase_token("i"), false);
    EXPECT_EQ(store.erase_token("id"), true);
    EXPECT_EQ(store.erase_token("id"), false) << "there was none any more";
    EXPECT_TRUE(store.tokens().value().empty());
}

TEST_F(RecordsTest, ATokensUseIsKeptWhenTheTokenChanges) {
    Token token{"id", "aa", "admin", "", at(0), at(5), {{"attachments", "vms"}}};
    token.rotated_at = at(2);
    token.former = {"bb", at(3)};
    token.tenant = "blue";
    TokenUse const use{at(4), "address:10.0.0.9"};
    {
        auto store = open();
        ASSERT_TRUE(store.save_token(token));
        ASSERT_TRUE(store.save_token_uses({{"id", use}, {"gone", use}}));
        token.description = "changed";
        ASSERT_TRUE(store.save_token(token));
    }
    token.last_use = use;
    EXPECT_EQ(open().tokens().value(), std::vector{token});
}

TEST_F(RecordsTest, RunsCountForTheirVmFromATimeOn) {
    auto store = open();
    for (auto const& time : {Store::RunTime{"a", "vm1", at(1000), at(3000)},
                             Store::RunTime{"b", "vm2", at(1000), at(1500)},
                             Store::RunTime{"c", "vm3", at(0), at(9000)}})
        ASSERT_TRUE(store.save_run_time(time));
    EXPECT_EQ(store.run_time({"vm1", "vm2"}, at(0)).value(), milliseconds(2500));
    EXPECT_EQ(store.run_time({"vm1", "vm2"}, at(2000)).value(), milliseconds(1000));
    EXPECT_EQ(store.run_time({}, at(0)).value(), milliseconds(0));
    ASSERT_TRUE(store.save_run_time({"d", "vm1", at(3000) + hours(24), at(3001) + hours(24)}));
    EXPECT_EQ(store.run_time({"vm1"}, at(0)).value(), milliseconds(1)) << "a day is kept";
}

TEST_F(RecordsTest, AuditIsListedNewestFirst) {
    std::vector<AuditEntry> entries;
    // The clock may be set back; the order is that of the events.
    for (auto const time_ms : {3000, 1000, 2000})
        entries.push_back({at(time_ms), "uid:0", "5d41", "POST /v1/attachments",
                           std::string("a\0b", 3), "accepted"});
    {
        auto store = open();
        for (auto const& entry : entries) ASSERT_TRUE(store.append_audits({entry}));
    }
    auto store = open();
    EXPECT_EQ(store.audit({}, {2}).value().items, (std::vector{entries[2], entries[1]}));
    EXPECT_EQ(store.audit({}, {}).value().items, (std::vector{entries[2], entries[1], entries[0]}));
    EXPECT_TRUE(store.audit({}, {0}).value().items.empty());
}

Batch saving_events(std::vector<Event> events) {
    Batch batch;
    batch.save_events = std::move(events);
    return batch;
}

TEST_F(RecordsTest, EventsOfAVfAreThoseOfItsPfToo) {
    auto of_attachment = test::event(3, 1);
    of_attachment.attachment = "00000001";
    of_attachment.because_of = 1;
    of_attachment.certificate =
        Certificate{{test::pf, 1}, {0, 1, 0x10, 1}, "00000001", "vm1", {}, {}, {}};
    std::vector const all{test::event(1, 1), test::event(2, {}), of_attachment, test::event(4, 2)};
    {
        auto store = open();
        EXPECT_EQ(store.last_event().value(), 0U);
        ASSERT_TRUE(store.commit(saving_events(all)));
    }
    auto store = open();
    EXPECT_EQ(store.events({test::pf, 1}, {}).value().items, (std::vector{all[2], all[1], all[0]}));
    EXPECT_EQ(store.events({test::pf, 2}, {}).value().items, (std::vector{all[3], all[1]}));
    EXPECT_EQ(store.last_event().value(), 4U);
}

TEST_F(RecordsTest, TheLatestEventsOfEachVfAreKept) {
    auto store = open();
    std::vector<Event> many{test::event(1, 2), test::event(2, {})};
    for (std::uint64_t number = 3; number <= 1010; ++number) many.push_back(test::event(number, 1));
    ASSERT_TRUE(store.commit(saving_events(many)));
    auto const kept = store.events({test::pf, 1}, {}).value().items;
    ASSERT_EQ(kept.size(), 1001U) << "and the PF's";
    EXPECT_EQ(kept.front().number, 1010U);
    EXPECT_EQ(kept[999].number, 11U);
    EXPECT_EQ(store.events({test::pf, 2}, {}).value().items.size(), 2U) << "of no other VF";
}

Event end_of_attachment(std::uint64_t number, std::string attachment) {
    auto event = test::event(number, 1);
    event.kind = EventKind::detached;
    event.attachment = std::move(attachment);
    return event;
}

TEST_F(RecordsTest, EventsOfAnAttachmentAreThoseOfNoOther) {
    auto store = open();
    auto of_attachment = test::event(1, 1);
    of_attachment.attachment = "00000001";
    std::vector const all{of_attachment, test::event(2, 1), end_of_attachment(3, "00000002"),
                          end_of_attachment(4, "00000001")};
    ASSERT_TRUE(store.commit(saving_events(all)));
    EXPECT_EQ(store.events("00000001").value(), (std::vector{all[3], all[0]}));
    EXPECT_TRUE(store.events("00000003").value().empty());
}

// They hold the certificates: only later ends of attachments displace them.
TEST_F(RecordsTest, EndsOfAttachmentsAreKeptApartFromOtherEvents) {
    auto store = open();
    std::vector<Event> many{end_of_attachment(1, "00000001")};
    for (std::uint64_t number = 2; number <= 1010; ++number) many.push_back(test::event(number, 1));
    ASSERT_TRUE(store.commit(saving_events(many)));
    EXPECT_EQ(store.events("00000001").value(), (std::vector{many[0]}));
    EXPECT_EQ(store.events({test::pf, 1}, {}).value().items.back(), many[0])
        << "and in the history";
    many.clear();
    for (std::uint64_t number = 1011; number <= 2010; ++number)
        many.push_back(end_of_attachment(number, "00000002"));
    ASSERT_TRUE(store.commit(saving_events(many)));
    EXPECT_TRUE(store.events("00000001").value().empty());
    EXPECT_EQ(store.events({test::pf, 1}, {}).value().items.size(), 2000U);
}

Event without_pf(std::uint64_t number) {
    auto event = test::event(number, {});
    event.kind = EventKind::vm_started;
    event.pf.reset();
    return event;
}

TEST_F(RecordsTest, EventsAreReadOnFromANumber) {
    auto store = open();
    auto link = test::event(3, {});
    link.kind = EventKind::link_down;
    std::vector const all{test::event(1, 1), without_pf(2), link, test::event(5, 1)};
    ASSERT_TRUE(store.commit(saving_events(all)));
    auto const after = [&](std::uint64_t number, std::size_t max = 10) {
        return store.events_after(number, max).value();
    };
    EXPECT_EQ(after(0).events, all);
    EXPECT_EQ(after(0, 2).events, (std::vector{all[0], all[1]}));
    EXPECT_EQ(after(2).events, (std::vector{all[2], all[3]}));
    EXPECT_EQ(after(4).events, (std::vector{all[3]}));
    EXPECT_TRUE(after(5).events.empty());
    EXPECT_TRUE(after(UINT64_MAX).events.empty());
    EXPECT_EQ(after(0).last, 5U);
    EXPECT_EQ(after(0).pruned, 0U);
}

TEST_F(RecordsTest, EventsThatComeInNumbersAreInNoHistory) {
    auto store = open();
    auto link = test::event(1, {});
    link.kind = EventKind::link_down;
    auto detaching = test::event(2, 1);
    detaching.kind = EventKind::detaching;
    detaching.attachment = "00000001";
    ASSERT_TRUE(store.commit(saving_events({link, detaching, without_pf(3)})));
    EXPECT_TRUE(store.events({test::pf, 1}, {}).value().items.empty());
    EXPECT_TRUE(store.events("00000001").value().empty());
    EXPECT_EQ(store.events_after(0, 10)->events.size(), 3U);
}

TEST_F(RecordsTest, TheHighestDeletedEventIsKnown) {
    auto store = open();
    auto const pruned = [&] { return store.events_after(0, 0)->pruned; };
    std::vector<Event> many{test::event(1, 2)};
    for (std::uint64_t number = 2; number <= 1001; ++number) many.push_back(test::event(number, 1));
    ASSERT_TRUE(store.commit(saving_events(many)));
    EXPECT_EQ(pruned(), 0U);
    ASSERT_TRUE(store.commit(saving_events({test::event(1002, 1)})));
    EXPECT_EQ(pruned(), 2U) << "the VF has 1000";
    EXPECT_EQ(store.events_after(0, 1)->events.front().number, 1U) << "of the other VF";
}

TEST_F(RecordsTest, TwentyThousandEventsAreKeptThatAreInNoHistory) {
    auto store = open();
    ASSERT_TRUE(store.commit(saving_events({without_pf(1), test::event(2, 1), without_pf(3)})));
    ASSERT_TRUE(store.commit(saving_events({without_pf(20'000)})));
    EXPECT_EQ(store.events_after(0, 1)->events.front().number, 1U);
    ASSERT_TRUE(store.commit(saving_events({without_pf(20'001)})));
    EXPECT_EQ(store.events_after(0, 1)->events.front().number, 2U) << "a VF's history stays";
    EXPECT_EQ(store.events_after(0, 1)->pruned, 1U);
    ASSERT_TRUE(store.commit(saving_events({without_pf(20'003)})));
    EXPECT_EQ(store.events_after(2, 1)->events.front().number, 20'000U);
    EXPECT_EQ(store.events_after(2, 1)->pruned, 3U);
}

TEST_F(RecordsTest, AnEventThatCantBeReadIsAsGoodAsDeleted) {
    ASSERT_TRUE(open().commit(
        saving_events({test::event(1, 1), without_pf(2), test::event(3, 1), without_pf(4)})));
    execute("UPDATE events SET document = '{\"kind\": \"later\"}' WHERE number = 3");
    auto const page = open().events_after(0, 10).value();
    ASSERT_EQ(page.events.size(), 3U);
    EXPECT_EQ(page.events.back(), without_pf(4));
    EXPECT_EQ(page.pruned, 3U);
    EXPECT_EQ(page.last, 4U);
}

TEST_F(RecordsTest, NoNumberIsGivenTwice) {
    {
        auto store = open();
        ASSERT_TRUE(store.commit(saving_events({test::event(1, 1), without_pf(2)})));
        EXPECT_EQ(store.last_event().value(), 2U);
    }
    execute("DELETE FROM passing_events");
    EXPECT_EQ(open().last_event().value(), 2U) << "although it is gone";
}

TEST_F(RecordsTest, ATokensEventsAreAsDurableAsTheToken) {
    auto store = open();
    Token const token{"id", "aa", "admin", "", at(0), {}};
    ASSERT_TRUE(store.save_token(token, {without_pf(1)}));
    EXPECT_EQ(store.erase_token("other", {without_pf(2)}), false);
    EXPECT_EQ(store.last_event().value(), 1U);
    EXPECT_EQ(store.erase_token("id", {without_pf(2)}), true);
    EXPECT_EQ(store.last_event().value(), 2U);
    EXPECT_FALSE(store.save_token(token, {without_pf(2)})) << "that number was given";
    EXPECT_TRUE(store.tokens().value().empty());
}

Batch saving(IdempotencyRecord record) {
    Batch batch;
    batch.save_idempotency.push_back(std::move(record));
    return batch;
}

TEST_F(RecordsTest, IdempotencyKeysAreKnownForADay) {
    IdempotencyRecord const record{"key", "hash", "op1", now};
    {
        auto store = open();
        ASSERT_TRUE(store.commit(saving(record)));
    }
    auto store = open();
    EXPECT_EQ(store.idempotency("key", now).value(), record);
    EXPECT_EQ(store.idempotency("key", now + hours(24)).value(), record);
    EXPECT_EQ(store.idempotency("key", now + hours(24) + milliseconds(1)).value(), std::nullopt);
    EXPECT_EQ(store.idempotency("key", now - hours(1)).value(), record) << "the clock was set back";
    EXPECT_EQ(store.idempotency("KEY", now).value(), std::nullopt);
    EXPECT_EQ(store.idempotency("", now).value(), std::nullopt);

    IdempotencyRecord const later{"key", "other hash", "op2", now + hours(48)};
    ASSERT_TRUE(store.commit(saving(later)));
    EXPECT_EQ(store.idempotency("key", now + hours(72)).value(), later);
}

TEST_F(RecordsTest, PruningForgetsWhatIsOlderThan30Days) {
    auto const old_ms =
        (now - hours(24 * 30) - milliseconds(1)).time_since_epoch() / milliseconds(1);
    auto const kept_ms = old_ms + 1;
    auto store = open();
    Batch batch;
    batch.save_attachments = {test::attachment(1)};
    batch.save_operations = {test::operation("old", OperationState::succeeded, old_ms),
                             test::operation("running", OperationState::running, old_ms),
                             test::operation("kept", OperationState::failed, kept_ms)};
    batch.save_records = {{"old", test::record(1, ResetVf{{test::pf, 1}})},
                          {"running", test::record(1, ResetVf{{test::pf, 1}})}};
    batch.save_verifications = {test::run_on_vf("of an attachment", "00000001", old_ms),
                                test::run_on_vf("of none", "00000002", old_ms),
                                test::run_on_vf("of none, kept", "00000002", kept_ms)};
    ASSERT_TRUE(store.commit(batch));
    for (auto const time_ms : {old_ms, kept_ms}) {
        ASSERT_TRUE(store.append_audits({AuditEntry{at(time_ms), {}, {}, {}, {}, {}}}));
        auto const key = fmt::format("{}", time_ms);
        ASSERT_TRUE(store.commit(saving({key, {}, {}, at(time_ms)})));
    }
    ASSERT_TRUE(store.save_token({"id", "aa", "admin", "", at(0), at(1)}));

    ASSERT_TRUE(store.prune(now));

    EXPECT_EQ(store.operation("old").value(), std::nullopt);
    EXPECT_TRUE(store.operation("kept").value());
    auto const unfinished = store.unfinished().value();
    ASSERT_EQ(unfinished.size(), 1U) << "what runs is never forgotten";
    EXPECT_EQ(unfinished[0].records.size(), 1U);
    EXPECT_EQ(store.verifications("00000001", RowRange{}).value().items.size(), 1U)
        << "of an attachment that is";
    ASSERT_EQ(store.verifications("00000002", RowRange{}).value().items.size(), 1U);
    EXPECT_EQ(store.verifications("00000002", RowRange{}).value().items[0].run, "of none, kept");
    EXPECT_EQ(store.verifications(VfId{test::pf, 1}, {}).value().items.size(), 2U)
        << "and of its VF";
    ASSERT_EQ(store.audit({}, {}).value().items.size(), 1U);
    EXPECT_EQ(store.audit({}, {}).value().items[0].at, at(kept_ms));
    EXPECT_EQ(store.idempotency(fmt::format("{}", old_ms), at(old_ms)).value(), std::nullopt);
    EXPECT_TRUE(store.idempotency(fmt::format("{}", kept_ms), at(kept_ms)).value());
    EXPECT_EQ(store.tokens().value().size(), 1U) << "an expired token is listed as such";
}

TEST_F(RecordsTest, PruningTakesTheJournalAlong) {
    auto store = open();
    Batch batch;
    batch.save_operations = {test::operation("op1", OperationState::failed, 0)};
    batch.save_records = {{"op1", test::record(1, ResetVf{{test::pf, 1}})}};
    ASSERT_TRUE(store.commit(batch));
    ASSERT_TRUE(store.prune(now));
    batch = {};
    batch.save_operations = {test::operation("op1", OperationState::running, 0)};
    ASSERT_TRUE(store.commit(batch));
    EXPECT_TRUE(store.unfinished().value().at(0).records.empty());
}

TEST_F(RecordsTest, TheSeedIsMadeOnce) {
    std::string seed;
    {
        auto store = open();
        seed = store.host_seed().value();
        EXPECT_EQ(seed.size(), 32U);
        EXPECT_EQ(seed.find_first_not_of("0123456789abcdef"), std::string::npos) << seed;
        EXPECT_EQ(store.host_seed(), seed);
    }
    EXPECT_EQ(open().host_seed(), seed);
    std::filesystem::remove(path());
    EXPECT_NE(open().host_seed().value(), seed) << "another store is another host";
}

}  // namespace
}  // namespace vfmgr
