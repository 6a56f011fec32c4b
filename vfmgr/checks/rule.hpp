// SPDX-License-Identifier: Apache-2.0
// A rule of readiness: data, with a pure function that judges a machine. rules/*.cpp hold them by
// subject; README.md says of each where its knowledge comes from and which test proves it.
// No state; any thread.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vfmgr/checks/machine.hpp"

namespace vfmgr::checks {

enum class AppliesTo { host, guest, both };

struct Rule {
    std::string_view id;      // "iommu.enabled"
    std::string_view title;   // "The IOMMU is on"
    std::string_view source;  // of what it knows
    AppliesTo applies = AppliesTo::both;
    // At least one finding, of each subject or of the machine; `rule` is filled in by diagnose().
    std::vector<Finding> (*judge)(Machine const&);
};

// In the order of causes: what comes first explains what comes later.
[[nodiscard]] std::vector<Rule> const& all_rules();

[[nodiscard]] std::span<Rule const> iommu_rules();
[[nodiscard]] std::span<Rule const> pci_rules();
[[nodiscard]] std::span<Rule const> sriov_rules();
[[nodiscard]] std::span<Rule const> owner_rules();
[[nodiscard]] std::span<Rule const> libvirt_rules();
[[nodiscard]] std::span<Rule const> memory_rules();
[[nodiscard]] std::span<Rule const> stack_rules();
[[nodiscard]] std::span<Rule const> port_rules();
[[nodiscard]] std::span<Rule const> port_link_rules();
[[nodiscard]] std::span<Rule const> roce_rules();
[[nodiscard]] std::span<Rule const> qos_rules();
[[nodiscard]] std::span<Rule const> soft_rdma_rules();
[[nodiscard]] std::span<Rule const> soft_rdma_exposure_rules();
[[nodiscard]] std::span<Rule const> gpu_rules();
[[nodiscard]] std::span<Rule const> kubernetes_rules();
[[nodiscard]] std::span<Rule const> log_rules();

// --- for the rules ---

[[nodiscard]] Finding ok(std::string subject, std::string detail,
                         std::vector<Evidence> evidence = {});
[[nodiscard]] Finding failed(std::string subject, std::string detail, Cure cure,
                             std::vector<Evidence> evidence = {});
[[nodiscard]] Finding warning(std::string subject, std::string detail, Cure cure,
                              std::vector<Evidence> evidence = {});
[[nodiscard]] Finding not_applicable(std::string detail);
// Says what could not be seen, and whether root could.
[[nodiscard]] Finding unknown(std::string subject, Unknown const& what);

// Where nobody could see this file or folder: its absence tells nothing.
[[nodiscard]] std::optional<Finding> unseen(Machine const& machine, std::string const& path,
                                            std::string subject = {});

// A file's text as evidence, cut to some hundred bytes.
[[nodiscard]] Evidence seen(Machine const& machine, std::string const& path);
[[nodiscard]] Evidence seen(LogLine const& line);
[[nodiscard]] Evidence seen_absent(std::string path);

// What cures without disturbing anybody.
[[nodiscard]] Cure by_command(std::string command, std::string note = {});
[[nodiscard]] Cure by_hand(std::string note, BlastRadius blast_radius = BlastRadius::none);
// "pci=realloc" onto the kernel's command line, by whatever writes it on this machine.
[[nodiscard]] Cure by_kernel_parameter(Machine const& machine, std::string const& parameter);
// The same with `wrong` ("iommu=off") taken off the line wherever it is.
[[nodiscard]] Cure by_kernel_parameter_instead(Machine const& machine, std::string const& wrong,
                                               std::string const& parameter);
// The package with a module that this kernel lacks, or a kernel that was built with `option`.
[[nodiscard]] Cure by_kernel_module(Machine const& machine, std::string_view module,
                                    std::string_view option);

}  // namespace vfmgr::checks
