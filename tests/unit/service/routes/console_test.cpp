// SPDX-License-Identifier: Apache-2.0
// The console's files behind the gate: who gets them, with which headers, and what stays the API's.
#include <fstream>

#include "tests/unit/service/routes/gated.hpp"

namespace vfmgr {
namespace {

using testing::HasSubstr;
using testing::Not;

struct ConsoleRoutesTest : test::Gated {
    void write(std::string const& name, std::string const& text) const {
        std::ofstream(web.file(name)) << text;
    }
    void install() const {
        write("index.html", "<!doctype html>");
        write("app-5XWJ6KHB.js", std::string(5000, 'x'));
    }
    http::Response get(std::string path, std::map<std::string, std::string> headers = {}) {
        return ask(test::stranger, "GET", std::move(path), {}, {}, std::move(headers));
    }
};

TEST_F(ConsoleRoutesTest, AreForAnyoneWithHeadersThatKeepThePageToItself) {
    install();
    auto const index = get("/");
    ASSERT_EQ(index.status, 200) << index.body;
    EXPECT_EQ(index.body, "<!doctype html>");
    EXPECT_EQ(index.content_type, "text/html; charset=utf-8");
    EXPECT_EQ(index.headers.at("Cache-Control"), "no-cache");
    EXPECT_EQ(index.headers.at("Content-Security-Policy"),
              "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
              "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; "
              "require-trusted-types-for 'script'");
    EXPECT_EQ(index.headers.at("Referrer-Policy"), "no-referrer");
    EXPECT_EQ(index.headers.at("Cross-Origin-Opener-Policy"), "same-origin");
    EXPECT_EQ(index.headers.at("Cross-Origin-Resource-Policy"), "same-origin");
    EXPECT_EQ(get("/index.html").body, index.body);
    auto const script = get("/app-5XWJ6KHB.js");
    EXPECT_EQ(script.headers.at("Cache-Control"), "public, max-age=31536000, immutable");
    EXPECT_EQ(script.body.size(), 5000U);
    EXPECT_TRUE(script.headers.contains("Content-Security-Policy"));
    EXPECT_EQ(ask("viewer", "GET", "/").status, 200);
}

TEST_F(ConsoleRoutesTest, AreSentOnceAndCompressed) {
    install();
    auto const small = get("/app-5XWJ6KHB.js", {{"accept-encoding", "gzip, br"}});
    EXPECT_EQ(small.headers.at("Content-Encoding"), "gzip");
    EXPECT_EQ(small.headers.at("Vary"), "Accept-Encoding");
    EXPECT_LT(small.body.size(), 1000U);
    for (auto const* const path : {"/", "/app-5XWJ6KHB.js"}) {
        auto const etag = get(path).headers.at("ETag");
        EXPECT_NE(etag, small.headers.at("ETag"));
        auto const same = get(path, {{"if-none-match", etag}});
        EXPECT_EQ(same.status, 304);
        EXPECT_EQ(same.body, "");
    }
}

TEST_F(ConsoleRoutesTest, NameThePackageWhereThereIsNone) {
    auto const missing = get("/");
    EXPECT_EQ(missing.status, 404);
    EXPECT_THAT(missing.body, HasSubstr("apt-get install vfmgr-web"));
    install();
    EXPECT_EQ(get("/").status, 200) << "without a restart";
    auto const other = get("/nothing.js");
    EXPECT_EQ(other.status, 404);
    EXPECT_THAT(other.body, Not(HasSubstr("vfmgr-web")));
    for (auto const* const path : {"/..", "/.", "/app-5XWJ6KHB.js/", "//index.html"})
        EXPECT_NE(get(path).status, 200) << path;
}

// A browser shows the certificate that it has; the page then asks for a token.
TEST_F(ConsoleRoutesTest, AreForThoseTooWhoseCertificateHasNoRole) {
    install();
    peer.certificate = {{"nobody.example"}, Time::max()};
    EXPECT_EQ(get("/").status, 200);
    EXPECT_EQ(get("/livez").status, 403);
    EXPECT_EQ(ask("wrong", "GET", "/").status, 200);
}

TEST_F(ConsoleRoutesTest, HideNothingOfTheApi) {
    install();
    write("livez", "no kind");
    EXPECT_THAT(get("/livez").body, HasSubstr("alive"));
    EXPECT_EQ(get("/v1").status, 401);
    EXPECT_EQ(get("/v1/nothing").status, 401);
    EXPECT_EQ(ask("viewer", "GET", "/v1").status, 200);
    auto const wrong = ask("viewer", "POST", "/");
    EXPECT_EQ(wrong.status, 405);
    EXPECT_EQ(wrong.headers.at("Allow"), "GET, HEAD");
    auto const livez = ask("viewer", "POST", "/livez");
    EXPECT_EQ(livez.headers.at("Allow"), "GET, HEAD") << "each once";
    save_scoped("viewer", {"vms"});
    EXPECT_EQ(ask("scoped", "GET", "/").status, 200);
}

TEST_F(ConsoleRoutesTest, AreLimitedForStrangersAlone) {
    install();
    int refused = 0;
    for (int i = 0; i < 100; ++i) refused += get("/").status == 429 ? 1 : 0;
    EXPECT_GT(refused, 30);
    for (int i = 0; i < 100; ++i) ASSERT_EQ(ask("viewer", "GET", "/").status, 200);
}

TEST_F(ConsoleRoutesTest, AnotherSitesPageGetsNothingButALinkAndSpendsNothingOfThePersons) {
    install();
    config.roles.clients = {{"a.example", Role::operator_}};
    open();
    peer = {"192.0.2.9", http::PeerCertificate{{"a.example"}, Time::max()}, "192.0.2.1"};
    std::map<std::string, std::string> const link{{"host", "192.0.2.1:8470"},
                                                  {"sec-fetch-site", "cross-site"},
                                                  {"sec-fetch-mode", "navigate"}};
    EXPECT_EQ(get("/", link).status, 200);
    std::map<std::string, std::string> const hostile{{"host", "192.0.2.1:8470"},
                                                     {"origin", "https://evil.example"}};
    int limited = 0;
    for (int i = 0; i < 100; ++i) {
        auto const answer = ask(test::stranger, "POST", "/v1/attachments", {}, {}, hostile);
        EXPECT_TRUE(answer.status == 403 || answer.status == 429) << answer.status;
        limited += answer.status == 429 ? 1 : 0;
    }
    EXPECT_GT(limited, 30);
    EXPECT_EQ(
        ask(test::stranger, "DELETE", "/v1/attachments/none", {}, {}, {{"host", "192.0.2.1:8470"}})
            .status,
        404)
        << "three changes are the person's share";
    EXPECT_EQ(audit().at(1).who, "cert:a.example");
}

}  // namespace
}  // namespace vfmgr
