// SPDX-License-Identifier: Apache-2.0
// Metrics of a published view: what a series says, and that each is there once.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>

#include <regex>
#include <set>

#include "service/metrics/published.hpp"
#include "tests/fakes/driver_model.hpp"

namespace vfmgr {
namespace {

// "vfmgr_vfs{pf=0000:01:00.0,state=free}" and its value.
std::map<std::string, double> series_of(MetricFamilies const& families) {
    std::map<std::string, double> all;
    for (auto const& family : families)
        for (auto const& one : family.metric) {
            std::vector<std::string> labels;
            for (auto const& label : one.label)
                labels.push_back(fmt::format("{}={}", label.name, label.value));
            auto const name = fmt::format("{}{{{}}}", family.name, fmt::join(labels, ","));
            EXPECT_TRUE(all.emplace(name, one.gauge.value).second) << name << " is there twice";
        }
    return all;
}

// Two PFs, the first with a VM's VF, one that is reserved for nobody, and one more.
struct PublishedMetrics : testing::Test {
    std::shared_ptr<HostView> host = std::make_shared<HostView>();
    std::shared_ptr<DesiredState> desired = std::make_shared<DesiredState>();

    void SetUp() override {
        auto pf = make_igb_pf("0000:01:00.0", "enp1s0");
        for (std::uint16_t index = 0; index < 3; ++index) {
            VfState vf;
            vf.index = index;
            vf.pci = PciAddress{0, 1, 16, static_cast<std::uint8_t>(index)};
            pf.vfs.push_back(vf);
        }
        pf.observed_at = Time{std::chrono::milliseconds(1500)};
        host->kernel.complete = true;
        host->kernel.pfs.emplace(pf.info.pci, pf);
        auto blind = make_igb_pf("0000:02:00.0", "enp2s0");
        blind.stale = true;
        blind.stuck = "it hangs";
        host->kernel.pfs.emplace(blind.info.pci, blind);
        host->hypervisor.observed_at = pf.observed_at;
        Attachment attachment;
        attachment.id = "3f9c2b1d";
        attachment.vf = {pf.info.pci, 0};
        attachment.state = AttachmentState::attached;
        desired->attachments.emplace(attachment.id, attachment);
    }
    void verified(Verdict verdict, std::map<std::string, double> figures) {
        Verification verification;
        verification.verdict = verdict;
        verification.finished_at = Time{std::chrono::seconds(9)};
        TestResult test;
        test.name = "write_bandwidth";
        test.figures = std::move(figures);
        verification.tests = {test};
        desired->attachments.at("3f9c2b1d").verification = verification;
    }
    [[nodiscard]] std::map<std::string, double> series() const {
        return series_of(published_metrics({host, desired, {}, {}}));
    }
    [[nodiscard]] double value(std::string const& name) const {
        auto const all = series();
        EXPECT_TRUE(all.contains(name)) << name;
        return all.contains(name) ? all.at(name) : -1;
    }
};

TEST_F(PublishedMetrics, EachPfHasItsVfsByUse) {
    EXPECT_EQ(value("vfmgr_vfs{pf=0000:01:00.0,state=attached}"), 1);
    EXPECT_EQ(value("vfmgr_vfs{pf=0000:01:00.0,state=free}"), 2);
    EXPECT_EQ(value("vfmgr_vfs{pf=0000:01:00.0,state=quarantined}"), 0);
    EXPECT_EQ(value("vfmgr_vfs{pf=0000:02:00.0,state=free}"), 0);
    EXPECT_EQ(value("vfmgr_pf_observed_timestamp_seconds{pf=0000:01:00.0}"), 1.5);
}

TEST_F(PublishedMetrics, WhatCantBeReadHasNoValueOfItsOwn) {
    EXPECT_EQ(value("vfmgr_pf_readable{pf=0000:02:00.0}"), 0);
    EXPECT_EQ(value("vfmgr_pf_stuck{pf=0000:02:00.0}"), 1);
    EXPECT_FALSE(series().contains("vfmgr_pf_carrier{pf=0000:02:00.0}"));
    EXPECT_TRUE(series().contains("vfmgr_pf_carrier{pf=0000:01:00.0}"));
}

TEST_F(PublishedMetrics, AKnownPfThatIsGoneIsMissing) {
    EXPECT_EQ(value("vfmgr_pf_present{pf=0000:01:00.0}"), 1);
    host->kernel.pfs.erase(PciAddress{0, 1, 0, 0});
    EXPECT_EQ(value("vfmgr_pf_present{pf=0000:01:00.0}"), 0);
}

TEST_F(PublishedMetrics, AVerificationHasItsVerdictAndFiguresInBaseUnits) {
    EXPECT_EQ(value("vfmgr_attachment_verdicts{verdict=none}"), 1);
    EXPECT_FALSE(series().contains("vfmgr_vf_verification_passed{pf=0000:01:00.0,vf=0}"));
    verified(Verdict::pass, {{"bandwidth_mbps", 8}, {"achieved_percent", 50}, {"p99_us", 4}});
    EXPECT_EQ(value("vfmgr_attachment_verdicts{verdict=none}"), 0);
    EXPECT_EQ(value("vfmgr_attachment_verdicts{verdict=pass}"), 1);
    EXPECT_EQ(value("vfmgr_vf_verification_passed{pf=0000:01:00.0,vf=0}"), 1);
    EXPECT_EQ(value("vfmgr_vf_verification_timestamp_seconds{pf=0000:01:00.0,vf=0}"), 9);
    std::string const test = "pf=0000:01:00.0,vf=0,test=write_bandwidth";
    EXPECT_EQ(value("vfmgr_vf_verification_bandwidth_bytes_per_second{" + test + "}"), 1e6);
    EXPECT_EQ(value("vfmgr_vf_verification_achieved_ratio{" + test + "}"), 0.5);
    EXPECT_EQ(value("vfmgr_vf_verification_latency_seconds{" + test + ",quantile=0.99}"), 4e-6);
    verified(Verdict::fail, {});
    EXPECT_EQ(value("vfmgr_vf_verification_passed{pf=0000:01:00.0,vf=0}"), 0);
    verified(Verdict::pending, {});
    EXPECT_FALSE(series().contains("vfmgr_vf_verification_passed{pf=0000:01:00.0,vf=0}"));
}

// A tenant's names and what comes and goes would make a new series each time.
TEST_F(PublishedMetrics, LabelsNameTheHardwareAndNoVm) {
    desired->attachments.at("3f9c2b1d").vm = "blue-vm";
    verified(Verdict::pass, {{"bandwidth_mbps", 8}});
    for (auto const& [name, value] : series()) {
        EXPECT_EQ(name.find("blue-vm"), name.npos);
        EXPECT_EQ(name.find("3f9c2b1d"), name.npos);
    }
}

TEST_F(PublishedMetrics, CountersThatADriverDoesNotHaveHaveNoSeries) {
    PfTraffic traffic;
    traffic.pf = PciAddress{0, 1, 0, 0};
    VfCounters counters;
    counters.rx_bytes = 1500;
    counters.tx_dropped = 2;
    traffic.vfs = {{4, counters}};
    traffic.rdma_hw_counters = {{"out_of_sequence", 3}};
    EXPECT_EQ(series_of(traffic_metrics({traffic})),
              (std::map<std::string, double>{
                  {"vfmgr_vf_receive_bytes_total{pf=0000:01:00.0,vf=4}", 1500},
                  {"vfmgr_vf_transmit_drops_total{pf=0000:01:00.0,vf=4}", 2},
                  {"vfmgr_pf_rdma_hw_counter_total{pf=0000:01:00.0,counter=out_of_sequence}", 3}}));
}

TEST_F(PublishedMetrics, NamesFollowPrometheusConventions) {
    auto all = published_metrics({host, desired, {}, {}});
    for (auto& more : traffic_metrics({})) all.push_back(std::move(more));
    std::set<std::string> names;
    for (auto const& family : all) {
        EXPECT_TRUE(names.insert(family.name).second) << family.name;
        EXPECT_TRUE(std::regex_match(family.name, std::regex("vfmgr(_[a-z]+)+"))) << family.name;
        EXPECT_EQ(family.type == prometheus::MetricType::Counter, family.name.ends_with("_total"))
            << family.name;
        EXPECT_FALSE(family.help.empty()) << family.name;
    }
}

}  // namespace
}  // namespace vfmgr
