// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/checks/rule.hpp"

#include <fmt/format.h>

#include <cerrno>

#include "vfmgr/machine/lines.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::size_t evidence_bytes_max = 300;

}  // namespace

std::vector<Rule> joined(std::initializer_list<std::span<Rule const>> groups) {
    std::vector<Rule> all;
    for (auto const group : groups) all.insert(all.end(), group.begin(), group.end());
    return all;
}

std::vector<Rule> common_rules() {
    return joined({device_log_rules, memory_rules, stack_rules, port_rules, infiniband_rules,
                   port_link_rules, roce_rules, qos_rules, soft_rdma_rules,
                   soft_rdma_exposure_rules, gpu_rules, kubernetes_rules, log_rules});
}

Finding ok(std::string subject, std::string detail, std::vector<Evidence> evidence) {
    return {{}, std::move(subject), CheckResult::ok, std::move(detail), std::move(evidence)};
}

Finding failed(std::string subject, std::string detail, Remedy remedy,
               std::vector<Evidence> evidence) {
    return {{},
            std::move(subject),
            CheckResult::failed,
            std::move(detail),
            std::move(evidence),
            std::move(remedy)};
}

Finding warning(std::string subject, std::string detail, Remedy remedy,
                std::vector<Evidence> evidence) {
    auto finding =
        failed(std::move(subject), std::move(detail), std::move(remedy), std::move(evidence));
    finding.result = CheckResult::warning;
    return finding;
}

Finding not_applicable(std::string detail) {
    return {{}, {}, CheckResult::not_applicable, std::move(detail)};
}

Finding unknown(std::string subject, Unknown const& what) {
    bool const forbidden = what.error == EACCES || what.error == EPERM;
    return not_known(std::move(subject), to_string(what) + (forbidden ? " (try as root)" : ""));
}

Finding not_known(std::string subject, std::string detail, std::vector<Evidence> evidence) {
    return {{}, std::move(subject), CheckResult::unknown, std::move(detail), std::move(evidence)};
}

std::vector<Finding> or_else(std::vector<Finding> findings, Finding otherwise) {
    if (findings.empty()) findings.push_back(std::move(otherwise));
    return findings;
}

std::optional<Finding> unseen(Machine const& machine, std::string const& path,
                              std::string subject) {
    // The path may be a file, a link or a folder: the one that was read, or looked for, answers.
    auto const& facts = machine.facts.unnoted();
    auto const file = facts.text(path);
    auto const link = facts.target(path);
    auto const folder = facts.names(path);
    if (file || link) return std::nullopt;
    for (auto const& error : {file.error(), link.error()})
        if (error.error != 0 && is_unread(error)) return unknown(std::move(subject), error);
    if (!folder && folder.error().error != 0) return unknown(std::move(subject), folder.error());
    if (folder || file.error().absent()) return std::nullopt;
    return unknown(std::move(subject), file.error());
}

std::optional<Finding> unread_so_far(Machine const& machine, std::string subject) {
    auto const* const first = machine.reads->first();
    return first ? std::optional(unknown(std::move(subject), *first)) : std::nullopt;
}

Evidence evidence_of(Machine const& machine, std::string const& path) {
    auto const text = machine.facts.text(path);
    if (!text) return {path, to_string(text.error())};
    return {path, std::string(text->substr(0, evidence_bytes_max))};
}

Evidence evidence_of(LogLine const& line) {
    return {"the kernel's log", std::string(line.text.substr(0, evidence_bytes_max))};
}

std::string lines_read(KernelLog const& log) {
    if (log.lines.size() == 1) return "the one line that is left of the kernel's log";
    return log.from_boot ? fmt::format("{} lines of the kernel's log since boot", log.lines.size())
                         : fmt::format("the last {} lines of the kernel's log", log.lines.size());
}

Evidence absence_evidence(std::string path) {
    auto text = "there is no " + path;
    return {std::move(path), std::move(text)};
}

Remedy by_command(std::string command, std::string note) {
    return {{std::move(command)}, BlastRadius::none, std::move(note)};
}

Remedy by_hand(std::string note, BlastRadius blast_radius) {
    return {{}, blast_radius, std::move(note)};
}

namespace {

// grub2-mkconfig does not reach the boot entries that Fedora and its kin keep one by one.
Remedy in_boot_loader(Machine const& machine, std::string in_grub, std::string grubby,
                      std::string otherwise) {
    Remedy remedy{{}, BlastRadius::reboot};
    if (machine.facts.text("/etc/redhat-release"))
        remedy.commands = {std::move(grubby), "reboot"};
    else if (!machine.facts.text("/etc/default/grub"))
        remedy.note = std::move(otherwise);
    else if (is_debian(machine))
        remedy.commands = {std::move(in_grub), "update-grub", "reboot"};
    else
        remedy.commands = {std::move(in_grub), "grub2-mkconfig -o /boot/grub2/grub.cfg", "reboot"};
    return remedy;
}

}  // namespace

Remedy by_kernel_parameter(Machine const& machine, std::string const& parameter) {
    return in_boot_loader(
        machine,
        fmt::format(R"(sed -i 's/^GRUB_CMDLINE_LINUX="/&{} /' /etc/default/grub)", parameter),
        fmt::format("grubby --update-kernel=ALL --args='{}'", parameter),
        fmt::format("add {} to the kernel's command line in the boot loader, and reboot",
                    parameter));
}

Remedy by_kernel_parameter_instead(Machine const& machine, std::string const& wrong,
                                   std::string const& parameter) {
    auto const otherwise = fmt::format(
        "remove {} from the kernel's command line in the boot loader, add {}, and reboot", wrong,
        parameter);
    auto const grub = machine.facts.text("/etc/default/grub");
    // Another file may hold it: /etc/default/grub.d, /etc/kernel/cmdline, an installer's.
    if (grub && !contains(*grub, wrong)) return by_hand(otherwise, BlastRadius::reboot);
    return in_boot_loader(
        machine, fmt::format(R"(sed -i 's/\b{}\b/{}/' /etc/default/grub)", wrong, parameter),
        fmt::format("grubby --update-kernel=ALL --remove-args='{}' --args='{}'", wrong, parameter),
        otherwise);
}

Remedy by_enabling_roce(PciAddress const& function, std::string note) {
    auto const handle = "pci/" + to_string(function);
    return {{fmt::format("devlink dev param set {} name enable_roce value true cmode driverinit",
                         handle),
             fmt::format("devlink dev reload {}", handle)},
            BlastRadius::host,
            std::move(note)};
}

Remedy by_kernel_module(Machine const& machine, std::string_view module, std::string_view option) {
    auto const& release = machine.release();
    auto const system = machine.facts.text("/etc/os-release").value_or("");
    bool const ubuntu = contains(system, "ID=ubuntu");
    bool const debian = !ubuntu && is_debian(machine);
    if (debian && contains(release, "cloud"))
        return {{"apt-get install --yes linux-image-amd64", "reboot"},
                BlastRadius::reboot,
                fmt::format("Debian's cloud kernels have no {}; its standard kernel does", module)};
    if (kernel_option(machine, option) == "n")
        return by_hand(fmt::format("this kernel was built without {}: boot the distribution's "
                                   "standard kernel, or one that was built with {}=m",
                                   option, option),
                       BlastRadius::reboot);
    // Ubuntu and Red Hat package the rarer modules separately; Debian has all in one package.
    if (ubuntu) return by_command("apt-get install --yes linux-modules-extra-" + release);
    if (debian) return by_command("apt-get install --yes --reinstall linux-image-" + release);
    if (contains(system, "rhel") || contains(system, "fedora"))
        return by_command(fmt::format(
            "dnf install --assumeyes kernel-modules-{} kernel-modules-extra-{}", release, release));
    return by_hand(fmt::format("install the package that contains {} for kernel {}, and reboot if "
                               "it is for a newer kernel",
                               module, release),
                   BlastRadius::reboot);
}

}  // namespace vfmgr::checks
