// SPDX-License-Identifier: Apache-2.0
#include "service/fleet/contact.hpp"

#include <gtest/gtest.h>

namespace vfmgr::fleet {
namespace {

using namespace std::chrono_literals;

Contact const here{"f1", "h1", "store1", 100, {}};
MarkRecord const mark{"store1", 90, "2026-01-31T12:00:00.000Z drift", 7, {}};

std::string why(Contact const& contact, MarkRecord const* known = &mark, std::uint64_t seen = 95) {
    return contradiction("f1", "h1", known, seen, contact).value_or("");
}

TEST(Contact, AHostThatHasGoneOnIsTheSame) {
    EXPECT_EQ(why(here), "");
    EXPECT_EQ(why(here, nullptr, 0), "");
}

TEST(Contact, AHostThatIsBehindIsNot) {
    auto contact = here;
    contact.last_event = 94;
    EXPECT_NE(why(contact).find("it has sent 95 before"), std::string::npos) << why(contact);
    contact.last_event = 89;
    EXPECT_NE(why(contact, &mark, 0).find("the fleet knows 90"), std::string::npos);
    contact = here;
    contact.store = "store2";
    EXPECT_NE(why(contact).find("store2"), std::string::npos) << why(contact);
    contact = here;
    contact.restored_at = Time{};
    EXPECT_NE(why(contact).find("restored"), std::string::npos) << why(contact);
}

TEST(Contact, AnotherHostAtItsAddressIsNot) {
    auto contact = here;
    contact.host = "h2";
    EXPECT_NE(why(contact, nullptr, 0), "");
    contact = here;
    contact.fleet = "f2";
    EXPECT_NE(why(contact, nullptr, 0), "");
    contact.fleet.clear();
    EXPECT_NE(why(contact, nullptr, 0), "");
}

TEST(Contact, TheMarkIsWrittenOnceAMinuteAtMost) {
    Time const then{1000s};
    EXPECT_TRUE(mark_is_due(nullptr, {100, "x"}, Time{}, then));
    EXPECT_FALSE(mark_is_due(nullptr, {}, Time{}, then)) << "nothing is known";
    EXPECT_FALSE(mark_is_due(&mark, {100, "x"}, then - 59s, then));
    EXPECT_TRUE(mark_is_due(&mark, {100, "x"}, then - 60s, then));
    EXPECT_FALSE(mark_is_due(&mark, {90, "x"}, then - 600s, then)) << "nothing has happened there";
}

// A restored store gives its numbers to other events.
TEST(Contact, EventsOfOneNumberAreToldApart) {
    auto const one =
        told_apart_by(R"({"number":7,"at":"2026-01-31T12:00:00.000Z","kind":"drift"})");
    EXPECT_FALSE(one.empty());
    EXPECT_NE(one, told_apart_by(R"({"number":7,"at":"2026-01-31T12:00:00.001Z","kind":"drift"})"));
    EXPECT_NE(one, told_apart_by(R"({"number":7,"at":"2026-01-31T12:00:00.000Z","kind":"lost"})"));
    EXPECT_EQ(told_apart_by("no JSON"), "");
    EXPECT_EQ(told_apart_by(R"({"number":7})"), "");
}

TEST(Contact, IsReadFromAHostOfAnotherVersion) {
    std::string const fleet = "33333333-3333-4333-8333-333333333333";
    auto const contact = read_contact(R"({"membership":{"fleet":")" + fleet + R"(","host":"h1",
        "urls":["https://r1:8480"],"ca":"PEM","joined_at":"2026-01-31T12:00:00.000Z","fence":4,
        "new":1},"store":"s","last_event":3,"restored_at":null,"news":{"x":1}})");
    ASSERT_TRUE(contact) << contact.error().detail;
    EXPECT_EQ(contact->fleet, fleet);
    EXPECT_EQ(contact->host, "h1");
    EXPECT_EQ(contact->last_event, 3U);
    auto const alone = read_contact(R"({"membership":null,"store":"s","last_event":3,
        "restored_at":"2026-01-31T12:00:00.000Z"})");
    ASSERT_TRUE(alone) << alone.error().detail;
    EXPECT_EQ(alone->fleet, "");
    EXPECT_TRUE(alone->restored_at);
    EXPECT_FALSE(read_contact(R"({"store":"s"})"));
    EXPECT_FALSE(read_contact("no JSON"));
}

}  // namespace
}  // namespace vfmgr::fleet
