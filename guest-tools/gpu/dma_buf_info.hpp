// SPDX-License-Identifier: Apache-2.0
// What the kernel reports about a DMA-BUF descriptor and about what this process holds. No state;
// any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vfmgr::guest::gpu {

// Returns the exporter from /proc/self/fdinfo/N: "nv_dmabuf"; absent if it is not a DMA-BUF. At
// most 64 bytes, all printable.
[[nodiscard]] std::optional<std::string> parse_exporter(std::string_view fdinfo);
[[nodiscard]] std::optional<std::string> exporter_of(int descriptor);

// Counts this process's descriptors now.
[[nodiscard]] std::size_t open_descriptors();
// Pinned by RDMA drivers and the like, VmPin of proc_pid_status(5). Excludes memory of GPUs.
[[nodiscard]] std::uint64_t pinned_bytes();
[[nodiscard]] std::uint64_t parse_pinned_bytes(std::string_view status);  // 0 if it is missing

}  // namespace vfmgr::guest::gpu
