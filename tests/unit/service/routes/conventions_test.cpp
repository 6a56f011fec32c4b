// SPDX-License-Identifier: Apache-2.0
// What all routes have in common: media types, methods, conditions, pages and the audit.
#include "tests/unit/service/routes/gated.hpp"

namespace vfmgr {
namespace {

using namespace example;

struct ConventionsTest : test::Gated {};

TEST_F(ConventionsTest, ChangesTakeJsonOnly) {
    save_token("admin");
    config.changes = {.burst = 1000, .per_second = 1000};
    open();
    int changes = 0;
    for (auto const& route : pf_routes(bench.engine)) {
        if (route.method == "GET") continue;
        ++changes;
        for (auto const& headers : {std::map<std::string, std::string>{},
                                    {{"content-type", "text/plain"}},
                                    {{"content-type", "application/jsonp"}}})
            EXPECT_EQ(ask("admin", route.method.c_str(), route.path, {}, "{}", headers).status, 415)
                << route.method << " " << route.path;
        auto const condition =
            ask("admin", route.method.c_str(), route.path, {}, {}, {{"if-none-match", "*"}});
        EXPECT_EQ(condition.status, 400) << route.method << " " << route.path;
    }
    EXPECT_GE(changes, 6);
}

TEST_F(ConventionsTest, AnotherMethodIsToldWhichThereAre) {
    auto const answer = ask("viewer", "PUT", "/v1/attachments");
    EXPECT_EQ(answer.status, 405);
    EXPECT_EQ(answer.headers.at("Allow"), "GET, POST, DELETE, HEAD");
    EXPECT_FALSE(ask("viewer", "PUT", "/v1/nothing").headers.contains("Allow"));
}

TEST_F(ConventionsTest, AStaleChangeIsToldTheCurrentEtag) {
    save_token("admin");
    save_token("writer");
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(2)});
    auto const path = "/v1/pfs/" + to_string(pf0) + "/spec";
    auto const etag = ask("viewer", "GET", path).headers.at("ETag");
    EXPECT_EQ(etag, "\"1\"");
    auto with = as_json;
    with["if-match"] = "W/\"1\", \"9\"";
    auto const refused = ask("admin", "PUT", path, {}, R"({"num_vfs": 3})", with);
    EXPECT_EQ(refused.status, 412);
    EXPECT_EQ(refused.headers.at("ETag"), etag);
    EXPECT_EQ(nlohmann::json::parse(refused.body)["revision"], 1);
    with["if-match"] = "\"9\", \"1\"";
    EXPECT_EQ(ask("admin", "PUT", path, {{"dry_run", "true"}}, R"({"num_vfs": 3})", with).status,
              200);
    auto const known = ask("viewer", "GET", path, {}, {}, {{"if-none-match", "W/\"1\""}});
    EXPECT_EQ(known.status, 304);
    EXPECT_EQ(known.headers.at("ETag"), etag);
    EXPECT_EQ(known.body, "");
}

TEST_F(ConventionsTest, TheAuditSaysWhatAChangeBegan) {
    save_token("admin");
    auto const path = "/v1/pfs/" + to_string(pf0) + "/spec";
    auto const put = [&](std::map<std::string, std::string> query) {
        return ask("admin", "PUT", path, std::move(query), R"({"mode": "manage", "num_vfs": 2})",
                   as_json);
    };
    auto const planned = put({{"dry_run", "true"}});
    auto const accepted = put({});
    ASSERT_EQ(accepted.status, 202);
    auto const digest = planned.headers.at("Plan-Digest");
    EXPECT_EQ(digest, token_sha256(nlohmann::json::parse(planned.body)["plan"].dump()))
        << "as a client computes it";
    EXPECT_EQ(accepted.headers.at("Plan-Digest"), digest) << "the plan that was shown";
    std::string const id = nlohmann::json::parse(accepted.body)["id"];
    bench.ended(id);
    auto const entries = audit();
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0].who, "token:admin");
    EXPECT_EQ(entries[0].from, "address:192.0.2.9");
    EXPECT_EQ(entries[0].request_id, "the-id");
    EXPECT_EQ(entries[0].action, "PUT " + path);
    EXPECT_EQ(entries[0].outcome, "202");
    EXPECT_EQ(entries[0].operation, id);
    EXPECT_EQ(entries[0].plan_digest, digest);
    EXPECT_EQ(entries[1].action, "PUT " + path + "?dry_run=true");
    EXPECT_EQ(entries[1].plan_digest, digest);
    EXPECT_EQ(entries[1].operation, std::nullopt);
}

TEST_F(ConventionsTest, NamedObjectsComeInPagesAndFiltered) {
    using testing::ElementsAre;
    bench.run(ReplacePfSpec{pf0, spec_with_vfs(4)});
    auto other = train();
    other.name = "other";
    other.vlan = 200;
    other.prefix = IpPrefix::parse("192.168.200.0/24").value();
    other.pfs = {{pf0, IpAddress::parse("192.168.200.3").value()}};
    ASSERT_TRUE(bench.submit(PutNetwork{other}));
    for (auto const* name : {"a", "b"}) {
        Pool pool;
        pool.name = name;
        if (*name == 'b') pool.defaults.network = "train";
        ASSERT_TRUE(bench.submit(PutPool{pool}));
        ReservationSpec spec;
        spec.pool = name;
        ASSERT_TRUE(bench.submit(Reserve{std::string("for-") + name, spec}));
    }
    auto const names = [&](std::string const& path, std::map<std::string, std::string> query) {
        std::vector<std::string> all;
        do {
            auto const answer = ask("viewer", "GET", path, query);
            EXPECT_EQ(answer.status, 200) << answer.body;
            auto const page = nlohmann::json::parse(answer.body);
            for (auto const& item : page["items"]) all.push_back(item["name"]);
            query["cursor"] = page["next"].is_null() ? "" : page["next"].get<std::string>();
        } while (!query["cursor"].empty());
        return all;
    };
    EXPECT_THAT(names("/v1/networks", {{"limit", "1"}}), ElementsAre("other", "train"));
    EXPECT_THAT(names("/v1/networks", {{"pf", to_string(pf1)}}), ElementsAre("train"));
    EXPECT_THAT(names("/v1/pools", {{"limit", "1"}}), ElementsAre("a", "b"));
    EXPECT_THAT(names("/v1/pools", {{"network", "train"}}), ElementsAre("b"));
    EXPECT_THAT(names("/v1/reservations", {{"limit", "1"}}), ElementsAre("for-a", "for-b"));
    EXPECT_THAT(names("/v1/reservations", {{"pool", "a"}}), ElementsAre("for-a"));
    EXPECT_THAT(names("/v1/reservations", {{"pf", to_string(pf1)}}), ElementsAre());
    EXPECT_THAT(names("/v1/reservations", {{"network", "train"}}), ElementsAre());
    for (auto const* path : {"/v1/networks/train", "/v1/pools/a", "/v1/identities"}) {
        auto const etag = ask("viewer", "GET", path).headers.at("ETag");
        EXPECT_EQ(ask("viewer", "GET", path, {}, {}, {{"if-none-match", etag}}).status, 304)
            << path;
    }
    EXPECT_EQ(ask("viewer", "GET", "/v1/pools", {{"cursor", "1"}}).status, 400);
}

TEST_F(ConventionsTest, OperationsComeInPagesAndFiltered) {
    for (auto const vfs : std::vector<std::uint16_t>{1, 2, 3})
        bench.run(ReplacePfSpec{pf0, spec_with_vfs(vfs)});
    auto const get = [&](std::map<std::string, std::string> query) {
        auto const answer = ask("viewer", "GET", "/v1/operations", std::move(query));
        EXPECT_EQ(answer.status, 200) << answer.body;
        return nlohmann::json::parse(answer.body);
    };
    auto const all = get({});
    ASSERT_EQ(all["items"].size(), 3U);
    EXPECT_TRUE(all["next"].is_null());
    auto const first = get({{"limit", "2"}, {"state", "succeeded"}});
    auto const second =
        get({{"limit", "2"}, {"state", "succeeded"}, {"cursor", first["next"].get<std::string>()}});
    EXPECT_EQ(second["items"], nlohmann::json::array({all["items"][2]}));
    EXPECT_EQ(get({{"kind", "configure_pf"}})["items"].size(), 3U);
    EXPECT_TRUE(get({{"attachment", "00000001"}})["items"].empty());
    EXPECT_EQ(ask("viewer", "GET", "/v1/operations", {{"state", "done"}}).status, 400);
    EXPECT_EQ(ask("viewer", "GET", "/v1/operations", {{"cursor", "1"}}).status, 400);
}

}  // namespace
}  // namespace vfmgr
