// SPDX-License-Identifier: Apache-2.0
// Every way in which a guest may fail or cheat, and the exact reason that the host gives.
#include "vfmgr/proof/host/judge.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace vfmgr::verify {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Run {
    SessionPermit permit;
    SessionFacts facts;
    GuestReport report;
};

TestResult claim(std::string name) {
    TestResult test;
    test.name = std::move(name);
    test.verdict = Verdict::pass;
    return test;
}

Run honest() {
    Run run;
    run.permit.attachment = "3f9c2b1d";
    run.permit.run = "r1";
    run.permit.nonce = "n1";
    run.permit.vf_mac = *MacAddress::parse("52:54:00:11:22:33");
    run.permit.peer_address = *IpAddress::parse("192.168.100.10");
    run.permit.host_address = *IpAddress::parse("192.168.100.3");
    run.permit.host_netdev = "enp1s0";
    run.permit.mtu = 9000;
    run.permit.path = TestPath::internal_switch;
    run.permit.profile = Profile::quick;
    run.facts.reachability = {3, 256, "d-reach", ""};
    run.facts.path_mtu = {3, 8972, "d-mtu", ""};
    run.facts.pings_expected = run.facts.pings = 16;
    run.facts.ping_check.bytes_checked = 65536;
    run.facts.answer_digest = "d-ping";
    run.facts.write_notified = true;
    run.facts.write_check.bytes_checked = 4 << 20;
    run.facts.read_bytes = 4 << 20;
    run.facts.read_digest = "d-read";
    run.facts.streamed = {{StreamKind::write_echo, {.messages = 2016}}};
    run.facts.peer_gid = "0000:0000:0000:0000:0000:ffff:c0a8:640a";
    run.report.nonce = "n1";
    for (auto const* name :
         {"reachability", "path_mtu", "rc_ping", "rdma_write", "rdma_read", "write_latency"})
        run.report.tests.push_back(claim(name));
    run.report.tests[3].figures["bandwidth_mbps"] = 9000;
    run.report.tests[5].figures = {{"samples", 2000}, {"p50_us", 2.5}};
    run.report.digests = {{"reachability", "d-reach"},
                          {"path_mtu", "d-mtu"},
                          {"rc_ping", "d-ping"},
                          {"rdma_read", "d-read"}};
    return run;
}

// A transfer that succeeded, as the host recorded it.
StreamFacts& add_transfer(Run& run) {
    run.report.tests.push_back(claim("transfer"));
    run.report.tests.back().figures = {{"rounds", 6}, {"orders", 24}, {"stale_per_million", 0}};
    return run.facts.streamed[StreamKind::transfer] = {24, 4096, {8192, 0, "", false}, ""};
}

Verification verdict(Run const& run) {
    return judge(run.permit, run.facts, run.report);
}

TestResult const& test(Verification const& verification, std::string_view name) {
    auto const found = std::ranges::find(verification.tests, name, &TestResult::name);
    EXPECT_NE(found, verification.tests.end()) << name;
    return *found;
}

TEST(Judge, AnHonestRunPassesByTheHost) {
    auto const verification = verdict(honest());
    EXPECT_EQ(verification.verdict, Verdict::pass) << verification.detail;
    EXPECT_EQ(verification.run, "r1");
    EXPECT_EQ(verification.attachment, "3f9c2b1d");
    EXPECT_EQ(verification.peer_gid, "0000:0000:0000:0000:0000:ffff:c0a8:640a");
    EXPECT_EQ(verification.vf_mac, MacAddress::parse("52:54:00:11:22:33").value());
    EXPECT_EQ(verification.path, TestPath::internal_switch);
    ASSERT_EQ(verification.tests.size(), 6U);
    for (auto const* name : {"reachability", "path_mtu", "rc_ping", "rdma_write", "rdma_read"})
        EXPECT_EQ(test(verification, name).by, Judge::host) << name;
    EXPECT_EQ(test(verification, "write_latency").by, Judge::guest);
    EXPECT_EQ(test(verification, "rdma_write").bytes_checked, 4U << 20);
    EXPECT_EQ(test(verification, "rdma_write").figures.at("bandwidth_mbps"), 9000);
    EXPECT_EQ(test(verification, "rdma_read").bytes_checked, 4U << 20);
}

// Figures are the guest's, and so are their failures; a figure that a profile requires and no test
// measured is reported.
TEST(Judge, FiguresAreTheGuestsWord) {
    auto run = honest();
    run.permit.profile = Profile::default_;
    run.report.tests[5].verdict = Verdict::skip;
    run.report.tests[5].figures.clear();
    run.report.tests[5].detail = "the host measures for another VM";
    run.report.tests.push_back(claim("read_bandwidth"));
    run.report.tests.back().figures = {{"bandwidth_mbps", 1000}};
    run.report.tests.push_back(claim("no_such_test"));
    auto const verification = verdict(run);
    EXPECT_EQ(verification.verdict, Verdict::pass) << verification.detail;
    ASSERT_EQ(verification.tests.size(), 13U);
    EXPECT_EQ(test(verification, "write_latency").verdict, Verdict::skip);
    EXPECT_EQ(test(verification, "write_latency").detail, "the host measures for another VM");
    EXPECT_EQ(test(verification, "read_bandwidth").figures.at("bandwidth_mbps"), 1000);
    EXPECT_EQ(test(verification, "send_latency").verdict, Verdict::skip);
    EXPECT_EQ(test(verification, "send_latency").detail, "vf-guest did not measure it");

    run.report.tests[5].verdict = Verdict::fail;
    run.report.tests[5].detail = "an RDMA write failed with \"transport retry counter exceeded\"";
    auto const failed = verdict(run);
    EXPECT_EQ(failed.verdict, Verdict::fail);
    EXPECT_EQ(failed.detail, "write_latency: " + run.report.tests[5].detail);
    EXPECT_EQ(test(failed, "write_latency").by, Judge::guest);

    run.report.tests[5].verdict = Verdict::pending;
    EXPECT_EQ(test(verdict(run), "write_latency").verdict, Verdict::skip);
}

// "pass" in every test, and no packet.
TEST(Judge, APassWithoutTrafficFailsEverywhere) {
    auto run = honest();
    auto const digests = run.facts;
    run.facts = {};
    run.facts.reachability.answer_digest = digests.reachability.answer_digest;
    run.facts.path_mtu.answer_digest = digests.path_mtu.answer_digest;
    run.facts.pings_expected = 16;
    run.facts.answer_digest = "d-ping";
    run.facts.read_digest = "d-read";
    run.facts.write_check.bytes_checked = 4 << 20;
    run.facts.write_check.mismatches = 4 << 20;
    run.facts.write_check.untouched = true;
    run.report.digests.clear();
    auto const verification = verdict(run);
    EXPECT_EQ(verification.verdict, Verdict::fail);
    EXPECT_EQ(verification.detail,
              "reachability: no datagram of this run came from 192.168.100.10 on enp1s0; the guest "
              "claims a pass");
    for (auto const* name : {"reachability", "path_mtu", "rc_ping", "rdma_write", "rdma_read"}) {
        EXPECT_EQ(test(verification, name).verdict, Verdict::fail) << name;
        EXPECT_EQ(test(verification, name).by, Judge::host) << name;
        EXPECT_NE(test(verification, name).remedy, "") << name;
    }
    EXPECT_EQ(test(verification, "rdma_write").detail,
              "no RDMA write arrived: all 4194304 bytes of the host's MR are as the host left "
              "them; the guest claims a pass");
    EXPECT_EQ(test(verification, "rdma_read").detail,
              "the guest sent no digest of the bytes that it had to read; the guest claims a pass");
    EXPECT_EQ(test(verification, "write_latency").verdict, Verdict::fail);
}

TEST(Judge, AReportOfAnotherRunIsNone) {
    auto run = honest();
    run.report.nonce = "n0";
    auto const verification = verdict(run);
    EXPECT_EQ(verification.verdict, Verdict::fail);
    EXPECT_EQ(verification.detail, "the report does not carry this run's nonce");
    EXPECT_TRUE(verification.tests.empty());
}

struct Lie {
    char const* name;
    void (*tell)(Run&);
    char const* test;
    char const* detail;
};
void PrintTo(Lie const& lie, std::ostream* out) {
    *out << lie.name;
}

class EachLie : public testing::TestWithParam<Lie> {};

TEST_P(EachLie, FailsItsTestAndTheRun) {
    auto run = honest();
    GetParam().tell(run);
    auto const verification = verdict(run);
    EXPECT_EQ(verification.verdict, Verdict::fail);
    EXPECT_THAT(verification.detail, StartsWith(GetParam().test + std::string(": ")));
    auto const& failed = test(verification, GetParam().test);
    EXPECT_EQ(failed.verdict, Verdict::fail);
    EXPECT_EQ(failed.by, Judge::host);
    EXPECT_THAT(failed.detail, StartsWith(GetParam().detail));
}

constexpr Lie lies[] = {
    {"OneWayOnly", [](Run& run) { run.report.digests.erase("reachability"); }, "reachability",
     "the host's answers to 192.168.100.10 did not arrive"},
    {"ShortDatagrams", [](Run& run) { run.facts.path_mtu.bytes_max = 1472; }, "path_mtu",
     "no datagram of 8972 bytes (MTU 9000) came from 192.168.100.10: the longest had 1472 bytes"},
    {"NoFullAnswer", [](Run& run) { run.report.digests["path_mtu"] = "d-reach"; }, "path_mtu",
     "the host's answer of 8972 bytes did not arrive at 192.168.100.10"},
    {"HostCantSend",
     [](Run& run) {
         run.report.digests.erase("path_mtu");
         run.facts.path_mtu.refused = "the host can't send 8972 bytes on enp1s0: EMSGSIZE";
     },
     "path_mtu",
     "the host's answer of 8972 bytes did not arrive at 192.168.100.10; the host can't send 8972 "
     "bytes on enp1s0: EMSGSIZE"},
    {"PingsMissing", [](Run& run) { run.facts.pings = 15; }, "rc_ping",
     "the host received 15 of 16 RC sends"},
    {"PingsWrong",
     [](Run& run) {
         run.facts.ping_check.mismatches = 1;
         run.facts.ping_check.detail = "chunk 3 landed at chunk 2";
     },
     "rc_ping", "1 of 65536 bytes of the RC sends differ: chunk 3 landed at chunk 2"},
    {"AnswersNotReceived", [](Run& run) { run.report.digests["rc_ping"] = "guess"; }, "rc_ping",
     "the guest's digest of the host's 16 answers is wrong or missing"},
    {"WritesWrong",
     [](Run& run) {
         run.facts.write_check.mismatches = 1;
         run.facts.write_check.detail = "chunk 17 landed at chunk 18";
     },
     "rdma_write", "1 of 4194304 bytes written differ: chunk 17 landed at chunk 18"},
    {"WriteNotAnnounced", [](Run& run) { run.facts.write_notified = false; }, "rdma_write",
     "the last RDMA write came without its notification"},
    {"ReadGuessed", [](Run& run) { run.report.digests["rdma_read"] = "guess"; }, "rdma_read",
     "the guest's digest of the 4194304 bytes that it had to read is wrong"},
    {"ReadReplayed", [](Run& run) { run.report.digests["rdma_read"] = "d-ping"; }, "rdma_read",
     "the guest's digest of the 4194304 bytes that it had to read is wrong"},
    {"MoreSamplesThanAnswers",
     [](Run& run) { run.facts.streamed[StreamKind::write_echo].messages = 1999; }, "write_latency",
     "the guest reports 2000 answers, the host sent 1999"},
    {"AnswersToOtherMessages",
     [](Run& run) { run.facts.streamed = {{StreamKind::send_echo, {.messages = 2016}}}; },
     "write_latency", "the guest reports 2000 answers, the host sent 0"},
    {"DatagramsThatWereNotAnswered",
     [](Run& run) {
         run.report.tests.push_back(claim("ud_ping"));
         run.report.tests.back().figures = {{"samples", 64}, {"sent", 64}, {"lost", 0}};
         run.facts.streamed[StreamKind::ud_echo].messages = 63;
     },
     "ud_ping", "the guest reports 64 answers, the host sent 63"},
    {"PongsThatWereNotSent",
     [](Run& run) {
         run.report.tests.push_back(claim("cm_ping"));
         run.report.tests.back().figures = {{"samples", 10}, {"sent", 10}};
         run.facts.streamed[StreamKind::cm_ping].messages = 9;
     },
     "cm_ping", "the guest reports 10 answers, the host sent 9"},
    {"TransfersThatNobodyMade", [](Run& run) { add_transfer(run).messages = 0; }, "transfer",
     "the guest reports 24 orders, the host carried out 0"},
    {"NothingWasKept", [](Run& run) { add_transfer(run).bytes_kept = 0; }, "transfer",
     "the host read back none of the bytes that only it knows"},
    {"TheHostReadSomethingElse",
     [](Run& run) {
         auto& seen = add_transfer(run);
         seen.read.mismatches = 3;
         seen.read.detail = "chunk 0 was never written";
     },
     "transfer",
     "3 of 8192 bytes that the host read from the VM's memory differ: chunk 0 was never written"},
    {"TheHostCouldNotGoOn",
     [](Run& run) { add_transfer(run).error = "an RDMA write to the VM's memory failed with …"; },
     "transfer", "the host had to stop: an RDMA write to the VM's memory failed with …"},
};
INSTANTIATE_TEST_SUITE_P(Judge, EachLie, testing::ValuesIn(lies),
                         [](auto const& one) { return std::string(one.param.name); });

TEST(Judge, ATransferIsTheGuestsToMeasureAndTheHostsToCheck) {
    auto run = honest();
    add_transfer(run);
    auto const passed = test(verdict(run), "transfer");
    EXPECT_EQ(passed.verdict, Verdict::pass);
    EXPECT_EQ(passed.by, Judge::guest);
    EXPECT_EQ(passed.figures.at("rounds"), 6);
    // The VM's findings in its own memory are reported unchanged.
    run.report.tests.back().verdict = Verdict::fail;
    run.report.tests.back().detail = "the host wrote to this memory: 64 of 64 bytes differ";
    auto const failed = test(verdict(run), "transfer");
    EXPECT_EQ(failed.verdict, Verdict::fail);
    EXPECT_EQ(failed.detail, "the host wrote to this memory: 64 of 64 bytes differ");
}

TEST(Judge, TheGuestsOwnReasonIsShownBesideTheHosts) {
    auto run = honest();
    run.facts.pings = 0;
    run.report.tests[2].verdict = Verdict::fail;
    run.report.tests[2].detail =
        "RC ping 0 failed with \"transport retry counter exceeded\"\x1b[2J";
    run.report.tests[2].remedy = "check the firewall";
    auto const verification = verdict(run);
    EXPECT_EQ(test(verification, "rc_ping").detail,
              "the host received 0 of 16 RC sends; the guest reports: RC ping 0 failed with "
              "\"transport retry counter exceeded\"?[2J");
    EXPECT_EQ(verification.remedy, "check the firewall");
}

TEST(Judge, TheHostsDeviceFailureComesFirst) {
    auto run = honest();
    run.facts.pings = 0;
    run.facts.device_error = "mlx5_0 reported \"local catastrophic error\"";
    run.facts.device_remedy = "see the kernel log";
    auto const verification = verdict(run);
    EXPECT_THAT(verification.detail, HasSubstr("the host's device: mlx5_0 reported"));
    EXPECT_EQ(verification.remedy, "see the kernel log");
}

TEST(Judge, LatencyIsDataNotAVerdict) {
    auto run = honest();
    run.permit.profile = Profile::default_;
    run.report.tests.pop_back();
    auto const verification = verdict(run);
    EXPECT_EQ(verification.verdict, Verdict::pass);
    EXPECT_EQ(test(verification, "write_latency").verdict, Verdict::skip);
}

TEST(Judge, StrangeFiguresAndTestsAreLeftOut) {
    auto run = honest();
    auto& figures = run.report.tests[3].figures;
    figures["Bad Name"] = 1;
    figures["negative"] = -1;
    figures["infinite"] = std::numeric_limits<double>::infinity();
    figures["not_a_number"] = std::nan("");
    run.report.tests.push_back(claim("made_up"));
    auto const verification = verdict(run);
    EXPECT_EQ(test(verification, "rdma_write").figures.size(), 1U);
    EXPECT_EQ(verification.tests.size(), 6U);
}

// Drops by tc explain a failure; drops by a NIC may.
TEST(Judge, LossesStandBesideTheVerdict) {
    auto run = honest();
    run.facts.lost = {{CounterSource::netdev, "enp1s0", "rx_dropped", 3},
                      {CounterSource::qdisc, "enp1s0", "ingress", 9}};
    run.report.counters = {{CounterSource::netdev, "eth\n0", "tx_dropped", 2}};
    auto const passed = verdict(run);
    EXPECT_EQ(passed.verdict, Verdict::pass);
    EXPECT_EQ(passed.detail, "");
    ASSERT_EQ(passed.losses.size(), 3U);
    EXPECT_EQ(passed.losses[0].counter.source, CounterSource::qdisc);
    EXPECT_EQ(passed.losses[1].side, Judge::host);
    EXPECT_EQ(passed.losses[2].side, Judge::guest);
    EXPECT_EQ(passed.losses[2].counter.device, "eth?0");

    run.facts.pings = 3;
    auto const failed = verdict(run);
    EXPECT_THAT(failed.detail, HasSubstr("rc_ping: the host received 3 of 16"));
    EXPECT_THAT(failed.detail, HasSubstr("; on the host, tc dropped 9 packets on enp1s0"));
    EXPECT_THAT(failed.remedy, StartsWith("tc -s qdisc"));

    run.facts.lost.pop_back();
    auto const unsure = verdict(run);
    EXPECT_THAT(unsure.detail, HasSubstr("; on the host, enp1s0 dropped 3 received packets"));
    EXPECT_THAT(unsure.remedy, HasSubstr("4791"));
}

TEST(Judge, ANetworkWithoutRdmaProvesNoRdma) {
    auto run = honest();
    run.permit.rdma = RdmaMode::none;
    auto verification = verdict(run);
    EXPECT_EQ(verification.verdict, Verdict::not_applicable);
    EXPECT_EQ(test(verification, "rdma_write").verdict, Verdict::not_applicable);
    EXPECT_EQ(test(verification, "reachability").verdict, Verdict::pass);
    run.facts.reachability.datagrams = 0;
    EXPECT_EQ(verdict(run).verdict, Verdict::fail);
}

TEST(Judge, AGuestThatCantStartFailsWithItsReason) {
    auto const run = honest();
    GuestReport report;
    report.error = "no RDMA device on eth1\n";
    auto const verification = judge_error(run.permit, report);
    EXPECT_EQ(verification.verdict, Verdict::fail);
    EXPECT_EQ(verification.detail, "the guest could not run the tests: no RDMA device on eth1?");
    EXPECT_NE(verification.remedy, "");
    auto const refused =
        judge_refusal(run.permit, {Problem::unsupported, "no RDMA device on enp1s0", "add one"});
    EXPECT_EQ(refused.detail, "the host could not open a session: no RDMA device on enp1s0");
    EXPECT_EQ(refused.remedy, "add one");
}

TEST(Judge, GuestTextIsCut) {
    EXPECT_EQ(printable("abc", 3), "abc");
    EXPECT_EQ(printable("abcd", 3), "abc…");
    EXPECT_EQ(printable(std::string_view("a\0b\x7f", 4), 10), "a?b?");
}

}  // namespace
}  // namespace vfmgr::verify
