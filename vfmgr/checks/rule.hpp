// SPDX-License-Identifier: Apache-2.0
// A readiness rule: data, with a pure function that judges a machine. rules/*.cpp hold them by
// subject; README.md lists for each where its knowledge comes from and which test proves it.
// No state; any thread.
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "vfmgr/machine/machine.hpp"

namespace vfmgr::checks {

enum class AppliesTo { host, guest, both };
// What a rule's "ok" of a device rests on: the facts of the device and its relatives
// (machine/relatives.hpp), or those of every device, because the rule compares them.
enum class RestsOn { its_device, all_devices };

struct Rule {
    std::string_view id;      // "iommu.enabled"
    std::string_view title;   // "The IOMMU is on"
    std::string_view source;  // where its knowledge comes from
    // Returns at least one finding, per subject or for the machine; diagnose() fills in `rule`.
    std::vector<Finding> (*judge)(Machine const&);
    AppliesTo applies = AppliesTo::both;
    RestsOn rests_on = RestsOn::its_device;
};

[[nodiscard]] std::vector<Rule> joined(std::initializer_list<std::span<Rule const>> groups);

// Rules about what a VM has, too, though some apply to hosts only; host/rules.hpp adds the rest. In
// the order of causes: earlier rules explain later ones.
[[nodiscard]] std::vector<Rule> common_rules();

extern std::span<Rule const> const device_log_rules;  // first: a dead device explains the most
extern std::span<Rule const> const memory_rules;
extern std::span<Rule const> const stack_rules;
extern std::span<Rule const> const port_rules;
extern std::span<Rule const> const infiniband_rules;
extern std::span<Rule const> const port_link_rules;
extern std::span<Rule const> const roce_rules;
extern std::span<Rule const> const qos_rules;
extern std::span<Rule const> const soft_rdma_rules;
extern std::span<Rule const> const soft_rdma_exposure_rules;
extern std::span<Rule const> const gpu_rules;
extern std::span<Rule const> const kubernetes_rules;
extern std::span<Rule const> const log_rules;

// --- for the rules ---

[[nodiscard]] Finding ok(std::string subject, std::string detail,
                         std::vector<Evidence> evidence = {});
[[nodiscard]] Finding failed(std::string subject, std::string detail, Remedy remedy,
                             std::vector<Evidence> evidence = {});
[[nodiscard]] Finding warning(std::string subject, std::string detail, Remedy remedy,
                              std::vector<Evidence> evidence = {});
[[nodiscard]] Finding not_applicable(std::string detail);
// Names what could not be read, and whether root could read it.
[[nodiscard]] Finding unknown(std::string subject, Unknown const& what);
[[nodiscard]] Finding not_known(std::string subject, std::string detail,
                                std::vector<Evidence> evidence = {});
// Not applicable, or unknown if the list that would show it could not be read.
template <class List>
[[nodiscard]] Finding nothing_in(Known<List> const& list, std::string detail) {
    return list ? not_applicable(std::move(detail)) : unknown("", list.error());
}
// Returns the findings; if there are none, `otherwise`, about the machine.
[[nodiscard]] std::vector<Finding> or_else(std::vector<Finding> findings, Finding otherwise);

// Returns a finding if this file, link or folder could not be read: its absence proves nothing.
[[nodiscard]] std::optional<Finding> unseen(Machine const& machine, std::string const& path,
                                            std::string subject = {});
// Returns a finding if the rule asked for a fact that could not be read. For an accusation that
// rests on absence: what is missing may be there.
[[nodiscard]] std::optional<Finding> unread_so_far(Machine const& machine,
                                                   std::string subject = {});

// A file's text as evidence, cut to a few hundred bytes.
[[nodiscard]] Evidence evidence_of(Machine const& machine, std::string const& path);
[[nodiscard]] Evidence evidence_of(LogLine const& line);
[[nodiscard]] Evidence absence_evidence(std::string path);
// "1912 lines of the kernel's log since boot": what a rule that found nothing has read.
[[nodiscard]] std::string lines_read(KernelLog const& log);

// A remedy that disturbs nothing.
[[nodiscard]] Remedy by_command(std::string command, std::string note = {});
[[nodiscard]] Remedy by_hand(std::string note, BlastRadius blast_radius = BlastRadius::none);
// Puts "pci=realloc" on the kernel's command line, by whatever writes it on this machine.
[[nodiscard]] Remedy by_kernel_parameter(Machine const& machine, std::string const& parameter);
// The same, and removes `wrong` ("iommu=off") from the line wherever it is.
[[nodiscard]] Remedy by_kernel_parameter_instead(Machine const& machine, std::string const& wrong,
                                                 std::string const& parameter);
// Switches RoCE on for a function: its driver starts again, without its VFs.
[[nodiscard]] Remedy by_enabling_roce(PciAddress const& function, std::string note = {});
// The package with a module that this kernel lacks, or a kernel built with `option`.
[[nodiscard]] Remedy by_kernel_module(Machine const& machine, std::string_view module,
                                      std::string_view option);

}  // namespace vfmgr::checks
