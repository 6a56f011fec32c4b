// SPDX-License-Identifier: Apache-2.0
#include "vfmgr/kernel/sysfs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <system_error>

#include "api/os/descriptor.hpp"
#include "api/types/text.hpp"

namespace vfmgr {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t text_bytes_max = 4096;  // a sysfs attribute is at most a page

Error unreadable(fs::path const& file, std::string const& call, int error) {
    return {
        Problem::kernel_refused,
        fmt::format("{} can't be read: {}", file.string(), std::generic_category().message(error)),
        "check that the device still exists, and see the kernel's log: journalctl -k",
        {errno_cause(call + " " + file.string(), error)}};
}

// Parses "virtfn12" as 12. No other name is a VF.
std::optional<std::uint16_t> virtfn_index(std::string_view name) {
    constexpr std::string_view prefix = "virtfn";
    if (!name.starts_with(prefix)) return std::nullopt;
    auto const index = parse_digits(name.substr(prefix.size()), {.max = UINT16_MAX});
    return index ? std::optional(static_cast<std::uint16_t>(*index)) : std::nullopt;
}

// An unreadable folder is an error: an empty list would be a valid answer.
Result<std::vector<std::string>> list_entries(fs::path const& folder) {
    std::error_code error;
    fs::directory_iterator it(folder, error);
    if (error) return fail(unreadable(folder, "opendir", error.value()));
    std::vector<std::string> names;
    // Entries may go while we read: increment() with an error code then ends the loop.
    for (fs::directory_iterator const end; !error && it != end; it.increment(error))
        names.push_back(it->path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace

fs::path running_kernels_modules() {
    utsname kernel{};
    ::uname(&kernel);  // fails only for a bad pointer
    return fs::path("/lib/modules") / kernel.release;
}

Result<std::string> read_text(fs::path const& file) {
    FileDescriptor const fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (!fd) return fail(unreadable(file, "open", errno));
    std::array<char, text_bytes_max> buffer{};
    auto const got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0) return fail(unreadable(file, "read", errno));
    std::string text(buffer.data(), static_cast<std::size_t>(got));
    if (text.ends_with('\n')) text.pop_back();
    return text;
}

Result<std::uint64_t> read_number(fs::path const& file) {
    VFMGR_TRY(auto const text, read_text(file));
    bool const hexadecimal = text.starts_with("0x");
    auto const number = parse_digits(std::string_view(text).substr(hexadecimal ? 2 : 0),
                                     {.base = hexadecimal ? 16 : 10});
    if (number) return *number;
    return fail(Problem::kernel_refused,
                fmt::format("{} contains \"{}\", which is not a number", file.string(), text),
                "check the device's driver, which reports this value");
}

int write_text(fs::path const& file, std::string_view text) {
    FileDescriptor const fd(::open(file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
    if (!fd) return errno;
    auto const written = ::write(fd.get(), text.data(), text.size());
    if (written < 0) return errno;
    return static_cast<std::size_t>(written) == text.size() ? 0 : EIO;
}

std::optional<std::string> link_name(fs::path const& link) {
    // fs::read_symlink() makes two calls, and a thousand VFs have thousands of links to read.
    std::array<char, PATH_MAX> target;
    auto const size = ::readlink(link.c_str(), target.data(), target.size());
    if (size < 0) return std::nullopt;
    std::string_view const text(target.data(), static_cast<std::size_t>(size));
    return std::string(text.substr(text.rfind('/') + 1));
}

std::vector<std::string> entries(fs::path const& folder) {
    return list_entries(folder).value_or(std::vector<std::string>());
}

fs::path pci_folder(LinuxKernelRoots const& roots, PciAddress const& pci) {
    // Builds one string: joining paths parses them, and a thousand VFs take thousands of joins.
    if (!roots.devices.empty()) return roots.devices.native() + "/" + to_string(pci);
    return roots.sysfs.native() + "/bus/pci/devices/" + to_string(pci);
}

LinuxKernelRoots roots_beside(LinuxKernelRoots const& roots, PciAddress const& pf) {
    auto beside = roots;
    std::error_code error;
    auto const folder = fs::canonical(pci_folder(roots, pf), error);
    if (!error && folder.filename() == to_string(pf)) beside.devices = folder.parent_path();
    return beside;
}

Result<std::vector<PciAddress>> list_pfs(LinuxKernelRoots const& roots) {
    auto const devices = roots.sysfs / "bus/pci/devices";
    std::error_code error;
    if (!fs::is_directory(devices, error))
        return fail(unreadable(devices, "opendir", error ? error.value() : ENOTDIR));
    VFMGR_TRY(auto const names, list_entries(devices));
    std::vector<PciAddress> pfs;
    for (auto const& name : names) {
        if (!fs::exists(devices / name / "sriov_totalvfs", error)) continue;
        if (auto const pci = PciAddress::parse(name)) pfs.push_back(*pci);
    }
    std::sort(pfs.begin(), pfs.end());
    return pfs;
}

Result<bool> is_pf(LinuxKernelRoots const& roots, PciAddress const& pci) {
    auto const file = pci_folder(roots, pci) / "sriov_totalvfs";
    std::error_code error;
    bool const exists = fs::exists(file, error);
    if (error) return fail(unreadable(file, "stat", error.value()));
    return exists;
}

Error no_such_device(LinuxKernelRoots const& roots, PciAddress const& pf, int error) {
    return {Problem::not_found,
            fmt::format("there is no PCI device {}", to_string(pf)),
            "list the PFs: vfctl pf list",
            {errno_cause("opendir " + pci_folder(roots, pf).string(), error)}};
}

Result<VfAddresses> list_vfs(LinuxKernelRoots const& roots, PciAddress const& pf) {
    auto const folder = pci_folder(roots, pf);
    std::error_code error;
    if (!fs::is_directory(folder, error))
        return fail(no_such_device(roots, pf, error ? error.value() : ENOENT));
    VFMGR_TRY(auto const names, list_entries(folder));
    VfAddresses vfs;
    for (auto const& name : names) {
        auto const index = virtfn_index(name);
        auto const target = index ? link_name(folder / name) : std::nullopt;
        if (!target) continue;
        VFMGR_TRY(auto const pci, PciAddress::parse(*target));
        vfs.emplace(*index, pci);
    }
    return vfs;
}

Result<PciAddress> vf_address(LinuxKernelRoots const& roots, VfId const& vf) {
    auto const link = pci_folder(roots, vf.pf) / fmt::format("virtfn{}", vf.index);
    if (auto const target = link_name(link)) return PciAddress::parse(*target);
    VFMGR_TRY(auto const vfs, list_vfs(roots, vf.pf));
    return fail(
        Problem::not_found,
        fmt::format("{} has no VF {}; it has {} VFs", to_string(vf.pf), vf.index, vfs.size()),
        "choose one that exists, or request more VFs: vfctl pf set");
}

Result<std::uint16_t> total_vfs(LinuxKernelRoots const& roots, PciAddress const& pf) {
    auto const file = pci_folder(roots, pf) / "sriov_totalvfs";
    VFMGR_TRY(auto const total, read_number(file));
    if (total <= UINT16_MAX) return static_cast<std::uint16_t>(total);
    return fail(
        Problem::kernel_refused,
        fmt::format("{} contains {}, which is more VFs than a PF can have", file.string(), total),
        "check the device's driver, which reports this value");
}

std::optional<std::string> driver_of(LinuxKernelRoots const& roots, PciAddress const& pci) {
    return link_name(pci_folder(roots, pci) / "driver");
}

std::optional<std::uint32_t> iommu_group_of(LinuxKernelRoots const& roots, PciAddress const& pci) {
    auto const name = link_name(pci_folder(roots, pci) / "iommu_group");
    auto const group = name ? parse_digits(*name, {.max = UINT32_MAX}) : std::nullopt;
    return group ? std::optional(static_cast<std::uint32_t>(*group)) : std::nullopt;
}

std::optional<std::string> pcie_root_of(LinuxKernelRoots const& roots, PciAddress const& pci) {
    std::error_code error;
    auto const target = fs::read_symlink(pci_folder(roots, pci), error);
    if (error) return std::nullopt;
    // ../../../devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0
    for (auto const& part : target)
        if (part.string().starts_with("pci")) return part.string();
    return std::nullopt;
}

std::optional<std::int32_t> numa_node_of(LinuxKernelRoots const& roots, PciAddress const& pci) {
    // "-1" means no node, and read_number() rejects it too.
    auto const node = read_number(pci_folder(roots, pci) / "numa_node");
    if (!node || *node > INT32_MAX) return std::nullopt;
    return static_cast<std::int32_t>(*node);
}

std::vector<std::string> netdevs_of(LinuxKernelRoots const& roots, PciAddress const& pci) {
    return entries(pci_folder(roots, pci) / "net");
}

std::vector<std::string> rdma_devices_of(LinuxKernelRoots const& roots, PciAddress const& pci) {
    return entries(pci_folder(roots, pci) / "infiniband");
}

std::optional<std::int32_t> process_id(std::string_view name) {
    auto const pid = parse_digits(name, {.max = INT32_MAX});
    return pid && *pid > 0 ? std::optional(static_cast<std::int32_t>(*pid)) : std::nullopt;
}

std::string process_name(LinuxKernelRoots const& roots, std::int32_t pid) {
    return read_text(roots.proc / std::to_string(pid) / "comm").value_or("");
}

bool bound_to_vfio(LinuxKernelRoots const& roots, PciAddress const& pci) {
    return !entries(pci_folder(roots, pci) / "vfio-dev").empty();
}

}  // namespace vfmgr
