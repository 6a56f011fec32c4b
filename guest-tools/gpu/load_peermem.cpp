// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/load_peermem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "guest-tools/gpu/at_boot.hpp"
#include "vfmgr/checks/rule.hpp"
#include "vfmgr/checks/rules/stack.hpp"
#include "vfmgr/machine/collect.hpp"
#include "vfmgr/machine/command.hpp"
#include "vfmgr/machine/lines.hpp"

namespace vfmgr::guest::gpu {
namespace {

std::string with(std::string text, char from, char to) {
    std::ranges::replace(text, from, to);
    return text;
}

// modprobe treats "-" and "_" as the same.
bool same_module(std::string_view one, std::string_view other) {
    return with(std::string(one), '-', '_') == with(std::string(other), '-', '_');
}

// "install nvidia-peermem /bin/false": modprobe runs that instead of loading the module.
void check_rules(checks::Machine const& machine, std::string const& module,
                 std::vector<Finding>& hindrances) {
    for (auto const& [path, fact] : machine.facts.unnoted().files) {
        if (path.find("/modprobe.d/") == path.npos) continue;
        for (std::string_view rest = fact.bytes; !rest.empty();) {
            auto const line = checks::take_line(rest);
            auto const words = checks::words_in(line);
            bool const runs = words.size() > 2 && words[0] == "install" &&
                              same_module(words[1], module) && !checks::contains(line, "modprobe");
            if (!runs) continue;
            hindrances.push_back(failed_by(
                "gpu.peermem",
                fmt::format("{} makes modprobe run {} instead of loading {}", path, words[2],
                            module),
                checks::by_command(fmt::format("sed -i '/^[[:space:]]*install[[:space:]]*{}/d' {}",
                                               with(module, '_', '.'), path)),
                {{path, std::string(line)}}));
        }
    }
}

void check_parameters(checks::Machine const& machine, std::string const& module,
                      std::vector<Finding>& hindrances) {
    if (!machine.parameters()) return;
    auto const* const list = checks::find_parameter(*machine.parameters(), "module_blacklist");
    if (!list) return;
    for (std::string_view rest = list->value; !rest.empty();)
        if (same_module(checks::take_part(rest, ','), module))
            hindrances.push_back(
                failed_by("gpu.peermem",
                          fmt::format("the kernel's command line forbids {}: "
                                      "module_blacklist={}",
                                      module, list->value),
                          checks::by_hand("remove it from the kernel's command line and reboot",
                                          BlastRadius::reboot),
                          {checks::evidence_of(machine, "/proc/cmdline")}));
}

// --- after the kernel has refused ---

// Messages of modprobe and the kernel, from their sources: kmod's ERR(), kernel/module/main.c,
// signing.c and version.c, security/lockdown. The first that is found counts: the log is more
// specific than the errno.
struct KnownRefusal {
    std::string_view message;  // in the log, or from modprobe
    std::string_view rule, cause, remedy;
    BlastRadius blast_radius = BlastRadius::none;
};

constexpr auto build_again =
    "rebuild NVIDIA's modules against the loaded RDMA stack: gpu.install_order of vf-guest doctor "
    "has the command";
constexpr auto sign_it =
    "enrol the key that it is signed with: stack.secure_boot of vf-guest doctor has the commands";

constexpr auto known = std::to_array<KnownRefusal>({
    {"disagrees about version of symbol", "gpu.install_order",
     "it was built against another RDMA stack than the loaded one", build_again},
    {"Unknown symbol ib_register_peer_memory_client", "gpu.install_order",
     "the loaded RDMA stack has no peer memory",
     "load DOCA-OFED's stack (/etc/init.d/openibd restart, while no VM has a VF), or use DMA-BUF"},
    {"Unknown symbol nvidia_p2p_", "gpu.driver",
     "it belongs to another version of NVIDIA's driver than the loaded nvidia",
     "reload NVIDIA's driver, or reboot", BlastRadius::reboot},
    {"Unknown symbol", "stack.symbols", "nothing loaded has a symbol that it needs",
     "run depmod -a and load it again"},
    {"version magic", "stack.dkms", "it was built for another kernel", build_again},
    {"unsigned module loading is restricted", "stack.secure_boot",
     "the kernel is locked down and accepts only signed modules", sign_it, BlastRadius::reboot},
    {"oading of unsigned module", "stack.secure_boot",
     "the kernel accepts only signed modules, and it is not signed", sign_it, BlastRadius::reboot},
    {"oading of module with unavailable key", "stack.secure_boot",
     "it is signed with a key that this machine does not know", sign_it, BlastRadius::reboot},
    {"is blacklisted", "gpu.peermem", "module_blacklist= on the kernel's command line forbids it",
     "remove it from the kernel's command line and reboot", BlastRadius::reboot},
    {"not found in directory", "gpu.peermem", "there is no such module for this kernel",
     build_again},
    {"Key was rejected by service", "stack.secure_boot", "its signature is not accepted", sign_it,
     BlastRadius::reboot},
    {"Required key not available", "stack.secure_boot",
     "it is signed with a key that this machine does not know", sign_it, BlastRadius::reboot},
    {"Exec format error", "stack.dkms", "it was built for another kernel", build_again},
    {"Operation not permitted", "gpu.peermem",
     "this process may not load modules: it has no CAP_SYS_MODULE (a container, a unit with "
     "ProtectKernelModules=), or kernel.modules_disabled is 1",
     "load it as root outside of containers"},
    {"Invalid argument", "gpu.install_order",
     "it was built where no RDMA stack had peer memory, or another client of that name "
     "(nv_peer_mem) is registered: it returns EINVAL without a message in the kernel log",
     build_again},
    {"No such device", "gpu.driver", "it finds no GPU with NVIDIA's driver",
     "read the reason in the kernel log: dmesg | grep NVRM"},
});

// Whether a line names the module, or no module at all: lines about signatures long named none.
bool is_about(std::string_view line, std::string const& module) {
    if (line.find(module) != line.npos || line.find(with(module, '_', '-')) != line.npos)
        return true;
    return line.starts_with("Lockdown:") || line.starts_with("Loading of ");
}

constexpr std::size_t line_bytes_max = 300;
constexpr std::size_t lines_max = 8;

}  // namespace

void check_kernel(checks::Machine const& machine, std::string const& module,
                  std::vector<Finding>& hindrances) {
    constexpr auto disabled = "/proc/sys/kernel/modules_disabled";
    if (machine.facts.text(disabled).value_or("") == "1")
        hindrances.push_back(
            failed_by("gpu.peermem", "the kernel accepts no more modules until a reboot",
                      checks::by_hand("remove kernel.modules_disabled=1 from sysctl.d, "
                                      "or load the module before it is set, and reboot",
                                      BlastRadius::reboot),
                      {{disabled, "1"}}));
    check_parameters(machine, module, hindrances);
    check_rules(machine, module, hindrances);
    for (auto& finding : checks::judge_secure_boot(machine))
        if (is_bad(finding)) hindrances.push_back(of_rule("stack.secure_boot", std::move(finding)));
}

Finding explain_refusal(std::string const& module, std::string_view modprobe_output,
                        std::span<std::string const> logged) {
    std::vector<Evidence> evidence;
    std::string all;
    for (auto const& line : logged) {
        if (!is_about(line, module)) continue;
        all += line + '\n';
        if (evidence.size() < lines_max)
            evidence.push_back({"the kernel's log", line.substr(0, line_bytes_max)});
    }
    while (modprobe_output.ends_with('\n')) modprobe_output.remove_suffix(1);
    if (!modprobe_output.empty())
        evidence.push_back({"modprobe", std::string(modprobe_output.substr(0, line_bytes_max))});
    all += modprobe_output;
    auto const found = std::ranges::find_if(known, [&](auto const& one) {
        bool const of_peers = one.rule == "gpu.install_order";
        return all.find(one.message) != all.npos && (!of_peers || module == "nvidia_peermem");
    });
    if (found == known.end())
        return failed_by(module == "nvidia_p2p" ? "gpu.igpu" : "gpu.peermem",
                         fmt::format("{} did not load", module),
                         checks::by_hand("check the kernel log for the reason: dmesg | tail"),
                         std::move(evidence));
    return failed_by(
        std::string(found->rule), fmt::format("{} did not load: {}", module, found->cause),
        checks::by_hand(std::string(found->remedy), found->blast_radius), std::move(evidence));
}

namespace {

using std::chrono::steady_clock;

// The kernel itself waits half a minute for the symbols of a module that is just being loaded.
constexpr std::chrono::seconds modprobe_time_max{60};

std::string text_of(std::vector<Awaited> const& awaited) {
    std::string text;
    for (auto const& one : awaited)
        text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", one.what, one.observed);
    return text;
}

PeermemPlan plan_now(Places const& places, PeermemOptions options) {
    auto const facts = collect_facts(places);
    return peermem_plan(checks::read_machine(facts), options);
}

// Waits until there is nothing left to wait for, or until the deadline.
Result<PeermemPlan> await_plan(Places const& places, PeermemOptions options,
                               std::optional<Deadline> wait_until,
                               std::function<void(std::string const&)> const& report) {
    auto const facts = collect_facts(places);
    auto const release = checks::read_machine(facts).release();
    VFMGR_TRY(auto watch, ModuleWatch::open(places.root, release));
    auto plan = plan_now(places, options);
    std::vector<Awaited> reported;
    while (plan.next == PeermemNext::wait && wait_until) {
        auto const left =
            std::chrono::ceil<std::chrono::seconds>(*wait_until - steady_clock::now());
        if (plan.awaited != reported)
            report(fmt::format("waiting for {} (at most {} s)", text_of(plan.awaited),
                               std::max<long>(0, left.count())));
        reported = plan.awaited;
        VFMGR_TRY(auto const ready, watch.wait(*wait_until));
        if (ready == Readiness::deadline_passed) break;
        plan = plan_now(places, options);
    }
    return plan;
}

// Returns the log lines that are newer than `seconds`, on the kernel's clock.
std::vector<std::string> logged_since(double seconds, checks::Machine const& machine) {
    std::vector<std::string> lines;
    if (!machine.log()) return lines;
    for (auto const& line : machine.log()->lines)
        if (line.seconds > seconds) lines.emplace_back(line.text);
    return lines;
}

double end_of_log(checks::Machine const& machine) {
    return machine.log() && !machine.log()->lines.empty() ? machine.log()->lines.back().seconds : 0;
}

std::optional<Finding> load(Places const& places, std::string const& module) {
    auto const kernel_name = with(module, '-', '_');
    auto const before = collect_facts(places);
    auto const since = end_of_log(checks::read_machine(before));
    auto const ended =
        checks::run_command({places.modprobe, module}, steady_clock::now() + modprobe_time_max);
    auto const after = collect_facts(places);
    auto const machine = checks::read_machine(after);
    bool const is_there = checks::module_loaded(machine, kernel_name);
    if (ended.error == 0 && ended.exit_status == 0 && is_there) return std::nullopt;
    auto words = ended.err + ended.out;
    if (ended.error == ETIMEDOUT)
        words = fmt::format("did not end within {} s and was killed", modprobe_time_max.count());
    else if (ended.error != 0)
        words = fmt::format("{} can't be run: {}", places.modprobe, errno_name(ended.error));
    else if (ended.exit_status == 0)
        words += "it ended with status 0, but the module is not loaded";
    return explain_refusal(kernel_name, words, logged_since(since, machine));
}

}  // namespace

checks::Facts collect_facts(Places const& places) {
    return checks::collect({CheckedMachine::guest, places.root});
}

Result<PeermemOutcome> load_peermem(Places const& places, PeermemOptions options,
                                    std::optional<Deadline> wait_until,
                                    std::function<void(std::string const&)> const& report) {
    PeermemOutcome outcome;
    VFMGR_TRY(outcome.plan, await_plan(places, options, wait_until, report));
    switch (outcome.plan.next) {
        case PeermemNext::nothing:
            outcome.end = outcome.plan.loaded ? PeermemEnd::was_loaded : PeermemEnd::not_needed;
            return outcome;
        case PeermemNext::impossible:
            outcome.end = PeermemEnd::impossible;
            return outcome;
        case PeermemNext::wait:
            outcome.end = PeermemEnd::not_in_time;
            return outcome;
        case PeermemNext::load:
            break;
    }
    outcome.refusal = load(places, outcome.plan.module);
    outcome.end = outcome.refusal ? PeermemEnd::refused : PeermemEnd::loaded;
    return outcome;
}

}  // namespace vfmgr::guest::gpu
