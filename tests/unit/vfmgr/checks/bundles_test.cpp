// SPDX-License-Identifier: Apache-2.0
// Whole machines (tests/fixtures/bundles/*.json) with the findings on each (*.verdicts, rewritten
// with VFMGR_UPDATE_GOLDEN=1), and cases (tests/fixtures/bundles/cases/*.json): a machine with
// something changed, and what some rules report then. Every rule fails somewhere, and passes
// somewhere.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cstdlib>
#include <regex>

#include "tests/unit/repository.hpp"
#include "tests/unit/vfmgr/checks/bundles.hpp"
#include "vfmgr/machine/sources.hpp"

namespace vfmgr::checks {
namespace {

using namespace test;

class WholeMachine : public testing::TestWithParam<std::string> {};

TEST_P(WholeMachine, IsJudgedAsItWas) {
    auto const golden = bundles / (GetParam() + ".verdicts");
    auto const said = describe(report_on(document_of(GetParam())), {.all = true});
    if (std::getenv("VFMGR_UPDATE_GOLDEN")) std::ofstream(golden) << said;
    EXPECT_EQ(said, content_of(golden)) << "VFMGR_UPDATE_GOLDEN=1 rewrites " << golden;
}

TEST_P(WholeMachine, SaysWhereItIsFrom) {
    auto const facts = from_bundle(document_of(GetParam()).dump());
    ASSERT_TRUE(facts) << facts.error().detail;
    EXPECT_NE(facts->provenance, Provenance::live);
    EXPECT_FALSE(facts->source.empty());
}

std::string test_name(testing::TestParamInfo<std::string> const& info) {
    auto name = info.param;
    for (auto& byte : name)
        if (!std::isalnum(static_cast<unsigned char>(byte))) byte = '_';
    return name;
}

INSTANTIATE_TEST_SUITE_P(Bundles, WholeMachine, testing::ValuesIn(all_bundles()), test_name);

std::string text_of(CheckReport const& report, std::string const& rule_and_subject) {
    std::string said;
    auto only = report;
    for (auto const& finding : report.findings) {
        auto const name =
            finding.subject.empty() ? finding.rule : finding.rule + " " + finding.subject;
        if (name != rule_and_subject && finding.rule != rule_and_subject) continue;
        only.findings = {finding};
        said += describe(only, {.all = true});
    }
    return said;
}

class ChangedMachine : public testing::TestWithParam<Case> {};

TEST_P(ChangedMachine, IsJudgedAsExpected) {
    auto const report = report_on(GetParam());
    for (auto const& [rule, expected] : GetParam().document.at("expect").items()) {
        auto const said = text_of(report, rule);
        auto const text = expected.get<std::string>();
        auto const result = text.substr(0, text.find(": "));
        EXPECT_NE(said.find(fmt::format("{:<8} ", result)), said.npos) << rule << "\n" << said;
        if (result == text) continue;
        EXPECT_NE(said.find(text.substr(result.size() + 2)), said.npos) << said;
    }
}

INSTANTIATE_TEST_SUITE_P(Cases, ChangedMachine, testing::ValuesIn(all_cases()),
                         [](auto const& one) {
                             return test_name(
                                 testing::TestParamInfo<std::string>(one.param.name, one.index));
                         });

// Results of each rule on all machines and cases, with the provenance of those.
using Saying = std::map<CheckResult, std::set<std::string>>;

std::map<std::string, Saying> sayings_by_rule() {
    std::map<std::string, Saying> sayings;
    for (auto const& machine : all_machines())
        for (auto const& finding : machine.report.findings)
            sayings[finding.rule][finding.result].insert(
                std::string(enum_name(machine.facts.provenance)));
    return sayings;
}

TEST(Rules, FireSomewhereAndAreContentSomewhere) {
    auto const sayings = sayings_by_rule();
    for (auto const& rule : all_rules()) {
        auto const found = sayings.find(std::string(rule.id));
        ASSERT_NE(found, sayings.end()) << rule.id << " said nothing of any bundle";
        auto const& said = found->second;
        EXPECT_TRUE(said.contains(CheckResult::failed) || said.contains(CheckResult::warning))
            << rule.id << " never fires";
        EXPECT_TRUE(said.contains(CheckResult::ok)) << rule.id << " is never content";
    }
}

// To be safe by saying "unknown" of everything is no way out.
TEST(Rules, KnowMostOfAMachineThatWasReadWhole) {
    constexpr std::size_t percent_max = 5, percent = 100;
    for (auto const* const name :
         {"lab-host", "lab-guest", "lab/well", "guest-vf", "firmware-pending",
          "secure-boot-lockdown", "gpu-host-ofed", "roce-host", "small-intel",
          "softroce-control-plane", "h100-class"}) {
        auto const findings = report_on(document_of(name)).findings;
        auto const unknown = static_cast<std::size_t>(
            std::ranges::count(findings, CheckResult::unknown, &Finding::result));
        EXPECT_LE(unknown * percent, findings.size() * percent_max)
            << name << ": " << unknown << " of " << findings.size();
    }
}

// What was not collected yields no finding: a bundle may be from an older version, or made by hand.
TEST(Rules, ClaimNothingOfAMachineThatNobodyLookedAt) {
    for (auto const machine : {CheckedMachine::host, CheckedMachine::guest}) {
        Facts facts;
        facts.machine = machine;
        for (auto const& finding : diagnose(facts, all_rules()).findings)
            EXPECT_EQ(finding.result, CheckResult::unknown)
                << finding.rule << ": " << finding.detail;
    }
}

// The same machine, as if that source had not been read.
Facts without(Facts facts, std::string_view unseen) {
    auto const forget = [&](auto& of) {
        std::erase_if(of, [&](auto const& one) { return matches(unseen, one.first); });
    };
    facts.patterns = {"/proc/[0-9]*/fd/*", "/dev/kmsg", "/sys/bus/pci/devices/*/config",
                      "RTM_GETADDR",       "DCB_*",     "RDMA_*",
                      "mstconfig *",       "modprobe *"};
    auto const release = facts.text("/proc/sys/kernel/osrelease").value_or("");
    for (auto const& one : owner_sources) facts.patterns.insert(with_release(one.pattern, release));
    for (auto const& one : file_sources) facts.patterns.insert(with_release(one.pattern, release));
    for (auto const one : link_sources) facts.patterns.insert(with_release(one, release));
    for (auto const one : folder_sources) facts.patterns.insert(with_release(one, release));
    facts.patterns.erase(std::string(unseen));
    forget(facts.files);
    forget(facts.links);
    forget(facts.folders);
    return facts;
}

std::set<std::string> accusations(Facts const& facts) {
    std::set<std::string> said;
    for (auto const& finding : diagnose(facts, all_rules()).findings)
        if (is_bad(finding))
            said.insert(fmt::format("{} {} {}", finding.rule, finding.subject, finding.detail));
    return said;
}

TEST(Rules, AccuseNobodyForWhatNobodyLookedAt) {
    for (auto const* const name : {"gpu-host-ofed", "roce-host", "guest-vf",
                                   "softroce-control-plane", "secure-boot-lockdown"}) {
        auto const facts = from_bundle(document_of(name).dump());
        ASSERT_TRUE(facts);
        auto const whole = without(*facts, "");
        auto const known = accusations(whole);
        for (auto const& pattern : whole.patterns)
            for (auto const& said : accusations(without(*facts, pattern)))
                EXPECT_TRUE(known.contains(said)) << name << " without " << pattern << ": " << said;
    }
}

TEST(Rules, AreNamedOnceAndSayWhereTheyAreFrom) {
    std::set<std::string_view> ids;
    for (auto const& rule : all_rules()) {
        EXPECT_TRUE(ids.insert(rule.id).second) << rule.id;
        EXPECT_FALSE(rule.title.empty() || rule.source.empty()) << rule.id;
    }
    for (auto const& symptom : all_symptoms())
        for (auto const rule : symptom.rules)
            EXPECT_TRUE(ids.contains(rule)) << symptom.id << " asks for " << rule;
}

// Returns "lab, synthetic", or "synthetic only".
std::string worth(Saying const& saying, std::initializer_list<CheckResult> results) {
    std::set<std::string> from;
    for (auto const result : results)
        if (auto const found = saying.find(result); found != saying.end())
            from.insert(found->second.begin(), found->second.end());
    if (from == std::set<std::string>{"synthetic"}) return "synthetic only";
    return fmt::format("{}", fmt::join(from, ", "));
}

std::string table_of_rules() {
    auto const sayings = sayings_by_rule();
    std::string text =
        "| rule | passes when | fails or warns on | passes on | from |\n"
        "|---|---|---|---|---|\n";
    for (auto const& rule : all_rules()) {
        auto const& saying = sayings.at(std::string(rule.id));
        text += fmt::format("| `{}` | {} | {} | {} | {} |\n", rule.id, rule.title,
                            worth(saying, {CheckResult::failed, CheckResult::warning}),
                            worth(saying, {CheckResult::ok}), rule.source);
    }
    return text;
}

TEST(Documentation, SaysWhatEachRuleRestsOn) {
    auto const file = vfmgr::test::repository() / "vfmgr/checks/README.md";
    auto const text = content_of(file);
    std::string const begin = "<!-- rules: written by checks_test -->\n";
    std::string const end = "<!-- end of rules -->";
    auto const from = text.find(begin);
    auto const to = text.find(end);
    ASSERT_TRUE(from != text.npos && to != text.npos);
    auto const expected = text.substr(0, from) + begin + table_of_rules() + text.substr(to);
    if (std::getenv("VFMGR_UPDATE_GOLDEN")) std::ofstream(file) << expected;
    EXPECT_EQ(content_of(file), expected) << "VFMGR_UPDATE_GOLDEN=1 rewrites it";
}

// Each failure has a remedy, or the finding names what cannot be fixed.
TEST(Findings, ThatAreBadHaveARemedy) {
    for (auto const& machine : all_machines())
        for (auto const& finding : machine.report.findings) {
            auto const where = machine.name + " " + finding.rule;
            EXPECT_EQ(is_bad(finding), finding.remedy.has_value()) << where;
            EXPECT_FALSE(finding.detail.empty()) << where;
            auto const remedy = finding.remedy.value_or(Remedy{{}, {}, "none is needed", {}});
            EXPECT_FALSE(remedy.commands.empty() && remedy.note.empty() && remedy.drain.empty())
                << where;
        }
}

// Returns commands that let devices below a switch reach each other past the IOMMU.
std::vector<std::string> commands_against_isolation(CheckReport const& report) {
    static std::regex const sets_acs("ECAP_ACS\\+6\\.w=([0-9a-f]+):([0-9a-f]+)");
    std::vector<std::string> commands;
    for (auto const& finding : report.findings)
        for (auto const& command : finding.remedy.value_or(Remedy{}).commands) {
            std::smatch bits;
            bool const clears =
                std::regex_search(command, bits, sets_acs) &&
                (~std::stoul(bits[1], nullptr, 16) & std::stoul(bits[2], nullptr, 16)) != 0;
            if (clears || command.find("disable_acs_redir") != command.npos ||
                command.find("pcie_acs_override=") != command.npos)
                commands.push_back(command);
        }
    return commands;
}

// Decides by the document's own words, not by what the rules query.
bool may_attach(JudgedMachine const& machine) {
    for (auto const* word :
         {"virtfn", "/physfn", "drivers/vfio-pci", "drivers/mlx5_vfio_pci", "vfio_pci ",
          "Id=vfmgrd.service\\nLoadState=loaded", "Id=libvirtd.service\\nLoadState=loaded",
          "Id=virtqemud.service\\nLoadState=loaded"})
        if (machine.document.find(word) != machine.document.npos) return true;
    return machine.facts.machine == CheckedMachine::guest;
}

// The bare-metal recipe for GPUDirect opens a hole between VMs.
TEST(Remedies, NeverSwitchAcsOffWhereDevicesMayBeAttached) {
    int told = 0, held_back = 0;
    for (auto const& machine : all_machines()) {
        auto const commands = commands_against_isolation(machine.report);
        told += !commands.empty();
        held_back += may_attach(machine);
        if (may_attach(machine)) {
            EXPECT_THAT(commands, testing::IsEmpty()) << machine.name;
        }
    }
    EXPECT_GT(told, 0) << "bare metal's recipe is never told";
    EXPECT_GT(held_back, 50);
}

}  // namespace
}  // namespace vfmgr::checks
