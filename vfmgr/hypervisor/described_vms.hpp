// SPDX-License-Identifier: Apache-2.0
// What libvirt answered about each VM, for as long as the files in which libvirtd keeps the VM stay
// as they are: libvirtd takes a second of CPU to describe a hundred VMs. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/types/problem.hpp"
#include "api/types/time.hpp"
#include "api/types/vm_info.hpp"

namespace vfmgr {

// The folders with libvirtd's file NAME.xml of each VM. It replaces the file whenever it changes
// the VM (LIBVIRT.md#files-of-a-vm).
struct LibvirtFolders {
    std::filesystem::path config;  // of persistent VMs
    std::filesystem::path status;  // of running VMs: their live XML
};

// Nothing when that libvirt is not this host's own: no file here shows its changes.
[[nodiscard]] std::optional<LibvirtFolders> folders_of(std::string_view uri);

// A VM as libvirt lists it. The list is read each time.
struct ListedVm {
    std::string uuid;
    std::string name;
    std::optional<std::int32_t> start_id;  // absent: it does not run
    bool persistent = false;
    std::vector<std::string> hostdev_networks;  // of the host, which a description depends on
    bool operator==(ListedVm const&) const = default;
};

class DescribedVms {
  public:
    using Describe = std::function<Result<VmInfo>()>;

    explicit DescribedVms(std::optional<LibvirtFolders> folders,
                          Clock const& clock = system_clock())
        : folders_(std::move(folders)), clock_(clock) {}

    // Returns the last description if neither the VM nor its files have changed since, and calls
    // `describe` otherwise. Whatever is not certain counts as a change.
    [[nodiscard]] Result<VmInfo> find(ListedVm const& vm, Describe const& describe);
    // libvirt has sent an event about it. A description that is being made is not kept either.
    void forget(std::string const& uuid);
    void forget_all();
    void forget_all_but(std::map<std::string, VmInfo> const& vms);

  private:
    // Identifies the content of a file that is only ever replaced.
    struct FileState {
        dev_t device = 0;
        ino_t inode = 0;
        off_t size = 0;
        Time::duration modified{};
        Time::duration changed{};
        bool operator==(FileState const&) const = default;
    };
    struct VmFiles {
        std::optional<FileState> config;
        std::optional<FileState> status;
        bool operator==(VmFiles const&) const = default;
    };
    struct Description {
        ListedVm vm;
        VmFiles files;
        std::optional<VmInfo> info;  // absent while libvirt is describing it
    };

    [[nodiscard]] static bool read_state(std::filesystem::path const& file, bool expected,
                                         std::optional<FileState>& state);
    [[nodiscard]] std::optional<VmFiles> files_of(ListedVm const& vm) const;
    [[nodiscard]] bool at_rest(VmFiles const& files) const;
    [[nodiscard]] std::optional<VmInfo> kept(ListedVm const& vm, VmFiles const& files) const;

    std::optional<LibvirtFolders> const folders_;
    Clock const& clock_;
    mutable std::mutex mutex_;
    std::map<std::string, std::shared_ptr<Description>> descriptions_;  // by UUID; mutex_
};

}  // namespace vfmgr
