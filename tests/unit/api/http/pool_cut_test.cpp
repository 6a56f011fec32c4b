// SPDX-License-Identifier: Apache-2.0
// Servers that end a pool's connection at each point where they can.
#include <gmock/gmock.h>

#include <deque>
#include <thread>

#include "tests/unit/api/http/pool_harness.hpp"

namespace vfmgr::http {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;

constexpr std::string_view good_answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

// What a server does on one connection, step by step.
struct Step {
    enum What {
        answer,       // reads a request and sends `text`
        read_only,    // reads a request
        await_go,     // until the test says so
        close_order,  // ends TLS and TCP in order
        reset,        // ends TCP by RST
    } what = answer;
    std::string text{good_answer};
};
using Script = std::vector<Step>;

// A TLS server, with a script for each connection it gets, one after the other.
class ScriptedServer {
  public:
    explicit ScriptedServer(std::vector<Script> scripts)
        : listens_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), port_(test::free_port()) {
        auto const certificate = folder_.file("cert.pem");
        auto const key = folder_.file("key.pem");
        EXPECT_TRUE(make_self_signed(certificate, key, {"127.0.0.1"}));
        EXPECT_EQ(SSL_CTX_use_certificate_chain_file(context_.get(), certificate.c_str()), 1);
        EXPECT_EQ(SSL_CTX_use_PrivateKey_file(context_.get(), key.c_str(), SSL_FILETYPE_PEM), 1);
        SSL_CTX_set_num_tickets(context_.get(), 0);
        target = {
            .host = "127.0.0.1", .port = port_, .public_key = public_key_of(certificate).value()};
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port_);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        EXPECT_EQ(::bind(listens_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
        EXPECT_EQ(::listen(listens_.get(), 8), 0);
        ::signal(SIGPIPE, SIG_IGN);
        thread_ = std::thread([this, scripts = std::move(scripts)] {
            for (auto const& script : scripts) serve(script);
        });
    }
    ~ScriptedServer() {
        ::shutdown(listens_.get(), SHUT_RDWR);
        for (int i = 0; i < 16; ++i) go.add();
        thread_.join();
    }
    [[nodiscard]] std::vector<std::string> requests() {
        std::lock_guard const lock(mutex_);
        return requests_;
    }

    TlsTarget target;
    Counter go;      // one more step of await_go
    Counter passed;  // steps

  private:
    void serve(Script const& script) {
        FileDescriptor fd(::accept4(listens_.get(), nullptr, nullptr, SOCK_CLOEXEC));
        if (!fd) return;
        timeval const patience{.tv_sec = 20, .tv_usec = 0};
        (void)::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        Handle<SSL, SSL_free> const session(SSL_new(context_.get()));
        SSL_set_fd(session.get(), fd.get());
        if (SSL_accept(session.get()) != 1) return;
        for (auto const& step : script) {
            perform(step, session.get(), fd);
            passed.add();
        }
    }
    void perform(Step const& step, SSL* session, FileDescriptor& fd) {
        switch (step.what) {
            case Step::answer:
                read_request(session);
                if (!step.text.empty())
                    SSL_write(session, step.text.data(), static_cast<int>(step.text.size()));
                return;
            case Step::read_only:
                return read_request(session);
            case Step::await_go:
                EXPECT_TRUE(go.reaches(++gone_));
                return;
            case Step::close_order:
                SSL_shutdown(session);
                return fd.reset();
            case Step::reset: {
                linger const at_once{.l_onoff = 1, .l_linger = 0};
                ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
                return fd.reset();
            }
        }
    }
    void read_request(SSL* session) {
        std::string text;
        char part[4096];
        while (text.find("\r\n\r\n") == std::string::npos) {
            int const size = SSL_read(session, part, sizeof part);
            if (size <= 0) return;
            text.append(part, static_cast<std::size_t>(size));
        }
        std::lock_guard const lock(mutex_);
        requests_.push_back(text.substr(0, text.find(' ')));
    }

    Folder folder_;
    FileDescriptor listens_;
    std::uint16_t port_;
    Handle<SSL_CTX, SSL_CTX_free> context_{SSL_CTX_new(TLS_server_method())};
    int gone_ = 0;
    std::mutex mutex_;
    std::vector<std::string> requests_;  // methods; guarded by mutex_
    std::thread thread_;
};

Step const well{Step::answer};
Step const stays{Step::await_go};

struct ACut : testing::TestWithParam<char const*> {
    [[nodiscard]] Result<Response> ask(ScriptedServer const& server) {
        return pool.send(server.target, make_request(GetParam(), "/"), 20s);
    }
    ClientPool pool;
};
struct OfRepeatable : ACut {};
struct OfOthers : ACut {};
struct OfAny : ACut {};
INSTANTIATE_TEST_SUITE_P(Methods, OfRepeatable, testing::Values("GET", "HEAD", "PUT", "DELETE"));
INSTANTIATE_TEST_SUITE_P(Methods, OfOthers, testing::Values("POST", "PATCH"));
INSTANTIATE_TEST_SUITE_P(Methods, OfAny, testing::Values("GET", "PUT", "POST", "PATCH"));

constexpr auto not_known =
    "ended the connection during the answer; whether the request was "
    "carried out is not known";

// The server had ended the connection before: nothing was written to it, whatever the method.
TEST_P(OfAny, IsNoneWhenItsEndWasReadableBefore) {
    ScriptedServer server({{well, {Step::close_order}}, {well, stays}});
    ASSERT_TRUE(ask(server));
    ASSERT_TRUE(server.passed.reaches(2));
    EXPECT_EQ(outcome(ask(server)), "200 ok");
    EXPECT_EQ(server.requests().size(), 2U);
    EXPECT_EQ(pool.counts().opened, 2U);
}

TEST_P(OfAny, IsNoneWhenItWasResetBefore) {
    ScriptedServer server({{well, {Step::reset}}, {well, stays}});
    ASSERT_TRUE(ask(server));
    ASSERT_TRUE(server.passed.reaches(2));
    EXPECT_EQ(outcome(ask(server)), "200 ok");
    EXPECT_EQ(server.requests().size(), 2U);
}

TEST_P(OfRepeatable, IsHealedOnAFreshConnection) {
    std::string const text(GetParam() == std::string("HEAD")
                               ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
                               : good_answer);
    Step const answer{Step::answer, text};
    ScriptedServer server({{answer, {Step::read_only}, {Step::close_order}}, {answer, stays}});
    ASSERT_TRUE(ask(server));
    EXPECT_TRUE(ask(server));
    EXPECT_EQ(server.requests(), std::vector<std::string>(3, GetParam()));
}

TEST_P(OfRepeatable, IsHealedOnce) {
    std::string const text(GetParam() == std::string("HEAD")
                               ? "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
                               : good_answer);
    Step const answer{Step::answer, text};
    Script const refuses{{Step::read_only}, {Step::close_order}};
    ScriptedServer server({{answer, {Step::read_only}, {Step::reset}}, refuses, refuses});
    ASSERT_TRUE(ask(server));
    auto const second = ask(server);
    ASSERT_FALSE(second);
    bool const reads = GetParam() == std::string("GET") || GetParam() == std::string("HEAD");
    EXPECT_EQ(second.error().problem, reads ? Problem::unavailable : Problem::timed_out);
    EXPECT_THAT(second.error().detail, HasSubstr("ended the connection during the answer"));
    EXPECT_EQ(server.requests(), std::vector<std::string>(3, GetParam()));
}

// It may have been carried out; a second one would be a second change.
TEST_P(OfOthers, IsReportedAsNotKnown) {
    for (auto const end : {Step::close_order, Step::reset}) {
        ScriptedServer server({{well, {Step::read_only}, {end}}, {well, stays}});
        ASSERT_TRUE(ask(server));
        EXPECT_THAT(outcome(ask(server)),
                    testing::AllOf(StartsWith("timed_out: "), HasSubstr(not_known)));
        EXPECT_EQ(server.requests(), std::vector<std::string>(2, GetParam()));
    }
}

TEST_P(OfAny, IsNotHealedWhenTheAnswerHadBegun) {
    std::string const half = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
    ScriptedServer server({{well, {Step::answer, half}, {Step::close_order}}, {well, stays}});
    ASSERT_TRUE(ask(server));
    auto const broken = ask(server);
    ASSERT_FALSE(broken);
    EXPECT_THAT(broken.error().detail, HasSubstr("ended the connection during the answer"));
    EXPECT_EQ(broken.error().problem,
              GetParam() == std::string("GET") ? Problem::unavailable : Problem::timed_out);
    EXPECT_EQ(server.requests().size(), 2U);
}

TEST_P(OfAny, IsNotHealedOnAFirstConnection) {
    ScriptedServer server({{{Step::read_only}, {Step::reset}}, {well, stays}});
    EXPECT_FALSE(ask(server));
    EXPECT_EQ(server.requests().size(), 1U);
}

struct Answered : testing::Test {
    ClientPool pool;
};

TEST_F(Answered, EarlyAndBeforeTheWholeRequestWasTaken) {
    ScriptedServer server(
        {{{Step::answer, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"}, stays}});
    auto request = make_request("POST", "/");
    request.body = std::string(16 * 1024 * 1024, 'x');
    EXPECT_EQ(outcome(pool.send(server.target, request, 20s)), "413 ");
    EXPECT_EQ(pool.counts().idle, 0U) << "what is left of the request can't be followed by another";
}

TEST_F(Answered, UntilTheEndOfTheConnection) {
    ScriptedServer server({{{Step::answer, "HTTP/1.1 200 OK\r\n\r\nall"}, {Step::close_order}}});
    EXPECT_EQ(outcome(pool.send(server.target, get("/"), 20s)), "200 all");
}

TEST_F(Answered, ByAServerThatKeepsNothing) {
    auto const closes = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
    ScriptedServer server({{{Step::answer, closes}, stays}});
    EXPECT_EQ(outcome(pool.send(server.target, get("/"), 20s)), "200 ok");
    EXPECT_TRUE(counts_become(pool, [](auto const& now) { return now.connections == 0; }));
}

TEST_F(Answered, WithMoreThanWasAskedFor) {
    ScriptedServer server({{{Step::answer, std::string(good_answer) + "HTTP/1.1 200"}, stays}});
    EXPECT_EQ(outcome(pool.send(server.target, get("/"), 20s)), "200 ok");
    EXPECT_TRUE(counts_become(pool, [](auto const& now) { return now.connections == 0; }))
        << "it could be taken for the answer to the next request";
}

TEST_F(Answered, AtTooGreatALengthOrAsNonsense) {
    auto const length = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n";
    ScriptedServer server({{{Step::answer, length}, {Step::close_order}},
                           {{Step::answer, "nonsense\r\n\r\n"}, {Step::close_order}}});
    EXPECT_THAT(outcome(pool.send(server.target, make_request("POST", "/"), 20s)),
                StartsWith("limit_exceeded: the answer of"));
    EXPECT_THAT(outcome(pool.send(server.target, get("/"), 20s)), StartsWith("unavailable: "));
}

}  // namespace
}  // namespace vfmgr::http
