// SPDX-License-Identifier: Apache-2.0
// Answers that are made once for each published view.
#include "service/routes/kept_answers.hpp"

#include <gmock/gmock.h>

namespace vfmgr {
namespace {

using testing::Contains;
using testing::EndsWith;
using testing::Key;
using testing::Not;

struct KeptAnswersTest : testing::Test {
    int made = 0;
    std::string text = std::string(2000, 'x');
    std::optional<std::string> revision;
    Snapshot now = view();
    KeptAnswers kept;
    Published const route{[this](Call const& call, Snapshot const& seen) {
        ++made;
        http::Response response{.body = text + call.request.path};
        for (auto const& [name, tenant] : seen.desired->tenants) response.body += name;
        if (revision) response.headers["ETag"] = *revision;
        return Result<http::Response>(response);
    }};

    static Snapshot view(std::initializer_list<std::string> tenants = {}) {
        auto desired = std::make_shared<DesiredState>();
        for (auto const& name : tenants) desired->tenants[name].tenant.name = name;
        return {std::make_shared<HostView const>(), desired,
                std::make_shared<std::map<std::string, PendingRun> const>(),
                std::make_shared<std::map<std::string, Token> const>()};
    }
    static Call call(std::string path = "/v1/vfs", std::map<std::string, std::string> headers = {},
                     std::string who = "uid:0") {
        Call one;
        one.request.method = "GET";
        one.request.path = std::move(path);
        one.request.headers = std::move(headers);
        one.who.name = std::move(who);
        return one;
    }
    Call of_tenant(std::string const& name) const {
        auto one = call();
        one.who.tenant = std::make_shared<DesiredTenant const>(now.desired->tenants.at(name));
        return one;
    }
    http::Response ask(Call const& asked) { return kept.answer(route, asked, now); }
};

TEST_F(KeptAnswersTest, AreMadeOnceForEachViewAndTarget) {
    auto const first = ask(call());
    EXPECT_EQ(ask(call("/v1/vfs", {}, "token:1")).text, first.text);
    EXPECT_EQ(made, 1);
    auto other = call();
    other.request.query["limit"] = "1";
    ask(other);
    ask(call("/v1/pfs"));
    EXPECT_EQ(made, 3);
    now.host = std::make_shared<HostView const>();
    ask(call());
    now.desired = view().desired;
    ask(call());
    now.runs = view().runs;
    ask(call());
    EXPECT_EQ(made, 6);
}

TEST_F(KeptAnswersTest, AreNamedByTheirContent) {
    auto const tag = ask(call()).headers.at("ETag");
    EXPECT_EQ(tag.size(), 18);
    now = view();
    EXPECT_EQ(ask(call()).headers.at("ETag"), tag) << "the view is new, and the text the same";
    auto const known = ask(call("/v1/vfs", {{"if-none-match", "W/" + tag}}));
    EXPECT_EQ(known.status, 304);
    EXPECT_EQ(known.text, nullptr);
    EXPECT_EQ(known.headers.at("ETag"), tag);
    EXPECT_EQ(ask(call("/v1/vfs", {{"if-none-match", "7\""}})).status, 400);
    text += "y";
    now = view();
    EXPECT_NE(ask(call()).headers.at("ETag"), tag);
}

TEST_F(KeptAnswersTest, OfATenantAreItsOwn) {
    now = view({"blue", "red"});
    auto const blue = ask(of_tenant("blue"));
    auto const red = ask(of_tenant("red"));
    auto const all = ask(call());
    EXPECT_NE(blue.text, red.text);
    EXPECT_NE(blue.text, all.text);
    EXPECT_EQ(ask(of_tenant("blue")).text, blue.text);
    EXPECT_EQ(made, 3);
}

// The tenant that a caller was authenticated as may be older than the view.
TEST_F(KeptAnswersTest, OfATenantAreMadeOfTheTenantAsTheViewHasIt) {
    now = view({"blue"});
    auto const caller = of_tenant("blue");
    auto desired = std::make_shared<DesiredState>();
    auto& tenant = desired->tenants["blue"].tenant;
    tenant.name = "blue";
    tenant.vms = {"11111111-1111-1111-1111-111111111111"};
    auto host = std::make_shared<HostView>();
    host->hypervisor.vms[tenant.vms.front()].uuid = tenant.vms.front();
    now.desired = desired;
    now.host = host;
    std::size_t vms = 0;
    Published const counts{[&](Call const&, Snapshot const& seen) {
        vms = seen.host->hypervisor.vms.size();
        return Result<http::Response>(http::Response{.body = "x"});
    }};
    static_cast<void>(kept.answer(counts, caller, now));
    EXPECT_EQ(vms, 1);
}

TEST_F(KeptAnswersTest, DoNotDependOnTheCaller) {
    Published const curious{[](Call const& call, Snapshot const&) {
        EXPECT_EQ(call.who.name, "");
        EXPECT_TRUE(call.request.headers.empty());
        return Result<http::Response>(http::Response{.body = "x"});
    }};
    EXPECT_EQ(*kept.answer(curious, call("/", {{"x-request-id", "1"}}), now).text, "x");
}

TEST_F(KeptAnswersTest, RefusalsAreNotKept) {
    Published const refuses{[this](Call const&, Snapshot const&) -> Result<http::Response> {
        ++made;
        return fail(Problem::not_found, "there is none", "make one");
    }};
    EXPECT_EQ(kept.answer(refuses, call(), now).status, 404);
    EXPECT_EQ(kept.answer(refuses, call(), now).status, 404);
    EXPECT_EQ(made, 2);
}

TEST_F(KeptAnswersTest, AreCompressedOnceForThoseWhoTakeThatSo) {
    auto const plain = ask(call());
    EXPECT_EQ(plain.headers.at("Vary"), "Accept-Encoding");
    EXPECT_THAT(plain.headers, Not(Contains(Key("Content-Encoding"))));
    auto const zipped = ask(call("/v1/vfs", {{"accept-encoding", "br, gzip"}}));
    EXPECT_EQ(zipped.headers.at("Content-Encoding"), "gzip");
    EXPECT_EQ(zipped.headers.at("Vary"), "Accept-Encoding");
    EXPECT_LT(zipped.text->size(), plain.text->size() / 10);
    EXPECT_EQ(ask(call("/v1/vfs", {{"accept-encoding", "gzip"}})).text, zipped.text);
    EXPECT_EQ(made, 1);
    auto const tag = zipped.headers.at("ETag");
    EXPECT_THAT(tag, EndsWith("-gzip\""));
    std::map<std::string, std::string> again{{"accept-encoding", "gzip"}, {"if-none-match", tag}};
    EXPECT_EQ(ask(call("/v1/vfs", again)).status, 304);
    EXPECT_EQ(ask(call("/v1/vfs", {{"if-none-match", tag}})).status, 200) << "not byte for byte";
}

TEST_F(KeptAnswersTest, AreNotCompressedIfSmallOrOfARevision) {
    text = "small";
    auto const small = ask(call("/v1/vfs", {{"accept-encoding", "gzip"}}));
    EXPECT_THAT(small.headers, Not(Contains(Key("Content-Encoding"))));
    EXPECT_THAT(small.headers, Not(Contains(Key("Vary"))));
    text = std::string(2000, 'x');
    revision = "\"7\"";
    auto const revised = ask(call("/v1/networks/a", {{"accept-encoding", "gzip"}}));
    EXPECT_EQ(revised.headers.at("ETag"), "\"7\"") << "which If-Match names";
    EXPECT_THAT(revised.headers, Not(Contains(Key("Content-Encoding"))));
}

// Whoever asks for one list after the other.
TEST_F(KeptAnswersTest, OfOnePrincipalTakeNoMoreThanItsShare) {
    text = std::string(1024 * 1024, 'x');
    std::map<std::string, std::string> const gzip{{"accept-encoding", "gzip"}};
    int zipped = 0;
    for (int i = 0; i < 8; ++i)
        zipped += static_cast<int>(ask(call("/v1/" + std::to_string(i), gzip, "flood"))
                                       .headers.contains("Content-Encoding"));
    EXPECT_EQ(zipped, 1) << "2 MiB, less the paths";
    EXPECT_EQ(made, 8);
    ask(call("/v1/0"));
    ask(call("/v1/2"));
    EXPECT_EQ(made, 8) << "the first ones are kept";
    ask(call("/v1/7", {}, "flood"));
    EXPECT_EQ(made, 9) << "the last one is not";
    auto const other = ask(call("/v1/7", gzip, "other"));
    EXPECT_TRUE(other.headers.contains("Content-Encoding"));
    ask(call("/v1/7", {}, "other"));
    EXPECT_EQ(made, 10) << "others have their own share";
}

}  // namespace
}  // namespace vfmgr
