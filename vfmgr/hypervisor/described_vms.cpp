// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/hypervisor/described_vms.hpp"

#include <sys/stat.h>

#include <cerrno>

namespace vfmgr {
namespace {

// The coarsest timestamps that a file system has. Within this time a file can be replaced twice,
// get its first inode again, and look unchanged.
constexpr std::chrono::seconds timestamps_apart{2};

Time::duration since_epoch(timespec const& time) {
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

}  // namespace

std::optional<LibvirtFolders> folders_of(std::string_view uri) {
    if (uri != "qemu:///system") return std::nullopt;
    return LibvirtFolders{"/etc/libvirt/qemu", "/run/libvirt/qemu"};
}

// Returns false when the file is not as it is expected to be: there, or not there.
bool DescribedVms::read_state(std::filesystem::path const& file, bool expected,
                              std::optional<FileState>& state) {
    struct stat status{};
    if (::stat(file.c_str(), &status) != 0) return errno == ENOENT && !expected;
    state = FileState{status.st_dev, status.st_ino, status.st_size, since_epoch(status.st_mtim),
                      since_epoch(status.st_ctim)};
    return expected;
}

std::optional<DescribedVms::VmFiles> DescribedVms::files_of(ListedVm const& vm) const {
    if (!folders_ || vm.name.find('/') != vm.name.npos) return std::nullopt;
    VmFiles files;
    auto const name = vm.name + ".xml";
    bool const as_expected =
        read_state(folders_->config / name, vm.persistent, files.config) &&
        read_state(folders_->status / name, vm.start_id.has_value(), files.status);
    return as_expected ? std::optional(files) : std::nullopt;
}

// A file from the future was written before the clock was set back, so its age is unknown.
bool DescribedVms::at_rest(VmFiles const& files) const {
    auto const now = clock_.now().time_since_epoch();
    for (auto const* const file : {&files.config, &files.status})
        if (*file && now - (*file)->changed < timestamps_apart) return false;
    return true;
}

std::optional<VmInfo> DescribedVms::kept(ListedVm const& vm, VmFiles const& files) const {
    std::lock_guard const lock(mutex_);
    auto const found = descriptions_.find(vm.uuid);
    if (found == descriptions_.end()) return std::nullopt;
    auto const& [as_listed, with, info] = *found->second;
    return as_listed == vm && with == files ? info : std::nullopt;
}

// The files are read first: a change while libvirt describes the VM shows at the next call.
Result<VmInfo> DescribedVms::find(ListedVm const& vm, Describe const& describe) {
    auto const files = files_of(vm);
    if (!files || !at_rest(*files)) {
        forget(vm.uuid);
        return describe();
    }
    if (auto info = kept(vm, *files)) return std::move(*info);
    auto const made = std::make_shared<Description>(Description{vm, *files, std::nullopt});
    {
        std::lock_guard const lock(mutex_);
        descriptions_[vm.uuid] = made;
    }
    VFMGR_TRY(auto info, describe());
    std::lock_guard const lock(mutex_);
    made->info = info;  // found again only if no event has removed it meanwhile
    return info;
}

void DescribedVms::forget(std::string const& uuid) {
    std::lock_guard const lock(mutex_);
    descriptions_.erase(uuid);
}

void DescribedVms::forget_all() {
    std::lock_guard const lock(mutex_);
    descriptions_.clear();
}

void DescribedVms::forget_all_but(std::map<std::string, VmInfo> const& vms) {
    std::lock_guard const lock(mutex_);
    std::erase_if(descriptions_, [&](auto const& each) { return !vms.contains(each.first); });
}

}  // namespace vfmgr
