// SPDX-License-Identifier: Apache-2.0
// What the kernel tells of a DMA-BUF descriptor and of how many descriptors this process has.
// No state; any thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace vfmgr::guest::gpu {

// Who made it, of /proc/self/fdinfo/N: "nv_dmabuf"; absent where it is no DMA-BUF. At most 64
// bytes, all printable.
[[nodiscard]] std::optional<std::string> parse_exporter(std::string_view fdinfo);
[[nodiscard]] std::optional<std::string> exporter_of(int descriptor);

// Of this process, now.
[[nodiscard]] std::size_t open_descriptors();

}  // namespace vfmgr::guest::gpu
