// SPDX-License-Identifier: Apache-2.0
// Two faults at once (tests/fixtures/bundles/combinations): the report begins with the one that
// comes first in the file, the order of causes. And what a crash of the kernel forbids.
#include "vfmgr/checks/causes.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/unit/vfmgr/checks/bundles.hpp"

namespace vfmgr::checks {
namespace {

using namespace test;
using nlohmann::json;

std::string name_of(Finding const& finding) {
    return finding.subject.empty() ? finding.rule : finding.rule + " " + finding.subject;
}

CheckReport with_faults(std::string const& base, std::vector<json> const& faults) {
    auto document = document_of(base);
    auto log = document["files"].value("/dev/kmsg", std::string());
    for (auto const& fault : faults) {
        document.merge_patch(fault.value("patch", json::object()));
        for (auto const& line : fault.value("log", json::array())) log += line.get<std::string>();
    }
    document["files"]["/dev/kmsg"] = log;
    return report_on(document);
}

std::vector<std::string> failures(CheckReport const& report) {
    std::vector<std::string> names;
    for (auto const& finding : report.findings)
        if (finding.result == CheckResult::failed) names.push_back(name_of(finding));
    return names;
}

TEST(Combinations, NameTheFirstCauseFirst) {
    int pairs = 0;
    for (auto const& file : names_in(bundles / "combinations")) {
        auto const all = json::parse(content_of(bundles / "combinations" / (file + ".json")));
        auto const base = all.at("based_on").get<std::string>();
        auto const& faults = all.at("faults");
        for (std::size_t i = 0; i < faults.size(); ++i) {
            auto const alone = failures(with_faults(base, {faults[i]}));
            EXPECT_THAT(alone, testing::Contains(faults[i].at("rule").get<std::string>()))
                << faults[i].at("name") << " is not found";
            for (std::size_t j = i + 1; j < faults.size(); ++j) {
                auto const found = failures(with_faults(base, {faults[i], faults[j]}));
                ASSERT_FALSE(found.empty());
                EXPECT_EQ(found.front(), faults[i].at("rule").get<std::string>())
                    << faults[i].at("name") << " and " << faults[j].at("name") << ": "
                    << fmt::format("{}", fmt::join(found, ", "));
                ++pairs;
            }
        }
    }
    EXPECT_GE(pairs, 40);
}

Finding made(std::string rule, std::string subject, std::vector<std::string> commands = {}) {
    auto finding = failed(std::move(subject), "fails", Remedy{std::move(commands), {}, "do it"});
    finding.rule = std::move(rule);
    return finding;
}

class Explain : public testing::Test {
  protected:
    Facts const facts_ = facts_of(document_of("roce-host"));
    Machine const machine_ = read_machine(facts_);

    std::vector<Finding> explained(std::vector<Finding> findings) {
        explain(machine_, Relatives(machine_), findings);
        return findings;
    }
};

TEST_F(Explain, OnlyWhatIsAboutTheSameDevice) {
    auto const found = explained({made("port.state", "mlx5_0/1"), made("port.state", "mlx5_1/1"),
                                  made("log.pcie", "0000:18:00.0")});
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[2].subject, "mlx5_0/1") << "what is explained comes last";
    EXPECT_EQ(found[2].caused_by, "log.pcie 0000:18:00.0");
    EXPECT_FALSE(found[0].caused_by || found[1].caused_by);
}

TEST_F(Explain, AVfByItsPf) {
    auto const found =
        explained({made("stack.driver", "0000:18:00.3"), made("log.pcie", "0000:18:00.0")});
    EXPECT_EQ(found[1].caused_by, "log.pcie 0000:18:00.0");
}

TEST_F(Explain, NoWarningIsACause) {
    auto weak = made("log.pcie", "0000:18:00.0");
    weak.result = CheckResult::warning;
    auto const found = explained({made("port.state", "mlx5_0/1"), weak});
    EXPECT_FALSE(found[0].caused_by);
}

TEST_F(Explain, ACrashForbidsToBindAgain) {
    for (auto const* const command :
         {"modprobe mlx5_core", "echo 0000:18:00.0 > /sys/bus/pci/drivers/mlx5_core/bind",
          "devlink dev reload pci/0000:18:00.0",
          "devlink health recover pci/0000:18:00.0 reporter fw_fatal"}) {
        auto const found = explained({made("stack.driver", "0000:18:00.0", {command}),
                                      made("log.crash", "mlx5_core", {"reboot"})});
        EXPECT_THAT(found[1].remedy->commands, testing::IsEmpty()) << command;
        EXPECT_THAT(found[1].remedy->note, testing::HasSubstr("reboot first"));
        EXPECT_THAT(found[0].remedy->commands, testing::ElementsAre("reboot"));
    }
    auto const found = explained({made("port.pf_down", "ens1f0np0", {"ip link set dev x up"}),
                                  made("log.crash", "mlx5_core", {"reboot"})});
    EXPECT_THAT(found[1].remedy->commands, testing::ElementsAre("ip link set dev x up"));
}

TEST_F(Explain, AModuleExplainsOnlyWhatItDoes) {
    auto const found =
        explained({made("stack.symbols", "rdma_rxe"), made("stack.symbols", "nvidia_peermem"),
                   made("stack.dkms", "kernel-mft-dkms"), made("gpu.install_order", ""),
                   made("gpu.peermem", ""), made("soft_rdma.module", "rdma_rxe"),
                   made("stack.driver", "0000:18:00.0")});
    std::map<std::string, std::string> causes;
    for (auto const& finding : found) causes[name_of(finding)] = finding.caused_by.value_or("");
    EXPECT_EQ(causes["gpu.peermem"], "gpu.install_order");
    EXPECT_EQ(causes["stack.symbols nvidia_peermem"], "gpu.install_order");
    EXPECT_EQ(causes["soft_rdma.module rdma_rxe"], "stack.symbols rdma_rxe");
    EXPECT_EQ(causes["stack.driver 0000:18:00.0"], "");
    EXPECT_EQ(causes["stack.symbols rdma_rxe"], "");
}

}  // namespace
}  // namespace vfmgr::checks
