// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/verify/kernel_log.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

#include "guest-tools/verify/netdev_stack.hpp"

namespace vfmgr::verify {
namespace {

constexpr std::size_t record_bytes_max = 8192;  // CONSOLE_EXT_LOG_MAX
constexpr int records_max = 2000;               // more than this is a flooded log

bool names_any(std::string_view line, std::vector<std::string> const& names) {
    return std::ranges::any_of(
        names, [&](std::string const& name) { return line.find(name) != line.npos; });
}

}  // namespace

std::optional<std::string_view> text_of_record(std::string_view record) {
    auto const begin = record.find(';');
    if (begin == record.npos) return std::nullopt;
    auto const text = record.substr(begin + 1);
    return text.substr(0, text.find('\n'));
}

KernelLog KernelLog::follow(std::string const& path) {
    KernelLog log;
    log.log_ = FileDescriptor(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (log.log_) ::lseek(log.log_.get(), 0, SEEK_END);
    return log;
}

std::optional<LoggedFault> KernelLog::find(std::vector<std::string> const& names) {
    std::array<char, record_bytes_max> room{};
    for (int i = 0; log_ && i < records_max; ++i) {
        auto const got = ::read(log_.get(), room.data(), room.size());
        if (got < 0 && errno == EPIPE) continue;  // the next record has been overwritten
        if (got <= 0) break;
        auto const line = text_of_record({room.data(), static_cast<std::size_t>(got)});
        auto const fault = line ? log_fault(*line) : std::nullopt;
        if (fault && (fault->whole_machine || names_any(*line, names)))
            return LoggedFault{std::string(*line), *fault};
    }
    return std::nullopt;
}

std::vector<std::string> names_in_log(std::string const& ifname, std::string const& sysfs) {
    namespace fs = std::filesystem;
    std::vector<std::string> names{ifname + ":", ifname + " "};
    std::error_code error;
    auto const device = fs::canonical(pci_netdev(sysfs, ifname) / "device", error);
    if (!error) names.push_back(device.filename().string());
    return names;
}

}  // namespace vfmgr::verify
