// SPDX-License-Identifier: Apache-2.0
// Both ends of the RDMA test in one process over one rxe device, without HTTP: only the engine.
//   verify_probe ADDRESS MTU     ADDRESS is on the netdev under rxe; both ends use it
// Prints one line for each case; exits with 0 only if each had the expected verdict.
#include <fmt/format.h>

#include <chrono>
#include <functional>
#include <iostream>
#include <nlohmann/json.hpp>

#include "api/os/random.hpp"
#include "vfmgr/proof/host/responder.hpp"
#include "vfmgr/proof/session.hpp"
#include "vfmgr/proof/turns.hpp"

namespace {

using namespace vfmgr;
using namespace vfmgr::verify;

struct Probe {
    IpAddress address;
    std::uint32_t mtu;
    std::unique_ptr<Responder> responder;
};

struct Case {
    char const* name;
    Verdict expected;
    std::string failing_test;                     // where the verdict must come from
    std::function<void(GuestReport&)> falsify{};  // what a dishonest guest would do
    bool traffic = true;
};

SessionPermit permit_for(Probe const& probe) {
    SessionPermit permit;
    permit.attachment = "probe";
    permit.run = random_hex(4);
    permit.nonce = random_hex(16);
    permit.peer_address = probe.address;
    permit.host_address = probe.address;
    permit.mtu = probe.mtu;
    return permit;
}

Subject subject_for(Probe const& probe, SessionPermit const& permit) {
    Subject subject;
    subject.attachment.attachment = permit.attachment;
    subject.attachment.run = permit.run;
    subject.attachment.nonce = permit.nonce;
    subject.attachment.address = probe.address;
    subject.attachment.responder = probe.address;
    subject.attachment.mtu = probe.mtu;
    subject.attachment.echo_port = probe.responder->echo_port();
    return subject;
}

GuestReport untruthful(SessionPermit const& permit) {
    GuestReport report;
    report.nonce = permit.nonce;
    for (auto const* name :
         {"reachability", "path_mtu", "rc_ping", "rdma_write", "rdma_read", "write_latency"}) {
        TestResult test;
        test.name = name;
        test.verdict = Verdict::pass;
        report.tests.push_back(test);
    }
    return report;
}

Result<Verification> run(Probe const& probe, Case const& one) {
    auto const permit = permit_for(probe);
    VFMGR_TRY(auto session, GuestSession::prepare(subject_for(probe, permit)));
    auto const until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    VFMGR_TRY(
        auto const offer,
        await_turn<SessionOffer>([&] { return probe.responder->open(permit, session->request()); },
                                 wait_until(until)));
    auto report = one.traffic ? session->run(offer) : untruthful(permit);
    if (one.falsify) one.falsify(report);
    return probe.responder->close(offer.session, report);
}

bool as_expected(Case const& one, Verification const& verification) {
    if (verification.verdict != one.expected) return false;
    return one.failing_test.empty() || verification.detail.starts_with(one.failing_test + ":");
}

bool show(Probe const& probe, Case const& one) {
    auto const start = std::chrono::steady_clock::now();
    auto const verification = run(probe, one);
    auto const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
    bool const good = verification && as_expected(one, *verification);
    fmt::print("{} {} ({:.2f} s)\n", good ? "ok  " : "FAIL", one.name, seconds.count());
    if (!verification) {
        fmt::print("  {} [{}]\n", verification.error().detail, verification.error().remedy);
        for (auto const& cause : verification.error().causes)
            fmt::print("  {}: {}\n", cause.call, cause.code);
        return false;
    }
    fmt::print("  {} peer {}\n  {}\n", enum_name(verification->verdict),
               verification->peer_gid.value_or("-"), verification->detail);
    for (auto const& test : verification->tests) fmt::print("  {}\n", nlohmann::json(test).dump());
    return good;
}

int probe(IpAddress const& address, std::uint32_t mtu) {
    auto responder =
        Responder::start(ResponderLimits{}, [](auto const&) { return Result<void>(); });
    if (!responder) return 2;
    Probe const probe{address, mtu, std::move(*responder)};
    auto const forget = [](char const* digest) {
        return [digest](GuestReport& report) { report.digests[digest] = std::string(64, '0'); };
    };
    std::vector<Case> const cases{
        {"honest guest", Verdict::pass, ""},
        {"honest guest again", Verdict::pass, ""},
        {"pass without traffic", Verdict::fail, "reachability", {}, false},
        {"wrong digest of the read", Verdict::fail, "rdma_read", forget("rdma_read")},
        {"wrong digest of the pings", Verdict::fail, "rc_ping", forget("rc_ping")},
        {"nonce of another run", Verdict::fail, "",
         [](GuestReport& report) { report.nonce = "00"; }},
    };
    bool good = true;
    for (auto const& one : cases) good = show(probe, one) && good;
    fmt::print("{}\n", good ? "PROBE OK" : "PROBE FAILED");
    return good ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
    auto const address = vfmgr::IpAddress::parse(count > 1 ? arguments[1] : "");
    if (!address || count != 3) {
        std::cerr << "usage: verify_probe ADDRESS MTU\n";
        return 2;
    }
    return probe(*address, static_cast<std::uint32_t>(std::stoul(arguments[2])));
}
