// SPDX-License-Identifier: Apache-2.0
// What the kernel tells of a DMA-BUF descriptor, and of what this process has.
// No state; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
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
// By RDMA drivers and the like, VmPin of proc_pid_status(5); what GPUs have does not count.
[[nodiscard]] std::uint64_t pinned_bytes();
[[nodiscard]] std::uint64_t parse_pinned_bytes(std::string_view status);  // 0 where it lacks

}  // namespace vfmgr::guest::gpu
