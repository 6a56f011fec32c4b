// SPDX-License-Identifier: Apache-2.0
#include "guest-tools/gpu/dma_buf_info.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

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
    std::ifstream file("/proc/self/fdinfo/" + std::to_string(descriptor));
    std::ostringstream text;
    text << file.rdbuf();
    return parse_exporter(text.str());
}

std::size_t open_descriptors() {
    std::error_code error;
    std::size_t count = 0;
    for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; at != end;
         at.increment(error))
        ++count;
    return count;
}

}  // namespace vfmgr::guest::gpu
