// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/net/arp_settings.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "api/os/descriptor.hpp"

namespace vfmgr::guest {
namespace {

std::filesystem::path setting_file(std::filesystem::path const& proc, std::string const& ifname,
                                   std::string const& name) {
    return proc / "sys/net/ipv4/conf" / ifname / name;
}

Error setting_failed(std::filesystem::path const& file, char const* call) {
    return {Problem::kernel_refused,
            fmt::format("{} can't be {}", file.string(),
                        std::string_view(call) == "read" ? "read" : "set"),
            "run vf-guest as root, with /proc/sys writable",
            {errno_cause(call, errno)}};
}

}  // namespace

Result<ArpSettings> read_arp_settings(std::filesystem::path const& proc,
                                      std::string const& ifname) {
    ArpSettings found;
    for (auto const& [name, unused] : arp_settings_of_vf) {
        auto const file = setting_file(proc, ifname, name);
        FileDescriptor const open(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
        std::array<char, 32> text{};
        auto const got = open ? ::read(open.get(), text.data(), text.size()) : -1;
        if (got <= 0) return fail(setting_failed(file, "read"));
        std::string_view const line(text.data(), static_cast<std::size_t>(got));
        found[name] = line.substr(0, line.find('\n'));
    }
    return found;
}

Result<void> write_arp_settings(std::filesystem::path const& proc, std::string const& ifname,
                                ArpSettings const& settings) {
    for (auto const& [name, value] : settings) {
        auto const file = setting_file(proc, ifname, name);
        FileDescriptor const open(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
        if (!open && errno == ENOENT) return {};
        if (!open || ::write(open.get(), value.data(), value.size()) < 0)
            return fail(setting_failed(file, "write"));
    }
    return {};
}

}  // namespace vfmgr::guest
