// SPDX-License-Identifier: Apache-2.0
#include "tests/contract/kept_host.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "api/os/file.hpp"
#include "api/types/json.hpp"

namespace vfmgr::fakes {

namespace {

struct Kept {
    KernelView kernel;
    std::vector<VmInfo> vms;
};
template <class F, Of<Kept> V>
void fields(F& f, V& kept) {
    f.value("kernel", kept.kernel);
    f.value("vms", kept.vms);
}

double monotonic_seconds() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

nlohmann::json told_of(VfId const& id, VfState const& vf, HypervisorView const& view) {
    auto const& settings = vf.settings;
    auto vms = nlohmann::json::array();
    for (auto const& [uuid, vm] : view.vms)
        if (names(vm, vf.pci)) vms.push_back(uuid);
    auto const guid = settings.port_guid ? settings.port_guid : settings.node_guid;
    return {{"vf", to_string(id)},
            {"mac", settings.mac ? nlohmann::json(to_string(*settings.mac)) : nullptr},
            {"guid", guid ? nlohmann::json(to_string(*guid)) : nullptr},
            {"driver", vf.driver ? nlohmann::json(*vf.driver) : nullptr},
            {"vms", std::move(vms)}};
}

bool has_something(VfState const& vf, nlohmann::json const& told) {
    auto const& settings = vf.settings;
    return (settings.mac && !settings.mac->zero()) ||
           (settings.port_guid && *settings.port_guid != Guid{}) || !told.at("vms").empty();
}

tl::unexpected<Error> no_file(std::filesystem::path const& file, std::string call) {
    Error error{Problem::kernel_refused, "no " + file.string(), "see the cause"};
    error.causes.push_back(errno_cause(std::move(call), errno));
    return fail(std::move(error));
}

// Cuts off what a killed process left of a line.
Result<FileDescriptor> open_log(std::filesystem::path const& file) {
    if (auto const text = read_file(file)) {
        auto const last = text->find_last_of('\n');
        auto const whole = last == std::string::npos ? 0 : last + 1;
        if (whole != text->size() && ::truncate(file.c_str(), static_cast<off_t>(whole)) != 0)
            return no_file(file, "truncate");
    }
    FileDescriptor log(
        ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!log) return no_file(file, "open");
    return log;
}

}  // namespace

Result<void> KeptHost::open(std::filesystem::path file) {
    if (auto const text = read_file(file)) VFMGR_CHECK(restore(*text));
    auto log = file;
    VFMGR_TRY(log_, open_log(log.replace_extension("log")));
    file_ = std::move(file);
    note();
    return {};
}

Result<void> KeptHost::restore(std::string const& text) {
    VFMGR_TRY(auto kept, from_json_text<Kept>(text));
    kernel_.change([&](KernelView& view) { view = std::move(kept.kernel); });
    hypervisor_.change([](HypervisorView& view) { view.vms.clear(); });
    for (auto& vm : kept.vms) hypervisor_.add(std::move(vm));
    return {};
}

void KeptHost::note() {
    std::lock_guard const lock(mutex_);
    if (file_.empty()) return;
    auto const vms = hypervisor_.view();
    write(vms, kernel_.view());
}

// The new state counts from the rename on, so the line before it tells at most of a change that a
// killed process took with it.
void KeptHost::write(HypervisorView const& vms, KernelView const& kernel) {
    Kept kept{kernel, {}};
    for (auto const& [uuid, vm] : vms.vms) kept.vms.push_back(vm);
    auto now = to_json_text(nlohmann::json(kept));
    if (now == written_) return;
    auto told = nlohmann::json::array();
    for (auto const& [pci, pf] : kernel.pfs)
        for (auto const& vf : pf.vfs)
            if (auto one = told_of({pci, vf.index}, vf, vms); has_something(vf, one))
                told.push_back(std::move(one));
    auto draft = file_;
    draft += ".new";
    FileDescriptor file(
        ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR));
    auto const size = static_cast<ssize_t>(now.size());
    if (!file || ::write(file.get(), now.data(), now.size()) != size) std::abort();
    if (auto text = to_json_text(told); text != told_ || written_.empty()) {
        auto const line = to_json_text({{"host", file_.stem().string()},
                                        {"at", monotonic_seconds()},
                                        {"vfs", std::move(told)}}) +
                          "\n";
        if (::write(log_.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
            std::abort();
        told_ = std::move(text);
    }
    if (::rename(draft.c_str(), file_.c_str()) != 0) std::abort();
    written_ = std::move(now);
}

}  // namespace vfmgr::fakes
