// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/find_vf.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/inotify.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "api/os/descriptor.hpp"
#include "api/os/file.hpp"
#include "api/os/process.hpp"
#include "api/types/addresses.hpp"
#include "vfmgr/netlink/socket.hpp"

namespace vfmgr::guest {
namespace {

// udev writes it when its rules are done, and again after a rename; until then ID_RENAMING is 1.
bool is_done(std::filesystem::path const& record) {
    std::ifstream in(record);
    if (!in) return false;
    for (std::string line; std::getline(in, line);)
        if (line == "E:ID_RENAMING=1") return false;
    return true;
}

}  // namespace

Result<void> await_udev(std::filesystem::path const& run, int ifindex, Deadline deadline) {
    auto const folder = run / "udev/data";
    std::error_code ignored;
    if (!std::filesystem::exists(run / "udev/control", ignored)) return {};
    FileDescriptor const changes(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    // Precedes the first check. udev replaces a record by renaming a new one over it.
    if (!changes || ::inotify_add_watch(changes.get(), folder.c_str(), IN_MOVED_TO) < 0)
        return fail({Problem::unavailable,
                     fmt::format("{} can't be watched", folder.string()),
                     "raise fs.inotify.max_user_instances",
                     {errno_cause("inotify_add_watch", errno)}});
    while (!is_done(folder / fmt::format("n{}", ifindex))) {
        VFMGR_TRY(auto const ready, await_readable(std::array{changes.get()}, deadline));
        if (ready == Readiness::deadline_passed)
            return fail(Problem::timed_out,
                        fmt::format("udev has not finished with the netdev of ifindex {}", ifindex),
                        "check what udev does: journalctl -u systemd-udevd");
        std::array<std::byte, 4096> events{};
        while (::read(changes.get(), events.data(), events.size()) > 0) {
        }
    }
    return {};
}

Result<void> run_program(std::vector<std::string> const& arguments, Deadline deadline) {
    auto const& program = arguments.front();
    auto const child = spawn({.arguments = arguments});
    if (!child)
        return fail(Problem::unsupported,
                    fmt::format("{} can't be run: {}", program, errno_name(child.error())),
                    fmt::format("install {}", program));
    auto const end = end_by(*child, deadline);
    if (!end)
        return fail(Problem::timed_out, program + " did not end in time and was killed",
                    "check the kernel log: dmesg | tail");
    if (end->well()) return {};
    return fail(
        Problem::unsupported, fmt::format("{} ended with {}", program, end->how),
        fmt::format("run it by hand and read what it prints: {}", fmt::join(arguments, " ")));
}

namespace {

Error missing(std::string const& module, std::string why) {
    utsname names{};
    std::string const kernel = ::uname(&names) == 0 ? names.release : "this kernel";
    return {Problem::unsupported,
            fmt::format("the kernel module {} is not loaded: {}", module, std::move(why)),
            fmt::format("install {} for kernel {} (Debian: linux-image-amd64, not -cloud; Ubuntu: "
                        "linux-modules-extra-{}; RHEL: kernel-modules-extra) and run modprobe {}",
                        module, kernel, kernel, module)};
}

}  // namespace

Result<void> need_module(std::string const& sysfs, std::string const& module, Deadline deadline) {
    if (std::error_code ignored; std::filesystem::exists(sysfs + "/module/" + module, ignored))
        return {};
    auto loaded = run_program({"modprobe", module}, deadline);
    if (!loaded && loaded.error().problem == Problem::unsupported)
        return fail(missing(module, loaded.error().detail));
    return loaded;
}

namespace {

namespace fs = std::filesystem;
constexpr std::uint16_t hardware_ethernet = 1;
constexpr std::uint16_t hardware_infiniband = 32;

std::string first_word(fs::path const& file) {
    std::ifstream in(file);
    std::string word;
    in >> word;
    return word;
}

bool is_network_class(std::string const& text) {  // 0x0200.. Ethernet, 0x0207.. InfiniBand
    return text.starts_with("0x0200") || text.starts_with("0x0207");
}

}  // namespace

Netdev const* find_vf(std::vector<Netdev> const& netdevs, GuestAttachment const& attachment) {
    auto const is_vf = [&](Netdev const& netdev) {
        bool const on_pci =
            netdev.parent_device.empty() || PciAddress::parse(netdev.parent_device).has_value();
        if (!on_pci) return false;
        // The kernel gives IPoIB's own interface a kind, too, but no parent (ipoib_get_iflink()).
        if (attachment.guid)
            return netdev.port_guid == attachment.guid &&
                   netdev.hardware_type == hardware_infiniband && !netdev.parent_ifindex;
        return netdev.mac == attachment.mac && netdev.hardware_type == hardware_ethernet &&
               netdev.kind.empty();
    };
    auto const found = std::ranges::find_if(netdevs, is_vf);
    return found == netdevs.end() ? nullptr : &*found;
}

std::vector<std::string> driverless_functions(std::string const& sysfs) {
    std::vector<std::string> found;
    for (auto const& function : paths_in(fs::path(sysfs) / "bus/pci/devices")) {
        std::error_code ignored;
        if (!is_network_class(first_word(function / "class")) ||
            fs::exists(function / "driver", ignored))
            continue;
        auto const id = [&](char const* file) {
            auto const text = first_word(function / file);
            return text.starts_with("0x") ? text.substr(2) : text;
        };
        found.push_back(
            fmt::format("{} [{}:{}]", function.filename().string(), id("vendor"), id("device")));
    }
    return found;
}

std::string identity_of(std::optional<MacAddress> const& mac, std::optional<Guid> const& guid) {
    return guid ? "port GUID " + to_string(*guid) : "MAC " + to_string(mac.value_or(MacAddress{}));
}

Error no_netdev(GuestAttachment const& attachment) {
    Error error{
        Problem::unsupported,
        fmt::format("this VM has no netdev with {}", identity_of(attachment.mac, attachment.guid)),
        attachment.guid
            ? "check that the VF is plugged in (ibstat shows its port's GUID) and that its "
              "driver and IPoIB are loaded: modprobe -a mlx5_ib ib_ipoib"
            : "check that the VF is plugged in and that its driver is loaded"};
    auto const driverless = driverless_functions("/sys");
    if (driverless.empty()) return error;
    error.detail +=
        fmt::format("; PCI functions without a driver: {}", fmt::join(driverless, ", "));
    error.remedy = "load the VF's driver in the VM (igbvf, ixgbevf, iavf, mlx5_core, …)";
    return error;
}

bool expects_rdma_device(std::string const& sysfs, std::string const& ifname) {
    for (auto const& entry : paths_in(fs::path(sysfs) / "class/net" / ifname / "device")) {
        auto const name = entry.filename().string();
        for (auto const* part : {".rdma.", ".roce.", ".iwarp."})
            if (name.find(part) != std::string::npos) return true;
        if (name == "infiniband") return true;
    }
    return false;
}

}  // namespace vfmgr::guest
