// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/machine/driver_log.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "api/types/text.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::checks {
namespace {

bool is_name_byte(char one) {
    return (one >= '0' && one <= '9') || (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z') ||
           one == '_' || one == '-' || one == '.';
}

bool is_name(std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, is_name_byte);
}

// Returns the text between `before` and `after`, if both are there.
std::optional<std::string_view> between(std::string_view text, std::string_view before,
                                        std::string_view after) {
    auto const from = text.find(before);
    if (from == text.npos) return std::nullopt;
    text.remove_prefix(from + before.size());
    auto const to = text.find(after);
    return to == text.npos ? std::nullopt : std::optional(text.substr(0, to));
}

std::optional<int> number_in(std::string_view text, std::string_view before,
                             std::string_view after) {
    auto const digits = between(text, before, after);
    auto const number = digits ? parse_digits(*digits, {.digits_max = 6}) : std::nullopt;
    return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

// "0000:5c:00.0" or "5c:00.0".
std::optional<PciAddress> address_in(std::string_view text) {
    auto const address = PciAddress::parse(text);
    return address ? std::optional(*address) : std::nullopt;
}

// "poll_health:801:(pid 0): text".
std::optional<Mlx5Line> at_place(std::string_view text) {
    auto const function = take_until(text, ':');
    auto const number = take_until(text, ':');
    if (!function || !number || !is_name(*function) || !parse_digits(*number, {}))
        return std::nullopt;
    constexpr std::string_view process = "(pid ";
    if (!text.starts_with(process)) return std::nullopt;
    text.remove_prefix(process.size());
    auto const pid = take_until(text, ')');
    if (!pid || !parse_digits(*pid, {}) || !text.starts_with(": ")) return std::nullopt;
    return Mlx5Line{std::nullopt, *function, text.substr(2)};
}

// A module's message starts the line, or follows "kernel: ".
std::string_view message_in(std::string_view line) {
    constexpr std::string_view mark = " kernel: ";
    auto const at = line.find(mark);
    return at == line.npos ? line : line.substr(at + mark.size());
}

}  // namespace

std::optional<DeviceLine> parse_device_line(std::string_view line) {
    auto rest = message_in(line);
    auto const driver = take_until(rest, ' ');
    auto const colon = rest.find(": ");
    if (!driver || !is_name(*driver) || colon == rest.npos) return std::nullopt;
    auto const who = rest.substr(0, colon);
    auto const device = address_in(who.substr(0, who.find_first_of(" (")));
    if (!device) return std::nullopt;
    return DeviceLine{*driver, *device, rest.substr(colon + 2)};
}

std::optional<ProbeFailure> parse_probe_failure(std::string_view line) {
    constexpr std::string_view failed = " failed with error -";
    if (!contains(line, failed)) return std::nullopt;
    auto text = message_in(line);
    auto const at = text.find(failed);
    if (at == text.npos) return std::nullopt;
    auto const number = parse_digits(text.substr(at + failed.size()), {.digits_max = 4});
    if (!number) return std::nullopt;
    int const error = static_cast<int>(*number);
    if (auto const of = parse_device_line(line)) {
        constexpr std::string_view by = "probe with driver ";
        if (!of->text.starts_with(by)) return std::nullopt;
        auto const driver = of->text.substr(by.size());
        return ProbeFailure{driver.substr(0, driver.find(' ')), of->device, error};
    }
    constexpr std::string_view probe = ": probe of ";
    auto const from = text.find(probe);
    if (from == text.npos || from > at || !is_name(text.substr(0, from))) return std::nullopt;
    auto const name = text.substr(from + probe.size(), at - from - probe.size());
    auto const device = address_in(name);
    return device ? std::optional(ProbeFailure{text.substr(0, from), *device, error})
                  : std::nullopt;
}

std::optional<RefusedCommand> parse_refused_command(std::string_view text) {
    auto rest = text;
    auto const command = take_until(rest, '(');
    auto const opcode = take_until(rest, ')');
    if (!command || !is_name(*command) || !opcode || !rest.starts_with(" op_mod("))
        return std::nullopt;
    auto const status = between(rest, ") failed, status ", ", syndrome (");
    auto const syndrome = between(rest, ", syndrome (", ")");
    if (!status || !syndrome) return std::nullopt;
    return RefusedCommand{*command, *opcode, *status, *syndrome};
}

std::optional<Mlx5Line> parse_mlx5_line(std::string_view line) {
    if (auto const parsed = parse_device_line(line); parsed && parsed->driver == "mlx5_core") {
        auto placed = at_place(parsed->text);
        if (placed) placed->device = parsed->device;
        return placed;
    }
    line = message_in(line);
    return line.starts_with("mlx5_") ? at_place(line) : std::nullopt;
}

std::optional<SymbolLine> parse_symbol_line(std::string_view line) {
    if (!contains(line, " symbol ")) return std::nullopt;
    auto text = message_in(line);
    auto const module = take_until(text, ':');
    if (!module || !is_name(*module)) return std::nullopt;
    constexpr std::string_view differs = " disagrees about version of symbol ";
    constexpr std::string_view lacks = " Unknown symbol ";
    if (text.starts_with(differs)) {
        auto const symbol = text.substr(differs.size());
        return is_name(symbol) ? std::optional(SymbolLine{*module, symbol, true}) : std::nullopt;
    }
    if (!text.starts_with(lacks)) return std::nullopt;
    text.remove_prefix(lacks.size());
    auto const symbol = text.substr(0, text.find(' '));
    auto const rest = text.substr(symbol.size());
    bool const ends_well = rest.empty() || (rest.starts_with(" (err ") && rest.ends_with(')'));
    if (!is_name(symbol) || !ends_well) return std::nullopt;
    return SymbolLine{*module, symbol, false};
}

std::optional<OtherKernelLine> parse_other_kernel_line(std::string_view line) {
    if (!contains(line, " version magic '")) return std::nullopt;
    auto text = message_in(line);
    auto const module = take_until(text, ':');
    auto const built_for = between(text, " version magic '", "'");
    if (!module || !is_name(*module) || !built_for || !contains(text, "' should be '"))
        return std::nullopt;
    // What follows the release are options of the build, which may differ, too.
    return OtherKernelLine{*module, built_for->substr(0, built_for->find(' '))};
}

std::optional<IommuFault> parse_iommu_fault(std::string_view line) {
    auto const message = message_in(line);
    constexpr std::string_view amd = "AMD-Vi: Event logged [IO_PAGE_FAULT ";
    if (auto const at = message.find(amd); at != message.npos) {
        auto const event = message.substr(at + amd.size());
        auto const address = between(event, "address=", " ");
        if (!address) return std::nullopt;
        // Newer kernels print the driver and the device before it, older ones "device=" inside.
        auto const named = between(event, "device=", " ");
        auto where = message.substr(0, at);
        if (!named && !where.ends_with(": ")) return std::nullopt;
        if (!named) where.remove_suffix(2);
        auto const text = named ? *named : where.substr(where.rfind(' ') + 1);
        auto const device = address_in(text);
        if (!device) return std::nullopt;
        return IommuFault{*device, std::ranges::count(text, ':') == 2, *address};
    }
    if (!message.starts_with("DMAR:") || !contains(message, "[DMA ")) return std::nullopt;
    auto const text = between(message, "Request device [", "]");
    auto const device = text ? address_in(*text) : std::nullopt;
    if (!device) return std::nullopt;
    constexpr std::string_view mark = "fault addr ";
    auto const at = message.find(mark);
    if (at == message.npos) return std::nullopt;
    auto const address = message.substr(at + mark.size());
    return IommuFault{*device, std::ranges::count(*text, ':') == 2,
                      address.substr(0, address.find(' '))};
}

std::optional<int> parse_slot_power(std::string_view text) {
    constexpr std::string_view mark = "Detected insufficient power on the PCIe slot (";
    return text.starts_with(mark) ? number_in(text, mark, "W)") : std::nullopt;
}

std::optional<ModuleError> parse_module_error(std::string_view text) {
    constexpr std::string_view mark = "Port module event[error]: module ";
    constexpr std::string_view kind = ", Cable error, ";
    if (!text.starts_with(mark)) return std::nullopt;
    auto const module = number_in(text, mark, kind);
    if (!module) return std::nullopt;
    return ModuleError{*module, text.substr(text.find(kind) + kind.size())};
}

std::optional<int> parse_health_severity(std::string_view text) {
    if (!text.starts_with("Health issue observed, ")) return std::nullopt;
    return number_in(text, ", severity(", ")");
}

}  // namespace vfmgr::checks
