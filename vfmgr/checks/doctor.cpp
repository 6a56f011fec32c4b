// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/doctor.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "vfmgr/checks/nic.hpp"

namespace vfmgr::checks {
namespace {

bool applies(AppliesTo to, CheckedMachine machine) {
    return to == AppliesTo::both || (to == AppliesTo::host) == (machine == CheckedMachine::host);
}

// No device is with a VFIO driver, so nobody can hold one.
bool lends_nothing(Machine const& machine) {
    return machine.pci && std::ranges::none_of(*machine.pci, on_vfio);
}

// VMs and processes that hold a VF; what can't be seen counts as held.
std::vector<std::string> holders_of(Machine const& machine) {
    if (machine.kind == CheckedMachine::guest) return {};
    if (!machine.vfio_holders && lends_nothing(machine)) return {};
    if (!machine.vfio_holders)
        return {fmt::format("unknown: {}", to_string(machine.vfio_holders.error()))};
    std::set<std::string> names;
    for (auto const& holding : *machine.vfio_holders)
        names.insert(holding.vm.empty() ? "process " + holding.process : holding.vm);
    return {names.begin(), names.end()};
}

// A command that takes VFs from under VMs is not told while they have any.
void hold_back(Cure& cure, std::vector<std::string> const& holders) {
    bool const disturbs =
        cure.blast_radius == BlastRadius::host || cure.blast_radius == BlastRadius::reboot;
    if (!disturbs || holders.empty()) return;
    cure.commands.clear();
    cure.drain = holders;
}

std::string_view sentence_of(BlastRadius blast_radius) {
    switch (blast_radius) {
        case BlastRadius::none:
            return "";
        case BlastRadius::netdev:
            return "its traffic stops for a moment";
        case BlastRadius::host:
            return "disturbs every VF and RDMA device of this machine";
        case BlastRadius::reboot:
            return "takes a reboot";
    }
    return "";
}

std::string describe(Cure const& cure) {
    std::string text;
    if (!cure.note.empty()) text += fmt::format("      {}\n", cure.note);
    for (auto const& command : cure.commands) text += fmt::format("      $ {}\n", command);
    if (auto const sentence = sentence_of(cure.blast_radius); !sentence.empty())
        text += fmt::format("      ({})\n", sentence);
    if (!cure.drain.empty())
        text += fmt::format("      first give back the VFs of: {}\n", fmt::join(cure.drain, ", "));
    return text;
}

// Further lines of a file stand below the first.
std::string in_lines(std::string_view text) {
    std::string lines;
    for (char const byte : text)
        lines += byte == '\n' ? std::string("\n        ") : std::string(1, byte);
    return lines;
}

std::string describe(Finding const& finding) {
    auto text = fmt::format("{:<8} {}{}{}: {}\n", enum_name(finding.result), finding.rule,
                            finding.subject.empty() ? "" : " ", finding.subject, finding.detail);
    for (auto const& evidence : finding.evidence)
        text += fmt::format("      {}: {}\n", evidence.source, in_lines(evidence.text));
    return finding.cure ? text + describe(*finding.cure) : text;
}

bool good(Finding const& finding) {
    return finding.result == CheckResult::ok || finding.result == CheckResult::not_applicable;
}

}  // namespace

CheckReport diagnose(Facts const& facts) {
    auto const machine = read_machine(facts);
    auto const holders = holders_of(machine);
    CheckReport report{facts.machine, facts.collected_at, machine.release, {}};
    for (auto const& rule : all_rules()) {
        if (!applies(rule.applies, facts.machine)) continue;
        for (auto& finding : rule.judge(machine)) {
            finding.rule = rule.id;
            if (finding.cure) hold_back(*finding.cure, holders);
            report.findings.push_back(std::move(finding));
        }
    }
    return report;
}

CheckReport narrow(CheckReport const& report, Symptom const& symptom) {
    auto narrowed = report;
    narrowed.findings.clear();
    for (auto const rule : symptom.rules) {
        bool cause = false;
        for (auto const& finding : report.findings) {
            if (finding.rule != rule) continue;
            narrowed.findings.push_back(finding);
            cause |= finding.result == CheckResult::failed;
        }
        if (cause) break;
    }
    return narrowed;
}

std::string describe(CheckReport const& report, Telling telling) {
    std::string text;
    std::string summary;
    // The worst first; in the rules' order among equals.
    for (auto const& [result, name] : enum_names<CheckResult>) {
        auto const is_such = [&](Finding const& one) { return one.result == result; };
        auto const count = std::ranges::count_if(report.findings, is_such);
        if (count == 0) continue;
        summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", count, name);
        for (auto const& finding : report.findings)
            if (is_such(finding) && (telling.all || !good(finding))) text += describe(finding);
    }
    return text + (summary.empty() ? "no checks" : summary) + "\n";
}

}  // namespace vfmgr::checks
