// SPDX-License-Identifier: Apache-2.0
// What the kernel's log says of each NIC: messages of log_messages.hpp, commands that its firmware
// refused, and errors that nobody here knows.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "vfmgr/checks/rules/log.hpp"
#include "vfmgr/checks/rules/log_messages.hpp"
#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/nic.hpp"

namespace vfmgr::checks {
namespace {

constexpr int level_error = 3, level_warning = 4;

// Drivers print many a failure as a warning; where a form of the log shows no levels, these words
// stand for one.
bool sounds_like_an_error(std::string_view text) {
    static constexpr auto words = std::to_array<std::string_view>(
        {"error",   "fail",    "timed out", "timeout", "abort",  "fatal", "unable",
         "cannot",  "can't",   "could not", "hang",    "hung",   "stuck", "not respond",
         "invalid", "corrupt", "overheat",  "lost",    "refuse", "reject"});
    auto const lower = lowered(text);
    // At a word's beginning: "change" is no hang.
    auto const begins_a_word = [&](std::size_t at) {
        return at == 0 || lower[at - 1] < 'a' || lower[at - 1] > 'z';
    };
    return std::ranges::any_of(words, [&](auto const word) {
        for (auto at = lower.find(word); at != lower.npos; at = lower.find(word, at + 1))
            if (begins_a_word(at)) return true;
        return false;
    });
}

bool is_error(LogLine const& line) {
    auto const level = line.level.value_or(level_warning);
    return level <= level_error || (level == level_warning && sounds_like_an_error(line.text));
}

// "ens1" in "NETDEV WATCHDOG: ens1 (mlx5_core): …", "mlx5_0" in "infiniband mlx5_0: …".
bool names_it(std::string_view text, std::string_view name) {
    auto const ends = [](std::string_view rest) {
        return rest.empty() || contains(":, ()", rest.substr(0, 1));
    };
    for (auto at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
        bool const starts = at == 0 || contains(" (", text.substr(at - 1, 1));
        if (starts && ends(text.substr(at + name.size()))) return true;
    }
    return false;
}

struct Lines {
    std::map<LogMessage const*, Complaint> known;
    Complaint refused;                                // commands, by the firmware
    std::map<std::string_view, Complaint> of_driver;  // errors that no rule knows, by their text
    bool of_other_rules = false;                      // log.mlx5 or log.pcie reports some
    int all = 0;
};

Lines lines_of(KernelLog const& log, PciDevice const& nic) {
    Lines found;
    auto const address = to_string(nic.address);
    std::vector<std::string> names = nic.netdevs();
    names.insert(names.end(), nic.rdma_devices().begin(), nic.rdma_devices().end());
    for (auto const& line : log.lines) {
        auto const& by_driver = line.by_device;
        bool const its_own =
            by_driver ? by_driver->device == nic.address : contains(line.text, address);
        if (!its_own && std::ranges::none_of(names, [&](std::string const& name) {
                return names_it(line.text, name);
            }))
            continue;
        ++found.all;
        if ((its_own && is_judged_by_mlx5_rule(line)) ||
            (by_driver && is_judged_by_pcie_rule(*by_driver))) {
            found.of_other_rules = true;
            continue;
        }
        auto const mlx5 = parse_mlx5_line(line.text);
        auto const text = mlx5 ? mlx5->text : by_driver ? by_driver->text : line.text;
        if (auto const refused = mlx5 ? parse_refused_command(text) : std::nullopt) {
            // The driver reads registers to see whether the card has them.
            if (refused->command != "ACCESS_REG") found.refused.add(line);
            continue;
        }
        auto const driver = by_driver ? by_driver->driver : std::string_view();
        if (auto const* const message = find_message(driver, text))
            found.known[message].add(line);
        else if (is_error(line))
            found.of_driver[text].add(line);
    }
    return found;
}

std::string of_refused(Complaint const& refused) {
    auto const line = parse_mlx5_line(refused.line->text);
    auto const command = line ? parse_refused_command(line->text) : std::nullopt;
    if (!command) return "its firmware refused a command";
    return fmt::format("its firmware refused {}({}){}: status {}, syndrome {}", command->command,
                       command->opcode, counted(refused), command->status, command->syndrome);
}

Finding of_message(std::string const& subject, LogMessage const& message,
                   Complaint const& complaint) {
    auto const judge = message.weight == Weight::failed ? failed : warning;
    return judge(subject, std::string(message.detail) + counted(complaint),
                 by_hand(std::string(message.remedy)), {evidence_of(*complaint.line)});
}

std::vector<Finding> judge_nic(Machine const& machine, PciDevice const& nic) {
    auto const subject = to_string(nic.address);
    auto const lines = lines_of(*machine.log(), nic);
    std::vector<Finding> findings;
    // The network stack and a driver may report the same thing.
    std::map<std::string_view, std::pair<LogMessage const*, Complaint>> by_detail;
    for (auto const& [message, complaint] : lines.known) {
        if (message->weight == Weight::noise) continue;
        auto& [first, all] = by_detail[message->detail];
        if (!first) first = message;
        all.add(complaint);
    }
    for (auto const& [detail, of] : by_detail)
        findings.push_back(of_message(subject, *of.first, of.second));
    if (lines.refused.line)
        findings.push_back(
            warning(subject, of_refused(lines.refused),
                    by_hand("report the line to the vendor, who alone knows what its syndrome "
                            "means; a newer firmware may accept the command"),
                    {evidence_of(*lines.refused.line)}));
    if (!findings.empty()) return findings;
    if (!lines.of_driver.empty()) {
        std::vector<Evidence> evidence;
        constexpr std::size_t shown = 3;
        for (auto const& [text, complaint] : lines.of_driver)
            if (evidence.size() < shown) evidence.push_back(evidence_of(*complaint.line));
        return {not_known(subject,
                          fmt::format("the kernel's log has {} of it that this version of vfmgr "
                                      "does not know",
                                      lines.of_driver.size() == 1
                                          ? std::string("an error")
                                          : fmt::format("{} errors", lines.of_driver.size())),
                          std::move(evidence))};
    }
    return {ok(subject, fmt::format("no {}error among {} about it in {}",
                                    lines.of_other_rules ? "other " : "",
                                    lines.all == 1 ? std::string("the one line")
                                                   : fmt::format("the {} lines", lines.all),
                                    lines_read(*machine.log())))};
}

}  // namespace

std::vector<Finding> judge_nic_lines(Machine const& machine) {
    if (!machine.log()) return {unknown("", machine.log().error())};
    if (!machine.pci())
        return judge_logged_nics(machine,
                                 [&](PciDevice const& nic) { return judge_nic(machine, nic); });
    std::vector<Finding> findings;
    for (auto const* const nic : functions_of(machine, is_network))
        for (auto& finding : judge_nic(machine, *nic)) findings.push_back(std::move(finding));
    return or_else(std::move(findings), nothing_in(machine.pci(), "there is no NIC"));
}

}  // namespace vfmgr::checks
