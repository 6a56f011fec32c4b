// SPDX-License-Identifier: Apache-2.0
// Pages of a list that changes while it is read.
#include "service/routes/page.hpp"

#include <gmock/gmock.h>

#include <map>

#include "api/types/json.hpp"
#include "api/types/vm_info.hpp"

namespace vfmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Names = std::vector<std::string>;

Call call_of(std::map<std::string, std::string> query, std::string path = "/v1/things") {
    Call call;
    call.request.path = std::move(path);
    call.request.query = std::move(query);
    return call;
}

struct Things {
    std::map<std::string, int> all;

    [[nodiscard]] Result<http::Response> page(Call const& call) const {
        return page_of_all(
            call, all, [](auto const& entry) { return entry.first; },
            [](auto const& entry) {
                return entry.second > 0 ? std::optional(entry.first) : std::nullopt;
            });
    }
    [[nodiscard]] nlohmann::json read(std::map<std::string, std::string> query) const {
        auto const answer = page(call_of(std::move(query)));
        EXPECT_TRUE(answer) << answer.error().detail;
        return nlohmann::json::parse(answer->body);
    }
};

TEST(Page, FollowsOnTheOneBefore) {
    Things things{{{"a", 1}, {"b", 1}, {"c", 0}, {"d", 1}, {"e", 1}}};
    auto const first = things.read({{"limit", "2"}});
    EXPECT_EQ(first["items"], (Names{"a", "b"}));
    // What came before the place is not seen, what comes after it is, and the place itself may go.
    things.all.erase("b");
    things.all.erase("d");
    things.all["aa"] = 1;
    things.all["bb"] = 1;
    auto const second = things.read({{"limit", "2"}, {"cursor", first["next"]}});
    EXPECT_EQ(second["items"], (Names{"bb", "e"}));
    EXPECT_TRUE(second["next"].is_null()) << "it is full, and the last";
}

TEST(Page, MayHaveAnotherSize) {
    Things const things{{{"a", 1}, {"b", 1}, {"c", 1}}};
    auto const first = things.read({{"limit", "1"}});
    EXPECT_EQ(things.read({{"limit", "500"}, {"cursor", first["next"]}})["items"],
              (Names{"b", "c"}));
}

// As on a host of 960 VFs: a client that ignores `next` can see that there are more.
TEST(Page, NeverEndsSilently) {
    Things things;
    for (int i = 0; i < 960; ++i) things.all[std::to_string(1000 + i)] = 1;
    auto const first = things.read({});
    EXPECT_EQ(first["items"].size(), 500U);
    ASSERT_TRUE(first["next"].is_string());
    auto const second = things.read({{"cursor", first["next"]}});
    EXPECT_EQ(second["items"].size(), 460U);
    EXPECT_TRUE(second["next"].is_null());
}

TEST(Page, OfNothingIsEmpty) {
    Things const none{{{"a", 0}}};
    EXPECT_EQ(none.read({{"limit", "1"}}),
              (nlohmann::json{{"items", nlohmann::json::array()}, {"next", nullptr}}));
}

TEST(Page, IsOfItsPathAndFilters) {
    Things const things{{{"a", 1}, {"b", 1}}};
    auto const page = things.page(call_of({{"limit", "1"}, {"state", "free"}})).value();
    std::string const cursor = nlohmann::json::parse(page.body)["next"];
    EXPECT_TRUE(things.page(call_of({{"cursor", cursor}, {"state", "free"}})));
    for (auto const& other :
         {call_of({{"cursor", cursor}}), call_of({{"cursor", cursor}, {"state", "in_use"}}),
          call_of({{"cursor", cursor}, {"state", "free"}, {"vm", "vm1"}}),
          call_of({{"cursor", cursor}, {"state", "free"}}, "/v1/others")}) {
        auto const refused = things.page(other);
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().problem, Problem::invalid_request);
    }
}

TEST(Page, HasOneTo500Items) {
    for (auto const* limit : {"0", "501", "-1", "x", ""})
        EXPECT_FALSE(Things{}.page(call_of({{"limit", limit}}))) << limit;
    EXPECT_FALSE(Things{}.page(call_of({{"cursor", ""}})));
}

// A cursor of this API, whose key is not of this list's kind.
TEST(Page, ByNumberTakesNumbersOnly) {
    auto const call = call_of({{"cursor", make_cursor("/v1/things", "name")}});
    EXPECT_TRUE(page_by<std::string>(call));
    auto const refused = range_of(call);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().detail, HasSubstr("is not a cursor"));
    EXPECT_THAT(range_of(call_of({{"limit", "7"}})).value().limit, 7U);
}

TEST(Filter, MatchesOneValueOrIsRefused) {
    auto const call = call_of({{"state", "running"}, {"vm", "vm1"}, {"pf", "01:00.0"}});
    EXPECT_EQ(choice_filter<VmState>(call, "state").value(), VmState::running);
    EXPECT_EQ(choice_filter<VmState>(call, "kind").value(), std::nullopt);
    EXPECT_EQ(text_filter(call, "vm"), "vm1");
    EXPECT_EQ(text_filter(call, "network"), "");
    EXPECT_EQ(pf_filter(call).value(), (PciAddress{0, 1, 0, 0}));
    auto const wrong = call_of({{"state", "Running"}, {"vm", ""}, {"pf", "enp1s0"}});
    auto const state = choice_filter<VmState>(wrong, "state");
    ASSERT_FALSE(state);
    EXPECT_THAT(state.error().detail, HasSubstr("'Running'"));
    EXPECT_THAT(state.error().remedy, HasSubstr("running, paused, shut_off, other"));
    EXPECT_FALSE(text_filter(wrong, "vm")) << "an empty filter would match all";
    EXPECT_FALSE(pf_filter(wrong));
}

TEST(Filter, IsNamedWithThePages) {
    EXPECT_THAT(list_parameters({"vm"}), ElementsAre("vm", "limit", "cursor"));
}

}  // namespace
}  // namespace vfmgr
