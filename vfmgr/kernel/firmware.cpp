// SPDX-License-Identifier: Apache-2.0
// The tool inherits the worker's socket and its lock of the PF. So when a worker is killed while
// its tool hangs in the kernel, the worker counts as ended only once the tool has ended.
#include "vfmgr/kernel/firmware.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>

#include "vfmgr/kernel/steps.hpp"
#include "vfmgr/machine/command.hpp"
#include "vfmgr/machine/firmware.hpp"
#include "vfmgr/netlink/devlink.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr auto version_time_max = 2s;
constexpr auto query_time_max = 10s;  // usually takes about one
constexpr auto set_time_max = 30s;

Deadline within(std::chrono::seconds time, Deadline deadline) {
    return std::min<Deadline>(deadline, steady_clock::now() + time);
}

std::optional<fs::path> firmware_program(LinuxKernelRoots const& roots) {
    std::error_code error;
    for (auto const* const name : {"mstconfig", "mlxconfig"})
        if (fs::exists(roots.programs / name, error)) return roots.programs / name;
    return std::nullopt;
}

Error no_program() {
    return {Problem::unsupported,
            "neither mstconfig nor mlxconfig is installed, so the card's firmware settings can't "
            "be read or set",
            "install mstflint, which contains mstconfig: apt install mstflint, or dnf install "
            "mstflint"};
}

// Returns the tool's error output on one line, as much as fits into a sentence.
std::string complaint_of(checks::CommandFact const& output) {
    constexpr std::size_t text_bytes_max = 300;
    auto text = output.err.empty() ? output.out : output.err;
    for (char& letter : text)
        if (static_cast<unsigned char>(letter) < ' ' || letter == 0x7f) letter = ' ';
    auto const from = text.find_first_not_of(' ');
    if (from == text.npos) return fmt::format("exit status {}", output.exit_status);
    text = text.substr(from, text.find_last_not_of(' ') - from + 1);
    return text.substr(0, text_bytes_max);
}

// "none [integrity] confidentiality"
bool locked_down(LinuxKernelRoots const& roots) {
    auto const mode = read_text(roots.sysfs / "kernel/security/lockdown");
    return mode && mode->find('[') != mode->npos && mode->find("[none]") == mode->npos;
}

// Explains why the tool failed; `what` is "read the settings of 0000:3b:00.0".
Error tool_error(LinuxKernelRoots const& roots, fs::path const& program, std::string const& what,
                 checks::CommandFact const& output) {
    auto const name = program.filename().string();
    if (output.error == ETIMEDOUT)
        return {Problem::timed_out, fmt::format("{} did not {} in time and was killed", name, what),
                "see the kernel's log for messages of the card's driver: journalctl -k"};
    if (output.error != 0)
        return {Problem::unsupported,
                fmt::format("{} can't be run", program.string()),
                "reinstall mstflint",
                {errno_cause("posix_spawn " + program.string(), output.error)}};
    auto const complaint = complaint_of(output);
    bool const denied = complaint.find("Operation not permitted") != complaint.npos;
    // KERNEL.md#firmware-settings: lockdown keeps the tool out of the card's configuration space.
    if (denied && locked_down(roots))
        return {Problem::unsupported,
                fmt::format("the kernel is locked down (Secure Boot), so {} can't {}: {}", name,
                            what, complaint),
                "set it for the NIC in the firmware's set-up (BIOS), boot once with Secure Boot "
                "off, or use devlink's permanent parameters where the kernel has them"};
    if (denied)
        return {Problem::unsupported,
                fmt::format("{} is not permitted to {}: {}", name, what, complaint),
                "run vfmgrd as root with CAP_SYS_ADMIN, as its unit does"};
    return {Problem::kernel_refused, fmt::format("{} failed to {}: {}", name, what, complaint),
            "find the message in the tool's manual; nothing was reset"};
}

std::string version_of(fs::path const& program, Deadline deadline) {
    auto const output =
        checks::run_command({program.string(), "--version"}, within(version_time_max, deadline));
    if (output.error != 0 || output.exit_status != 0) return {};
    auto text = output.out.substr(0, output.out.find('\n'));
    auto const name = program.filename().string() + ", ";
    if (text.starts_with(name)) text.erase(0, name.size());
    constexpr std::size_t version_bytes_max = 100;
    bool const plain = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
    return plain ? text.substr(0, version_bytes_max) : std::string();
}

Result<checks::FirmwareConfiguration> query(LinuxKernelRoots const& roots, fs::path const& program,
                                            PciAddress const& pci, Deadline deadline) {
    auto const output = checks::run_command({program.string(), "-e", "-d", to_string(pci), "q"},
                                            within(query_time_max, deadline));
    auto configuration = checks::parse_firmware_configuration(output.out);
    if (output.error == 0 && output.exit_status == 0 && !configuration.parameters.empty())
        return configuration;
    return fail(tool_error(roots, program, "read the settings of " + to_string(pci), output));
}

using Column = std::optional<checks::FirmwareValue> checks::FirmwareParameter::*;

template <class T>
std::optional<T> as_setting(std::uint64_t number) {
    if constexpr (std::is_same_v<T, bool>)
        return number <= 1 ? std::optional(number == 1) : std::nullopt;
    else if constexpr (std::is_enum_v<T>)
        return number >= 1 && number <= 3 ? std::optional(static_cast<T>(number)) : std::nullopt;
    else
        return std::in_range<T>(number) ? std::optional(static_cast<T>(number)) : std::nullopt;
}

// Reads values by number: the tools' names for a number differ (01-firmware of the recordings).
FirmwareSettings settings_in(checks::FirmwareConfiguration const& configuration, Column column) {
    FirmwareSettings settings;
    for_each_firmware_setting([&](char const* name, auto member) {
        auto const* const parameter = configuration.find(name);
        if (!parameter || !(parameter->*column) || !(parameter->*column)->number) return;
        using T = typename std::remove_reference_t<decltype(settings.*member)>::value_type;
        settings.*member = as_setting<T>(*(parameter->*column)->number);
    });
    return settings;
}

void fill(FirmwareCard& card, checks::FirmwareConfiguration const& configuration) {
    using checks::FirmwareParameter;
    card.device_type = configuration.device_type;
    card.next = settings_in(configuration, &FirmwareParameter::next);
    if (configuration.shows_current)
        card.current = settings_in(configuration, &FirmwareParameter::current);
    bool const shows_default = std::ranges::any_of(
        configuration.parameters,
        [](FirmwareParameter const& parameter) { return parameter.by_default.has_value(); });
    if (shows_default) card.by_default = settings_in(configuration, &FirmwareParameter::by_default);
    auto const* const own = configuration.find("PF_NUM_OF_VF_VALID");
    card.counts_per_port = own && own->next && own->next->number == 1U;
}

bool is_card_function(LinuxKernelRoots const& roots, PciAddress const& pci) {
    auto const folder = pci_folder(roots, pci);
    std::error_code error;
    return read_text(folder / "vendor").value_or("") == "0x15b3" &&
           read_text(folder / "class").value_or("").starts_with("0x02") &&
           !fs::is_symlink(folder / "physfn", error);
}

}  // namespace

Result<std::vector<CardFunctions>> list_cards(LinuxKernelRoots const& roots) {
    std::vector<CardFunctions> cards;
    std::vector<PciAddress> functions;
    for (auto const& name : entries(roots.sysfs / "bus/pci/devices"))
        if (auto const pci = PciAddress::parse(name); pci && is_card_function(roots, *pci))
            functions.push_back(*pci);
    std::ranges::sort(functions);
    for (auto const& function : functions) {
        auto const* const last = cards.empty() ? nullptr : &cards.back().pci;
        bool const same = last && last->domain == function.domain && last->bus == function.bus &&
                          last->device == function.device;
        if (!same) cards.push_back({function, {}});
        cards.back().functions.push_back(function);
    }
    return cards;
}

FirmwareCard read_card(LinuxKernelRoots const& roots, CardFunctions const& functions,
                       Deadline deadline) {
    FirmwareCard card;
    card.pci = functions.pci;
    card.functions = functions.functions;
    card.boot_id = read_text(roots.proc / "sys/kernel/random/boot_id").value_or("");
    // Optional, beside the settings: some kernels can't list the parameters.
    card.devlink = list_parameters(devlink_device(card.pci), within(query_time_max, deadline))
                       .value_or(std::vector<DevlinkParameter>{});
    auto const program = firmware_program(roots);
    if (!program) {
        card.problem = no_program();
        return card;
    }
    card.tool = FirmwareTool{program->filename().string(), version_of(*program, deadline)};
    if (auto const configuration = query(roots, *program, card.pci, deadline))
        fill(card, *configuration);
    else
        card.problem = configuration.error();
    return card;
}

Result<Observed> perform_step(LinuxKernelRoots const& roots, SetFirmware const& step,
                              Deadline deadline) {
    auto const program = firmware_program(roots);
    if (!program) return fail(no_program());
    using checks::FirmwareParameter;
    VFMGR_TRY(auto const before, query(roots, *program, step.pf, deadline));
    auto const to_set = differing(step.settings, settings_in(before, &FirmwareParameter::next));
    if (empty(to_set)) return Observed{};
    std::vector<std::string> words{program->string(), "-y", "-d", to_string(step.pf), "set"};
    std::ranges::copy(numeric_assignments(to_set), std::back_inserter(words));
    auto const output = checks::run_command(words, within(set_time_max, deadline));
    auto const what =
        fmt::format("set {} on {}", fmt::join(assignments(to_set), " "), to_string(step.pf));
    if (output.error != 0 || output.exit_status != 0)
        return fail(tool_error(roots, *program, what, output));
    VFMGR_TRY(auto const after, query(roots, *program, step.pf, deadline));
    auto const next = settings_in(after, &FirmwareParameter::next);
    auto const refused = differing(step.settings, next);
    if (empty(refused)) return Observed{};
    return fail(
        Problem::kernel_refused,
        fmt::format("{} reported that it {}, but the card has {} for its next reset",
                    program->filename().string(), what,
                    fmt::join(assignments(only_named(next, refused)), " ")),
        "choose a value that the card's firmware allows; to see what the tool prints, run: " +
            fmt::format("{}", fmt::join(words, " ")));
}

}  // namespace vfmgr
