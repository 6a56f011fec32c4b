// SPDX-License-Identifier: Apache-2.0
// Many VMs at one responder, over an in-process device and datagrams on loopback.
#include <gmock/gmock.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "api/os/random.hpp"
#include "tests/fakes/verbs/fabric.hpp"
#include "vfmgr/proof/host/responder.hpp"
#include "vfmgr/proof/session.hpp"
#include "vfmgr/proof/turns.hpp"

namespace vfmgr::verify {
namespace {

using std::chrono::seconds;
using Steady = std::chrono::steady_clock;
constexpr std::size_t vms = 32;

std::uint16_t test_port() {
    return static_cast<std::uint16_t>(24000 + ::getpid() % 4000);
}

IpAddress loopback(std::size_t last) {
    return *IpAddress::parse("127.0.0." + std::to_string(last));
}

struct Shares : testing::Test {
    ResponderLimits limits;
    std::unique_ptr<Responder> responder;

    void SetUp() override {
        std::vector<std::array<std::uint8_t, 16>> gids;
        for (std::size_t i = 1; i <= vms + 2; ++i) gids.push_back(loopback(i).gid());
        fakes::plug_in(gids);
        limits.echo_port = test_port();
        limits.write_bytes = limits.read_bytes = 64 << 10;
        start();
    }
    void TearDown() override {
        responder.reset();
        EXPECT_EQ(fakes::alive(), 0U) << "something outlives its session";
    }
    void start() {
        responder.reset();
        auto started =
            Responder::start(limits, [](SessionPermit const&) { return Result<void>(); });
        ASSERT_TRUE(started) << started.error().detail;
        responder = std::move(*started);
    }
    static SessionPermit permit_of(std::size_t vm, std::string const& which = "") {
        SessionPermit permit;
        permit.vm = "vm" + std::to_string(vm);
        permit.attachment = permit.vm + "-vf" + which;
        permit.run = random_hex(4);
        permit.nonce = random_hex(16);
        permit.peer_address = loopback(vm + 2);
        permit.host_address = loopback(1);
        permit.mtu = 1500;
        return permit;
    }
    std::unique_ptr<GuestSession> guest_of(SessionPermit const& permit) const {
        Subject subject;
        auto& attachment = subject.attachment;
        attachment.attachment = permit.attachment;
        attachment.run = permit.run;
        attachment.nonce = permit.nonce;
        attachment.address = permit.peer_address;
        attachment.responder = permit.host_address;
        attachment.mtu = permit.mtu;
        attachment.dscp = permit.dscp;
        attachment.echo_port = limits.echo_port;
        return GuestSession::prepare(subject).value();
    }
    static Waiting impatient() {
        auto waiting = wait_until(Steady::now() + seconds(60));
        waiting.pause = [](std::chrono::milliseconds) { ::poll(nullptr, 0, 2); };
        return waiting;
    }
};

struct Vm {
    SessionPermit permit;
    std::unique_ptr<GuestSession> guest;
    std::size_t began = 0;  // its number in the order
    std::string outcome;
};

TEST_F(Shares, ThirtyTwoVmsVerifyAtOnceInTheOrderTheyCame) {
    std::vector<Vm> all;
    for (std::size_t i = 0; i < vms; ++i) {
        auto permit = permit_of(i);
        auto guest = guest_of(permit);
        all.push_back({std::move(permit), std::move(guest), 0, ""});
    }
    std::atomic<std::size_t> began = 0;
    std::vector<std::optional<SessionOffer>> offers(vms);
    for (std::size_t i = 0; i < vms; ++i) {
        auto const first = responder->open(all[i].permit, all[i].guest->request());
        ASSERT_TRUE(first) << first.error().detail;
        if (auto const* const turn = std::get_if<Turn>(&*first)) {
            EXPECT_EQ(turn->position, i + 1 - limits.sessions_max);
        } else {
            offers[i] = std::get<SessionOffer>(*first);
            all[i].began = began++;
        }
    }
    EXPECT_EQ(responder->load().sessions, limits.sessions_max);
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < vms; ++i)
        threads.emplace_back([&, i] {
            auto& vm = all[i];
            if (!offers[i]) {
                auto const offer = await_turn<SessionOffer>(
                    [&] { return responder->open(vm.permit, vm.guest->request()); }, impatient());
                if (!offer) return void(vm.outcome = offer.error().detail);
                vm.began = began++;
                offers[i] = *offer;
            }
            auto const report = vm.guest->run(*offers[i]);
            auto const verdict = responder->close(offers[i]->session, report);
            vm.outcome = verdict ? std::string(enum_name(verdict->verdict)) + verdict->detail
                                 : verdict.error().detail;
        });
    threads.clear();
    for (std::size_t i = 0; i < vms; ++i) {
        EXPECT_EQ(all[i].outcome, "pass") << all[i].permit.vm;
        auto const place = static_cast<double>(all[i].began);
        EXPECT_NEAR(place, static_cast<double>(i), static_cast<double>(limits.sessions_max))
            << all[i].permit.vm << " was served out of turn";
    }
}

// A report names its traffic class, as set on the queue pairs of both ends.
TEST_F(Shares, AReportNamesTheDscpThatBothEndsSentWith) {
    auto const tested = [this](std::optional<std::uint8_t> of_network,
                               std::optional<std::uint8_t> of_guest) {
        auto permit = permit_of(0);
        permit.dscp = of_guest;
        auto const guest = guest_of(permit);
        permit.dscp = of_network;
        auto const offer =
            std::get<SessionOffer>(responder->open(permit, guest->request()).value());
        auto const report = guest->run(offer);
        return responder->close(offer.session, report).value();
    };
    auto const plain = tested({}, {});
    EXPECT_EQ(plain.verdict, Verdict::pass) << plain.detail;
    EXPECT_EQ(plain.dscp, std::nullopt);
    EXPECT_THAT(plain.warnings, testing::IsEmpty());
    auto const marked = tested(26, 26);
    EXPECT_EQ(marked.verdict, Verdict::pass) << marked.detail;
    EXPECT_EQ(marked.dscp, 26);
    EXPECT_THAT(marked.warnings, testing::IsEmpty());
    auto const half = tested(26, {});
    EXPECT_EQ(half.dscp, 26);
    ASSERT_EQ(half.warnings.size(), 1U);
    EXPECT_EQ(half.warnings[0].detail,
              "the VM's queue pair sent with DSCP 0, but the network's is 26");
}

TEST_F(Shares, AVmWithManyVfsLeavesOthersTheirPlaces) {
    std::vector<std::unique_ptr<GuestSession>> guests;
    std::size_t open = 0;
    for (std::size_t i = 0; i < limits.sessions_max; ++i) {
        auto const permit = permit_of(0, std::to_string(i));
        guests.push_back(guest_of(permit));
        auto const answer = responder->open(permit, guests.back()->request());
        ASSERT_TRUE(answer);
        if (std::holds_alternative<SessionOffer>(*answer)) ++open;
    }
    EXPECT_EQ(open, limits.sessions_each_max);
    auto const permit = permit_of(1);
    guests.push_back(guest_of(permit));
    auto const answer = responder->open(permit, guests.back()->request());
    EXPECT_TRUE(answer && std::holds_alternative<SessionOffer>(*answer));
}

// The echo has a single place: one VM's latency test does not keep it from the next.
TEST_F(Shares, AnEchoThatIsNeverClosedGivesItsPlaceToTheNext) {
    limits.echo_seconds_max = 1;
    start();
    std::vector<std::unique_ptr<GuestSession>> guests;
    std::vector<std::string> sessions;
    std::vector<StreamRequest> configured;
    for (std::size_t i = 0; i < 2; ++i) {
        auto const permit = permit_of(i);
        guests.push_back(guest_of(permit));
        auto const offer =
            std::get<SessionOffer>(responder->open(permit, guests.back()->request()).value());
        sessions.push_back(offer.session);
        configured.push_back({StreamKind::write_echo,
                              8,
                              1,
                              {guests.back()->request().guest},
                              MemoryRegion{4096, 1, 8}});
    }
    auto const first = responder->open_stream(sessions[0], configured[0]);
    ASSERT_TRUE(first) << first.error().detail;
    ASSERT_TRUE(std::holds_alternative<StreamOffer>(*first));
    auto const turn = responder->open_stream(sessions[1], configured[1]);
    ASSERT_TRUE(turn && std::holds_alternative<Turn>(*turn));
    EXPECT_EQ(std::get<Turn>(*turn).position, 1U);
    auto const second = await_turn<StreamOffer>(
        [&] { return responder->open_stream(sessions[1], configured[1]); }, impatient());
    EXPECT_TRUE(second) << second.error().detail;
    for (auto const& session : sessions) responder->drop(session);
    guests.clear();
}

}  // namespace
}  // namespace vfmgr::verify
