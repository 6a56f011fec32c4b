// SPDX-License-Identifier: Apache-2.0
// Connections that end because their peer may no longer use them.
#include "tests/unit/api/http/harness.hpp"

namespace vfmgr::http {
namespace {

TEST(Cut, EndsThoseThatAreChosenAndNoOthers) {
    std::mutex mutex;
    std::vector<Respond> kept;
    Counter parked;
    TestServer test([&](Request request, Respond respond) {
        ASSERT_TRUE(make_known(request, {request.path}));
        std::lock_guard const lock(mutex);
        kept.push_back(std::move(respond));
        parked.add();
    });
    RawClient struck(test.path);
    RawClient stays(test.path);
    ASSERT_TRUE(struck.send("GET /struck HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(parked.reaches(1));
    ASSERT_TRUE(stays.send("GET /stays HTTP/1.1\r\nHost: a\r\n\r\n"));
    ASSERT_TRUE(parked.reaches(2));
    test.server.cut([](Peer const& peer, Presence const& presence) {
        return std::holds_alternative<UnixPeer>(peer) && presence.known->name == "/struck";
    });
    EXPECT_TRUE(struck.ended());
    kept.at(1)({.status = 200, .headers = {}, .body = "answered"});
    EXPECT_EQ(stays.reply()->body, "answered");
}

// Who gives up its own token still gets the answer to that.
TEST(Cut, LeavesAnAnswerThatIsDue) {
    TestServer* served = nullptr;
    bool holds = true;  // io thread only
    TestServer test([&](Request request, Respond respond) {
        ASSERT_TRUE(make_known(request, {"self", [&] { return holds; }}));
        holds = false;
        respond({.status = 200, .headers = {}, .body = std::string(8 * 1024 * 1024, 'a')});
        served->server.cut(lapsed);
    });
    served = &test;
    RawClient client(test.path);
    ASSERT_TRUE(client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    EXPECT_EQ(client.reply()->body.size(), 8U * 1024 * 1024);
    EXPECT_TRUE(client.ended());
}

}  // namespace
}  // namespace vfmgr::http
