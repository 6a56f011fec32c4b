// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>

#include "guest-tools/net/vf_report.hpp"
#include "tests/unit/repository.hpp"
#include "tests/unit/temporary_folder.hpp"

namespace vfmgr::guest {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

auto const golden = test::repository() / "tests/fixtures/metrics.prom";

std::string text_of(fs::path const& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

VfReport passed() {
    VfReport report;
    report.ifname = "enp7s0";
    report.rdma_device = "rxe_3f9c";
    report.at_once_with = {"77777777"};
    auto& verification = report.verification;
    verification.attachment = "3f9c2b1d";
    verification.verdict = Verdict::pass;
    verification.started_at = *parse_rfc3339("2026-01-31T12:00:00.000Z");
    verification.finished_at = *parse_rfc3339("2026-01-31T12:00:12.340Z");
    auto const add = [&](char const* name, Verdict verdict, std::map<std::string, double> figures) {
        verification.tests.push_back(
            {name, verdict, Judge::host, 0, 0, std::move(figures), {}, {}});
    };
    add("path_mtu", Verdict::pass, {{"mtu_bytes", 9000}});
    add("rdma_write", Verdict::pass, {{"bandwidth_mbps", 193.432}, {"bandwidth_mib_per_s", 23.06}});
    verification.tests.back().bytes_checked = 4194304;
    add("ud_ping", Verdict::pass, {{"sent", 64}, {"lost", 2}, {"samples", 62}, {"p50_us", 400}});
    add("read_bandwidth", Verdict::pass, {{"bandwidth_mbps", 470}, {"achieved_percent", 47}});
    verification.warnings = {{"read_bandwidth", "47 % of what the port leaves", "look at it"}};
    add("write_latency", Verdict::pass,
        {{"min_us", 150},
         {"p50_us", 171.5},
         {"p90_us", 200},
         {"p99_us", 320.25},
         {"p999_us", 512},
         {"max_us", 1000},
         {"samples", 5000}});
    add("send_latency", Verdict::skip, {});
    return report;
}

// Has texts that only a hostile host or an unusual driver sends.
VfReport failed() {
    VfReport report;
    auto& verification = report.verification;
    verification.attachment = "77777777";
    verification.verdict = Verdict::fail;
    verification.started_at = *parse_rfc3339("2026-01-31T12:00:01.000Z");
    verification.tests.push_back(
        {"a \"strange\\\n name", Verdict::fail, Judge::host, 64, 3, {}, {}, {}});
    auto const loss = [](Judge side, std::string device, std::uint64_t count) {
        return Loss{side, {CounterSource::netdev, std::move(device), "rx_dropped", count}, {}, {}};
    };
    verification.losses = {loss(Judge::guest, "enp8s0", 812), loss(Judge::host, "enp1s0.100", 1),
                           loss(Judge::guest, "enp8s0", 8)};
    return report;
}

Configured set_up(std::string attachment, bool complete) {
    Configured configured;
    configured.attachment = std::move(attachment);
    configured.ifname = "enp7s0";
    configured.rdma_device = "rxe_3f9c";
    configured.complete = complete;
    return configured;
}

// tests/contract parses the same file with an independent reader. Its contents change on purpose
// only: VFMGR_UPDATE_GOLDEN=1 writes it, and fails.
TEST(Metrics, AreTheGoldenFile) {
    auto const text = metrics_text("1.2.3", {set_up("3f9c2b1d", true), set_up("77777777", false)},
                                   {passed(), failed()});
    if (::getenv("VFMGR_UPDATE_GOLDEN")) {
        std::ofstream(golden) << text;
        FAIL() << golden << " was written: look at what changed, and run again";
    }
    EXPECT_EQ(text, text_of(golden));
}

TEST(Metrics, WithoutAVfSayWhoWroteThem) {
    EXPECT_EQ(metrics_text("1.2.3", {}, {}),
              "# HELP vf_guest_info Which vf-guest wrote this; always 1.\n"
              "# TYPE vf_guest_info gauge\n"
              "vf_guest_info{version=\"1.2.3\"} 1\n");
}

TEST(Metrics, AVerdictThatIsNoPassIsNone) {
    auto report = passed();
    auto const pass =
        "vf_guest_verification_pass{attachment=\"3f9c2b1d\",ifname=\"enp7s0\","
        "rdma_device=\"rxe_3f9c\"} ";
    EXPECT_THAT(metrics_text("1", {}, {report}), HasSubstr(pass + std::string("1\n")));
    for (auto const verdict :
         {Verdict::fail, Verdict::skip, Verdict::not_applicable, Verdict::pending}) {
        report.verification.verdict = verdict;
        EXPECT_THAT(metrics_text("1", {}, {report}), HasSubstr(pass + std::string("0\n")));
    }
}

class MetricsFile : public testing::Test {
  protected:
    test::TemporaryFolder const root_;
    Records const records_{ReportFolder(root_.path() / "reports"), StateFolder(root_.file("state")),
                           root_.file("vf_guest.prom")};
    fs::path const file_ = root_.file("vf_guest.prom");
};

TEST_F(MetricsFile, FollowsWhatIsConfiguredAndReported) {
    ASSERT_TRUE(write_metrics(records_));
    EXPECT_THAT(text_of(file_), Not(HasSubstr("3f9c2b1d")));
    EXPECT_EQ(fs::status(file_).permissions(), fs::perms{0644}) << "node_exporter is not root";
    ASSERT_TRUE(records_.state.save(set_up("3f9c2b1d", true)));
    ASSERT_TRUE(record(records_, passed()));
    EXPECT_EQ(text_of(file_), metrics_text(VFMGR_VERSION, {set_up("3f9c2b1d", true)}, {passed()}));
    ASSERT_TRUE(records_.reports.keep_only({}));
    records_.state.forget("3f9c2b1d");
    ASSERT_TRUE(write_metrics(records_));
    EXPECT_THAT(text_of(file_), Not(HasSubstr("3f9c2b1d")));
}

TEST_F(MetricsFile, IsNotWrittenAnewWithoutAChange) {
    ASSERT_TRUE(record(records_, passed()));
    auto const long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
    fs::last_write_time(file_, long_ago);
    ASSERT_TRUE(record(records_, passed()));
    EXPECT_EQ(fs::last_write_time(file_), long_ago);
    std::ofstream(file_) << "damaged";
    ASSERT_TRUE(write_metrics(records_));
    EXPECT_THAT(text_of(file_), HasSubstr("3f9c2b1d"));
}

TEST_F(MetricsFile, OneThatCantBeWrittenIsNamedAndTheReportIsKept) {
    Records const elsewhere{records_.reports, records_.state, root_.file("gone/vf_guest.prom")};
    auto const done = record(elsewhere, passed());
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().detail, HasSubstr("gone/vf_guest.prom"));
    EXPECT_THAT(done.error().remedy, HasSubstr("ReadWritePaths="));
    EXPECT_EQ(records_.reports.load().reports.size(), 1U);
}

TEST_F(MetricsFile, IsWrittenOnlyWhereItIsWanted) {
    ASSERT_TRUE(record({records_.reports, records_.state}, passed()));
    EXPECT_FALSE(fs::exists(file_));
    EXPECT_EQ(records_.reports.load().reports.size(), 1U);
}

}  // namespace
}  // namespace vfmgr::guest
