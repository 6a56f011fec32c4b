// SPDX-License-Identifier: Apache-2.0
// A report for people: first what is wrong and what to type, then what is not known, then the rest
// as numbers.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "vfmgr/checks/doctor.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

std::string_view sentence_of(BlastRadius blast_radius) {
    switch (blast_radius) {
        case BlastRadius::none:
            return "";
        case BlastRadius::netdev:
            return "interrupts its traffic for a moment";
        case BlastRadius::host:
            return "disturbs every VF and RDMA device of this machine";
        case BlastRadius::reboot:
            return "needs a reboot";
    }
    return "";
}

// Indents further lines of a file below the first.
std::string in_lines(std::string_view text) {
    std::string lines;
    for (char const byte : text)
        lines += byte == '\n' ? std::string("\n        ") : std::string(1, byte);
    return lines;
}

// Replaces what differs between devices of one kind, "0000:3b:00.0" and "mlx5_0", by their form.
std::string form_of(std::string_view text) {
    std::string form;
    while (!text.empty()) {
        constexpr std::size_t address_bytes = 12;
        if (PciAddress::parse(text.substr(0, address_bytes))) {
            form += "@";
            text.remove_prefix(address_bytes);
        } else if (text.front() >= '0' && text.front() <= '9') {
            form += "#";
            text.remove_prefix(std::min(text.find_first_not_of("0123456789"), text.size()));
        } else {
            form += text.front();
            text.remove_prefix(1);
        }
    }
    return form;
}

// Findings that say the same of several devices: the first stands for all.
using Group = std::vector<Finding const*>;

bool alike(Finding const& one, Finding const& other) {
    auto const note = [](Finding const& finding) {
        return finding.remedy ? form_of(finding.remedy->note) : std::string();
    };
    return !one.subject.empty() && !other.subject.empty() && one.rule == other.rule &&
           one.result == other.result && one.caused_by.has_value() == other.caused_by.has_value() &&
           form_of(one.detail) == form_of(other.detail) && note(one) == note(other);
}

std::vector<Group> grouped(std::vector<Finding> const& findings, CheckResult result) {
    std::vector<Group> groups;
    for (auto const& finding : findings) {
        if (finding.result != result) continue;
        auto const same = std::ranges::find_if(
            groups, [&](Group const& group) { return alike(*group.front(), finding); });
        if (same != groups.end())
            same->push_back(&finding);
        else
            groups.push_back({&finding});
    }
    return groups;
}

// What to type for all of them, in order, each command once; then what to know about it.
std::string remedy_of(Group const& group) {
    std::vector<std::string> commands, drain;
    auto const add = [](std::vector<std::string>& all, std::vector<std::string> const& more) {
        for (auto const& one : more)
            if (std::ranges::find(all, one) == all.end()) all.push_back(one);
    };
    for (auto const* const finding : group)
        if (finding->remedy) {
            add(commands, finding->remedy->commands);
            add(drain, finding->remedy->drain);
        }
    // A reboot for each would be one too many, and too early.
    if (auto const reboot = std::ranges::find(commands, "reboot"); reboot != commands.end())
        std::rotate(reboot, reboot + 1, commands.end());
    std::string text;
    if (!drain.empty())
        text += fmt::format("      first free the VFs of: {}\n", fmt::join(drain, ", "));
    for (auto const& command : commands) text += fmt::format("      $ {}\n", command);
    auto const& remedy = group.front()->remedy;
    if (!remedy) return text;
    if (!remedy->note.empty()) text += fmt::format("      {}\n", in_lines(remedy->note));
    if (auto const sentence = sentence_of(remedy->blast_radius); !sentence.empty())
        text += fmt::format("      ({})\n", sentence);
    return text;
}

std::string describe(Group const& group) {
    auto const& first = *group.front();
    auto text =
        fmt::format("{:<8} {}{}{}: {}\n", enum_name(first.result), first.rule,
                    first.subject.empty() ? "" : " ", first.subject, in_lines(first.detail));
    if (group.size() > 1) {
        std::vector<std::string> others;
        for (auto const* const finding : group)
            if (finding != &first) others.push_back(finding->subject);
        text += fmt::format("      so do: {}\n", fmt::join(others, ", "));
    }
    if (first.caused_by) text += fmt::format("      because of: {}\n", *first.caused_by);
    text += remedy_of(group);
    for (auto const& evidence : first.evidence)
        text += fmt::format("      {}: {}\n", evidence.source, in_lines(evidence.text));
    return text;
}

// "unknown  14 checks, for 3 reasons: /dev/kmsg: EPERM (try as root); …"
std::string describe_unknown(std::vector<Finding> const& findings) {
    std::map<std::string, int> reasons;
    int checks = 0;
    for (auto const& finding : findings)
        if (finding.result == CheckResult::unknown) {
            ++reasons[form_of(finding.detail)];
            ++checks;
        }
    if (checks == 0) return {};
    auto const commonest =
        std::ranges::max_element(reasons, {}, [](auto const& one) { return one.second; });
    auto const example = std::ranges::find_if(findings, [&](Finding const& finding) {
        return finding.result == CheckResult::unknown &&
               form_of(finding.detail) == commonest->first;
    });
    return fmt::format("{:<8} {} check{}, most because {}; --all lists {}\n",
                       enum_name(CheckResult::unknown), checks, checks == 1 ? "" : "s",
                       in_lines(example->detail), checks == 1 ? "it" : "them");
}

}  // namespace

std::string describe(CheckReport const& report, Verbosity verbosity) {
    std::string text;
    std::string summary;
    // Sorts the worst first; equals stay in the report's order.
    for (auto const& [result, name] : enum_names<CheckResult>) {
        auto const groups = grouped(report.findings, result);
        auto const count = std::ranges::count(report.findings, result, &Finding::result);
        if (count == 0) continue;
        summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", count, name);
        for (auto const& group : groups)
            if (verbosity.all || is_bad(*group.front())) text += describe(group);
        if (result == CheckResult::unknown && !verbosity.all)
            text += describe_unknown(report.findings);
    }
    return text + (summary.empty() ? "no checks" : summary) + "\n";
}

}  // namespace vfmgr::checks
