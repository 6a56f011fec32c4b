// SPDX-License-Identifier: Apache-2.0
// A served responder and its client, over TLS on loopback, without RDMA.
#include <nlohmann/json.hpp>

#include "api/types/json.hpp"
#include "tests/unit/vfmgr/proof/host/offered.hpp"
#include "tests/unit/vfmgr/proof/serve/served.hpp"
#include "vfmgr/proof/session.hpp"

namespace vfmgr::serve {
namespace {

using test::loopback_permit;
using test::ServedResponder;
using testing::HasSubstr;
using testing::Not;

SessionRequest request_of(verify::SessionPermit const& permit) {
    return {permit.attachment, permit.run, permit.nonce, {std::string(32, '0'), 1, 2, 1024, 1}};
}

verify::Subject guest_of(verify::SessionPermit const& permit, ResponderInfo const& info) {
    verify::Subject subject;
    auto& attachment = subject.attachment;
    attachment.attachment = permit.attachment;
    attachment.run = permit.run;
    attachment.nonce = permit.nonce;
    attachment.address = permit.peer_address;
    attachment.responder = info.address;
    attachment.echo_port = info.echo_port;
    attachment.rdma = RdmaMode::none;
    return subject;
}

TEST(ServedResponders, TellWhatIsTestedAgainst) {
    ServedResponder const served;
    auto const info = RemoteResponder(served.target()).info();
    ASSERT_TRUE(info) << info.error().detail;
    EXPECT_EQ(*info, served.info);
}

TEST(ServedResponders, GiveTheVerdictOfARun) {
    ServedResponder const served;
    RemoteResponder const remote(served.target());
    auto const permit = loopback_permit();
    auto session = verify::GuestSession::prepare(guest_of(permit, served.info));
    ASSERT_TRUE(session);
    auto request = (*session)->request();
    auto const offer = test::offered(remote.open(permit, request));
    ASSERT_TRUE(offer) << offer.error().detail;
    auto const verdict = remote.close(offer->session, permit, (*session)->run(*offer));
    ASSERT_TRUE(verdict) << verdict.error().detail;
    EXPECT_EQ(verdict->verdict, Verdict::not_applicable) << verdict->detail;
    EXPECT_EQ(verdict->tests[0].verdict, Verdict::pass) << verdict->tests[0].detail;
    EXPECT_EQ(verdict->tests[1].verdict, Verdict::pass) << verdict->tests[1].detail;
    EXPECT_EQ(verdict->run, "r1");
    EXPECT_EQ(verdict->path, TestPath::wire);
    EXPECT_EQ(verdict->vf_mac, permit.vf_mac);
    EXPECT_EQ(verdict->responder, to_string(served.target().place));
    EXPECT_GT(verdict->started_at, Time{} + std::chrono::hours(24 * 365));
    EXPECT_EQ(served.responder->load().sessions, 0U);
    EXPECT_EQ(remote.close(offer->session, permit, {}).error().problem, Problem::not_found);
}

TEST(ServedResponders, AMacOrPathThatIsNotKnownStaysSo) {
    ServedResponder const served;
    RemoteResponder const remote(served.target());
    auto permit = loopback_permit();
    permit.vf_mac = {};
    permit.path.reset();
    auto const offer = test::offered(remote.open(permit, request_of(permit)));
    ASSERT_TRUE(offer) << offer.error().detail;
    GuestReport report;
    report.nonce = permit.nonce;
    auto const verdict = remote.close(offer->session, permit, report);
    ASSERT_TRUE(verdict) << verdict.error().detail;
    EXPECT_EQ(verdict->verdict, Verdict::fail);
    EXPECT_THAT(verdict->detail, HasSubstr("no datagram of this run came from 127.0.0.1"));
    EXPECT_FALSE(verdict->vf_mac);
    EXPECT_FALSE(verdict->path);
}

TEST(ServedResponders, SayWhoseTurnItIs) {
    ServedResponder const served;
    RemoteResponder const remote(served.target());
    auto permit = loopback_permit();
    for (std::size_t i = 0; i < verify::ResponderLimits().sessions_max; ++i) {
        permit.attachment = "a" + std::to_string(i);
        ASSERT_TRUE(test::offered(remote.open(permit, request_of(permit))));
    }
    permit.attachment = "last";
    auto const answer = remote.open(permit, request_of(permit));
    ASSERT_TRUE(answer) << answer.error().detail;
    auto const* const turn = std::get_if<Turn>(&*answer);
    ASSERT_TRUE(turn);
    EXPECT_EQ(turn->position, 1U);
    EXPECT_GE(turn->seconds, 1U);
    EXPECT_FALSE(turn->own);
}

TEST(ServedResponders, RefuseWhatIsNotThePermits) {
    ServedResponder const served;
    RemoteResponder const remote(served.target());
    auto request = request_of(loopback_permit());
    request.nonce = "n2";
    auto const refused = remote.open(loopback_permit(), request);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::forbidden);
    EXPECT_THAT(refused.error().detail, HasSubstr(remote.name() + ": the request's nonce is not"));
}

TEST(ServedResponders, TellWhyTheyCantReachTheVf) {
    ServedResponder const served([](auto const&) -> Result<void> {
        return fail(Problem::unavailable, "no machine answers for 127.0.0.1", "check the cable");
    });
    RemoteResponder const remote(served.target());
    auto const refused = remote.open(loopback_permit(), request_of(loopback_permit()));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unavailable);
    EXPECT_THAT(refused.error().detail, HasSubstr("no machine answers for 127.0.0.1"));
    EXPECT_EQ(refused.error().remedy, "check the cable");
}

TEST(ServedResponders, DropASessionAndItsStreams) {
    ServedResponder const served;
    RemoteResponder const remote(served.target());
    auto const permit = loopback_permit();
    auto const offer = test::offered(remote.open(permit, request_of(permit)));
    ASSERT_TRUE(offer);
    auto const stream = remote.open_stream(
        offer->session,
        {StreamKind::one_sided, 8, 1, {{std::string(32, '0'), 17, 42, 1024, 1}}, {}});
    ASSERT_FALSE(stream) << "the permit rules RDMA out";
    EXPECT_EQ(stream.error().problem, Problem::forbidden);
    remote.close_stream(offer->session, "none");
    EXPECT_EQ(served.responder->load().sessions, 1U);
    remote.drop(offer->session);
    EXPECT_EQ(served.responder->load().sessions, 0U);
}

// --- access and identity ------------------------------------------------------------------------

TEST(ServedResponders, AWrongTokenIsRefusedAndNotRepeated) {
    ServedResponder const served;
    for (std::string const& token : {std::string("vfr_wrong"), served.credentials.token + "0",
                                     served.credentials.token.substr(1)}) {
        auto target = served.target();
        target.token = token;
        auto const refused = RemoteResponder(target).info();
        ASSERT_FALSE(refused);
        EXPECT_EQ(refused.error().problem, Problem::unauthorized);
        EXPECT_THAT(refused.error().detail, HasSubstr("the token is not the responder's"));
        EXPECT_THAT(refused.error().detail + refused.error().remedy, Not(HasSubstr(token)));
    }
    auto target = served.target();
    target.token.clear();
    EXPECT_THAT(RemoteResponder(target).info().error().detail, HasSubstr("has no token"));
}

TEST(ServedResponders, AnotherCertificateIsNotTrusted) {
    ServedResponder const served;
    auto target = served.target();
    target.fingerprint = std::string(64, '0');
    auto const refused = RemoteResponder(target).info();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unavailable);
    EXPECT_THAT(refused.error().detail, HasSubstr(served.credentials.fingerprint));
    EXPECT_THAT(refused.error().detail, HasSubstr(target.fingerprint));
    EXPECT_THAT(refused.error().remedy, HasSubstr("fingerprint with what it printed"));
}

TEST(ServedResponders, NobodyThereIsNamed) {
    ResponderTarget const nobody{{"127.0.0.1", test::free_port()}, std::string(64, '0'), "vfr_x"};
    RemoteResponder const remote(nobody);
    auto const refused = remote.info();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().problem, Problem::unavailable);
    EXPECT_THAT(refused.error().detail, HasSubstr("the responder " + remote.name()));
    EXPECT_THAT(refused.error().remedy, HasSubstr("vf-guest serve"));
}

// --- requests as other clients may send them ----------------------------------------------------

http::Response send(ServedResponder const& served, std::string method, std::string path,
                    std::string body = {}, std::map<std::string, std::string> query = {}) {
    http::TlsTarget target;
    target.host = "127.0.0.1";
    target.port = served.port;
    target.fingerprint = served.credentials.fingerprint;
    http::Client client(target);
    client.set_bearer_token(served.credentials.token);
    auto request = http::make_request(std::move(method), std::move(path));
    request.body = std::move(body);
    request.query = std::move(query);
    return client.send(request, std::chrono::seconds(20)).value();
}

TEST(ServedResponders, BadPathsAndBodiesAreNamed) {
    ServedResponder const served;
    EXPECT_EQ(send(served, "GET", "/").status, 404);
    EXPECT_EQ(send(served, "PUT", "/responder/v1").status, 405);
    EXPECT_EQ(send(served, "GET", "/responder/v1/sessions/x").status, 405);
    EXPECT_EQ(send(served, "DELETE", "/responder/v1/sessions/a.b").status, 404);
    EXPECT_EQ(send(served, "DELETE", "/responder/v1/sessions/none").status, 204);
    EXPECT_EQ(send(served, "POST", "/responder/v1/sessions", "{").status, 400);
    EXPECT_EQ(send(served, "PUT", "/responder/v1/sessions/none/report", "null").status, 422);
    auto const parameter = send(served, "GET", "/responder/v1", {}, {{"verbose", "true"}});
    EXPECT_EQ(parameter.status, 400);
    EXPECT_THAT(parameter.body, HasSubstr("has no parameter 'verbose'"));
    auto const large = send(served, "POST", "/responder/v1/sessions", std::string(300 << 10, ' '));
    EXPECT_EQ(large.status, 413);
}

TEST(ResponderAnswers, HaveIdsAndTextsThatFit) {
    auto const session = [](std::string const& id) {
        SessionOffer offer;
        offer.session = id;
        offer.host.gid = std::string(32, '0');
        return nlohmann::json(offer).dump();
    };
    EXPECT_TRUE(read_session_offer(session("5d0a")));
    EXPECT_FALSE(read_session_offer(session("../runs")));
    EXPECT_FALSE(read_session_offer(session("")));
    StreamOffer stream;
    stream.stream = "a/b";
    EXPECT_FALSE(read_stream_offer(nlohmann::json(stream).dump()));
    stream.stream = "5d0a";
    stream.transport = TransferTransport::rc;
    stream.transport_reason = "mlx5_0: no DC initiator";
    EXPECT_TRUE(read_stream_offer(nlohmann::json(stream).dump()));
    stream.transport_reason = "\x1b[2J";
    EXPECT_FALSE(read_stream_offer(nlohmann::json(stream).dump()));
    Verification verdict;
    verdict.detail = "rdma_write: bytes differ";
    EXPECT_TRUE(read_verdict(nlohmann::json(verdict).dump()));
    verdict.tests.resize(65);
    EXPECT_FALSE(read_verdict(nlohmann::json(verdict).dump()));
    verdict.tests.resize(1);
    verdict.tests[0].remedy = "\x1b[2J";
    EXPECT_FALSE(read_verdict(nlohmann::json(verdict).dump()));
    verdict = {};
    verdict.losses.push_back(
        {Judge::host, {CounterSource::qdisc, "interface", "tbf", 1}, "one", "tc"});
    EXPECT_TRUE(read_verdict(nlohmann::json(verdict).dump()));
    verdict.losses[0].detail = "\x1b[2J";
    EXPECT_FALSE(read_verdict(nlohmann::json(verdict).dump()));
    verdict = {};
    verdict.warnings.push_back({"write_bandwidth", "slower than it was", "top"});
    EXPECT_TRUE(read_verdict(nlohmann::json(verdict).dump()));
    verdict.warnings[0].remedy = "\x1b[2J";
    EXPECT_FALSE(read_verdict(nlohmann::json(verdict).dump()));
    verdict.warnings = std::vector<Warning>(129, {"t", "d", "r"});
    EXPECT_FALSE(read_verdict(nlohmann::json(verdict).dump()));
}

}  // namespace
}  // namespace vfmgr::serve
