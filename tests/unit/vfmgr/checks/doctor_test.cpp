// SPDX-License-Identifier: Apache-2.0
// How findings are reported: to whom, in which order, and which commands are held back.
#include "vfmgr/checks/doctor.hpp"
#include "vfmgr/checks/host/rules.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

namespace vfmgr::checks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Without its IOMMU, whose change takes a reboot; a VM may still hold its GPU, by vfio-noiommu.
Facts without_iommu() {
    Facts facts;
    facts.patterns = {"*"};
    facts.files = {{"/proc/cmdline", {"quiet\n", 0}},
                   {"/proc/cpuinfo", {"vendor_id\t: GenuineIntel\nflags\t\t: vmx\n", 0}},
                   {"/etc/default/grub", {"GRUB_CMDLINE_LINUX=\"\"\n", 0}},
                   {"/etc/debian_version", {"12.9\n", 0}}};
    facts.folders = {{"/sys/firmware/acpi/tables", {{"DMAR"}, 0}}, {"/dev", {{"kvm"}, 0}}};
    return facts;
}

Finding finding_of(CheckReport const& report, std::string_view rule) {
    for (auto const& finding : report.findings)
        if (finding.rule == rule) return finding;
    ADD_FAILURE() << "no finding of " << rule;
    return {};
}

TEST(Remedy, ThatTakesARebootIsToldWhenNobodyIsHarmed) {
    auto const remedy =
        finding_of(diagnose(without_iommu(), all_rules()), "iommu.enabled").remedy.value();
    EXPECT_EQ(remedy.blast_radius, BlastRadius::reboot);
    EXPECT_THAT(remedy.commands, testing::Contains("reboot"));
    EXPECT_TRUE(remedy.drain.empty());
}

TEST(Remedy, ThatTakesARebootIsHeldBackWhileAVmHasADevice) {
    auto facts = without_iommu();
    facts.links["/proc/42/fd/9"] = {"/dev/vfio/noiommu-3", 0};
    facts.files["/proc/42/comm"] = {"qemu-system-x86\n", 0};
    facts.files["/proc/42/cmdline"] = {"guest=db1,debug-threads=on\n", 0};
    facts.links["/proc/77/fd/4"] = {"/dev/vfio/devices/vfio1", 0};
    facts.files["/proc/77/comm"] = {"dpdk-app\n", 0};
    auto const report = diagnose(facts, all_rules());
    auto const remedy = finding_of(report, "iommu.enabled").remedy.value();
    EXPECT_TRUE(remedy.commands.empty());
    EXPECT_THAT(remedy.drain, ElementsAre("db1", "process dpdk-app"));
    EXPECT_THAT(describe(report, {}), HasSubstr("first free the VFs of: db1, process dpdk-app"));
}

TEST(Remedy, IsHeldBackWhereItCantBeSeenWhoHoldsADevice) {
    auto facts = without_iommu();
    facts.folders["/proc/1/fd"] = {{}, EACCES};
    facts.folders["/sys/bus/pci/devices"] = {{"0000:01:00.0"}, 0};
    facts.links["/sys/bus/pci/devices/0000:01:00.0/driver"] = {"../drivers/vfio-pci", 0};
    EXPECT_THAT(finding_of(diagnose(facts, all_rules()), "iommu.enabled").remedy.value().drain,
                ElementsAre(HasSubstr("EACCES")));
    // A function without a VFIO driver can't be held.
    facts.links["/sys/bus/pci/devices/0000:01:00.0/driver"] = {"../drivers/igb", 0};
    EXPECT_TRUE(
        finding_of(diagnose(facts, all_rules()), "iommu.enabled").remedy.value().drain.empty());
}

TEST(Remedy, OfOneNetdevIsToldAlsoWhileAVmHasAVf) {
    Facts facts;
    facts.patterns = {"*"};
    facts.links["/proc/42/fd/9"] = {"/dev/vfio/3", 0};
    std::string const pf = "/sys/bus/pci/devices/0000:01:00.0";
    facts.folders = {{"/sys/bus/pci/devices", {{"0000:01:00.0"}, 0}},
                     {"/sys/class/net", {{"ens1"}, 0}}};
    facts.files = {{pf + "/class", {"0x020000\n", 0}},
                   {pf + "/sriov_totalvfs", {"7\n", 0}},
                   {"/sys/class/net/ens1/flags", {"0x1002\n", 0}}};
    facts.links[pf + "/virtfn0"] = {"../0000:01:10.0", 0};
    facts.links["/sys/class/net/ens1/device"] = {"../../../0000:01:00.0", 0};
    auto const finding = finding_of(diagnose(facts, all_rules()), "port.pf_down");
    ASSERT_EQ(finding.result, CheckResult::failed);
    EXPECT_THAT(finding.remedy.value().commands, ElementsAre("ip link set dev ens1 up"));
}

Finding made(std::string rule, CheckResult result) {
    return {std::move(rule), {}, result, "says so", {}, std::nullopt};
}

CheckReport report_of(std::vector<Finding> findings) {
    return {CheckedMachine::host, {}, {}, std::move(findings)};
}

std::vector<std::string> rules_of(CheckReport const& report) {
    std::vector<std::string> rules;
    for (auto const& finding : report.findings) rules.push_back(finding.rule);
    return rules;
}

TEST(Symptom, IsFollowedInItsOwnOrderToTheFirstThatFails) {
    auto const report = report_of({made("a", CheckResult::failed), made("b", CheckResult::warning),
                                   made("c", CheckResult::failed), made("d", CheckResult::failed)});
    Symptom const symptom{"s", "it is so", AppliesTo::both, {"b", "d", "a"}};
    EXPECT_THAT(rules_of(narrow(report, symptom)), ElementsAre("b", "d"));
}

TEST(Symptom, TellsAllThatItLookedAtWhenNothingFails) {
    auto const report = report_of({made("a", CheckResult::ok), made("b", CheckResult::warning)});
    Symptom const symptom{"s", "it is so", AppliesTo::both, {"b", "a"}};
    EXPECT_THAT(rules_of(narrow(report, symptom)), ElementsAre("b", "a"));
}

TEST(Verbosity, BeginsWithTheWorst) {
    auto const report =
        report_of({made("a", CheckResult::ok), made("b", CheckResult::unknown),
                   made("c", CheckResult::warning), made("d", CheckResult::failed),
                   made("e", CheckResult::warning), made("f", CheckResult::not_applicable)});
    EXPECT_EQ(describe(report, {}),
              "failed   d: says so\nwarning  c: says so\nwarning  e: says so\n"
              "unknown  1 check, most because says so; --all lists it\n"
              "1 failed, 2 warning, 1 unknown, 1 ok, 1 not_applicable\n");
    EXPECT_THAT(describe(report, {.all = true}), HasSubstr("ok       a: says so\n"));
    EXPECT_EQ(worst(report), CheckResult::failed);
    EXPECT_EQ(worst(report_of({made("a", CheckResult::not_applicable)})),
              CheckResult::not_applicable);
}

TEST(Verbosity, SetsFurtherLinesOfAFileBelowTheFirst) {
    auto report = report_of({made("a", CheckResult::failed)});
    report.findings[0].evidence = {{"/a", "one\ntwo"}};
    EXPECT_THAT(describe(report, {}), HasSubstr("/a: one\n        two\n"));
}

}  // namespace
}  // namespace vfmgr::checks
