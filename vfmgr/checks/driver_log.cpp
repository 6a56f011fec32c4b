// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/driver_log.hpp"

#include <algorithm>

#include "api/types/text.hpp"

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

std::optional<DeviceLine> parse_device_line(std::string_view line, std::string_view driver) {
    line = message_in(line);
    if (!line.starts_with(driver) || !line.substr(driver.size()).starts_with(' '))
        return std::nullopt;
    line.remove_prefix(driver.size() + 1);
    auto const colon = line.find(": ");
    if (colon == line.npos) return std::nullopt;
    auto const device = address_in(line.substr(0, colon));
    if (!device) return std::nullopt;
    return DeviceLine{*device, line.substr(colon + 2)};
}

std::optional<Mlx5Line> parse_mlx5_line(std::string_view line) {
    if (auto const parsed = parse_device_line(line, "mlx5_core")) {
        auto placed = at_place(parsed->text);
        if (placed) placed->device = parsed->device;
        return placed;
    }
    line = message_in(line);
    return line.starts_with("mlx5_") ? at_place(line) : std::nullopt;
}

std::optional<SymbolLine> parse_symbol_line(std::string_view line) {
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
    if (!message.starts_with("DMAR:") || message.find("[DMA ") == message.npos) return std::nullopt;
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
