// SPDX-License-Identifier: Apache-2.0
#include "service/cli/firmware_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "service/cli/choice.hpp"

namespace vfmgr {
namespace {

constexpr auto words_remedy =
    "give PFs and settings: vfctl firmware set ens1 SRIOV_EN=1 NUM_OF_VFS=16 LINK_TYPE_P1=ETH";

std::string upper(std::string_view text) {
    std::string out(text);
    for (char& letter : out)
        if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
    return out;
}

Result<void> parse_setting(std::string_view name, std::string_view text, bool& out) {
    auto const word = upper(text);
    out = word == "TRUE" || word == "1";
    if (out || word == "FALSE" || word == "0") return {};
    return fail(Problem::invalid_request, fmt::format("{} is True or False, not '{}'", name, text),
                words_remedy);
}

Result<void> parse_setting(std::string_view name, std::string_view text, std::uint16_t& out) {
    VFMGR_TRY(auto const value, number(std::string(name), text, 0, UINT16_MAX));
    out = static_cast<std::uint16_t>(value);
    return {};
}

Result<void> parse_setting(std::string_view name, std::string_view text, PortType& out) {
    auto const word = upper(text);
    for (auto const& [value, known] : enum_names<PortType>)
        if (word == known || word == std::to_string(static_cast<int>(value)))
            return void(out = value), Result<void>{};
    return fail(Problem::invalid_request,
                fmt::format("{} is one of {}, not '{}'", name, enum_choices<PortType>(), text),
                words_remedy);
}

Result<void> assign(FirmwareSettings& settings, std::string const& word) {
    auto const equals = word.find('=');
    auto const name = word.substr(0, equals);
    auto const text = std::string_view(word).substr(equals + 1);
    std::vector<std::string> known;
    Result<void> done;
    bool found = false;
    for_each_firmware_setting([&](char const* each, auto member) {
        known.emplace_back(each);
        if (name != each) return;
        found = true;
        if (settings.*member)
            done = fail(Problem::invalid_request, fmt::format("{} is given twice", name),
                        "give it once");
        else
            done = parse_setting(each, text, (settings.*member).emplace());
    });
    if (found) return done;
    return fail(Problem::invalid_request,
                fmt::format("'{}' is not one of the settings that vfmgr changes: {}", name,
                            fmt::join(known, ", ")),
                "change other settings with mlxconfig");
}

template <class Member>
std::string word_of(std::optional<FirmwareSettings> const& settings, Member member) {
    if (!settings || !((*settings).*member)) return "-";
    auto const& value = *((*settings).*member);
    if constexpr (std::is_same_v<decltype(value), bool const&>)
        return value ? "True" : "False";
    else
        return cell(value);
}

// Returns "8", or "8 -> 16" if it changes at the next reset.
template <class Member>
std::string change_of(FirmwareCard const& card, Member member) {
    auto const current = word_of(card.current, member);
    auto next = word_of(card.next, member);
    if (current == next || current == "-") return next;
    return current + " -> " + next;
}

std::string lines_of(char const* title, std::vector<std::string> const& lines) {
    std::string out;
    for (auto const& each : lines) out += fmt::format("  {}\n", cell(each));
    return out.empty() ? out : fmt::format("\n{}:\n{}", title, out);
}

std::string devlink_lines(FirmwareCard const& card) {
    std::string out;
    for (auto const& each : card.devlink)
        out += fmt::format("  {} {} ({})\n", cell(each.name), cell(each.value), cell(each.mode));
    return out.empty() ? out : "\nparameters of the kernel's driver (devlink):\n" + out;
}

}  // namespace

Result<FirmwareWords> firmware_words(std::vector<std::string> const& words) {
    FirmwareWords read;
    for (auto const& word : words) {
        if (word.find('=') == word.npos)
            read.pfs.push_back(word);
        else
            VFMGR_CHECK(assign(read.settings, word));
    }
    if (read.pfs.empty() || empty(read.settings))
        return fail(Problem::invalid_request,
                    read.pfs.empty() ? "no PF is named" : "no setting is named", words_remedy);
    return read;
}

Table card_table(std::vector<FirmwareView> const& cards) {
    Table table{{"CARD", "TYPE", "SRIOV_EN", "NUM_OF_VFS", "LINK_TYPE_P1", "LINK_TYPE_P2",
                 "ATS_ENABLED", "PENDING", "PROBLEM"},
                {}};
    for (auto const& view : cards) {
        auto const& card = view.card;
        std::vector<std::string> row{cell(card.pci), cell(card.device_type)};
        for_each_firmware_setting(
            [&](char const*, auto member) { row.push_back(change_of(card, member)); });
        row.push_back(cell(view.pending));
        row.push_back(cell(card.problem, &Error::detail));
        table.rows.push_back(std::move(row));
    }
    return table;
}

Table setting_table(FirmwareCard const& card) {
    Table table{{"SETTING", "DEFAULT", "CURRENT", "NEXT"}, {}};
    for_each_firmware_setting([&](char const* name, auto member) {
        table.rows.push_back({name, word_of(card.by_default, member), word_of(card.current, member),
                              word_of(card.next, member)});
    });
    return table;
}

std::string card_page(FirmwareView const& view, Options const& options) {
    auto const& card = view.card;
    auto out = fmt::format("card       {}  {}\n", cell(card.pci), cell(card.device_type));
    out += fmt::format("functions  {}\n", cell(card.functions));
    out += fmt::format("read by    {} {}\n", cell(card.tool, &FirmwareTool::name),
                       cell(card.tool, &FirmwareTool::version));
    out += fmt::format("pending    {}\n",
                       view.pending == FirmwarePending::power_cycle
                           ? "power_cycle: a reboot did not apply it, power-cycle the host"
                           : cell(view.pending));
    if (card.problem)
        out += fmt::format("problem    {}\nremedy     {}\n", cell(card.problem->detail),
                           cell(card.problem->remedy));
    else
        out += "\n" +
               as_table(setting_table(card), options.no_headers ? Headers::hidden : Headers::shown);
    return out + lines_of("in use", view.in_use) + devlink_lines(card);
}

nlohmann::json joined_plans(std::vector<nlohmann::json> const& dry_runs) {
    nlohmann::json plan{{"steps", nlohmann::json::array()},
                        {"blast_radius", nlohmann::json::array()},
                        {"notes", nlohmann::json::array()}};
    for (auto const& dry_run : dry_runs) {
        if (!dry_run.contains("plan")) continue;
        for (auto& [name, all] : plan.items())
            for (auto const& one : dry_run.at("plan").value(name, nlohmann::json::array()))
                if (std::find(all.begin(), all.end(), one) == all.end()) all.push_back(one);
    }
    return {{"plan", std::move(plan)}};
}

}  // namespace vfmgr
