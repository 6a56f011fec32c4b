// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "api/types/text.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/checks/rules/stack.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::checks {
namespace {

constexpr std::string_view dkms_tree = "/var/lib/dkms";

// None in "12-win32", a compiler for another system.
std::optional<int> major_in(std::string_view version) {
    auto const major = parse_digits(version.substr(0, version.find_first_of(". ),")), {.max = 99});
    return major ? std::optional(static_cast<int>(*major)) : std::nullopt;
}

// "gcc-12 (Debian 12.2.0-14) 12.2.0", "gcc (GCC) 11.4.1 20231218 (Red Hat 11.4.1-3)", and the same
// within /proc/version: the first word that is a version and follows the name.
std::optional<int> gcc_major(std::string_view text) {
    auto const name = text.find("gcc");
    if (name == text.npos) return std::nullopt;
    auto const rest = text.substr(name);
    if (rest.starts_with("gcc-"))
        if (auto const major = major_in(rest.substr(4))) return major;
    constexpr std::string_view old_form = "gcc version ";
    if (rest.starts_with(old_form)) return major_in(rest.substr(old_form.size()));
    // Brackets hold the distribution's own version, which may start with another number.
    auto const close = rest.find(") ");
    return close == rest.npos ? std::nullopt : major_in(rest.substr(close + 2));
}

std::optional<int> kernels_gcc(Machine const& machine) {
    if (auto const option = kernel_option(machine, "CONFIG_CC_VERSION_TEXT"))
        if (auto const major = gcc_major(*option)) return major;
    return gcc_major(machine.facts.text("/proc/version").value_or(""));
}

// A version's folder may have libraries only: cc1 is the compiler.
std::set<int> installed_gccs(Machine const& machine) {
    std::set<int> majors;
    for (auto const pattern : {"/usr/lib/gcc/*/*/cc1", "/usr/libexec/gcc/*/*/cc1"})
        for (auto const& [path, fact] : machine.facts.files(pattern)) {
            auto const folder = path.substr(0, path.rfind('/'));
            auto const version = folder.substr(folder.rfind('/') + 1);
            if (auto const major = major_in(version)) majors.insert(*major);
        }
    return majors;
}

// DKMS modules that RDMA and GPUs need, each with its version and the kernels it is built for.
struct DkmsModule {
    std::string name, version;
    std::vector<std::string> kernels;
};

bool matters(std::string_view name) {
    constexpr std::array<std::string_view, 13> names{"mlnx-ofed-kernel",
                                                     "mlnx-ofa_kernel",
                                                     "mlnx-nvme",
                                                     "kernel-mft-dkms",
                                                     "knem",
                                                     "iser",
                                                     "isert",
                                                     "srp",
                                                     "nvidia-fs",
                                                     "gdrdrv",
                                                     "nvidia-peer-memory",
                                                     "nvidia_peer_memory",
                                                     "nv_peer_mem"};
    return name.starts_with("nvidia") || std::ranges::find(names, name) != names.end();
}

std::vector<DkmsModule> dkms_modules(Machine const& machine) {
    std::vector<DkmsModule> modules;
    for (auto const& [path, folder] : machine.facts.folders("/var/lib/dkms/*/*")) {
        auto rest = path.substr(dkms_tree.size() + 1);
        auto const name = take_until(rest, '/');
        // Besides versions there are "kernel-RELEASE-ARCH", which point to one.
        if (!name || !matters(*name) || rest.starts_with("kernel-") || rest == "original_module")
            continue;
        modules.push_back({std::string(*name), std::string(rest), folder->names});
    }
    return modules;
}

bool is_built(DkmsModule const& module, std::string_view release) {
    return std::ranges::find(module.kernels, release) != module.kernels.end();
}

std::string kernels_of(DkmsModule const& module) {
    auto kernels = module.kernels;
    std::erase_if(kernels, [](auto const& one) { return one == "source" || one == "build"; });
    return kernels.empty() ? "no kernel" : fmt::format("{}", fmt::join(kernels, ", "));
}

Finding without_modules(Machine const& machine) {
    auto const hidden = unseen(machine, std::string(dkms_tree));
    return hidden ? *hidden : not_applicable("DKMS has no RDMA or GPU module");
}

Finding no_headers(Machine const& machine) {
    return failed(
        "",
        fmt::format("the headers of kernel {} are not installed, so DKMS builds nothing",
                    machine.release()),
        by_command(
            (is_debian(machine) ? "apt-get install linux-headers-" : "dnf install kernel-devel-") +
            machine.release()),
        {absence_evidence(fmt::format("/lib/modules/{}/build/Makefile", machine.release()))});
}

}  // namespace

std::vector<Finding> judge_headers(Machine const& machine) {
    auto const modules = dkms_modules(machine);
    if (modules.empty()) return {without_modules(machine)};
    if (machine.release().empty())
        return {unknown("", machine.facts.text("/proc/sys/kernel/osrelease").error())};
    auto const makefile =
        machine.facts.text(fmt::format("/lib/modules/{}/build/Makefile", machine.release()));
    if (!makefile && makefile.error().absent()) return {no_headers(machine)};
    if (!makefile) return {unknown("", makefile.error())};
    auto const expected = kernels_gcc(machine);
    auto const gccs = installed_gccs(machine);
    bool const fits = expected && gccs.contains(*expected);
    if (auto hidden = unread_so_far(machine); hidden && !fits) return {std::move(*hidden)};
    if (gccs.empty())
        return {warning("", "there is no gcc, so DKMS builds nothing",
                        by_command(is_debian(machine) ? "apt-get install gcc" : "dnf install gcc"),
                        {{"/usr/lib/gcc", "no cc1"}})};
    if (expected && !fits)
        return {warning(
            "",
            fmt::format(
                "the kernel was built by gcc {}, but gcc {} is installed: modules may not build",
                *expected, fmt::join(gccs, ", ")),
            by_command(is_debian(machine) ? fmt::format("apt-get install gcc-{}", *expected)
                                          : std::string("dnf install gcc")),
            {evidence_of(machine, "/proc/version")})};
    return {ok(
        "", fmt::format("headers of {} are installed{}", machine.release(),
                        expected ? fmt::format(", and gcc {}, which built it", *expected) : ""))};
}

std::vector<Finding> judge_dkms(Machine const& machine) {
    auto const modules = dkms_modules(machine);
    if (modules.empty()) return {without_modules(machine)};
    if (machine.release().empty())
        return {unknown("", machine.facts.text("/proc/sys/kernel/osrelease").error())};
    std::vector<Finding> findings;
    for (auto const& module : modules) {
        bool const any_version = std::ranges::any_of(modules, [&](auto const& other) {
            return other.name == module.name && is_built(other, machine.release());
        });
        if (any_version) continue;
        if (auto hidden = unread_so_far(machine, module.name)) {
            findings.push_back(std::move(*hidden));
            continue;
        }
        bool const failed_once = std::ranges::find(module.kernels, "build") != module.kernels.end();
        bool const essential =
            module.name.starts_with("mlnx-of") || module.name.starts_with("nvidia");
        findings.push_back((essential ? failed : warning)(
            module.name,
            fmt::format("{} {} is not built for {} (built for {})", module.name, module.version,
                        machine.release(), kernels_of(module)),
            by_command(fmt::format("dkms install {}/{} -k {}", module.name, module.version,
                                   machine.release()),
                       failed_once
                           ? fmt::format("the log of the last attempt: {}/{}/{}/build/make.log",
                                         dkms_tree, module.name, module.version)
                           : std::string()),
            {{fmt::format("{}/{}/{}", dkms_tree, module.name, module.version),
              fmt::format("{}", fmt::join(module.kernels, " "))}}));
    }
    return or_else(std::move(findings),
                   ok("", fmt::format("the RDMA and GPU modules of DKMS are built for {}",
                                      machine.release())));
}

}  // namespace vfmgr::checks
