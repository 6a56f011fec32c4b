// SPDX-License-Identifier: Apache-2.0
// What a hostile page can make a browser send, and what else comes the same way.
#include "service/auth/origin.hpp"

#include <gmock/gmock.h>

namespace vfmgr {
namespace {

using testing::HasSubstr;

struct OriginTest : testing::Test {
    using Headers = std::map<std::string, std::string>;
    std::set<std::string> const hosts{"localhost", "kvm7",        "kvm7.example",
                                      "::1",       "2001:db8::1", "*.pool.example"};
    http::Peer peer = http::TcpPeer{"192.0.2.9", {}, "192.0.2.1"};

    [[nodiscard]] Result<void> check(std::string method, Headers headers,
                                     std::string body = {}) const {
        auto request = http::make_request(std::move(method), "/v1/attachments");
        request.headers = std::move(headers);
        request.body = std::move(body);
        request.peer = peer;
        return refuse_other_sites(request, hosts);
    }
    [[nodiscard]] bool takes_host(std::string const& host) const {
        return check("GET", {{"host", host}}).has_value();
    }
};

TEST_F(OriginTest, AHostIsANameOrAnAddressOfThisDaemon) {
    for (auto const* const host :
         {"kvm7", "KVM7:8470", "kvm7.example.:443", "localhost:9000", "192.0.2.1", "192.0.2.1:8470",
          "[::1]:8470", "[2001:DB8:0::1]", "a.pool.example"})
        EXPECT_TRUE(takes_host(host)) << host;
    for (auto const* const host :
         {"evil.example", "kvm7.evil.example", "192.0.2.2", "pool.example", "a.b.pool.example",
          "*.pool.example", "[::2]", "kvm7:", "kvm7:99999", "kvm7:8470:1", "[kvm7]", "[::1", "::1",
          "kvm7@evil.example", "kvm7, evil.example", ":8470", " "})
        EXPECT_FALSE(takes_host(host)) << host;
    auto const refused = check("GET", {{"host", "evil.example"}});
    EXPECT_EQ(refused.error().problem, Problem::forbidden);
    EXPECT_THAT(refused.error().detail, HasSubstr("evil.example"));
    EXPECT_THAT(refused.error().remedy, HasSubstr("host_names in [listen.tls]"));
}

TEST_F(OriginTest, ProgramsSendNoOriginAndPass) {
    Headers const curl{{"host", "192.0.2.1:8470"}};
    for (auto const* const method : {"GET", "POST", "PUT", "PATCH", "DELETE"})
        EXPECT_TRUE(check(method, curl)) << method;
    EXPECT_TRUE(check("GET", {})) << "HTTP/1.0, of a load balancer";
    EXPECT_TRUE(check("POST", {{"host", "kvm7"}, {"content-type", "application/json"}}, "{}"));
}

TEST_F(OriginTest, AnotherOriginIsRefused) {
    auto const from = [&](std::string const& origin, char const* host = "kvm7:8470") {
        return check("POST", {{"host", host}, {"origin", origin}}).has_value();
    };
    EXPECT_TRUE(from("https://kvm7:8470"));
    EXPECT_TRUE(from("https://KVM7", "kvm7:443"));
    EXPECT_TRUE(from("https://[::1]:8470", "[::1]:8470"));
    for (auto const* const origin :
         {"https://evil.example", "https://kvm7", "https://kvm7:8471", "http://kvm7:8470", "null",
          "https://kvm7.example:8470", "https://kvm7:8470@evil.example", "https://"})
        EXPECT_FALSE(from(origin)) << origin;
    auto const refused = check("POST", {{"host", "kvm7"}, {"origin", "https://evil.example"}});
    EXPECT_EQ(refused.error().problem, Problem::forbidden);
    EXPECT_THAT(refused.error().detail, HasSubstr("https://evil.example"));
    EXPECT_FALSE(check("GET", {{"host", "kvm7"}, {"origin", "https://evil.example"}}));
}

TEST_F(OriginTest, AnotherSitesRequestIsRefusedUnlessItIsALink) {
    auto const sent = [&](char const* method, char const* site, char const* mode) {
        return check(method, {{"host", "kvm7"}, {"sec-fetch-site", site}, {"sec-fetch-mode", mode}})
            .has_value();
    };
    for (auto const* const site : {"cross-site", "same-site"}) {
        EXPECT_TRUE(sent("GET", site, "navigate")) << "a link to the console";
        EXPECT_FALSE(sent("GET", site, "no-cors"));
        EXPECT_FALSE(sent("POST", site, "navigate")) << "a form";
        EXPECT_FALSE(sent("DELETE", site, "cors"));
    }
    for (auto const* const site : {"same-origin", "none"})
        for (auto const* const method : {"GET", "POST"}) EXPECT_TRUE(sent(method, site, "cors"));
}

TEST_F(OriginTest, AFormWithoutABodyIsRefused) {
    for (auto const* const type : {"application/x-www-form-urlencoded", "text/plain;charset=UTF-8",
                                   "Multipart/form-data; boundary=x"}) {
        Headers const headers{{"host", "kvm7"}, {"content-type", type}};
        EXPECT_FALSE(check("POST", headers)) << type;
        EXPECT_TRUE(check("GET", headers)) << type;
        EXPECT_TRUE(check("POST", headers, "{}")) << "refused as no JSON, by its status";
    }
    EXPECT_TRUE(check("POST", {{"host", "kvm7"}, {"content-type", "application/json"}}));
}

TEST_F(OriginTest, TheUnixSocketIsOutOfReach) {
    peer = http::UnixPeer{1000};
    EXPECT_TRUE(check("POST", {{"host", "evil.example"},
                               {"origin", "https://evil.example"},
                               {"sec-fetch-site", "cross-site"}}));
}

}  // namespace
}  // namespace vfmgr
