// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/dma_buf_info.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "api/os/file.hpp"

namespace vfmgr::guest::gpu {
std::optional<std::string> parse_exporter(std::string_view fdinfo) {
    constexpr std::string_view key = "exp_name:";
    constexpr std::size_t bytes_max = 64;
    while (!fdinfo.empty()) {
        auto line = fdinfo.substr(0, fdinfo.find('\n'));
        fdinfo.remove_prefix(std::min(line.size() + 1, fdinfo.size()));
        if (!line.starts_with(key)) continue;
        line.remove_prefix(key.size());
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        bool const printable =
            std::ranges::all_of(line, [](char byte) { return byte > ' ' && byte < '\x7f'; });
        if (line.empty() || line.size() > bytes_max || !printable) return std::nullopt;
        return std::string(line);
    }
    return std::nullopt;
}

std::optional<std::string> exporter_of(int descriptor) {
    return parse_exporter(
        read_file("/proc/self/fdinfo/" + std::to_string(descriptor)).value_or(""));
}

std::size_t open_descriptors() {
    std::error_code error;
    std::size_t count = 0;
    for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; at != end;
         at.increment(error))
        ++count;
    return count;
}

std::uint64_t parse_pinned_bytes(std::string_view status) {
    constexpr std::string_view key = "\nVmPin:";
    constexpr std::uint64_t kibibyte = 1024;
    auto const at = status.find(key);
    if (at == status.npos) return 0;
    status.remove_prefix(at + key.size());
    status.remove_prefix(std::min(status.find_first_not_of(" \t"), status.size()));
    std::uint64_t count = 0;
    std::from_chars(status.data(), status.data() + status.size(), count);
    return count * kibibyte;
}

std::uint64_t pinned_bytes() {
    return parse_pinned_bytes(read_file("/proc/self/status").value_or(""));
}

}  // namespace vfmgr::guest::gpu
