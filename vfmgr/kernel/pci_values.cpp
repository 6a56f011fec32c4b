// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/pci_values.hpp"

#include <fmt/format.h>

#include <system_error>

namespace vfmgr {
namespace {

namespace fs = std::filesystem;

Result<void> restore(fs::path const& file, std::string const& value) {
    if (read_text(file) == value) return {};
    auto const error = write_text(file, value);
    if (error == 0) return {};
    return fail(refused_write(
        file, fmt::format("{} could not be restored to \"{}\"", file.string(), value), error));
}

}  // namespace

Error refused_write(fs::path const& file, std::string const& detail, int error) {
    return {Problem::kernel_refused,
            fmt::format("{}: {}", detail, std::generic_category().message(error)),
            "see the kernel's log for the driver's reason: journalctl -k",
            {errno_cause("write " + file.string(), error)}};
}

std::optional<bool> read_drivers_autoprobe(LinuxKernelRoots const& roots, PciAddress const& pf) {
    auto const text = read_text(pci_folder(roots, pf) / "sriov_drivers_autoprobe");
    if (!text || (*text != "0" && *text != "1")) return std::nullopt;
    return *text == "1";
}

std::string read_reset_methods(LinuxKernelRoots const& roots, PciAddress const& pci) {
    return read_text(pci_folder(roots, pci) / "reset_method").value_or("");
}

Result<void> set_override(LinuxKernelRoots const& roots, PciAddress const& pci,
                          std::string const& driver) {
    auto const file = pci_folder(roots, pci) / "driver_override";
    // "\n" clears it; an empty write would do nothing.
    auto const error = write_text(file, driver + "\n");
    if (error == 0) return {};
    return fail(refused_write(
        file, fmt::format("the driver_override of {} could not be set", to_string(pci)), error));
}

// Tries each value, even after another has failed.
Result<Observed> perform_step(LinuxKernelRoots const& roots, SetPciValues const& step, Deadline) {
    VFMGR_TRY(auto const vfs, list_vfs(roots, step.pf));
    Result<void> outcome;
    auto const note = [&](Result<void> const& done) {
        if (!done && outcome) outcome = done;
    };
    if (step.drivers_autoprobe)
        note(restore(pci_folder(roots, step.pf) / "sriov_drivers_autoprobe",
                     *step.drivers_autoprobe ? "1" : "0"));
    for (auto const index : step.no_override)
        if (auto const vf = vfs.find(index); vf != vfs.end())
            note(set_override(roots, vf->second, ""));
    for (auto const& [index, methods] : step.reset_methods)
        if (auto const vf = vfs.find(index); vf != vfs.end())
            note(restore(pci_folder(roots, vf->second) / "reset_method", methods));
    VFMGR_CHECK(outcome);
    return Observed{};
}

}  // namespace vfmgr
