// SPDX-License-Identifier: Apache-2.0
// Requests of a pool: which connections carry them, and its limits.
#include "api/http/client_pool.hpp"

#include <gmock/gmock.h>

#include <fstream>
#include <thread>

#include "api/http/authority.hpp"
#include "tests/unit/api/http/pool_harness.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

// Keeps what it is asked until the test answers, but for "/at-once".
struct Withheld {
    Handler handler() {
        return [this](Request request, Respond respond) {
            if (request.path == "/at-once") return echo(std::move(request), std::move(respond));
            EXPECT_TRUE(make_known(request, {"client"}));
            std::lock_guard const lock(mutex);
            kept.push_back(std::move(respond));
            came.add();
        };
    }
    void answer_all() {
        std::vector<Respond> all;
        {
            std::lock_guard const lock(mutex);
            all = std::exchange(kept, {});
        }
        for (auto const& respond : all) respond({});
    }
    std::mutex mutex;
    std::vector<Respond> kept;
    Counter came;
};

TEST(ClientPool, AnswersOnAConnectionThatIsKept) {
    ManyServers const servers(1);
    ClientPool pool;
    for (int i = 0; i < 20; ++i) {
        auto request = get("/" + std::to_string(i));
        request.query["q"] = "a&b";
        EXPECT_EQ(outcome(pool.send(servers.targets[0], request, 20s)),
                  "200 GET /" + std::to_string(i) + " q=a&b");
    }
    EXPECT_EQ(pool.counts().opened, 1U);
    auto head = get("/a");
    head.method = "HEAD";
    auto const header = pool.send(servers.targets[0], head, 20s);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->body, "");
    EXPECT_EQ(header->headers.at("content-length"), "6");
    auto post = make_request("POST", "/b");
    post.body = std::string(100'000, 'x');
    EXPECT_EQ(pool.send(servers.targets[0], post, 20s)->body, "POST /b " + post.body);
    EXPECT_EQ(pool.counts().opened, 1U);
}

TEST(ClientPool, ReachesTwoHundredTargetsAtOnce) {
    ManyServers const servers(200);
    ClientPool pool;
    for (std::size_t const opened : {200U, 200U}) {
        Answers answers;
        for (auto const& target : servers.targets)
            pool.send(target, get("/" + std::to_string(target.port)), 60s, answers.taker());
        std::size_t good = 0;
        for (auto const& answer : answers.wait_for(200)) good += answer && answer->status == 200;
        EXPECT_EQ(good, 200U);
        EXPECT_EQ(pool.counts().opened, opened) << "the second round opens none";
    }
    EXPECT_TRUE(counts_become(pool, [](auto const& now) { return now.idle == 200; }));
    EXPECT_EQ(pool.counts().connections, 200U);
}

TEST(ClientPool, ATargetHasSoManyConnectionsAndSoManyThatWait) {
    Withheld withheld;
    ManyServers const servers(2, withheld.handler());
    ClientPool pool({.connections_per_target_max = 3, .waiting_per_target_max = 4});
    Answers answers;
    for (int i = 0; i < 7; ++i) pool.send(servers.targets[0], get("/"), 60s, answers.taker());
    ASSERT_TRUE(withheld.came.reaches(3));
    EXPECT_TRUE(counts_become(pool, [](auto const& now) { return now.waiting == 4; }));
    EXPECT_EQ(outcome(pool.send(servers.targets[0], get("/"), 60s)),
              "unavailable: 4 requests to https://127.0.0.1:" +
                  std::to_string(servers.targets[0].port) + " already wait for a connection");
    pool.send(servers.targets[1], get("/"), 60s, answers.taker());
    ASSERT_TRUE(withheld.came.reaches(4)) << "another target does not wait for this one";
    for (int came = 4; came < 8; came = withheld.came.count()) {
        withheld.answer_all();
        ASSERT_TRUE(withheld.came.reaches(std::min(came + 1, 8)));
    }
    withheld.answer_all();
    for (auto const& answer : answers.wait_for(8)) EXPECT_EQ(outcome(answer), "200 ");
    EXPECT_EQ(pool.counts().opened, 4U);
}

TEST(ClientPool, AllTargetsTogetherHaveSoManyConnectionsAndTakeTurns) {
    ManyServers const servers(6);
    ClientPool pool({.connections_max = 2});
    for (auto const& target : servers.targets)
        EXPECT_EQ(outcome(pool.send(target, get("/a"), 20s)), "200 GET /a");
    EXPECT_EQ(pool.counts().connections, 2U) << "the one that was idle for longest made room";
    Answers answers;
    for (int i = 0; i < 60; ++i)
        pool.send(servers.targets[static_cast<std::size_t>(i % 6)], get("/a"), 60s,
                  answers.taker());
    for (auto const& answer : answers.wait_for(60)) EXPECT_EQ(outcome(answer), "200 GET /a");
    EXPECT_LE(pool.counts().connections, 2U);
}

TEST(ClientPool, OneThatIsBusyDoesNotStarveAnother) {
    Withheld withheld;
    ManyServers const servers(2, withheld.handler());
    ClientPool pool({.connections_max = 1});
    Answers answers;
    std::string order;  // the pool's thread only, until all are there
    auto const send = [&](std::size_t target) {
        pool.send(servers.targets[target], get("/"), 60s,
                  [&, target, taker = answers.taker()](Result<Response> answer) {
                      order += std::to_string(target);
                      taker(std::move(answer));
                  });
    };
    for (int i = 0; i < 4; ++i) send(0);
    ASSERT_TRUE(withheld.came.reaches(1));
    send(1);
    EXPECT_TRUE(counts_become(pool, [](auto const& now) { return now.waiting == 4; }));
    for (int came = 1; came <= 5; ++came) {
        ASSERT_TRUE(withheld.came.reaches(came));
        withheld.answer_all();
    }
    for (auto const& answer : answers.wait_for(5)) EXPECT_EQ(outcome(answer), "200 ");
    EXPECT_EQ(order, "00100") << "each waits for one of the other's, not for all";
}

TEST(ClientPool, TheTimeoutCountsFromTheStartWhateverItWaitsFor) {
    Withheld withheld;
    ManyServers const servers(1, withheld.handler());
    ClientPool pool({.connections_per_target_max = 1});
    auto const name = "https://127.0.0.1:" + std::to_string(servers.targets[0].port);
    Answers carried;
    Answers waits;
    ASSERT_TRUE(pool.send(servers.targets[0], get("/at-once"), 20s));
    pool.send(servers.targets[0], make_request("PUT", "/"), 1s, carried.taker());
    ASSERT_TRUE(withheld.came.reaches(1));
    pool.send(servers.targets[0], make_request("PUT", "/"), 100ms, waits.taker());
    EXPECT_EQ(outcome(waits.wait_for(1).front()),
              "timed_out: " + name +
                  " was not asked in time: all connections carried other "
                  "requests");
    EXPECT_EQ(outcome(carried.wait_for(1).front()),
              "timed_out: " + name +
                  " did not finish the answer in time; whether the request was "
                  "carried out is not known");
    EXPECT_TRUE(counts_become(pool, [](auto const& now) { return now.connections == 0; }));
    ASSERT_TRUE(pool.send(servers.targets[0], get("/at-once"), 20s));
    auto const read = pool.send(servers.targets[0], get("/"), 300ms);
    EXPECT_EQ(outcome(read), "timed_out: " + name + " did not finish the answer in time")
        << "a GET changes nothing";
}

TEST(ClientPool, WhoDoesNotShakeHandsTimesOut) {
    FileDescriptor const listens(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    auto const port = test::free_port();
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    ASSERT_EQ(::bind(listens.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(::listen(listens.get(), 8), 0);
    ClientPool pool;
    TlsTarget const target{"127.0.0.1", port, {}, std::string(64, 'a')};
    EXPECT_THAT(outcome(pool.send(target, get("/"), 200ms)),
                HasSubstr("did not finish the TLS handshake in time"));
}

TEST(ClientPool, WhatCantBeReachedIsNamed) {
    ManyServers servers(1);
    ClientPool pool;
    auto const nobody = pool.send({"127.0.0.1", 1, {}, std::string(64, 'a')}, get("/"), 20s);
    EXPECT_EQ(outcome(nobody),
              "unavailable: can't connect to https://127.0.0.1:1: Connection refused");
    auto const unnamed =
        pool.send({"no.such.name.invalid", 1, {}, std::string(64, 'a')}, get("/"), 20s);
    EXPECT_THAT(outcome(unnamed), HasSubstr("the name 'no.such.name.invalid' has no address"));
    auto other = servers.targets[0];
    other.public_key = std::string(64, 'a');
    EXPECT_THAT(outcome(pool.send(other, get("/"), 20s)), HasSubstr("not the expected"));
    other.public_key = "nonsense";
    EXPECT_THAT(outcome(pool.send(other, get("/"), 20s)), HasSubstr("invalid_request"));
    auto request = get("/");
    request.headers["x"] = "a\r\nb: c";
    EXPECT_THAT(outcome(pool.send(servers.targets[0], request, 20s)),
                HasSubstr("holds characters that HTTP forbids"));
    EXPECT_EQ(pool.counts().connections, 0U);
    auto by_name = servers.targets[0];
    by_name.host = "localhost";
    EXPECT_EQ(outcome(pool.send(by_name, get("/a"), 20s)), "200 GET /a");
}

TEST(ClientPool, AnIdleConnectionIsClosedAfterItsTime) {
    ManyServers const servers(1);
    ClientPool pool({.idle_max = 100ms});
    EXPECT_TRUE(pool.send(servers.targets[0], get("/"), 20s));
    EXPECT_TRUE(counts_become(pool, [](auto const& now) { return now.connections == 0; }));
    EXPECT_TRUE(pool.send(servers.targets[0], get("/"), 20s));
    EXPECT_EQ(pool.counts().opened, 2U);
}

TEST(ClientPool, AServersEndOfAnIdleConnectionIsNoticed) {
    Limits limits;
    limits.idle_seconds_max = 1s;
    ManyServers const servers(1, echo, limits);
    ClientPool pool;
    EXPECT_TRUE(pool.send(servers.targets[0], get("/"), 20s));
    EXPECT_TRUE(counts_become(pool, [](auto const& now) { return now.connections == 0; }));
}

TEST(ClientPool, ShowsItsCertificateAndARenewedOneSoon) {
    Folder const folder;
    auto const ca = make_authority(folder.file("ca"), "fleet").value();
    IssuedFiles const own{folder.file("own.pem"), folder.file("own.key")};
    IssuedFiles const host{folder.file("host.pem"), folder.file("host.key")};
    ASSERT_TRUE(issue(ca, {.common_name = "one", .for_clients = true}, own));
    ASSERT_TRUE(issue(ca, {.common_name = "h", .names = {"127.0.0.1"}, .for_servers = true}, host));
    TlsTarget const target{
        .host = "127.0.0.1", .port = test::free_port(), .ca_file = ca.certificate_file};
    Server server{Limits{}};
    ASSERT_TRUE(server.listen(TlsListen{.address = "127.0.0.1",
                                        .port = target.port,
                                        .certificate_file = host.certificate_file,
                                        .key_file = host.key_file,
                                        .fleet_ca_file = ca.certificate_file},
                              [](Request request, Respond respond) {
                                  EXPECT_TRUE(make_known(request, {"fleet"}));
                                  Response response;
                                  response.body = std::get<TcpPeer>(request.peer)
                                                      .certificate.value_or(PeerCertificate{{"-"}})
                                                      .names.front();
                                  respond(std::move(response));
                              }));
    server.start();
    ClientPool pool({.certificate_file = own.certificate_file, .key_file = own.key_file});
    EXPECT_EQ(outcome(pool.send(target, get("/"), 20s)), "200 one");
    ASSERT_TRUE(issue(ca, {.common_name = "two", .for_clients = true}, own, Existing::replaced));
    EXPECT_EQ(outcome(pool.send(target, get("/"), 20s)), "200 two")
        << "a kept connection is not used any more";
    std::ofstream(own.certificate_file) << "half of a";
    EXPECT_EQ(outcome(pool.send(target, get("/"), 20s)), "200 two") << "the former one stays";
    EXPECT_EQ(pool.counts().opened, 2U);
}

TEST(ClientPool, EndsWhatIsUnderWayWhenItStops) {
    Withheld withheld;
    ManyServers const servers(1, withheld.handler());
    Answers answers;
    ClientPool pool({.connections_per_target_max = 1});
    pool.send(servers.targets[0], make_request("POST", "/"), 60s, answers.taker());
    ASSERT_TRUE(withheld.came.reaches(1));
    pool.send(servers.targets[0], make_request("POST", "/"), 60s, answers.taker());
    EXPECT_TRUE(counts_become(pool, [](auto const& now) { return now.waiting == 1; }));
    std::thread blocks([&] {
        EXPECT_THAT(outcome(pool.send(servers.targets[0], get("/"), 60s)), HasSubstr("stops"));
    });
    EXPECT_TRUE(counts_become(pool, [](auto const& now) { return now.waiting == 2; }));
    pool.stop();
    blocks.join();
    auto const all = answers.wait_for(2);
    std::vector<std::string> outcomes{outcome(all[0]), outcome(all[1])};
    auto const name = "the request to https://127.0.0.1:" + std::to_string(servers.targets[0].port);
    EXPECT_THAT(outcomes, testing::UnorderedElementsAre(
                              "timed_out: " + name +
                                  " was ended, because this program stops; "
                                  "whether the request was carried out is not known",
                              "unavailable: " + name + " was ended, because this program stops"));
    pool.send(servers.targets[0], get("/"), 60s, [](auto const&) { ADD_FAILURE(); });
    EXPECT_THAT(outcome(pool.send(servers.targets[0], get("/"), 60s)), HasSubstr("stops"));
    pool.stop();
}

TEST(ClientPool, ManyThreadsSendAtOnce) {
    ManyServers const servers(4);
    ClientPool pool;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 4; ++i)
        threads.emplace_back([&, i] {
            for (int n = 0; n < 50; ++n)
                EXPECT_EQ(outcome(pool.send(servers.targets[i], get("/a"), 60s)), "200 GET /a");
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(pool.counts().opened, 4U);
}

TEST(ClientPool, ACallbackThatThrowsHurtsNobodyElse) {
    ManyServers const servers(1);
    Counter bugs;
    ClientPool pool({}, [&](std::string const&) { bugs.add(); });
    pool.send(servers.targets[0], get("/"), 20s,
              [](auto const&) { throw std::runtime_error("a bug"); });
    ASSERT_TRUE(bugs.reaches(1));
    EXPECT_TRUE(pool.send(servers.targets[0], get("/"), 20s));
}

}  // namespace
}  // namespace vfmgr::http
