// SPDX-License-Identifier: Apache-2.0
// With no room left, writes fail and report it, reads go on, and nothing is half-written.
#include "store_bench.hpp"
#include "tests/unit/file_size_limit.hpp"

namespace vfmgr {
namespace {

class FullStoreTest : public test::StoreTest {
  protected:
    static constexpr StoreLimits small{256 * 1024};  // its tables alone take almost 200 KiB

    // Adds attachments, one batch each, until one is refused.
    static Error fill(Store& store, DesiredState& expected) {
        for (std::uint32_t i = 0; i < 100'000; ++i) {
            Batch batch;
            batch.save_attachments = {test::attachment(i)};
            if (auto const done = store.commit(batch); !done) return done.error();
            expected.attachments.emplace(batch.save_attachments[0].id, test::attachment(i));
        }
        return {Problem::internal, "it is never full", {}};
    }
};

Batch saving(std::uint32_t number) {
    Batch batch;
    batch.save_attachments = {test::attachment(number)};
    batch.save_pfs = {{test::pf, test::desired_pf()}};
    return batch;
}

TEST_F(FullStoreTest, WritesAreRefusedAndReadsGoOn) {
    auto store = open(small);
    auto const seed = store.host_seed().value();
    ASSERT_TRUE(store.save_token({"id", "aa", "admin", "", {}, {}}));
    DesiredState expected;
    auto const error = fill(store, expected);
    test::expect_unavailable(error, path());
    EXPECT_NE(error.detail.find("the disk or the store is full"), std::string::npos)
        << error.detail;
    ASSERT_EQ(error.causes.size(), 1U);
    EXPECT_EQ(error.causes[0].code, "SQLITE_FULL");
    EXPECT_GT(expected.attachments.size(), 10U);

    EXPECT_EQ(store.load(), expected) << "all that was accepted, and nothing of what was not";
    EXPECT_EQ(store.tokens().value().size(), 1U);
    EXPECT_EQ(store.host_seed(), seed);
    Token const big{"big", "bb", "admin", std::string(100'000, 'x'), {}, {}};
    auto const refused = store.save_token(big);
    ASSERT_FALSE(refused);
    test::expect_unavailable(refused.error(), path());
    EXPECT_LE(std::filesystem::file_size(path()), small.bytes_max);
}

TEST_F(FullStoreTest, GoesOnWhenRoomWasMade) {
    DesiredState expected;
    {
        auto store = open(small);
        fill(store, expected);
        Batch erasing;
        for (auto const& [id, unused] : expected.attachments)
            erasing.erase_attachments.push_back(id);
        ASSERT_TRUE(store.commit(erasing));
        EXPECT_TRUE(store.commit(saving(1)));
        expected = {};
        fill(store, expected);
    }
    auto store = open();
    EXPECT_TRUE(store.commit(saving(0xffffffff))) << "a greater limit is room as well";
    EXPECT_EQ(store.load().value().attachments.size(), expected.attachments.size() + 1);
}

TEST_F(FullStoreTest, ABatchThatDoesNotFitLeavesNothing) {
    auto store = open(small);
    ASSERT_TRUE(store.commit(saving(1)));
    auto const before = store.load().value();
    Batch batch;
    batch.erase_pfs = {test::pf};
    for (std::uint32_t i = 1; i < 1000; ++i) batch.save_attachments.push_back(test::attachment(i));
    EXPECT_FALSE(store.commit(batch));
    EXPECT_EQ(store.load(), before);
    EXPECT_TRUE(store.commit(saving(2))) << "a smaller one still fits";
}

TEST_F(FullStoreTest, AFailingDiskMakesItReadOnlyUntilItIsBack) {
    auto store = open();
    ASSERT_TRUE(store.commit(saving(1)));
    ASSERT_TRUE(store.append_audits({AuditEntry{}}));
    auto const before = store.load().value();
    {
        test::FileSizeLimit const limit(0);
        auto const long_after = test::at(1769860800000);
        for (auto const& done :
             {store.commit(saving(2)), store.append_audits({AuditEntry{}}), store.prune(long_after),
              store.save_token({"id", "aa", "admin", "", {}, {}})}) {
            ASSERT_FALSE(done);
            test::expect_unavailable(done.error(), path());
            EXPECT_NE(done.error().detail.find("cannot be written"), std::string::npos);
        }
        EXPECT_FALSE(store.host_seed());
        EXPECT_EQ(store.load(), before);
        EXPECT_TRUE(store.tokens().value().empty());
    }
    EXPECT_TRUE(store.commit(saving(2)));
    EXPECT_EQ(store.load().value().attachments.size(), 2U);
}

TEST_F(FullStoreTest, KnowsThatItRefusesUntilAWriteShowsOtherwise) {
    auto store = open();
    EXPECT_FALSE(store.refusal());
    {
        test::FileSizeLimit const limit(0);
        EXPECT_FALSE(store.commit(saving(1)));
        ASSERT_TRUE(store.refusal());
        test::expect_unavailable(*store.refusal(), path());
        EXPECT_TRUE(store.load());
        store.try_again();
        EXPECT_TRUE(store.refusal());
    }
    EXPECT_TRUE(store.refusal()) << "nothing was written since";
    store.try_again();
    EXPECT_FALSE(store.refusal());
    EXPECT_TRUE(store.commit(saving(1)));
}

TEST_F(FullStoreTest, RefusesAsLongAsThereIsNoRoomForMore) {
    auto store = open({400 * 1024});
    std::uint32_t saved = 0;
    while (store.save_token(
        {std::to_string(saved), std::to_string(saved), "admin", std::string(4000, 'x'), {}, {}}))
        ++saved;
    ASSERT_TRUE(store.refusal());
    // What is under way fits into the reserve, and a little may fit elsewhere.
    Batch attaching;
    attaching.save_attachments = {test::attachment(1)};
    EXPECT_TRUE(store.commit(attaching));
    store.try_again();
    EXPECT_TRUE(store.refusal());
    for (std::uint32_t one = 0; one < saved; ++one)
        ASSERT_TRUE(store.erase_token(std::to_string(one)));
    EXPECT_FALSE(store.refusal());
}

TEST_F(FullStoreTest, IsNotOpenedWhenItCannotBeWritten) {
    {
        test::FileSizeLimit const limit(0);
        test::expect_unavailable(refusal_to_open(), path());
    }
    ASSERT_TRUE(open().commit(saving(1)));
    {
        test::FileSizeLimit const limit(0);
        test::expect_unavailable(refusal_to_open(), path());
    }
    EXPECT_EQ(open().load().value().attachments.size(), 1U);
}

}  // namespace
}  // namespace vfmgr
