// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/at_boot.hpp"

#include <fmt/format.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "api/os/file.hpp"
#include "vfmgr/checks/peermem.hpp"
#include "vfmgr/checks/rules/gpu.hpp"
#include "vfmgr/machine/command.hpp"
#include "vfmgr/machine/rdma_stack.hpp"

namespace vfmgr::guest::gpu {

Result<ModuleWatch> ModuleWatch::open(std::string const& root, std::string const& release) {
    VFMGR_TRY(auto monitor, EventMonitor::open(EventMonitor::Scope::links));
    return ModuleWatch(std::move(monitor), root, release);
}

ModuleWatch::ModuleWatch(EventMonitor monitor, std::string const& root, std::string const& release)
    : monitor_(std::move(monitor)),
      lists_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      modules_(root + "/proc/modules"),
      folder_(root + "/lib/modules/" + release),
      driver_(root + "/sys/bus/pci/drivers/nvidia") {
    // depmod writes a new file and renames it. Without the folder, nothing can be built for this
    // kernel.
    if (lists_ && ::inotify_add_watch(lists_.get(), folder_.c_str(), IN_MOVED_TO) < 0)
        lists_.reset();
    observed_ = now();
}

// Returns names and states of modules, but not their users, which come and go; the identity of the
// list; and the GPUs of the driver.
std::string ModuleWatch::now() const {
    std::string all;
    std::ifstream in(modules_);
    for (std::string line; std::getline(in, line);) {
        std::istringstream words(line);
        std::string name, bytes, uses, users, state;
        words >> name >> bytes >> uses >> users >> state;
        all += fmt::format("{} {}\n", name, state);
    }
    struct stat status{};
    if (::stat((folder_ + "/modules.dep").c_str(), &status) == 0)
        all +=
            fmt::format("{} {}.{}", status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    for (auto const& entry : paths_in(driver_)) all += '\n' + entry.filename().string();
    return all;
}

Result<Readiness> ModuleWatch::wait(Deadline deadline) {
    std::vector<int> fds;
    for (auto const fd : monitor_.fds()) fds.push_back(fd);
    if (lists_) fds.push_back(lists_.get());
    while (true) {
        auto const is = now();
        if (is != observed_) {
            observed_ = is;
            return Readiness::readable;
        }
        VFMGR_TRY(auto const ready, await_readable(fds, deadline));
        if (ready == Readiness::deadline_passed) return ready;
        VFMGR_CHECK(monitor_.wait(std::chrono::steady_clock::now()));
        std::array<std::byte, 4096> events{};
        while (lists_ && ::read(lists_.get(), events.data(), events.size()) > 0) {
        }
    }
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view boot_file = "/etc/modules-load.d/vfmgr-peermem.conf";
constexpr std::string_view boot_unit = "vf-guest-peermem.service";
constexpr std::string_view mark = "# Written by vf-guest peermem --at-boot";
constexpr mode_t readable = 0644;
constexpr std::chrono::seconds systemctl_time_max{30};

bool unit_is_installed(Places const& places) {
    for (auto const* folder : {"/etc/systemd/system/", "/usr/lib/systemd/system/",
                               "/lib/systemd/system/", "/usr/local/lib/systemd/system/"})
        if (std::error_code ignored; fs::exists(places.root + folder + boot_unit.data(), ignored))
            return true;
    return false;
}

bool unit_is_enabled(Places const& places) {
    std::error_code ignored;
    return fs::is_symlink(
        places.root + "/etc/systemd/system/multi-user.target.wants/" + boot_unit.data(), ignored);
}

// A file of that name that vf-guest did not write stays as it is.
bool is_ours(fs::path const& file) {
    std::ifstream in(file);
    std::string line;
    return std::getline(in, line) && line.starts_with(mark);
}

Result<void> ask_systemd(Places const& places, std::string const& verb) {
    auto const ended = checks::run_command({places.systemctl, verb, std::string(boot_unit)},
                                           std::chrono::steady_clock::now() + systemctl_time_max);
    if (ended.error == 0 && ended.exit_status == 0) return {};
    auto words = ended.error != 0 ? errno_name(ended.error) : ended.err;
    words = words.substr(0, words.find('\n'));
    return fail(Problem::unsupported,
                fmt::format("systemctl {} {} failed: {}", verb, boot_unit, words),
                fmt::format("try it by hand: systemctl {} {}", verb, boot_unit));
}

std::string content_for(std::string const& module) {
    return fmt::format(
        "{}; vf-guest peermem --not-at-boot removes it.\n"
        "# GPU memory for RDMA, for programs that use no DMA-BUF: man vf-guest, peermem.\n{}\n",
        mark, module);
}

Result<AtBoot> write_line(Places const& places, std::string const& module, AtBoot chosen) {
    fs::path const file = places.root + std::string(boot_file);
    std::error_code error;
    if (fs::exists(file, error) && !is_ours(file))
        return fail(Problem::conflict,
                    fmt::format("{} was not written by vf-guest and stays as it is", boot_file),
                    fmt::format("move it away, or add the line \"{}\" to it", module));
    fs::create_directories(file.parent_path(), error);
    auto written = replace_file(file, content_for(module), readable);
    if (written) return chosen;
    written.error().remedy = "make /etc/modules-load.d writable";
    return tl::unexpected(written.error());
}

}  // namespace

AtBoot choose_at_boot(checks::Machine const& machine, std::string const& module) {
    for (auto const& finding : checks::judge_peermem_at_boot(machine)) {
        bool const ours = std::ranges::any_of(finding.evidence, [](auto const& one) {
            return one.source == boot_file || one.text == boot_unit;
        });
        if (finding.result == CheckResult::ok && !ours)
            return {BootBy::other,
                    finding.evidence.empty()
                        ? finding.detail
                        : fmt::format("{}: {}", finding.detail, finding.evidence.front().source)};
    }
    auto name = module;
    std::ranges::replace(name, '-', '_');
    bool const is_installed = checks::module_file(machine, name).has_value();
    if (!is_installed && checks::runs_kubelet(machine))
        return {BootBy::other, "the GPU operator's container loads " + module};
    if (!is_installed && checks::module_loaded(machine, name))
        return {BootBy::other, module + " belongs to a container, which loads it again"};
    if (checks::is_built_at_boot(machine))
        return {BootBy::unit,
                "akmods builds NVIDIA's modules while the machine starts: "
                "modules-load.d would come too early"};
    if (machine.units()) {
        auto const unit = machine.units()->find("openibd.service");
        if (unit != machine.units()->end() && unit->second.file == "enabled")
            return {BootBy::unit,
                    "openibd.service replaces the RDMA stack while the machine "
                    "starts: modules-load.d may come too early"};
    }
    return {BootBy::file, "the modules and the RDMA stack are present when the machine starts"};
}

Result<AtBoot> keep_at_boot(Places const& places, std::string const& module) {
    auto const facts = collect_facts(places);
    auto chosen = choose_at_boot(checks::read_machine(facts), module);
    if (chosen.by == BootBy::unit && !unit_is_installed(places)) {
        chosen.by = BootBy::file;
        chosen.detail += fmt::format("; but {} is not installed", boot_unit);
    }
    if (chosen.by == BootBy::unit) {
        if (!unit_is_enabled(places)) VFMGR_CHECK(ask_systemd(places, "enable"));
        chosen.detail = fmt::format("{} is enabled: {}", boot_unit, chosen.detail);
    } else if (chosen.by == BootBy::file) {
        chosen.detail = fmt::format("{} is written: {}", boot_file, chosen.detail);
        return write_line(places, module, std::move(chosen));
    }
    return chosen;
}

Result<AtBoot> leave_at_boot(Places const& places) {
    fs::path const file = places.root + std::string(boot_file);
    std::string done;
    if (is_ours(file)) {
        if (::unlink(file.c_str()) != 0)
            return fail({Problem::kernel_refused,
                         fmt::format("{} can't be removed", boot_file),
                         "make /etc/modules-load.d writable",
                         {errno_cause("unlink", errno)}});
        done = fmt::format("{} is removed", boot_file);
    }
    if (unit_is_enabled(places)) {
        VFMGR_CHECK(ask_systemd(places, "disable"));
        done += fmt::format("{}{} is disabled", done.empty() ? "" : "; ", boot_unit);
    }
    if (done.empty()) done = "vf-guest had set up nothing for the next boot";
    auto const facts = collect_facts(places);
    auto const left = choose_at_boot(checks::read_machine(facts), "nvidia-peermem");
    if (left.by != BootBy::other) return AtBoot{BootBy::nobody, done};
    return AtBoot{BootBy::other, done + "; left as it is: " + left.detail};
}

}  // namespace vfmgr::guest::gpu
