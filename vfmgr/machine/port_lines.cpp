// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/port_lines.hpp"

#include <algorithm>
#include <charconv>

#include "api/types/text.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

// Parses the word after "mlx5_core ": "0000:1a:00.0:".
std::optional<PciAddress> pci_behind_driver(std::string_view line) {
    constexpr std::string_view driver = "mlx5_core ";
    auto const at = line.find(driver);
    if (at == line.npos) return std::nullopt;
    auto word = line.substr(at + driver.size());
    word = word.substr(0, word.find(' '));
    if (word.ends_with(':')) word.remove_suffix(1);
    auto const pci = PciAddress::parse(word);
    return pci ? std::optional(*pci) : std::nullopt;
}

bool is_number_word(std::string_view line, std::size_t at, std::size_t size) {
    auto const digit = [&](std::size_t i) { return line[i] >= '0' && line[i] <= '9'; };
    return (at == 0 || !digit(at - 1)) && (at + size == line.size() || !digit(at + size));
}

bool names_number(std::string_view line, std::string_view number) {
    for (auto at = line.find(number); at != line.npos; at = line.find(number, at + 1))
        if (is_number_word(line, at, number.size())) return true;
    return false;
}

bool has_word(std::string_view line, std::string_view expected) {
    auto const words = words_in(line);
    return std::ranges::find(words, expected) != words.end();
}

}  // namespace

std::optional<ModuleEvent> parse_module_event(std::string_view line) {
    constexpr std::string_view mark = "Port module event";
    constexpr std::string_view module = ": module ";
    auto const at = line.find(mark);
    if (at == line.npos) return std::nullopt;
    auto rest = line.substr(at + mark.size());
    if (rest.starts_with('[')) {
        if (!take_until(rest, ']')) return std::nullopt;
    }
    if (!rest.starts_with(module)) return std::nullopt;
    rest.remove_prefix(module.size());
    auto const number = take_until(rest, ',');
    auto const parsed = number ? parse_digits(*number, {.max = 255}) : std::nullopt;
    if (!parsed || !rest.starts_with(" Cable ")) return std::nullopt;
    rest.remove_prefix(1);
    return ModuleEvent{pci_behind_driver(line.substr(0, at)), static_cast<unsigned>(*parsed), rest};
}

std::optional<PortRate> parse_port_rate(std::string_view text) {
    PortRate rate;
    auto const* const end = text.data() + text.size();
    auto const [stopped, error] =
        std::from_chars(text.data(), end, rate.gbps, std::chars_format::fixed);
    constexpr std::string_view unit = " Gb/sec (";
    std::string_view rest(stopped, static_cast<std::size_t>(end - stopped));
    if (error != std::errc{} || !rest.starts_with(unit)) return std::nullopt;
    rest.remove_prefix(unit.size());
    auto const lanes = take_until(rest, 'X');
    auto const parsed = lanes ? parse_digits(*lanes, {.max = 16}) : std::nullopt;
    if (!parsed || !(rate.gbps > 0) || rate.gbps > 1e5) return std::nullopt;
    rate.lanes = static_cast<unsigned>(*parsed);
    return rate;
}

// Iface Destination Gateway Flags RefCnt Use Metric Mask …
std::set<std::string> parse_default_routes4(std::string_view lines) {
    std::set<std::string> netdevs;
    for (auto const line : lines_in(lines))
        if (auto const words = words_in(line);
            words.size() >= 8 && words[1] == "00000000" && words[7] == "00000000")
            netdevs.emplace(words[0]);
    return netdevs;
}

// Destination, length, source, length, next hop, metric, reference, use, flags, device. A route
// that refuses everything is on lo.
std::set<std::string> parse_default_routes6(std::string_view lines) {
    constexpr std::string_view zeros = "00000000000000000000000000000000";
    std::set<std::string> netdevs;
    for (auto const line : lines_in(lines))
        if (auto const words = words_in(line);
            words.size() == 10 && words[0] == zeros && words[1] == "00" && words[9] != "lo")
            netdevs.emplace(words[9]);
    return netdevs;
}

std::vector<RdmaLinkCommand> parse_rdma_link_commands(std::string_view text) {
    std::vector<RdmaLinkCommand> commands;
    constexpr std::string_view mark = "rdma link add ";
    for (auto const line : lines_in(text)) {
        auto const at = line.find(mark);
        auto const first = line.find_first_not_of(" \t");
        if (at == line.npos || line[first] == '#') continue;
        auto const words = words_in(line.substr(at + mark.size()));
        RdmaLinkCommand command;
        if (!words.empty()) command.name = words[0];
        for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
            auto const value = words[i + 1].substr(0, words[i + 1].find_first_of(";\"'|&)"));
            if (words[i] == "type") command.type = value;
            if (words[i] == "netdev") command.netdev = value;
        }
        if (!command.type.empty() && !command.netdev.empty())
            commands.push_back(std::move(command));
    }
    return commands;
}

std::set<std::string, std::less<>> parse_vfmgr_links(std::string_view lines) {
    constexpr std::size_t owner = 5;
    std::set<std::string, std::less<>> names;
    for (auto line : lines_in(lines)) {
        std::vector<std::string_view> columns;
        while (!line.empty()) columns.push_back(take_part(line, ','));
        if (columns.size() > owner && columns[owner] == "vfmgr" && !columns[0].empty())
            names.emplace(columns[0]);
    }
    return names;
}

FilterLine filter_of_port(std::string_view ruleset, std::string_view port) {
    FilterLine found;
    FilterLine policy;
    std::string_view table;
    while (!ruleset.empty()) {
        auto const line = trimmed(take_line(ruleset));
        if (line.starts_with("table ")) table = line;
        // vfmgr's own table has rules for this port, too, but only for its own interfaces and
        // addresses.
        if (table.starts_with("table inet vfmgr ")) continue;
        bool const input = contains(line, " hook input ");
        if (input && contains(line, "policy drop"))
            policy = {PortFilter::limited, std::string(line)};
        if (!names_number(line, port)) continue;
        if (has_word(line, "drop") || has_word(line, "reject") || contains(line, " saddr "))
            return {PortFilter::limited, std::string(line)};
        if (has_word(line, "accept")) found = {PortFilter::accepted, std::string(line)};
    }
    return found.filter == PortFilter::unspecified ? policy : found;
}

}  // namespace vfmgr::checks
