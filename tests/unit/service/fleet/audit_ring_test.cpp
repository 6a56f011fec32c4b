// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/audit_ring.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vfmgr::fleet {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Time noon = Time{} + std::chrono::hours(24 * 365 * 50);

AuditEntry entry(std::string who, std::string outcome, Time at = noon) {
    bool const refused = outcome >= "400";
    return {.at = at,
            .who = std::move(who),
            .request_id = "id",
            .action = "POST /v1/hosts",
            .subject = "/v1/hosts",
            .outcome = std::move(outcome),
            .refused = refused,
            .from = "address:192.0.2.9"};
}

std::vector<std::string> whose(Rows<AuditEntry> const& rows) {
    std::vector<std::string> names;
    for (auto const& item : rows.items) names.push_back(item.who);
    return names;
}

TEST(AuditRing, ListsTheNewestFirstWhateverTheirPart) {
    AuditRing ring;
    ring.add(entry("a", "200"));
    ring.add(entry("b", "403"));
    ring.add(entry("c", "202"));
    EXPECT_THAT(whose(ring.rows("", "", {})), ElementsAre("c", "b", "a"));
    EXPECT_THAT(whose(ring.rows("b", "", {})), ElementsAre("b"));
    EXPECT_THAT(whose(ring.rows("", "202", {})), ElementsAre("c"));
    EXPECT_THAT(whose(ring.rows("b", "202", {})), IsEmpty());
}

TEST(AuditRing, GoesOnWhereAPageEndedThoughEntriesCome) {
    AuditRing ring;
    for (auto const* who : {"a", "b", "c", "d"}) ring.add(entry(who, "200"));
    auto const first = ring.rows("", "", {2, {}});
    EXPECT_THAT(whose(first), ElementsAre("d", "c"));
    ASSERT_TRUE(first.next);
    ring.add(entry("e", "403"));
    auto const second = ring.rows("", "", {2, first.next});
    EXPECT_THAT(whose(second), ElementsAre("b", "a"));
    EXPECT_FALSE(second.next);
}

TEST(AuditRing, AFloodOfRefusalsLeavesTheChangesThere) {
    AuditRing ring({.entries = 3});
    ring.add(entry("change", "202"));
    for (int i = 0; i < 10; ++i) ring.add(entry("flood", "403"));
    EXPECT_THAT(whose(ring.rows("", "", {})), ElementsAre("flood", "flood", "flood", "change"));
}

TEST(AuditRing, CutsTextsThatAreTooLong) {
    AuditRing ring({.text_bytes = 4});
    ring.add(entry("abcdefgh", "200"));
    auto const rows = ring.rows("", "", {});
    EXPECT_EQ(rows.items[0].who, "abcd");
    EXPECT_EQ(rows.items[0].action, "POST");
}

TEST(AuditRing, CountsInOneEntryForPrincipalOutcomeAndMinute) {
    AuditRing ring;
    for (int i = 0; i < 3; ++i) {
        ring.count(entry("a", "429", noon + seconds(i)));
        ring.add(entry("b", "403", noon + seconds(i)));
    }
    ring.count(entry("a", "401", noon + seconds(4)));
    ring.count(entry("a", "429", noon + minutes(1)));
    auto const rows = ring.rows("a", "", {});
    ASSERT_EQ(rows.items.size(), 3U);
    EXPECT_EQ(rows.items[0].at, noon + minutes(1));
    EXPECT_EQ(rows.items[0].requests, 1U);
    EXPECT_EQ(rows.items[1].outcome, "401");
    EXPECT_EQ(rows.items[2].requests, 3U);
    EXPECT_EQ(rows.items[2].at, noon);
    EXPECT_EQ(rows.items[2].action, "requests without an entry of their own");
    EXPECT_EQ(rows.items[2].from, "address:192.0.2.9");
}

TEST(AuditRing, ManyNamesShareACountInAMinute) {
    AuditRing ring({.counted = 2});
    for (auto const* who : {"a", "b", "c", "d", "a"}) ring.count(entry(who, "401"));
    auto const rows = ring.rows("", "", {});
    EXPECT_THAT(whose(rows), ElementsAre("others", "b", "a"));
    EXPECT_EQ(rows.items[0].requests, 2U);
    EXPECT_EQ(rows.items[2].requests, 2U);
    ring.count(entry("c", "401", noon + minutes(1)));
    EXPECT_EQ(ring.rows("c", "", {}).items.size(), 1U) << "the next minute has rows of its own";
}

}  // namespace
}  // namespace vfmgr::fleet
